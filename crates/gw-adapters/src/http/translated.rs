//! Conversations in another format than the caller's: what surrounds the translations of `gw_dialects`.

use bytes::Bytes;
use gw_dialects::{
    gemini,
    neutral::{AnswerStamp, WriteOptions},
    openai,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
    vendors,
};
use gw_types::{
    AttemptPlan, Deployment, GatewayError, Loss, NormalizedRequest, Operation, OutputField, TokenCount,
};

use super::{
    vertex,
    way::{Habits, Received},
};

/// The formats that a conversation can be translated into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Anthropic's messages as Vertex wants them.
    VertexMessages,
    /// Gemini's contents.
    Gemini,
    /// Bedrock's Converse.
    Converse,
    /// Ollama's own chat.
    Ollama,
}

/// The output bound that is sent where a format demands one and neither the caller nor the configuration names one. Every
/// model takes it.
const DEFAULT_OUTPUT: TokenCount = TokenCount::new(4_096);

impl Format {
    /// Returns the format's own name among the dialects.
    pub(super) const fn wire(self) -> WireFormat {
        match self {
            Self::Chat => WireFormat::OpenAiChat,
            Self::Messages | Self::VertexMessages => WireFormat::AnthropicMessages,
            Self::Gemini => WireFormat::Gemini,
            Self::Converse => WireFormat::BedrockConverse,
            Self::Ollama => WireFormat::OllamaChat,
        }
    }

    /// Translates a request.
    ///
    /// # Errors
    /// `InvalidRequest`, if the format cannot carry it.
    pub(super) fn write(
        self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
        habits: &Habits,
    ) -> Result<(Bytes, Loss), GatewayError> {
        let options = options(deployment, plan, habits.output_field());
        // Strictness is the same for every way, so it is checked where they meet.
        let strictness = translate::Strictness::Report;
        let (body, loss) =
            translate::request(request.operation, &request.body, self.wire(), &options, strictness)?;
        let body = match self {
            Self::Chat => with_habits(body, deployment, plan, habits)?,
            Self::VertexMessages => vertex::without_model(&body),
            Self::Messages | Self::Gemini | Self::Converse | Self::Ollama => body,
        };
        Ok((body, loss))
    }

    /// Returns what translates a streamed answer.
    ///
    /// # Errors
    /// `InvalidRequest` for an operation that is never translated.
    pub(super) fn stream(self, received: &Received<'_>) -> Result<StreamTranslator, GatewayError> {
        let id = id(received);
        StreamTranslator::new(&StreamTranslation {
            from: self.wire(),
            to: received.prepared.operation,
            stamp: stamp(&id, received),
            relay_usage: received.prepared.relay_usage,
        })
    }
}

/// Makes a translated body what the preset of a compatible server wants.
fn with_habits(
    body: Bytes,
    deployment: &Deployment,
    plan: &AttemptPlan,
    habits: &Habits,
) -> Result<Bytes, GatewayError> {
    let Some(preset) = habits.preset.filter(|preset| !preset.takes_stream_options) else { return Ok(body) };
    let facts = openai::read_chat(&body)?;
    let context = gw_types::RequestContext::default();
    let request = NormalizedRequest { operation: Operation::Chat, body, facts, context };
    let edits = openai::ChatEdits {
        model: deployment.model.as_str(),
        output_bound: plan.output_bound,
        output_field: habits.output_field(),
        ask_usage: false,
    };
    Ok(vendors::rewrite_chat(&request, &edits, preset))
}

/// Writes a request to count tokens as Gemini's.
///
/// # Errors
/// `InvalidRequest`, if the body is not what Anthropic's format says.
pub(super) fn count_tokens(
    request: &NormalizedRequest,
    deployment: &Deployment,
    plan: &AttemptPlan,
    is_vertex: bool,
) -> Result<(Bytes, Loss), GatewayError> {
    let prompt = translate::read_prompt(request.operation, &request.body)?;
    let options = options(deployment, plan, OutputField::MaxTokens);
    Ok(gemini::write_token_count(&prompt, &options, is_vertex))
}

fn options<'a>(
    deployment: &'a Deployment,
    plan: &AttemptPlan,
    output_field: OutputField,
) -> WriteOptions<'a> {
    WriteOptions {
        model: deployment.model.as_str(),
        output_bound: plan.output_bound,
        default_output: deployment.max_output_tokens.unwrap_or(DEFAULT_OUTPUT),
        output_field,
    }
}

/// Returns the id of a translated answer: the request's own, else the provider's id of the call, in the caller's format's
/// manner.
pub(super) fn id(received: &Received<'_>) -> String {
    let prefix = match received.prepared.operation {
        Operation::Chat => "chatcmpl-",
        Operation::Completions => "cmpl-",
        Operation::Messages | Operation::CountTokens => "msg_",
        Operation::Responses => "resp_",
        Operation::Embeddings => "embd-",
    };
    let id = match (&received.prepared.id, received.id) {
        (Some(id), _) => id.as_str(),
        (None, Some(id)) => id.as_str(),
        (None, None) => "gw",
    };
    format!("{prefix}{}", id.strip_prefix("req_").unwrap_or(id))
}

pub(super) fn stamp<'a>(id: &'a str, received: &'a Received<'_>) -> AnswerStamp<'a> {
    AnswerStamp { id, created: received.now.seconds(), model: &received.prepared.requested_model }
}
