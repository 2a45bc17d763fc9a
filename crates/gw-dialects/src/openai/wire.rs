//! The documents as serde types: answers read whole for the cache, and what gw writes itself.

use serde::{Deserialize, Serialize, de::IgnoredAny};

/// A whole answer, or one chunk of a streamed one.
#[derive(Deserialize)]
pub(super) struct Document {
    pub(super) choices: Vec<DocumentChoice>,
}

#[derive(Deserialize)]
pub(super) struct DocumentChoice {
    pub(super) index: Option<u32>,
    #[serde(alias = "delta")]
    pub(super) message: Option<Message>,
    pub(super) text: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) logprobs: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
pub(super) struct Message {
    pub(super) content: Option<Content>,
    pub(super) reasoning_content: Option<Content>,
    pub(super) reasoning: Option<Content>,
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Option<Vec<Call>>,
    pub(super) function_call: Option<IgnoredAny>,
    pub(super) audio: Option<IgnoredAny>,
    pub(super) annotations: Option<Vec<IgnoredAny>>,
}

/// Text, or Mistral's parts.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    Text { text: String },
    Thinking { thinking: Vec<Part> },
}

#[derive(Deserialize)]
pub(super) struct Call {
    pub(super) index: Option<usize>,
    pub(super) id: Option<String>,
    pub(super) function: Option<Function>,
}

#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
}

/// An answer or a chunk that gw writes.
#[derive(Serialize)]
pub(super) struct Written<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<WrittenChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<WrittenUsage>,
}

#[derive(Serialize)]
pub(super) struct WrittenChoice<'a> {
    pub(super) index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<WrittenMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) logprobs: Option<()>,
    pub(super) finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct WrittenMessage<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) reasoning_content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<WrittenCall<'a>>,
}

#[derive(Default, Serialize)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<WrittenCall<'a>>,
}

#[derive(Serialize)]
pub(super) struct WrittenCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    pub(super) id: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: WrittenFunction<'a>,
}

#[derive(Serialize)]
pub(super) struct WrittenFunction<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

#[derive(Serialize)]
pub(crate) struct WrittenUsage {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) total_tokens: u64,
    pub(super) prompt_tokens_details: PromptDetails,
    pub(super) completion_tokens_details: CompletionDetails,
}

#[derive(Serialize)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: u64,
    pub(super) audio_tokens: u64,
}

#[derive(Serialize)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: u64,
    pub(super) audio_tokens: u64,
}
