//! A whole answer in neutral parts.

use gw_types::{FinishReason, Usage};

use super::{Content, RawJson};

/// A whole answer. Its parts print as redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The provider's id of the answer.
    pub id: Option<String>,
    /// The model that the provider says has answered.
    pub model: Option<String>,
    /// The answers, by index; at least one.
    pub choices: Vec<MessageChoice>,
    /// What the call used.
    pub usage: Option<Usage>,
    /// The tier that served it, in the provider's word.
    pub service_tier: Option<String>,
    /// Fields of the provider's answer that have no place here: their paths in the provider's format.
    pub unread: Vec<String>,
}

/// One answer. Prints its shape, not its words.
#[derive(Clone, PartialEq, Eq)]
pub struct MessageChoice {
    /// What it holds, in order.
    pub blocks: Vec<Content>,
    /// Why it ended.
    pub finish: FinishReason,
    /// The stop sequence that was met, where the provider says so.
    pub stop_sequence: Option<String>,
    /// Log probabilities as OpenAI chat writes them.
    pub logprobs: Option<RawJson>,
}

impl std::fmt::Debug for MessageChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageChoice({} blocks, {})", self.blocks.len(), self.finish)
    }
}

impl MessageChoice {
    /// Returns a choice whose reason fits what it holds; see [`derived_finish`].
    pub fn new(blocks: Vec<Content>, reason: FinishReason) -> Self {
        let calls = blocks.iter().any(|block| matches!(block, Content::ToolUse(_)));
        let refused = blocks.iter().any(|block| matches!(block, Content::Refusal(_)));
        let finish = derived_finish(reason, calls, refused);
        Self { blocks, finish, stop_sequence: None, logprobs: None }
    }
}

/// Returns why an answer ended, from the provider's reason and what the answer holds.
///
/// Only a plain stop becomes something else: providers end calls and refusals with it. An answer that was cut stays cut,
/// or the caller would run half a call.
pub const fn derived_finish(reason: FinishReason, calls: bool, refused: bool) -> FinishReason {
    match reason {
        FinishReason::Stop if calls => FinishReason::ToolCalls,
        FinishReason::Stop if refused => FinishReason::Refusal,
        FinishReason::Stop
        | FinishReason::Length
        | FinishReason::ToolCalls
        | FinishReason::ContentFilter
        | FinishReason::Refusal
        | FinishReason::Other => reason,
    }
}

/// What identifies an answer that gw writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerStamp<'a> {
    /// The answer's id.
    pub id: &'a str,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// The model that the caller is told.
    pub model: &'a str,
}
