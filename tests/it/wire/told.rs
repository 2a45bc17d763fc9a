//! What an answer says, as facts that can stand in a table: lengths and digests of text, names, figures.

use std::fmt::Write as _;

use gw_dialects::neutral::{Content, Message, MessageChoice, Signature, Text, Thinking, ToolUse};
use gw_types::{AnswerFacts, GatewayError, Usage};
use serde_json::Value;

/// What gw has understood of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// An answer in neutral parts; for a stream that failed on its way also the failure.
    Message(Message, Option<GatewayError>),
    /// Text of the legacy completions, of which gw reads the facts.
    Completion(AnswerFacts),
    /// Vectors.
    Embeddings { vectors: usize, usage: Option<Usage> },
    /// A count of tokens.
    Tokens(u64),
    /// An error.
    Error(GatewayError),
}

/// How much of an answer a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Everything: the answer was recorded off the wire.
    Full,
    /// What is there and of which kind, no lengths, digests or figures: it was made up or handed down.
    Shape,
}

impl Told {
    /// Returns what the answer used, where it says so.
    pub(super) fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Message(message, _) => message.usage.as_ref(),
            Self::Completion(facts) => facts.usage.as_ref(),
            Self::Embeddings { usage, .. } => usage.as_ref(),
            Self::Tokens(_) | Self::Error(_) => None,
        }
    }

    /// Returns the error that the answer is or ends with.
    pub(super) fn error(&self) -> Option<&GatewayError> {
        match self {
            Self::Message(_, error) => error.as_ref(),
            Self::Error(error) => Some(error),
            Self::Completion(_) | Self::Embeddings { .. } | Self::Tokens(_) => None,
        }
    }

    /// Returns the row of the table, in one line.
    pub(super) fn row(&self, depth: Depth) -> String {
        let mut row = Row { text: String::new(), depth };
        match self {
            Self::Message(message, None) => row.message(message),
            Self::Message(message, Some(error)) => {
                row.message(message);
                row.text.push_str(" | then ");
                row.error(error);
            }
            Self::Completion(facts) => {
                let finish = facts.finish.map_or("unfinished", |finish| finish.as_str());
                row.text.push_str(finish);
                row.size("text", facts.content_bytes);
                row.usage(facts.usage.as_ref());
            }
            Self::Embeddings { vectors, usage } => {
                row.text.push_str("embeddings");
                row.size("vectors", *vectors as u64);
                row.usage(usage.as_ref());
            }
            Self::Tokens(count) => {
                row.text.push_str("tokens");
                row.size("count", *count);
            }
            Self::Error(error) => row.error(error),
        }
        row.text
    }
}

/// A row on its way.
struct Row {
    text: String,
    depth: Depth,
}

impl Row {
    fn message(&mut self, message: &Message) {
        for (index, choice) in message.choices.iter().enumerate() {
            self.text.push_str(if index > 0 { " / " } else { "" });
            self.choice(choice);
        }
        if message.choices.is_empty() {
            self.text.push_str("nothing");
        }
        self.usage(message.usage.as_ref());
        if let (Depth::Full, Some(model)) = (self.depth, &message.model) {
            self.text.push_str(" | ");
            self.text.push_str(model);
        }
    }

    fn choice(&mut self, choice: &MessageChoice) {
        self.text.push_str(choice.finish.as_str());
        if choice.stop_sequence.is_some() {
            self.text.push_str(" at-sequence");
        }
        for block in &choice.blocks {
            match block {
                Content::Text(text) => self.words(text),
                Content::Refusal(text) => self.digest("refusal", text),
                Content::Thinking(thinking) => self.thinking(thinking),
                Content::RedactedThinking(signature) => self.digest("redacted", &signature.data),
                Content::ToolUse(call) => self.call(call),
                Content::Opaque(opaque) => {
                    self.word(&format!("opaque:{}", kind_of(opaque.value.as_str())));
                }
                Content::Image(_) => self.word("image"),
                Content::Document(_) => self.word("document"),
                Content::Audio(_) => self.word("audio"),
                Content::ToolResult(_) => self.word("result"),
            }
        }
        if choice.logprobs.is_some() {
            self.word("logprobs");
        }
    }

    fn words(&mut self, text: &Text) {
        self.digest("text", &text.text);
        if !text.citations.is_empty() {
            self.size("cited", text.citations.len() as u64);
        }
        self.signature(text.signature.as_ref());
    }

    fn thinking(&mut self, thinking: &Thinking) {
        self.digest("thinking", &thinking.text);
        self.signature(thinking.signature.as_ref());
    }

    fn call(&mut self, call: &ToolUse) {
        let parsed: Result<Value, _> = serde_json::from_str(&call.arguments);
        match parsed {
            Ok(arguments) => self.digest(&format!("call:{}", call.name), &arguments.to_string()),
            Err(_) if call.arguments.trim().is_empty() => self.word(&format!("call:{}=none", call.name)),
            Err(_) => self.word(&format!("call:{}=cut", call.name)),
        }
        self.signature(call.signature.as_ref());
    }

    fn signature(&mut self, signature: Option<&Signature>) {
        if let Some(signature) = signature {
            self.digest(&format!("signed-{}", signature.origin.as_str()), &signature.data);
        }
    }

    fn error(&mut self, error: &GatewayError) {
        self.text.push_str("error ");
        self.text.push_str(error.kind().as_str());
        if error.forbids_retry() {
            self.word("no-retry");
        }
        if error.is_unclassified() {
            self.word("by-status-alone");
        }
        if let (Depth::Full, Some(wait)) = (self.depth, error.retry_after()) {
            self.word(&format!("wait={}ms", wait.as_millis()));
        }
    }

    fn usage(&mut self, usage: Option<&Usage>) {
        self.text.push_str(" |");
        let Some(usage) = usage else { return self.word("no-usage") };
        let classes = [
            ("in", usage.input),
            ("cached", usage.cached_input),
            ("written", usage.cache_write),
            ("written-long", usage.cache_write_long),
            ("audio-in", usage.audio_input),
            ("image-in", usage.image_input),
            ("out", usage.output),
            ("reasoning", usage.reasoning),
            ("audio-out", usage.audio_output),
        ];
        for (name, count) in classes.into_iter().filter(|(_, count)| !count.is_zero()) {
            self.size(name, count.get());
        }
        let flags = [
            ("estimated", usage.estimated),
            ("inconsistent", usage.inconsistent),
            ("implausible", usage.implausible),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            self.word(name);
        }
    }

    fn word(&mut self, word: &str) {
        self.text.push(' ');
        self.text.push_str(word);
    }

    fn size(&mut self, name: &str, size: u64) {
        self.word(name);
        if self.depth == Depth::Full {
            let _ = write!(self.text, "={size}");
        }
    }

    /// Adds the length in bytes and the digest of a text.
    fn digest(&mut self, name: &str, text: &str) {
        self.size(name, text.len() as u64);
        if self.depth == Depth::Full && !text.is_empty() {
            let _ = write!(self.text, "#{:08x}", fnv1a(text));
        }
    }
}

/// Returns the `type` of a block, or its first member's name where that says what it is.
fn kind_of(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let member = || value.as_object()?.keys().next().map(String::as_str);
    value["type"].as_str().or_else(member).unwrap_or_default().to_owned()
}

/// Returns a digest of a text: FNV-1a with 32 bits, by which a table can tell two texts of one length apart.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[test]
fn digests_are_fnv1a() {
    // The test vectors of the algorithm's authors.
    assert_eq!((fnv1a(""), fnv1a("a"), fnv1a("foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
}
