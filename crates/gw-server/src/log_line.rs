//! The one line of the log that a finished request leaves.

use gw_types::{AccountingRecord, ErrorKind};

/// Writes the line: who asked, what was decided, what came of it, what it took. No content, as in the record.
///
/// Its target is `gw::request`, so that a filter such as `info,gw::request=off` can leave it out; then it costs a
/// comparison.
pub(crate) fn write(record: &AccountingRecord) {
    let facts = record.facts.as_ref();
    tracing::info!(
        target: "gw::request",
        id = %record.id,
        tenant = %record.tenant,
        key = %record.key,
        operation = facts.map(|facts| facts.operation.as_str()),
        stream = facts.map(|facts| facts.stream),
        route = record.route.as_ref().map(tracing::field::display),
        deployment = record.serving.as_ref().map(tracing::field::display),
        trace = record.traceparent.as_ref().and_then(|parent| parent.as_str().get(3..35)),
        outcome = record.outcome.as_str(),
        error = record.error.map(ErrorKind::as_str),
        attempts = record.attempts.len(),
        cache = record.cache.as_str(),
        input_tokens = record.usage.input_total().get(),
        output_tokens = record.usage.output_total().get(),
        cost_micros = record.cost.micros_rounded_up(),
        total_us = record.latency.total_us,
        own_us = record.latency.own_us,
        "request"
    );
}
