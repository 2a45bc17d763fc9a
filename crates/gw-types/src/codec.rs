//! The seam through which the pipeline reads an answer's neutral parts, without seeing a wire format.

use bytes::Bytes;

use crate::{BoundedText, FinishReason, NormalizedRequest, StreamItem, Usage};

/// A whole answer in neutral parts, as the cache keeps it. Prints as redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Completion {
    /// The answers, by index.
    pub choices: Vec<Choice>,
    /// The model that the provider says has answered.
    pub served_model: Option<BoundedText>,
    /// What the call used.
    pub usage: Option<Usage>,
}

/// One answer of a completion.
#[derive(Clone, PartialEq, Eq)]
pub struct Choice {
    /// The visible text.
    pub text: String,
    /// The reasoning that was shown.
    pub reasoning: String,
    /// The refusal that took the text's place.
    pub refusal: Option<String>,
    /// The tools called.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish: FinishReason,
}

/// One call of a tool.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: JSON text as the model wrote it.
    pub arguments: String,
}

impl Completion {
    /// Returns the bytes of text that the value holds, for bounds.
    pub fn bytes(&self) -> usize {
        let call = |call: &ToolCall| call.id.len() + call.name.len() + call.arguments.len();
        self.choices
            .iter()
            .map(|choice| {
                choice.text.len()
                    + choice.reasoning.len()
                    + choice.refusal.as_ref().map_or(0, String::len)
                    + choice.tool_calls.iter().map(call).sum::<usize>()
            })
            .sum()
    }
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion")
            .field("choices", &self.choices)
            .field("served_model", &self.served_model)
            .field("usage", &self.usage)
            .finish()
    }
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Choice([redacted], {}, {} tool calls)", self.finish, self.tool_calls.len())
    }
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToolCall([redacted])")
    }
}

/// What a semantic cache compares: the last user turn, and everything before it. Prints as redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Question {
    /// The text of the last user turn.
    pub text: String,
    /// Every other part of the request that shapes the answer (earlier turns, system prompt, tools, settings), as
    /// canonical bytes: two questions are comparable only where these are equal.
    pub context: Vec<u8>,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Question([redacted])")
    }
}

/// Reads neutral parts out of the wire format of one operation.
///
/// # Contract
/// Pure: the same bytes give the same parts. Returns `None` for what it cannot read whole, so that nothing half-read
/// is remembered.
pub trait DialectCodec: Send + Sync + std::fmt::Debug {
    /// Reads a whole answer.
    fn completion(&self, raw: &Bytes) -> Option<Completion>;

    /// Reads the choices of a whole answer alone, for whoever knows the rest already.
    fn choices(&self, raw: &Bytes) -> Option<Vec<Choice>> {
        Some(self.completion(raw)?.choices)
    }

    /// Starts to collect a streamed answer.
    fn collector(&self) -> Box<dyn StreamCollector>;

    /// Returns what a semantic cache compares, where the request has a last user turn of plain text.
    fn question(&self, request: &NormalizedRequest) -> Option<Question>;

    /// Returns the JSON schema that the request demands of the answer's text, as it stands in the body. A format that
    /// knows no such demand has none.
    fn answer_schema(&self, _request: &NormalizedRequest) -> Option<Bytes> {
        None
    }
}

/// Collects a streamed answer, item by item.
pub trait StreamCollector: Send + std::fmt::Debug {
    /// Adds the next item.
    fn push(&mut self, item: &StreamItem);

    /// Returns the bytes collected so far, so that the caller can give up above its bound.
    fn bytes(&self) -> usize;

    /// Returns the whole answer, or `None` if what came cannot be read as one.
    fn finish(self: Box<Self>) -> Option<Completion>;
}
