//! Finish reasons: Gemini's words and numbers, and what they mean.

use gw_types::FinishReason;

use crate::json::{Node, Value};

/// What a `finishReason` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Not ended yet.
    None,
    /// Ended for this reason.
    Reason(FinishReason),
    /// What the model wrote could not be read by the provider: there is no answer, whatever else was sent.
    Broken,
}

/// Reads a `finishReason`: a word, or a number where a transcoding client asked for numbers.
///
/// Numbers are those of Vertex AI's protocol buffers, the only place where they were seen; up to 5 those of the Gemini
/// API are the same.
pub(super) fn read(node: &Node<'_>) -> Ending {
    match &node.value {
        Value::String(word) => word_means(&word.decoded()),
        Value::Number => node.as_u64().map_or(Ending::Reason(FinishReason::Other), number_means),
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Null => Ending::None,
    }
}

fn word_means(word: &str) -> Ending {
    match word {
        "" | "FINISH_REASON_UNSPECIFIED" => Ending::None,
        "STOP" => Ending::Reason(FinishReason::Stop),
        "MAX_TOKENS" => Ending::Reason(FinishReason::Length),
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ending::Reason(FinishReason::ContentFilter),
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => Ending::Broken,
        // UNEXPECTED_TOOL_CALL may still come with the call, which the caller gets; OTHER with all of the answer.
        _ => Ending::Reason(FinishReason::Other),
    }
}

fn number_means(number: u64) -> Ending {
    match number {
        0 => Ending::None,
        1 => Ending::Reason(FinishReason::Stop),
        2 => Ending::Reason(FinishReason::Length),
        3 | 4 | 6..=8 | 10..=13 => Ending::Reason(FinishReason::ContentFilter),
        9 => Ending::Broken,
        _ => Ending::Reason(FinishReason::Other),
    }
}

#[cfg(test)]
mod tests {
    use gw_types::FinishReason;

    use super::{Ending, read};
    use crate::json::Node;

    #[track_caller]
    fn check(json: &str, expected: Ending) {
        assert_eq!(read(&Node::read(json).unwrap()), expected, "{json}");
    }

    #[test]
    fn words_and_numbers_mean_the_same() {
        check("\"STOP\"", Ending::Reason(FinishReason::Stop));
        check("1", Ending::Reason(FinishReason::Stop));
        check("\"MAX_TOKENS\"", Ending::Reason(FinishReason::Length));
        check("2", Ending::Reason(FinishReason::Length));
        check("\"SAFETY\"", Ending::Reason(FinishReason::ContentFilter));
        check("3", Ending::Reason(FinishReason::ContentFilter));
        check("\"MALFORMED_FUNCTION_CALL\"", Ending::Broken);
        check("9", Ending::Broken);
        check("\"UNEXPECTED_TOOL_CALL\"", Ending::Reason(FinishReason::Other));
        check("15", Ending::Reason(FinishReason::Other));
        check("\"NEW_REASON\"", Ending::Reason(FinishReason::Other));
        check("-1", Ending::Reason(FinishReason::Other));
        check("\"FINISH_REASON_UNSPECIFIED\"", Ending::None);
        check("0", Ending::None);
        check("null", Ending::None);
    }
}
