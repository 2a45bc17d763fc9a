//! Writes answers: the response object, whole or in the events of a stream.

use bytes::{Bytes, BytesMut};
use gw_types::{ErrorKind, FinishReason, GatewayError, Operation, Usage};

use super::{
    output::{Output, Status, write_usage},
    writer::StreamWriter,
};
use crate::{
    json::{Node, Value, Writer},
    neutral::{AnswerStamp, At, BlockKind, Content, Event, Message, tier_for},
    openai::error_body,
};

/// Returns a whole answer as a caller of responses reads it. The first choice alone: the format has no others.
pub fn write_message(message: &Message, stamp: &AnswerStamp<'_>) -> Bytes {
    let mut writer = StreamWriter::new(stamp);
    // The output grows as that of a stream does; its events go nowhere.
    let mut nowhere = BytesMut::new();
    for event in events_of(message).iter().filter(|event| !matches!(event, Event::End)) {
        writer.write(event, &mut nowhere);
        nowhere.clear();
    }
    writer.into_body()
}

/// Returns a whole answer as the steps of a stream; the first choice alone.
pub(crate) fn events_of(message: &Message) -> Vec<Event> {
    let mut events = vec![Event::Start { id: message.id.clone(), model: message.model.clone() }];
    events.extend(message.service_tier.clone().map(Event::ServiceTier));
    if let Some(choice) = message.choices.first() {
        for (block, content) in (0..).zip(&choice.blocks) {
            block_events(At { choice: 0, block }, content, &mut events);
        }
        if let Some(logprobs) = &choice.logprobs {
            let last = events.iter().rposition(|event| matches!(event, Event::TextDelta(..)));
            events.insert(last.map_or(events.len(), |last| last + 1), Event::Logprobs(0, logprobs.clone()));
        }
        let stop_sequence = choice.stop_sequence.clone();
        events.push(Event::Finish { choice: 0, reason: choice.finish, stop_sequence });
    }
    events.extend(message.usage.map(Event::Usage));
    events.push(Event::End);
    events
}

pub(super) fn block_events(at: At, content: &Content, events: &mut Vec<Event>) {
    let mut add = |kind: BlockKind, inner: Vec<Event>| {
        events.push(Event::BlockStart(at, kind));
        events.extend(inner);
        events.push(Event::BlockStop(at));
    };
    match content {
        Content::Text(text) => {
            let cited = text.citations.iter().map(|citation| Event::Citation(at, citation.clone()));
            add(
                BlockKind::Text,
                std::iter::once(Event::TextDelta(at, text.text.clone())).chain(cited).collect(),
            );
        }
        Content::Refusal(text) => add(BlockKind::Refusal, vec![Event::RefusalDelta(at, text.clone())]),
        Content::ToolUse(call) => {
            let (id, name) = (call.id.clone(), call.name.clone());
            let kind = BlockKind::ToolUse { id, name, signature: call.signature.clone() };
            add(kind, vec![Event::ArgumentsDelta(at, call.arguments.clone())]);
        }
        Content::Thinking(thinking) => {
            let signed = thinking.signature.iter().map(|one| Event::SignatureDelta(at, one.clone()));
            let said = std::iter::once(Event::ThinkingDelta(at, thinking.text.clone()));
            add(BlockKind::Thinking, said.chain(signed).collect());
        }
        Content::RedactedThinking(data) => add(BlockKind::RedactedThinking(data.clone()), Vec::new()),
        Content::Opaque(opaque) => {
            add(BlockKind::Opaque(opaque.origin, opaque.value.clone()), Vec::new());
        }
        // An answer holds none of these that responses could show.
        Content::Image(_) | Content::Document(_) | Content::Audio(_) | Content::ToolResult(_) => {}
    }
}

/// How an answer stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing<'a> {
    /// Why it ended; `None` while it is being made.
    pub(super) finish: Option<FinishReason>,
    pub(super) error: Option<&'a GatewayError>,
    pub(super) usage: Option<&'a Usage>,
}

impl Standing<'_> {
    fn status(&self) -> &'static str {
        match (self.error, self.finish) {
            (Some(_), _) => "failed",
            (None, None) => Status::InProgress.as_str(),
            (None, Some(reason)) => Status::after(reason).as_str(),
        }
    }

    /// Returns the name of the event that tells it.
    pub(super) fn event(&self) -> &'static str {
        match self.status() {
            "failed" => "response.failed",
            "incomplete" => "response.incomplete",
            "completed" => "response.completed",
            _ => "response.in_progress",
        }
    }
}

/// Fields of a response object that depend on how the answer stands.
const STANDING_FIELDS: [&str; 6] =
    ["status", "error", "incomplete_details", "output", "usage", "completed_at"];

/// Returns the fields of a response object that do not.
pub(super) fn base(stamp: &AnswerStamp<'_>, model: Option<&str>, tier: Option<&str>) -> String {
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("id", stamp.id);
        json.member_string("object", "response");
        json.member_number("created_at", stamp.created);
        json.member_bool("background", false);
        json.member_null("instructions");
        json.member_null("max_output_tokens");
        json.member_string("model", model.unwrap_or(stamp.model));
        json.member_bool("parallel_tool_calls", true);
        json.member_null("previous_response_id");
        json.member_raw("reasoning", r#"{"effort":null,"summary":null}"#);
        if let Some(tier) = tier.and_then(|tier| tier_for(Operation::Responses, tier)) {
            json.member_string("service_tier", tier);
        }
        json.member_bool("store", false);
        json.member_null("temperature");
        json.member_raw("text", r#"{"format":{"type":"text"}}"#);
        json.member_string("tool_choice", "auto");
        json.member_array("tools", |_| {});
        json.member_null("top_p");
        json.member_string("truncation", "disabled");
        json.member_object("metadata", |_| {});
    });
    String::from_utf8_lossy(&json.into_bytes()).into_owned()
}

/// Writes a response object: the fields of `base`, and how the answer stands.
pub(super) fn write_response(json: &mut Writer, base: &str, output: &Output, standing: &Standing<'_>) {
    let fields = match Node::read(base).map(|node| node.value) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Array(_) | Value::String(_) | Value::Number | Value::Bool(_) | Value::Null) | Err(_) => {
            Vec::new()
        }
    };
    json.object(|json| {
        for (name, value) in fields.iter().filter(|(name, _)| !STANDING_FIELDS.contains(&name.raw())) {
            json.member_raw(name.raw(), value.raw);
        }
        json.member_string("status", standing.status());
        match standing.error {
            Some(error) => {
                let shown = error_body(error);
                let message = shown_error(&shown, |error| error.text("message"));
                json.member_object("error", |json| {
                    json.member_string("code", failure_code(error.kind()));
                    json.member_string("message", message.as_deref().unwrap_or_default());
                });
            }
            None => json.member_null("error"),
        }
        match standing.finish {
            Some(FinishReason::Length) => {
                json.member_raw("incomplete_details", r#"{"reason":"max_output_tokens"}"#);
            }
            Some(FinishReason::ContentFilter) => {
                json.member_raw("incomplete_details", r#"{"reason":"content_filter"}"#);
            }
            Some(
                FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal | FinishReason::Other,
            )
            | None => json.member_null("incomplete_details"),
        }
        json.key("output");
        output.write(json);
        // Clients read the figures of an answer that has ended without asking whether there are any; OpenAI itself writes
        // zeros where it has not counted.
        let ended = standing.finish.is_some() && standing.error.is_none();
        if let Some(usage) = standing.usage.or(ended.then_some(&Usage::default())) {
            json.key("usage");
            write_usage(json, usage);
        }
    });
}

/// Writes the two events that end a stream which failed: the error, and the response that failed of it.
pub(super) fn write_failure(output: &mut Output, base: &str, error: &GatewayError, out: &mut BytesMut) {
    let shown = error_body(error);
    let raw = |field: &str| shown_error(&shown, |error| error.get(field).map(|value| value.raw.to_owned()));
    let fields = ["code", "message", "param", "outcome", "attempt"].map(|field| (field, raw(field)));
    output.event(out, "error", |json| {
        for (field, value) in &fields {
            match value {
                Some(value) => json.member_raw(field, value),
                None if matches!(*field, "outcome" | "attempt") => {}
                None => json.member_null(field),
            }
        }
    });
    let items = std::mem::take(output);
    output.next = items.next;
    let standing = Standing { error: Some(error), ..Standing::default() };
    output.event(out, standing.event(), |json| {
        json.key("response");
        write_response(json, base, &items, &standing);
    });
}

/// Looks into an error body of gw's own.
fn shown_error<T>(body: &[u8], look: impl FnOnce(&Node<'_>) -> Option<T>) -> Option<T> {
    let text = std::str::from_utf8(body).ok()?;
    look(Node::read(text).ok()?.get("error")?)
}

/// Returns the code of a response that failed: the format has a closed list of them.
const fn failure_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::QuotaExceeded | ErrorKind::RateLimited | ErrorKind::ProviderRateLimited => {
            "rate_limit_exceeded"
        }
        ErrorKind::InvalidRequest
        | ErrorKind::TranslationLoss
        | ErrorKind::ContextLengthExceeded
        | ErrorKind::ContentFiltered
        | ErrorKind::PolicyViolation => "invalid_prompt",
        ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::UnknownModel
        | ErrorKind::Intake
        | ErrorKind::IdempotencyConflict
        | ErrorKind::NotCached
        | ErrorKind::Overloaded
        | ErrorKind::ProviderUnavailable
        | ErrorKind::ProviderTimeout
        | ErrorKind::Transport
        | ErrorKind::MalformedResponse
        | ErrorKind::StreamInterrupted
        | ErrorKind::ProviderAuth
        | ErrorKind::DeploymentMissing
        | ErrorKind::StatePinned
        | ErrorKind::BudgetExhausted
        | ErrorKind::DeadlineExceeded
        | ErrorKind::NoRouteAvailable
        | ErrorKind::Cancelled
        | ErrorKind::Internal => "server_error",
    }
}
