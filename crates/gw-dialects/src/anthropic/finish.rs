//! Finish reasons: the wire's words and gw's.

use gw_types::FinishReason;

/// Returns what a `stop_reason` means.
pub(super) fn read(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::Refusal,
        // `pause_turn` wants the turn sent back, which no other format knows.
        _ => FinishReason::Other,
    }
}

/// Returns the word of the wire; a stop sequence that was met has one of its own.
pub(super) const fn write(reason: FinishReason, stop_sequence: bool) -> &'static str {
    match reason {
        FinishReason::Stop if stop_sequence => "stop_sequence",
        FinishReason::Stop | FinishReason::Other => "end_turn",
        FinishReason::Length => "max_tokens",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::ContentFilter | FinishReason::Refusal => "refusal",
    }
}

#[cfg(test)]
mod tests {
    use gw_types::FinishReason;

    use super::{read, write};

    #[test]
    fn reasons_read_back() {
        for reason in ["end_turn", "max_tokens", "tool_use", "refusal"] {
            assert_eq!(write(read(reason), false), reason);
        }
        assert_eq!(write(read("stop_sequence"), true), "stop_sequence");
        assert_eq!(read("model_context_window_exceeded"), FinishReason::Length);
        assert_eq!(read("pause_turn"), FinishReason::Other);
    }
}
