//! What of an answer of chat completions has no place in the neutral form.

use crate::{json::Node, neutral::UnreadFields};

/// Looks for what is not read of an answer, or of a chunk of a streamed one.
pub(super) fn look(answer: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(answer, "", is_known_of_answer);
    for choice in answer.get("choices").map(Node::items).unwrap_or_default() {
        fields.look(choice, "choices[].", is_known_of_choice);
        if let Some(message) = choice.get("message").or(choice.get("delta")) {
            look_at_message(message, fields);
        }
    }
}

fn look_at_message(message: &Node<'_>, fields: &mut UnreadFields) {
    const PLACE: &str = "choices[].message.";
    fields.look(message, PLACE, is_known_of_message);
    let annotations = message.get("annotations").map(Node::items).unwrap_or_default();
    if annotations.iter().any(|annotation| annotation.get("url_citation").is_none()) {
        fields.add(PLACE, "annotations");
    }
    // Text is a string, or a list of parts at Mistral.
    let parts = message.get("content").map(Node::items).unwrap_or_default();
    if parts.iter().any(|part| is_unread(part)) {
        fields.add(PLACE, "content");
    }
}

fn is_unread(part: &Node<'_>) -> bool {
    part.as_str().is_none() && ["text", "thinking", "refusal"].iter().all(|field| part.get(field).is_none())
}

fn is_known_of_answer(name: &str) -> bool {
    match name {
        "id" | "object" | "created" | "model" | "choices" | "usage" | "x_groq" | "error" | "service_tier" => {
            true
        }
        // Perplexity's sources; the first form is the older.
        "citations" | "search_results" => true,
        // How the answer was made, and what keeps its length from being guessed.
        "system_fingerprint" | "provider" | "request_id" | "time_info" | "timings" | "obfuscation" | "p" => {
            true
        }
        // What a filter thought of what is there.
        "prompt_filter_results" => true,
        _ => false,
    }
}

fn is_known_of_choice(name: &str) -> bool {
    match name {
        "index" | "message" | "delta" | "finish_reason" | "logprobs" | "error" => true,
        // The same in other words, as some servers repeat it.
        "native_finish_reason" | "text" => true,
        "seed" | "content_filter_results" => true,
        _ => false,
    }
}

fn is_known_of_message(name: &str) -> bool {
    match name {
        "role" | "content" | "refusal" | "reasoning_content" | "reasoning" | "reasoning_details" => true,
        "tool_calls" | "function_call" | "annotations" => true,
        // Where in its own stream a server has it from.
        "token_id" | "channel" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::look;
    use crate::{json::Node, neutral::UnreadFields};

    #[track_caller]
    fn check(answer: &str, expected: &[&str]) {
        let mut fields = UnreadFields::default();
        let node = Node::read(answer).unwrap();
        look(&node, &mut fields);
        assert_eq!(fields.into_paths(), expected, "{answer}");
    }

    #[test]
    fn what_has_no_place_is_named() {
        check(
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"x":1}"#,
            &["x"],
        );
        check(
            r#"{"choices":[{"message":{"audio":{"data":"A"},"content":null},"stop_reason":"|"}]}"#,
            &["choices[].stop_reason", "choices[].message.audio"],
        );
        check(
            r#"{"choices":[{"message":{"annotations":[{"type":"url_citation","url_citation":{}}]}}]}"#,
            &[],
        );
        check(
            r#"{"choices":[{"delta":{"annotations":[{"type":"file"}],"content":[{"type":"image_url"}]}}]}"#,
            &["choices[].message.annotations", "choices[].message.content"],
        );
        check(r#"{"service_tier":"flex"}"#, &[]);
    }
}
