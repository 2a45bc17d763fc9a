//! Spans of records: one for the request, one below it for each call of a provider.

use gw_config::ProvidersByConvention;
use gw_types::{
    AccountingRecord, AttemptRecord, ErrorKind, FactsRecord, Operation, Outcome, TraceContext, UtcTime,
};
use serde_json::{Value, json};

use super::json::{Speaker, flag, nanos, scope, text, whole};

/// The kinds of spans, as OTLP numbers them.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
/// The status of a span that failed.
const FAILED: u8 = 2;

/// Returns whether spans of the record are wanted: unless whoever began the trace says that it is not kept.
pub(super) fn are_wanted(record: &AccountingRecord) -> bool {
    caller(record).is_none_or(|caller| caller.is_sampled())
}

/// Returns the message that tells of records.
pub(super) fn message(
    speaker: &Speaker,
    records: &[Box<AccountingRecord>],
    providers: &ProvidersByConvention,
) -> Value {
    let mut spans = Vec::new();
    for record in records {
        let own = TraceContext::of_request(record.traceparent.as_ref(), &record.id);
        spans.push(request(record, &own));
        let last = record.attempts.len().wrapping_sub(1);
        for (at, attempt) in record.attempts.iter().enumerate() {
            let provider = providers.get(&attempt.deployment).map(String::as_str);
            // The last call is the one that answered, or the last that did not.
            let answers = (at == last).then_some(record.as_ref());
            spans.push(call(record, &own, (attempt, at), provider, answers));
        }
    }
    json!({"resourceSpans": [{
        "resource": speaker.resource(),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

fn caller(record: &AccountingRecord) -> Option<TraceContext> {
    record.traceparent.as_ref().and_then(|caller| TraceContext::parse(caller.as_str()))
}

fn request(record: &AccountingRecord, own: &TraceContext) -> Value {
    let mut attributes = vec![
        text("gw.request.id", record.id.as_str()),
        text("gw.tenant", record.tenant.as_str()),
        text("gw.key", record.key.as_str()),
        text("gw.config", record.config.as_str()),
        text("gw.outcome", record.outcome.as_str()),
        text("gw.cache", record.cache.as_str()),
        whole("gw.attempts", count(record.attempts.len())),
        whole("gw.cost_micros", record.cost.micros_rounded_up()),
        whole("gw.queue_us", record.latency.queue_us),
        whole("gw.backoff_us", record.latency.backoff_us),
        whole("gw.own_us", record.latency.own_us),
    ];
    let facts = record.facts.as_ref();
    if let Some(facts) = facts {
        attributes.extend(asked(facts));
        attributes.push(text("gen_ai.request.model", facts.model.as_str()));
    }
    if let Some(model) = &record.served_model {
        attributes.push(text("gen_ai.response.model", model.as_str()));
    }
    if let Some(route) = &record.route {
        attributes.push(text("gw.route", route.as_str()));
    }
    if let Some(serving) = &record.serving {
        attributes.push(text("gw.deployment", serving.as_str()));
    }
    let error = match record.outcome {
        Outcome::Ok | Outcome::Capped => None,
        Outcome::Refused | Outcome::Failed | Outcome::Cancelled | Outcome::Ambiguous => record.error,
    };
    let place = Place { own, parent: caller(record), kind: SERVER };
    let name = facts.map_or_else(
        || "request".to_owned(),
        |facts| format!("{} {}", operation(facts.operation), facts.model),
    );
    span(&place, &name, (record.started, 0, record.latency.total_us), error, attributes)
}

fn call(
    record: &AccountingRecord,
    parent: &TraceContext,
    (attempt, at): (&AttemptRecord, usize),
    provider: Option<&str>,
    answers: Option<&AccountingRecord>,
) -> Value {
    let facts = record.facts.as_ref();
    let mut attributes = vec![
        text("gw.deployment", attempt.deployment.as_str()),
        text("gen_ai.request.model", attempt.model.as_str()),
        whole("gw.attempt", count(at).saturating_add(1)),
    ];
    attributes.extend(facts.into_iter().flat_map(asked));
    if let Some(bound) = facts.and_then(|facts| facts.output_bound).filter(|_| answers.is_some()) {
        attributes.push(whole("gen_ai.request.max_tokens", bound.get()));
    }
    if let Some(provider) = provider {
        attributes.push(text("gen_ai.provider.name", provider));
    }
    if let Some(credential) = &attempt.credential {
        attributes.push(text("gw.credential", credential.as_str()));
    }
    if let Some(status) = attempt.status {
        attributes.push(whole("http.response.status_code", status.into()));
    }
    if let Some(id) = &attempt.upstream_request_id {
        attributes.push(text("gw.upstream_request_id", id.as_str()));
    }
    attributes.extend(answers.into_iter().flat_map(answered));
    let own = &TraceContext::of_attempt(record.traceparent.as_ref(), &record.id, attempt);
    let place = Place { own, parent: Some(*parent), kind: CLIENT };
    let name = format!("{} {}", facts.map_or("call", |facts| operation(facts.operation)), attempt.model);
    span(&place, &name, (record.started, attempt.start_us, attempt.duration_us), attempt.error, attributes)
}

/// What was asked for.
fn asked(facts: &FactsRecord) -> [Value; 2] {
    [text("gen_ai.operation.name", operation(facts.operation)), flag("gw.stream", facts.stream)]
}

/// What the answer used. It stands at the call alone, so that nobody who adds up spans counts it twice.
fn answered(record: &AccountingRecord) -> Vec<Value> {
    let usage = &record.usage;
    let mut attributes = vec![
        whole("gen_ai.usage.input_tokens", usage.input_total().get()),
        whole("gen_ai.usage.output_tokens", usage.output_total().get()),
    ];
    if usage.cached_input.get() > 0 {
        attributes.push(whole("gen_ai.usage.cache_read.input_tokens", usage.cached_input.get()));
    }
    attributes.extend(record.served_model.iter().map(|model| text("gen_ai.response.model", model.as_str())));
    attributes
}

/// Where a span stands.
struct Place<'a> {
    own: &'a TraceContext,
    parent: Option<TraceContext>,
    kind: u8,
}

fn span(
    place: &Place<'_>,
    name: &str,
    (started, after_us, for_us): (UtcTime, u64, u64),
    error: Option<ErrorKind>,
    mut attributes: Vec<Value>,
) -> Value {
    let mut status = json!({});
    if let Some(error) = error {
        status = json!({"code": FAILED, "message": error.as_str()});
        attributes.push(text("error.type", error.as_str()));
    }
    let mut span = json!({
        "traceId": place.own.trace_id(),
        "spanId": place.own.span_id(),
        "name": name,
        "kind": place.kind,
        "startTimeUnixNano": nanos(started, after_us),
        "endTimeUnixNano": nanos(started, after_us.saturating_add(for_us)),
        "attributes": attributes,
        "status": status,
    });
    if let Some(parent) = &place.parent {
        span["parentSpanId"] = parent.span_id().into();
    }
    span
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// What the conventions call an operation; gw's own name where they have none.
pub(super) const fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Chat | Operation::Responses | Operation::Messages => "chat",
        Operation::Completions => "text_completion",
        Operation::Embeddings => "embeddings",
        Operation::CountTokens => "count_tokens",
    }
}
