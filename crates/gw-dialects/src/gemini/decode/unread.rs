//! What of Gemini's answer has no place in the neutral form.

use crate::{json::Node, neutral::UnreadFields};

/// Looks for what is not read of an answer, or of a document of a streamed one.
pub(super) fn look(answer: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(answer, "", |name| {
        matches!(
            name,
            "candidates"
                | "usageMetadata"
                | "modelVersion"
                | "responseId"
                | "createTime"
                | "promptFeedback"
                | "error"
        )
    });
    for candidate in answer.get("candidates").map(Node::items).unwrap_or_default() {
        look_at_candidate(candidate, fields);
    }
}

fn look_at_candidate(candidate: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(candidate, "candidates[].", |name| match name {
        "content" | "finishReason" | "finishMessage" | "index" | "citationMetadata" | "groundingMetadata" => {
            true
        }
        "logprobsResult" => true,
        // Sums over what is there, and what a filter thought of it.
        "avgLogprobs" | "tokenCount" | "safetyRatings" => true,
        _ => false,
    });
    let Some(grounding) = candidate.get("groundingMetadata") else { return };
    const PLACE: &str = "candidates[].groundingMetadata.";
    fields.look(grounding, PLACE, |name| {
        matches!(name, "groundingChunks" | "groundingSupports" | "retrievalMetadata")
    });
    let is_empty = |name| grounding.get(name).map(Node::items).unwrap_or_default().is_empty();
    if is_empty("groundingSupports") && !is_empty("groundingChunks") {
        fields.add(PLACE, "groundingChunks");
    }
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::{json::Node, neutral::UnreadFields};

    #[track_caller]
    fn check(candidate: &str, expected: &[&str]) {
        let mut fields = UnreadFields::default();
        let text = format!(r#"{{"candidates":[{candidate}],"modelVersion":"m"}}"#);
        look(&Node::read(&text).unwrap(), &mut fields);
        assert_eq!(fields.into_paths(), expected, "{candidate}");
    }

    #[test]
    fn what_has_no_place_is_named() {
        check(
            r#"{"content":{"parts":[]},"finishReason":"STOP","safetyRatings":[{"probability":"LOW"}]}"#,
            &[],
        );
        check(r#"{"urlContextMetadata":{"urlMetadata":[{}]}}"#, &["candidates[].urlContextMetadata"]);
        check(
            r#"{"groundingMetadata":{"searchEntryPoint":{"renderedContent":"x"},"groundingChunks":[{}]}}"#,
            &[
                "candidates[].groundingMetadata.searchEntryPoint",
                "candidates[].groundingMetadata.groundingChunks",
            ],
        );
    }
}
