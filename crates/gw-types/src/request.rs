//! A request as the gateway decides over it: facts beside the caller's untouched body.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    BoundedText, CapabilitySet, Classification, Dialect, IdempotencyKey, Metadata, RequestId, Residency,
    TaskClass, TextClasses, TokenCount,
};

/// Names what the caller wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1/completions`.
    Completions,
    /// `POST /v1/embeddings`.
    Embeddings,
    /// `POST /v1/messages/count_tokens`.
    CountTokens,
}

impl Operation {
    /// Returns the family of wire formats that callers of the operation speak.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Chat | Self::Responses | Self::Completions | Self::Embeddings => Dialect::OpenAi,
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
        }
    }

    /// Returns whether a model writes the answer, so that it has a length that can be bounded and is billed.
    pub const fn generates(self) -> bool {
        match self {
            Self::Chat | Self::Responses | Self::Messages | Self::Completions => true,
            Self::Embeddings | Self::CountTokens => false,
        }
    }

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::CountTokens => "count_tokens",
        }
    }
}

/// A request: what was read from it, what surrounds it, and the caller's body as it came.
#[derive(Clone)]
pub struct NormalizedRequest {
    /// What the caller wants done; also names the wire format of the body.
    pub operation: Operation,
    /// The caller's body, byte for byte.
    pub body: Bytes,
    /// What a decision needs of the body.
    pub facts: RequestFacts,
    /// What came with the body.
    pub context: RequestContext,
}

impl std::fmt::Debug for NormalizedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NormalizedRequest")
            .field("operation", &self.operation)
            .field("body", &format_args!("[{} bytes redacted]", self.body.len()))
            .field("facts", &self.facts)
            .field("context", &self.context)
            .finish()
    }
}

/// A half-open range of bytes of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodySpan {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// What a decision needs of a body. Holds no prompt text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// The model asked for, decoded; at most 256 bytes.
    pub model: Arc<str>,
    /// The JSON string (quotes included) that holds the model name.
    pub model_span: BodySpan,
    /// One past the opening brace of the body: where fields can be put in.
    pub object_start: usize,
    /// Whether the caller asked for a stream.
    pub stream: bool,
    /// Whether the caller asked for a usage chunk.
    pub include_usage: bool,
    /// The JSON value of `stream_options`, if the body has one that is not null.
    pub stream_options: Option<BodySpan>,
    /// The output bound that the caller named.
    pub output: Option<RequestedOutput>,
    /// Answers asked for at once (`n`), at least 1.
    pub choices: u32,
    /// UTF-8 bytes of all text in messages, decoded.
    pub text_bytes: u64,
    /// What that text is made of, for estimates; all zero where it was not counted.
    pub text_classes: TextClasses,
    /// Number of messages.
    pub messages: u32,
    /// Bytes of the tool definitions and schemas as they stand in the body.
    pub tool_bytes: u64,
    /// Number of images.
    pub images: u32,
    /// Whether audio goes in or is asked for.
    pub audio: bool,
    /// What the deployment must be able to do.
    pub needs: CapabilitySet,
    /// What the caller says about chance.
    pub temperature: Temperature,
    /// The caller's end-user label, for the record.
    pub user: Option<BoundedText>,
}

/// The output bound that a caller named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// The bound, at least 1.
    pub tokens: TokenCount,
    /// The JSON number that holds it.
    pub span: BodySpan,
    /// The field that holds it.
    pub field: OutputField,
}

/// Names the field that carries an output bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputField {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
    /// `max_output_tokens`.
    MaxOutputTokens,
}

/// What a caller says about chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// No temperature named: the provider's default.
    Absent,
    /// Exactly zero.
    Zero,
    /// Anything else.
    Above,
}

/// What a caller says about the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheControl {
    /// Read and write.
    #[default]
    Default,
    /// Neither read nor write.
    NoStore,
    /// Write, do not read.
    NoCache,
    /// Read, and refuse with `NotCached` rather than call a provider.
    OnlyIfCached,
}

/// What came with a body: headers, read and checked.
///
/// Task class, classification and residency are what the *request* says; the pipeline combines them with the tenant's
/// defaults and floors, and refuses what would loosen them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// `x-gw-task-class`.
    pub task_class: Option<TaskClass>,
    /// `x-gw-classification`.
    pub classification: Option<Classification>,
    /// `x-gw-residency`.
    pub residency: Option<Residency>,
    /// `x-gw-deadline-ms`, from the first byte of the request.
    pub deadline: Option<Duration>,
    /// `x-gw-side-effecting: true`.
    pub side_effecting: bool,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<IdempotencyKey>,
    /// `x-gw-cache`.
    pub cache: CacheControl,
    /// `x-gw-locale`: similar requests of another locale are not compared.
    pub locale: Option<BoundedText>,
    /// `x-gw-prompt-version`, for the record.
    pub prompt_version: Option<BoundedText>,
    /// `x-gw-schema-version`, for the record.
    pub schema_version: Option<BoundedText>,
    /// The caller's `x-request-id`, for the record.
    pub client_request_id: Option<BoundedText>,
    /// The caller's `traceparent`, passed on to the provider and kept in the record.
    pub traceparent: Option<BoundedText>,
    /// The caller's `tracestate`, passed on to the provider beside `traceparent` and kept nowhere: at most 512 bytes.
    pub tracestate: Option<Arc<str>>,
    /// The request's own id: what an answer is called whose provider gave it no id. `None` outside of a server.
    pub id: Option<RequestId>,
    /// The body's `metadata`, read only where a route matches by it or a record keeps some of it.
    pub metadata: Metadata,
    /// Whether the request goes on from something that lives at one deployment: then no other may answer.
    pub pinned: bool,
    /// `x-gw-translation: strict`: refuse rather than lose a field in a translation.
    pub translation_strict: bool,
    /// Headers that a provider of the same format gets as the caller wrote them; each name at most once.
    pub passed: Vec<(PassedHeader, Arc<str>)>,
}

/// Names a caller's header that goes to the provider. The list is closed: no other header of a caller gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PassedHeader {
    /// `anthropic-beta`.
    AnthropicBeta,
    /// `anthropic-version`.
    AnthropicVersion,
    /// `openai-beta`.
    OpenAiBeta,
}

impl PassedHeader {
    /// Every header of the list.
    pub const ALL: [Self; 3] = [Self::AnthropicBeta, Self::AnthropicVersion, Self::OpenAiBeta];

    /// Returns the name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicBeta => "anthropic-beta",
            Self::AnthropicVersion => "anthropic-version",
            Self::OpenAiBeta => "openai-beta",
        }
    }

    /// Returns the family of wire formats whose providers get it.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::AnthropicBeta | Self::AnthropicVersion => Dialect::Anthropic,
            Self::OpenAiBeta => Dialect::OpenAi,
        }
    }
}
