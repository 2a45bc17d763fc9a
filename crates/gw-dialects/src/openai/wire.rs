//! The documents as serde types: answers read whole for the cache, and what gw writes itself.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

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
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// By hand, because a derived one would keep what it has seen until it knows what it is.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = Content;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
            }
        }

        from.deserialize_any(Visit)
    }
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
