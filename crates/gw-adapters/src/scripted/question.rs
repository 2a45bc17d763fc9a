//! Reads what a scripted answer needs of a request.

use serde_json::Value;

/// What a scripted answer needs of a request. Holds a prompt; never printed.
#[derive(Default)]
pub(super) struct Question {
    pub(super) model: String,
    /// The text of the last user message.
    pub(super) last_user_text: String,
    /// Words in all messages.
    pub(super) prompt_words: u64,
    /// Words that the answer may have.
    pub(super) words_max: Option<u64>,
    pub(super) include_usage: bool,
}

impl Question {
    /// Reads a chat body. What is missing or odd counts as empty: the scripted provider is no validator.
    pub(super) fn read(body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        let mut question = Self {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            words_max: body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64()),
            include_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or_default(),
            ..Self::default()
        };
        for message in body["messages"].as_array().into_iter().flatten() {
            let text = text_of(&message["content"]);
            question.prompt_words += words(&text);
            if message["role"] == "user" {
                question.last_user_text = text;
            }
        }
        question
    }
}

/// Counts words: runs of anything but blanks.
pub(super) fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Question;

    #[test]
    fn reads_text_in_both_forms() {
        let question = Question::read(
            br#"{"model":"m","max_tokens":7,"stream_options":{"include_usage":true},"messages":[
                {"role":"system","content":"be brief"},
                {"role":"user","content":[{"type":"text","text":"one two"},{"type":"image_url"},{"text":"three"}]},
                {"role":"assistant","content":null}]}"#,
        );
        assert_eq!(question.last_user_text, "one two three");
        assert_eq!((question.model.as_str(), question.prompt_words, question.words_max), ("m", 5, Some(7)));
        assert!(question.include_usage);
        assert_eq!(Question::read(b"[1").prompt_words, 0);
    }
}
