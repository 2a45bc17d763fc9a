//! Translations between wire formats, through the neutral form: requests, answers, streams, errors.
//!
//! What a format cannot carry is reported by its path in the caller's own format; strict translation refuses to lose
//! anything. A caller whose deployment speaks its own format is never translated: its bytes pass through.

mod stream;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, ErrorKind, FinishReason, GatewayError, Loss, Operation};

pub use self::stream::{StreamTranslation, StreamTranslator};
use crate::{
    anthropic, bedrock, gemini,
    neutral::{AnswerLoss, AnswerStamp, Content, Message, Prompt, WriteOptions},
    ollama,
    openai::{self, ErrorHead},
    responses,
};

/// Names a format that a deployment speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    AnthropicMessages,
    /// Gemini's `generateContent`.
    Gemini,
    /// Bedrock's Converse.
    BedrockConverse,
    /// Ollama's own chat.
    OllamaChat,
}

/// Says what to do where a translation would lose something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Translate, and report.
    #[default]
    Report,
    /// Refuse, before any call.
    Refuse,
}

/// Reads a caller's request into neutral parts.
///
/// # Errors
/// `InvalidRequest`, if the body is not what its format says, or the operation is one that is never translated.
pub fn read_prompt(from: Operation, body: &[u8]) -> Result<Prompt, GatewayError> {
    match from {
        Operation::Chat => openai::read_prompt(body),
        Operation::Responses => responses::read_prompt(body),
        Operation::Messages | Operation::CountTokens => anthropic::read_prompt(body),
        Operation::Completions | Operation::Embeddings => Err(untranslatable(from)),
    }
}

/// Returns the body to send to a deployment of another format than the caller's, and what of the request it lacks.
///
/// # Errors
/// Those of [`read_prompt`]; `TranslationLoss`, naming the fields as parameter, if something would be lost and strictness
/// refuses that.
pub fn request(
    from: Operation,
    body: &[u8],
    to: WireFormat,
    options: &WriteOptions<'_>,
    strictness: Strictness,
) -> Result<(Bytes, Loss), GatewayError> {
    let prompt = read_prompt(from, body)?;
    let (body, loss) = match to {
        WireFormat::OpenAiChat => openai::write_prompt(&prompt, options),
        WireFormat::OpenAiResponses => responses::write_prompt(&prompt, options),
        WireFormat::AnthropicMessages => anthropic::write_prompt(&prompt, options),
        WireFormat::Gemini => gemini::write_prompt(&prompt, options),
        WireFormat::BedrockConverse => bedrock::write_prompt(&prompt, options),
        WireFormat::OllamaChat => ollama::write_prompt(&prompt, options),
    };
    check(&loss, strictness)?;
    Ok((body, loss))
}

/// Refuses a loss where strictness does, naming as many of the fields as an error has room for.
///
/// # Errors
/// `TranslationLoss`.
pub fn check(loss: &Loss, strictness: Strictness) -> Result<(), GatewayError> {
    if strictness == Strictness::Report || loss.items.is_empty() {
        return Ok(());
    }
    let mut fields = String::new();
    for item in &loss.items {
        let path = item.path.as_str();
        if fields.len() + path.len() + 2 > GatewayError::NAME_BYTES_MAX {
            break;
        }
        if !fields.is_empty() {
            fields.push_str(", ");
        }
        fields.push_str(path);
    }
    let message = "strict translation: the provider's format cannot carry these fields";
    Err(GatewayError::new(ErrorKind::TranslationLoss, message).with_param(&fields))
}

/// Returns a deployment's whole answer in the caller's format.
///
/// # Errors
/// What the provider's body says is wrong, `MalformedResponse` for one that cannot be read, `InvalidRequest` for an
/// operation that is never translated.
pub fn answer(
    from: WireFormat,
    raw: &Bytes,
    to: Operation,
    stamp: &AnswerStamp<'_>,
) -> Result<(Bytes, AnswerFacts), GatewayError> {
    let message = read_message(from, raw)?;
    let facts = AnswerFacts { loss: AnswerLoss::of_message(to, &message), ..facts(&message) };
    let body = match to {
        Operation::Chat => openai::write_message(&message, stamp),
        Operation::Responses => responses::write_message(&message, stamp),
        Operation::Messages => anthropic::write_message(&message, stamp),
        Operation::Completions | Operation::Embeddings | Operation::CountTokens => {
            return Err(untranslatable(to));
        }
    };
    Ok((body, facts))
}

/// Reads a deployment's whole answer into neutral parts.
///
/// # Errors
/// What the provider's body says is wrong, and `MalformedResponse` for one that cannot be read.
pub fn read_message(from: WireFormat, raw: &Bytes) -> Result<Message, GatewayError> {
    match from {
        WireFormat::OpenAiChat => openai::read_message(raw),
        WireFormat::OpenAiResponses => responses::read_message(raw),
        WireFormat::AnthropicMessages => anthropic::read_message(raw),
        WireFormat::Gemini => gemini::read_message(raw),
        WireFormat::BedrockConverse => bedrock::read_message(raw),
        WireFormat::OllamaChat => ollama::read_message(raw),
    }
}

/// Classifies a deployment's error answer.
pub fn classify(from: WireFormat, head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
    match from {
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses | WireFormat::OllamaChat => {
            openai::classify(head, body)
        }
        WireFormat::AnthropicMessages => anthropic::classify(head, body),
        WireFormat::Gemini => gemini::classify(head, body),
        WireFormat::BedrockConverse => bedrock::classify(head, body),
    }
}

/// Returns what the pipeline acts on in a whole answer.
fn facts(message: &Message) -> AnswerFacts {
    let mut facts = AnswerFacts {
        usage: message.usage,
        served_model: message.model.as_deref().map(BoundedText::new),
        ..AnswerFacts::default()
    };
    for choice in &message.choices {
        facts.finish = Some(openai::finish::combine(facts.finish, choice.finish));
        for block in &choice.blocks {
            facts.content_bytes += content_bytes(block);
            facts.tool_calls |= matches!(block, Content::ToolUse(_));
        }
    }
    facts
}

/// Returns the UTF-8 bytes of a block's text, reasoning and tool arguments.
fn content_bytes(content: &Content) -> u64 {
    let bytes = match content {
        Content::Text(text) => text.text.len(),
        Content::Refusal(text) => text.len(),
        Content::Thinking(thinking) => thinking.text.len(),
        Content::ToolUse(call) => call.arguments.len(),
        Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolResult(_)
        | Content::RedactedThinking(_)
        | Content::Opaque(_) => 0,
    };
    bytes as u64
}

fn untranslatable(operation: Operation) -> GatewayError {
    let message = "this operation is answered only by deployments that speak its own format";
    GatewayError::new(ErrorKind::InvalidRequest, message).with_subject(operation.as_str())
}

/// Returns the reason of a whole answer whose choices end one after the other.
fn combined(so_far: Option<FinishReason>, next: FinishReason) -> Option<FinishReason> {
    Some(openai::finish::combine(so_far, next))
}
