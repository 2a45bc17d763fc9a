//! What a check came to, and the events that it left.

use std::{collections::BTreeMap, time::Duration};

use gw_exec::GenerationResult;
use serde::Serialize;
use serde_json::{Value, json};

use super::scene::Arrival;

/// A number of a report that another run repeats exactly.
pub(super) type Observed = BTreeMap<&'static str, Value>;

/// A number of a report that depends on the machine and the moment; units stand in the names.
pub(super) type Measured = BTreeMap<&'static str, u64>;

/// What a check came to.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) passed: bool,
    pub(super) observed: Observed,
    pub(super) measured: Measured,
    pub(super) events: Vec<Event>,
}

/// One event of a check: a call that came in at the fault server, or the result of an item.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Event {
    pub(super) check: &'static str,
    pub(super) event: &'static str,
    pub(super) item: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
    pub(super) measured: Measured,
}

impl Finding {
    /// Returns a finding with the events of a scene.
    pub(super) fn new(check: &'static str, arrivals: &[Arrival], results: &[GenerationResult]) -> Self {
        let calls = arrivals.iter().map(|arrival| Event {
            check,
            event: "call",
            item: arrival.item.clone(),
            call: Some(arrival.nth),
            result: None,
            measured: Measured::from([
                ("at_us", micros(arrival.at)),
                ("calls_in_flight", u64::try_from(arrival.calls).unwrap_or(u64::MAX)),
                ("tokens_in_flight", arrival.tokens),
            ]),
        });
        let results = results.iter().map(|result| Event {
            check,
            event: "result",
            item: result.request_id.clone(),
            call: None,
            result: Some(told(result)),
            measured: Measured::from([
                ("admission_wait_us", micros(result.admission_wait)),
                ("latency_us", micros(result.latency)),
            ]),
        });
        Self { events: calls.chain(results).collect(), ..Self::default() }
    }

    pub(super) fn observe(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.observed.insert(name, value.into());
        self
    }

    pub(super) fn measure(mut self, name: &'static str, value: u64) -> Self {
        self.measured.insert(name, value);
        self
    }

    pub(super) fn passed_if(mut self, passed: bool) -> Self {
        self.passed = passed;
        self
    }
}

/// Returns what of a result another run repeats.
pub(super) fn told(result: &GenerationResult) -> Value {
    let classes: Vec<_> = result.attempt_error_classes.iter().map(|kind| kind.as_str()).collect();
    let choice = result.completions.first();
    let tools: Vec<_> =
        choice.into_iter().flat_map(|choice| &choice.tool_calls).map(|call| call.name.clone()).collect();
    json!({
        "status": result.status.as_str(),
        "attempts": result.attempts,
        "attempt_error_classes": classes,
        "error_class": result.error_class.map(gw_types::ErrorKind::as_str),
        "text": choice.map(|choice| choice.text.clone()),
        "finish_reason": choice.map(|choice| choice.finish.as_str()),
        "tool_calls": tools,
    })
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the value below which so many of a hundred lie, by nearest rank; 0 of nothing.
pub(super) fn percentile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_go_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=20).rev().collect();
        assert_eq!((percentile(&mut values, 50), percentile(&mut values, 95)), (10, 19));
        assert_eq!((percentile(&mut [7], 95), percentile(&mut [], 95)), (7, 0));
    }
}
