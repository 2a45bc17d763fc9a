//! What has really happened in a run, so that the simulator cannot become blind without a word.

use gw_types::{AccountingRecord, CacheState, ErrorKind, Outcome};

use super::{
    client::{End, Seen},
    stage::Log,
};

/// Everything that must happen in a few hundred seeds.
pub(crate) const EVERYTHING: [&str; 38] = [
    "ambiguous",
    "backoff",
    "budget spent",
    "call",
    "cancelled",
    "capped",
    "clock step",
    "conflict: ambiguous",
    "conflict: answered",
    "conflict: in flight",
    "conflict: other body",
    "crash",
    "deadline",
    "deployment unavailable",
    "failed attempt charged",
    "fallback",
    "hedge",
    "hit",
    "ledger full",
    "ledger stall",
    "limited by requests or tokens",
    "not cached",
    "open breaker",
    "other credential",
    "overload",
    "overrun",
    "queued",
    "record late",
    "reload",
    "replay",
    "restart",
    "retry",
    "shared call",
    "shared stream",
    "stream failed behind its words",
    "streamed",
    "turned away",
    "usage estimated",
];

/// Counts what a record shows.
pub(crate) fn count(log: &mut Log, record: &AccountingRecord) {
    let mut note = |holds: bool, what: &'static str| {
        if holds {
            log.count(what);
        }
    };
    let is_stream = record.facts.as_ref().is_some_and(|facts| facts.stream);
    let is_shared = record.cache == CacheState::Coalesced && record.outcome == Outcome::Ok;
    note(is_shared, if is_stream { "shared stream" } else { "shared call" });
    note(record.cache == CacheState::Exact, "hit");
    note(record.replay_of.is_some(), "replay");
    note(record.outcome == Outcome::Ambiguous, "ambiguous");
    note(record.outcome == Outcome::Cancelled, "cancelled");
    note(record.outcome == Outcome::Capped, "capped");
    note(record.latency.queue_us > 0, "queued");
    note(record.latency.backoff_us > 0, "backoff");
    note(!record.overrun.is_zero(), "overrun");
    note(record.usage.estimated, "usage estimated");
    note(!record.side_costs.is_empty(), "failed attempt charged");
    note(!record.decision.exclusions.is_empty(), "deployment unavailable");
    match record.error {
        Some(ErrorKind::RateLimited) => log.count("limited by requests or tokens"),
        Some(ErrorKind::QuotaExceeded) => log.count("budget spent"),
        Some(ErrorKind::DeadlineExceeded) => log.count("deadline"),
        Some(ErrorKind::NotCached) => log.count("not cached"),
        Some(ErrorKind::Overloaded) => log.count("overload"),
        _ => {}
    }
}

/// Counts what a client has seen.
pub(crate) fn count_seen(log: &mut Log, seen: &Seen) {
    match seen {
        Seen::Turned(_) => log.count("turned away"),
        Seen::Failed { kind: ErrorKind::IdempotencyConflict, status, ambiguous, printed, .. } => {
            log.count(match (status, ambiguous) {
                (Some(422), _) => "conflict: other body",
                (_, true) => "conflict: ambiguous",
                _ if printed.contains("in flight") => "conflict: in flight",
                _ => "conflict: answered",
            });
        }
        Seen::Streamed { text, end, .. } => {
            let has_failed = matches!(end, End::Failed(_)) && !text.is_empty();
            log.count(if has_failed { "stream failed behind its words" } else { "streamed" });
        }
        Seen::Failed { .. } | Seen::Whole { .. } | Seen::Left => {}
    }
}
