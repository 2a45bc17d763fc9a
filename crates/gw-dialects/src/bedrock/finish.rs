//! Stop reasons: Bedrock's words and what they mean.

use gw_types::FinishReason;

/// What a `stopReason` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Ended for this reason.
    Reason(FinishReason),
    /// What the model wrote could not be read by the provider: there is no answer, whatever else was sent.
    Broken,
}

/// Reads a `stopReason`.
pub(super) fn read(reason: &str) -> Ending {
    Ending::Reason(match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        "malformed_model_output" | "malformed_tool_use" => return Ending::Broken,
        _ => FinishReason::Other,
    })
}

#[cfg(test)]
mod tests {
    use gw_types::FinishReason;

    use super::{Ending, read};

    #[test]
    fn words_have_their_meaning() {
        let table = [
            ("end_turn", Ending::Reason(FinishReason::Stop)),
            ("stop_sequence", Ending::Reason(FinishReason::Stop)),
            ("tool_use", Ending::Reason(FinishReason::ToolCalls)),
            ("max_tokens", Ending::Reason(FinishReason::Length)),
            ("model_context_window_exceeded", Ending::Reason(FinishReason::Length)),
            ("guardrail_intervened", Ending::Reason(FinishReason::ContentFilter)),
            ("content_filtered", Ending::Reason(FinishReason::ContentFilter)),
            ("refusal", Ending::Reason(FinishReason::Refusal)),
            ("malformed_tool_use", Ending::Broken),
            ("malformed_model_output", Ending::Broken),
            ("new_reason", Ending::Reason(FinishReason::Other)),
        ];
        for (word, expected) in table {
            assert_eq!(read(word), expected, "{word}");
        }
    }
}
