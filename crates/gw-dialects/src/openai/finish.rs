//! Finish reasons: the wire's words and gw's.

use gw_types::FinishReason;

/// Returns what a `finish_reason` means, in whichever case it is written.
pub(crate) fn read(reason: &str) -> FinishReason {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "complete" => FinishReason::Stop,
        "length" | "max_tokens" | "max_length" | "model_length" => FinishReason::Length,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        // Google's compatible endpoint says behind a colon which filter it was.
        reason if reason.starts_with("content_filter") => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Other,
    }
}

/// Returns the word of the wire. A refusal stands in a field of its own there and ends with `stop`.
pub(crate) const fn write(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop | FinishReason::Refusal | FinishReason::Other => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
    }
}

/// Returns the reason of a whole answer: the first one, but one that is not `Stop` before one that is.
pub(crate) fn combine(so_far: Option<FinishReason>, next: FinishReason) -> FinishReason {
    match so_far {
        None | Some(FinishReason::Stop) => next,
        Some(reason) => reason,
    }
}
