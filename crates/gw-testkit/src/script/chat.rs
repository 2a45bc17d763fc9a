//! Answers of a chat model, plain or streamed.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FakeAnswer, FakeStream, Fault, Step, answer};

/// Seconds since 1970 that every fake answer was created at.
const CREATED: u64 = 1_700_000_000;

/// An answer of a chat model: plain or as a stream, as the request asks.
///
/// The model is the request's unless named here. A stream has a chunk with the role, one a word of the text, one with
/// the finish reason, a usage chunk where the request asks for it, and `[DONE]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FakeChat {
    /// The text.
    pub text: String,
    /// The model named in the answer; `None`: the request's.
    pub model: Option<String>,
    /// `prompt_tokens`.
    pub input_tokens: u64,
    /// `completion_tokens`; `None`: the number of words.
    pub output_tokens: Option<u64>,
    /// The finish reason.
    pub finish: String,
    /// Milliseconds of real time before each word of a stream.
    pub pause_ms: u64,
    /// Waits at the gate behind so many words of a stream; a plain answer waits before its head.
    pub gate_after: Option<usize>,
    /// How it ends.
    pub end: ChatEnd,
    /// More headers of the answer.
    pub headers: Vec<(String, String)>,
}

/// How a chat answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatEnd {
    /// As it should.
    #[default]
    Whole,
    /// A stream breaks off behind so many words, its last chunk missing; a plain body behind its first half.
    CutAfter(usize),
    /// A stream ends cleanly behind so many words, without finish reason and `[DONE]`; a plain body breaks off.
    EndAfter(usize),
    /// A stream sends an error event behind so many words and ends cleanly; a plain body breaks off.
    ErrorAfter(usize),
}

impl Default for FakeChat {
    fn default() -> Self {
        Self {
            text: "ok".to_owned(),
            model: None,
            input_tokens: 10,
            output_tokens: None,
            finish: "stop".to_owned(),
            pause_ms: 0,
            gate_after: None,
            end: ChatEnd::Whole,
            headers: Vec::new(),
        }
    }
}

/// Returns a whole answer with the text.
pub fn ok(text: &str) -> FakeChat {
    FakeChat { text: text.to_owned(), ..FakeChat::default() }
}

/// Returns an answer of `words + 1` words whose stream breaks off behind `words` of them.
pub fn stream_cut_after(words: usize) -> FakeChat {
    let text = vec!["word"; words.saturating_add(1)].join(" ");
    FakeChat { text, end: ChatEnd::CutAfter(words), ..FakeChat::default() }
}

impl FakeChat {
    /// Sets `prompt_tokens` and `completion_tokens`.
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.input_tokens = input_tokens;
        self.output_tokens = Some(output_tokens);
        self
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn finish(mut self, finish: &str) -> Self {
        finish.clone_into(&mut self.finish);
        self
    }

    /// Sets how it ends.
    #[must_use]
    pub fn end(mut self, end: ChatEnd) -> Self {
        self.end = end;
        self
    }

    /// Waits at the gate behind so many words.
    #[must_use]
    pub fn gate_after(mut self, words: usize) -> Self {
        self.gate_after = Some(words);
        self
    }

    /// Returns the fault that plays the answer for one request.
    pub(crate) fn render(&self, wanted: &Wanted) -> Fault {
        if wanted.stream {
            return self.stream(wanted).into();
        }
        let answer = self.plain(wanted).into();
        match self.gate_after {
            Some(_) => Fault::AtGate { then: Box::new(answer) },
            None => answer,
        }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_inclusive(' ')
    }

    fn usage_json(&self) -> Value {
        let words = u64::try_from(self.words().count()).unwrap_or(u64::MAX);
        let output = self.output_tokens.unwrap_or(words);
        json!({
            "prompt_tokens": self.input_tokens,
            "completion_tokens": output,
            "total_tokens": self.input_tokens.saturating_add(output),
        })
    }

    fn plain(&self, wanted: &Wanted) -> FakeAnswer {
        let message = json!({"role": "assistant", "content": self.text, "refusal": null});
        let body = json!({
            "id": wanted.id, "object": "chat.completion", "created": CREATED,
            "model": self.model.as_deref().unwrap_or(&wanted.model),
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish}],
            "usage": self.usage_json(),
            "system_fingerprint": "fp_fake",
        });
        let mut answer = FakeAnswer::json(200, &body);
        answer.headers.clone_from(&self.headers);
        match self.end {
            ChatEnd::Whole => answer,
            ChatEnd::CutAfter(_) | ChatEnd::EndAfter(_) | ChatEnd::ErrorAfter(_) => {
                let half = answer.body.len() / 2;
                answer.cut_after(half)
            }
        }
    }

    fn stream(&self, wanted: &Wanted) -> FakeStream {
        let chunk = |choices: Value| Step::event(&self.chunk(wanted, &choices, &Value::Null));
        let delta = |delta: Value| {
            chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]))
        };
        let mut steps = vec![delta(json!({"role": "assistant", "content": "", "refusal": null}))];
        for (at, word) in self.words().take(self.words_sent()).enumerate() {
            if self.gate_after == Some(at) {
                steps.push(Step::WaitForGate);
            }
            if self.pause_ms > 0 {
                steps.push(Step::PauseMs(self.pause_ms));
            }
            steps.push(delta(json!({"content": word})));
        }
        if self.gate_after.is_some_and(|after| after >= self.words().take(self.words_sent()).count()) {
            steps.push(Step::WaitForGate);
        }
        match self.end {
            ChatEnd::Whole => {
                let last = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": self.finish}]);
                steps.push(chunk(last));
                if wanted.include_usage {
                    steps.push(Step::event(&self.chunk(wanted, &json!([]), &self.usage_json())));
                }
                steps.push(Step::event("[DONE]"));
            }
            ChatEnd::CutAfter(_) => steps.push(Step::Close),
            ChatEnd::EndAfter(_) => {}
            ChatEnd::ErrorAfter(_) => {
                let error = answer::error("The server had an error", "server_error", None, None);
                steps.push(Step::event(&error.to_string()));
            }
        }
        FakeStream { headers: self.headers.clone(), ..FakeStream::new(steps) }
    }

    fn words_sent(&self) -> usize {
        match self.end {
            ChatEnd::Whole => usize::MAX,
            ChatEnd::CutAfter(words) | ChatEnd::EndAfter(words) | ChatEnd::ErrorAfter(words) => words,
        }
    }

    fn chunk(&self, wanted: &Wanted, choices: &Value, usage: &Value) -> String {
        let mut chunk = json!({
            "id": wanted.id, "object": "chat.completion.chunk", "created": CREATED,
            "model": self.model.as_deref().unwrap_or(&wanted.model),
            "system_fingerprint": "fp_fake", "choices": choices,
        });
        if let Some(fields) = chunk.as_object_mut().filter(|_| wanted.include_usage) {
            fields.insert("usage".to_owned(), usage.clone());
        }
        chunk.to_string()
    }
}

impl From<FakeChat> for Fault {
    fn from(chat: FakeChat) -> Self {
        Self::Chat(chat)
    }
}

/// What a chat request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The answer's id.
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

impl Wanted {
    /// Reads the body of the `number`th call; `None` if it is no JSON object.
    pub(crate) fn read(body: &[u8], number: u64) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let fields = body.as_object()?;
        let flag = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
        let model = fields.get("model").and_then(Value::as_str).unwrap_or("fake-model");
        Some(Self {
            id: format!("chatcmpl-fake-{number}"),
            model: model.to_owned(),
            stream: flag(fields.get("stream")),
            include_usage: flag(
                fields.get("stream_options").and_then(|options| options.get("include_usage")),
            ),
        })
    }
}
