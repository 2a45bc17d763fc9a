//! The histograms of the GenAI conventions: tokens used, how long providers take, how long callers wait.

use std::collections::BTreeMap;

use gw_config::ProvidersByConvention;
use gw_types::{AccountingRecord, DeploymentName, ErrorKind};
use serde_json::{Value, json};

use super::{
    json::{Speaker, scope, text},
    spans::operation,
};

/// Bounds of a histogram.
const BOUNDS: usize = 14;
/// Series of each histogram at most; what comes later is counted without a deployment.
const SERIES_MAX: usize = 1_000;

/// What a histogram is of. Source: OpenTelemetry semantic conventions for generative AI, metrics.
struct Figure {
    name: &'static str,
    unit: &'static str,
    /// The attribute that tells its series apart beside operation and deployment.
    kind: &'static str,
    bounds: [u64; BOUNDS],
    /// How much of what is counted is one of the unit.
    per_unit: u32,
}

const TOKENS: Figure = Figure {
    name: "gen_ai.client.token.usage",
    unit: "{token}",
    kind: "gen_ai.token.type",
    bounds: [
        1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
        67_108_864,
    ],
    per_unit: 1,
};

/// Of one call of a provider.
const CALLS: Figure = Figure {
    name: "gen_ai.client.operation.duration",
    unit: "s",
    kind: "error.type",
    bounds: MICROS,
    per_unit: 1_000_000,
};

/// Of a whole request, as its caller sees it.
const REQUESTS: Figure = Figure { name: "gen_ai.server.request.duration", ..CALLS };

const MICROS: [u64; BOUNDS] = [
    10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_280_000, 2_560_000, 5_120_000, 10_240_000,
    20_480_000, 40_960_000, 81_920_000,
];

/// What a series stands for: names of the configuration and of the code, nothing that a caller or a provider writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    operation: &'static str,
    deployment: Option<DeploymentName>,
    /// The kind of token, or of error; empty: none.
    kind: &'static str,
}

/// One series' counts.
#[derive(Clone, Debug, Default)]
struct Counts {
    buckets: [u64; BOUNDS + 1],
    count: u64,
    sum: u64,
}

type Histogram = BTreeMap<Series, Counts>;

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct GenAi {
    tokens: Histogram,
    calls: Histogram,
    requests: Histogram,
}

impl GenAi {
    pub(super) fn observe(&mut self, record: &AccountingRecord) {
        let Some(facts) = &record.facts else { return };
        let operation = operation(facts.operation);
        let series = |deployment: Option<&DeploymentName>, kind| Series {
            operation,
            deployment: deployment.cloned(),
            kind,
        };
        // The last call is the one that answered; an answer out of the cache has none, and has used nothing.
        let used = record.attempts.last().map(|attempt| &attempt.deployment);
        let usage = &record.usage;
        for (kind, tokens) in [("input", usage.input_total().get()), ("output", usage.output_total().get())] {
            if tokens > 0 && used.is_some() {
                add(&mut self.tokens, series(used, kind), &TOKENS, tokens);
            }
        }
        for attempt in &record.attempts {
            let kind = attempt.error.map_or("", ErrorKind::as_str);
            add(&mut self.calls, series(Some(&attempt.deployment), kind), &CALLS, attempt.duration_us);
        }
        let kind = record.error.map_or("", ErrorKind::as_str);
        add(&mut self.requests, series(record.serving.as_ref(), kind), &REQUESTS, record.latency.total_us);
    }

    /// Tells of all there is, from the start until now.
    pub(super) fn told(&self, providers: &ProvidersByConvention, times: &(String, String)) -> Vec<Value> {
        let all = [(&TOKENS, &self.tokens), (&CALLS, &self.calls), (&REQUESTS, &self.requests)];
        let all = all.into_iter().filter(|(_, counts)| !counts.is_empty());
        all.map(|(figure, counts)| told(figure, counts, providers, times)).collect()
    }
}

/// Returns the message that tells of metrics.
pub(super) fn message(speaker: &Speaker, metrics: &[Value]) -> Value {
    json!({"resourceMetrics": [{
        "resource": speaker.resource(),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

fn add(to: &mut Histogram, series: Series, figure: &Figure, amount: u64) {
    let is_own = to.len() < SERIES_MAX || to.contains_key(&series);
    let series = if is_own { series } else { Series { deployment: None, ..series } };
    let counts = to.entry(series).or_default();
    // A bound is the last amount of its own bucket.
    let bucket = figure.bounds.partition_point(|bound| *bound < amount);
    if let Some(bucket) = counts.buckets.get_mut(bucket) {
        *bucket += 1;
    }
    counts.count += 1;
    counts.sum = counts.sum.saturating_add(amount);
}

/// Returns the form that OTLP has for a histogram. Counts since the start are `cumulative`, which it numbers 2.
fn told(
    figure: &Figure,
    counts: &Histogram,
    providers: &ProvidersByConvention,
    (started, now): &(String, String),
) -> Value {
    #[expect(
        clippy::cast_precision_loss,
        reason = "figures for a monitor, which are floats there; no account is kept of them"
    )]
    let in_units = |amount: u64| amount as f64 / f64::from(figure.per_unit);
    let point = |(series, counts): (&Series, &Counts)| {
        let mut attributes = vec![text("gen_ai.operation.name", series.operation)];
        if let Some(deployment) = &series.deployment {
            attributes.push(text("gw.deployment", deployment.as_str()));
            if let Some(provider) = providers.get(deployment) {
                attributes.push(text("gen_ai.provider.name", provider));
            }
        }
        if !series.kind.is_empty() {
            attributes.push(text(figure.kind, series.kind));
        }
        json!({
            "attributes": attributes,
            "startTimeUnixNano": started,
            "timeUnixNano": now,
            "count": counts.count.to_string(),
            "sum": in_units(counts.sum),
            "bucketCounts": counts.buckets.iter().map(u64::to_string).collect::<Vec<_>>(),
            "explicitBounds": figure.bounds.iter().copied().map(in_units).collect::<Vec<_>>(),
        })
    };
    let points: Vec<Value> = counts.iter().map(point).collect();
    json!({
        "name": figure.name,
        "unit": figure.unit,
        "histogram": {"aggregationTemporality": 2, "dataPoints": points},
    })
}

#[cfg(test)]
mod tests {
    use gw_testkit::sample_record;
    use gw_types::DeploymentName;

    use super::{GenAi, SERIES_MAX};

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let check = |total_us: u64, expected: usize| {
            let mut record = sample_record(1);
            record.latency.total_us = total_us;
            let mut all = GenAi::default();
            all.observe(&record);
            let counts = all.requests.values().next().unwrap();
            assert_eq!(counts.buckets.iter().position(|count| *count == 1), Some(expected), "{total_us}");
        };
        check(0, 0);
        check(10_000, 0);
        check(10_001, 1);
        check(81_920_000, 13);
        check(81_920_001, 14);
        check(u64::MAX, 14);
    }

    #[test]
    fn series_are_bounded() {
        let mut all = GenAi::default();
        let mut record = sample_record(1);
        for at in 0..SERIES_MAX + 50 {
            record.serving = Some(DeploymentName::new(&format!("d{at}")).unwrap());
            all.observe(&record);
        }
        assert_eq!(all.requests.len(), SERIES_MAX + 1);
        let counted: u64 = all.requests.values().map(|counts| counts.count).sum();
        assert_eq!(counted, u64::try_from(SERIES_MAX + 50).unwrap());
        assert_eq!(all.told(&[].into(), &("0".to_owned(), "0".to_owned())).len(), 3);
    }
}
