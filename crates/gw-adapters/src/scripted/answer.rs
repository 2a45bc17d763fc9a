//! Writes a scripted answer as OpenAI's JSON, whole or as frames.

use bytes::Bytes;
use serde_json::{Value, json};

use super::question::{Question, words};

/// One answer, before it is written.
pub(super) struct Reply {
    pub(super) id: String,
    /// Seconds since the epoch.
    pub(super) created: i64,
    pub(super) model: String,
    text: String,
    finish: &'static str,
    prompt_words: u64,
    include_usage: bool,
}

impl Reply {
    /// Makes an answer of the script's text or the echo, cut at the request's own bound.
    pub(super) fn new(question: &Question, text: Option<&str>, id: String, created: i64) -> Self {
        let text = text.map_or_else(|| format!("echo: {}", question.last_user_text), str::to_owned);
        let (text, finish) = match question.words_max.filter(|max| words(&text) > *max) {
            Some(max) => (first_words(&text, max), "length"),
            None => (text, "stop"),
        };
        Self {
            id,
            created,
            model: question.model.clone(),
            text,
            finish,
            prompt_words: question.prompt_words,
            include_usage: question.include_usage,
        }
    }

    /// Returns the whole answer.
    pub(super) fn body(&self) -> Bytes {
        let message = json!({"role": "assistant", "content": self.text, "refusal": null});
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish});
        let body = json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [choice], "usage": self.usage(),
        });
        Bytes::from(body.to_string())
    }

    /// Returns the frames of a stream: role, a frame a word, the end, usage if it was asked for, the marker.
    pub(super) fn frames(&self) -> Vec<Bytes> {
        let delta = |delta: &Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
            self.frame(&json!([choice]), &Value::Null)
        };
        let mut frames = vec![delta(&json!({"role": "assistant", "content": "", "refusal": null}), None)];
        frames.extend(pieces(&self.text).map(|piece| delta(&json!({"content": piece}), None)));
        frames.push(delta(&json!({}), Some(self.finish)));
        if self.include_usage {
            frames.push(self.frame(&json!([]), &self.usage()));
        }
        frames.push(Bytes::from_static(b"data: [DONE]\n\n"));
        frames
    }

    fn frame(&self, choices: &Value, usage: &Value) -> Bytes {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage.clone();
        }
        Bytes::from(format!("data: {chunk}\n\n"))
    }

    /// A word counts as a token.
    fn usage(&self) -> Value {
        let answer_words = words(&self.text);
        json!({
            "prompt_tokens": self.prompt_words, "completion_tokens": answer_words,
            "total_tokens": self.prompt_words + answer_words,
        })
    }
}

/// Returns the body of an error answer.
pub(super) fn error_body(status: u16, code: Option<&str>) -> Bytes {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let message = format!("scripted failure with status {status}");
    let error = json!({"message": message, "type": kind, "param": null, "code": code});
    Bytes::from(json!({ "error": error }).to_string())
}

/// Cuts a text into words, each with the blanks before it; together they are the text.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace())?;
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        // Blanks at the end belong to the last word.
        let end = if rest[end..].trim().is_empty() { rest.len() } else { end };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

fn first_words(text: &str, max: u64) -> String {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    pieces(text).take(max).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{first_words, pieces};

    #[test]
    fn pieces_are_the_text() {
        for (text, expected) in
            [("a b", vec!["a", " b"]), (" a  b \n", vec![" a", "  b \n"]), ("é", vec!["é"]), ("", vec![])]
        {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
        assert_eq!(first_words("one two  three", 2), "one two");
    }
}
