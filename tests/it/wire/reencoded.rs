//! Writes what was understood for every kind of caller, and holds it against the caller's published schemas.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use gw_dialects::{
    anthropic,
    neutral::{AnswerStamp, Content, Message},
    openai,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
};
use gw_types::{GatewayError, Operation};
use serde_json::Value;

use super::{
    exchange::Exchange,
    schema::{Broken, Schemas},
    told::Told,
    understood,
};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "id-1", created: 7, model: "m" };
const CALLERS: [Operation; 3] = [Operation::Chat, Operation::Responses, Operation::Messages];

/// Returns what is wrong with what callers are told of an answer.
pub(super) fn check(
    exchange: &Exchange,
    format: WireFormat,
    told: &Told,
    schemas: Option<&Schemas>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for caller in CALLERS {
        let mut fault = |fault: String| faults.push(format!("to {caller:?}: {fault}"));
        if let (Some(error), Some(schemas)) = (told.error(), schemas) {
            let body = error_body(caller, error);
            let mut body: Value = serde_json::from_slice(&body).expect("an error is JSON");
            if body["error"]["type"] == "request_too_large" {
                // The provider documents this type, and its schema does not have it.
                body["error"]["type"] = "invalid_request_error".into();
            }
            schemas.error(caller, &body).into_iter().for_each(|one| fault(one.to_string()));
        }
        let Told::Message(message, error) = told else { continue };
        let written = if exchange.stream {
            streamed(exchange, format, caller)
        } else {
            whole(exchange, format, caller)
        };
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                fault(format!("is not written: {error:?}"));
                continue;
            }
        };
        if exchange.stream && !holds_whole_events(&written) {
            fault("an event is no JSON".to_owned());
        }
        if let Some(schemas) = schemas {
            let mut broken = invalid(caller, exchange.stream, &written, schemas);
            if is_own(format, caller) && holds_opaque(message) {
                // A block that only its provider knows comes back as it came, also where the schemas do not know it.
                let own = invalid(caller, exchange.stream, &exchange.body, schemas);
                let opaque = opaque_places(message);
                broken.retain(|one| {
                    !own.iter().any(|own| own.rule == one.rule) && !opaque.contains(&one.place)
                });
            }
            broken.iter().for_each(|one| fault(one.to_string()));
        }
        if error.is_some() {
            continue;
        }
        match understood::read_back(caller, &written, exchange.stream) {
            Ok(back) if said(&back) == said(message) => {}
            Ok(_) => fault("the caller reads another text or other calls".to_owned()),
            Err(error) => fault(format!("the caller cannot read it: {error:?}")),
        }
    }
    faults
}

fn error_body(caller: Operation, error: &GatewayError) -> Bytes {
    match caller {
        Operation::Messages | Operation::CountTokens => anthropic::error_body(error, Some("req-1")),
        Operation::Chat | Operation::Responses | Operation::Completions | Operation::Embeddings => {
            openai::error_body(error)
        }
    }
}

fn whole(exchange: &Exchange, format: WireFormat, caller: Operation) -> Result<Bytes, GatewayError> {
    translate::answer(format, &exchange.body, caller, &STAMP).map(|(body, _)| body)
}

/// Returns the events of a stream, up to where it failed if it did.
fn streamed(exchange: &Exchange, format: WireFormat, caller: Operation) -> Result<Bytes, GatewayError> {
    let translation = StreamTranslation { from: format, to: caller, stamp: STAMP, relay_usage: true };
    let mut translator = StreamTranslator::new(&translation)?;
    let mut items = VecDeque::new();
    translator.push(exchange.body.clone(), &mut items);
    items.extend(translator.end().ok());
    let mut body = BytesMut::new();
    items.iter().for_each(|item| body.extend_from_slice(&item.raw));
    Ok(body.freeze())
}

/// Returns whether a caller reads what the deployment speaks.
fn is_own(format: WireFormat, caller: Operation) -> bool {
    matches!(
        (format, caller),
        (WireFormat::OpenAiChat, Operation::Chat)
            | (WireFormat::OpenAiResponses, Operation::Responses)
            | (WireFormat::AnthropicMessages, Operation::Messages)
    )
}

fn holds_opaque(message: &Message) -> bool {
    !opaque_places(message).is_empty()
}

/// Returns where blocks that only their provider knows can stand in an answer of that provider's own format.
fn opaque_places(message: &Message) -> Vec<String> {
    let blocks = message.choices.iter().flat_map(|choice| choice.blocks.iter().enumerate());
    let opaque = blocks.filter(|(_, block)| matches!(block, Content::Opaque(_)));
    opaque.flat_map(|(index, _)| ["content", "output"].map(|list| format!("/{list}/{index}"))).collect()
}

/// Returns the data of a stream's events.
fn events(stream: &Bytes) -> impl Iterator<Item = &str> {
    let lines = std::str::from_utf8(stream).expect("a stream is text").lines();
    lines.filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]")
}

fn holds_whole_events(written: &Bytes) -> bool {
    events(written).all(|data| serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok())
}

/// Returns what is wrong with an answer by the schemas of its caller, each fault once.
fn invalid(caller: Operation, is_stream: bool, written: &Bytes, schemas: &Schemas) -> Vec<Broken> {
    if !is_stream {
        let answer: Value = serde_json::from_slice(written).expect("an answer is JSON");
        return schemas.answer(caller, &answer).into_iter().collect();
    }
    let mut faults: Vec<Broken> = events(written)
        .filter_map(|data| {
            // The last event of a recording may be cut; gw's own are looked at before.
            schemas.event(caller, &serde_json::from_str(data).ok()?)
        })
        .collect();
    faults.dedup();
    faults
}

/// What of an answer every format has a place for: text and refusals, and the calls with parsed arguments, of the first
/// choice. Arguments that were cut have none.
fn said(message: &Message) -> (String, Vec<(&str, Option<Value>)>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in message.choices.first().map_or(&[][..], |choice| &choice.blocks) {
        match block {
            Content::Text(block) => text.push_str(&block.text),
            Content::Refusal(refusal) => text.push_str(refusal),
            Content::ToolUse(call) => calls.push((&*call.name, serde_json::from_str(&call.arguments).ok())),
            Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::Opaque(_) => {}
        }
    }
    (text, calls)
}
