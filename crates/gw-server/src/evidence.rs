//! The evidence of a request as response headers.

use std::{fmt::Write as _, ops::Range, time::Duration};

use bytes::Bytes;
use gw_exec::{BucketSnapshot, ReplyHead};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static DEPLOYMENT: HeaderName = HeaderName::from_static("x-gw-deployment");
static ROUTE: HeaderName = HeaderName::from_static("x-gw-route");
static REPLAY_OF: HeaderName = HeaderName::from_static("x-gw-replay-of");
static CONFIG: HeaderName = HeaderName::from_static("x-gw-config");
static ATTEMPTS: HeaderName = HeaderName::from_static("x-gw-attempts");
static CACHE: HeaderName = HeaderName::from_static("x-gw-cache");
static COST: HeaderName = HeaderName::from_static("x-gw-cost-micros");
static LATENCY: HeaderName = HeaderName::from_static("x-gw-latency-ms");
static LOSS: HeaderName = HeaderName::from_static("x-gw-loss");
static REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
static TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// Bytes that the values of one answer usually have together.
const TEXT_BYTES: usize = 256;

/// Says what an answer is, as far as its headers depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Cost and latency are known.
    Whole,
    /// Cost and latency are known at its end: the record has them.
    Stream,
}

/// Writes the evidence into response headers.
pub(crate) fn write(head: &ReplyHead, form: Form, headers: &mut HeaderMap) {
    let mut values = Values::default();
    values.text(&REQUEST_ID, head.id.as_str());
    values.text(&CONFIG, head.config.as_str());
    if let Some(route) = &head.route {
        values.text(&ROUTE, route.as_str());
    }
    if let Some(deployment) = &head.deployment {
        values.text(&DEPLOYMENT, deployment.as_str());
    }
    if let Some(original) = &head.replay_of {
        values.text(&REPLAY_OF, original.as_str());
    }
    values.number(&ATTEMPTS, head.attempts.into());
    if form == Form::Whole {
        values.number(&COST, head.cost.micros_rounded_up());
        values.number(&LATENCY, u64::try_from(head.latency.as_millis()).unwrap_or(u64::MAX));
    }
    if head.loss > 0 {
        values.number(&LOSS, head.loss.into());
    }
    for (names, bucket) in [(&REQUESTS, &head.requests), (&TOKENS, &head.tokens)] {
        if let Some(bucket) = bucket {
            values.bucket(names, bucket);
        }
    }
    values.into_headers(headers);
    headers.insert(CACHE.clone(), HeaderValue::from_static(head.cache.as_str()));
}

/// Header values side by side in one buffer: one allocation for all of them.
struct Values {
    text: String,
    fields: SmallVec<[(&'static HeaderName, Range<usize>); 16]>,
}

impl Default for Values {
    fn default() -> Self {
        Self { text: String::with_capacity(TEXT_BYTES), fields: SmallVec::new() }
    }
}

impl Values {
    fn text(&mut self, name: &'static HeaderName, value: &str) {
        let start = self.text.len();
        self.text.push_str(value);
        self.fields.push((name, start..self.text.len()));
    }

    fn number(&mut self, name: &'static HeaderName, value: u64) {
        let start = self.text.len();
        push_number(&mut self.text, value);
        self.fields.push((name, start..self.text.len()));
    }

    fn bucket(&mut self, names: &'static [HeaderName; 3], bucket: &BucketSnapshot) {
        let [limit, remaining, reset] = names;
        self.number(limit, bucket.limit);
        self.number(remaining, bucket.remaining);
        let start = self.text.len();
        push_reset(&mut self.text, bucket.reset_after);
        self.fields.push((reset, start..self.text.len()));
    }

    fn into_headers(self, headers: &mut HeaderMap) {
        // Room for these and for what stands there already, so that the map does not grow step by step.
        headers.reserve(self.fields.len() + 8);
        let text = Bytes::from(self.text);
        for (name, range) in self.fields {
            // Names, digests and numbers are visible ASCII.
            if let Ok(value) = HeaderValue::from_maybe_shared(text.slice(range)) {
                headers.insert(name.clone(), value);
            }
        }
    }
}

/// Writes decimal digits.
fn push_number(text: &mut String, value: u64) {
    text.push_str(itoa::Buffer::new().format(value));
}

/// Writes a time as OpenAI does: `6m0s`, `8.64s`, `17ms`; milliseconds are rounded up.
fn push_reset(text: &mut String, time: Duration) {
    let millis = u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    if millis < 1_000 {
        push_number(text, millis);
        text.push_str("ms");
        return;
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    if minutes > 0 {
        push_number(text, minutes);
        text.push('m');
    }
    push_number(text, rest / 1_000);
    if rest % 1_000 > 0 {
        // Writing into a string cannot fail.
        let _ = write!(text, ".{:03}", rest % 1_000);
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push('s');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_exec::{BucketSnapshot, ReplyHead};
    use gw_types::{BoundedText, CacheState, DeploymentName, Money, Outcome, RequestId, RouteName, UtcTime};
    use http::HeaderMap;

    use super::{Form, push_number, push_reset, write};

    fn head() -> ReplyHead {
        ReplyHead {
            id: RequestId::from_bits(1),
            started: UtcTime::from_micros(0),
            config: BoundedText::new("c0ffee"),
            route: Some(RouteName::new("fast").unwrap()),
            deployment: Some(DeploymentName::new("ptu").unwrap()),
            served_model: None,
            replay_of: None,
            attempts: 2,
            attempt_errors: Default::default(),
            settled: Default::default(),
            cache: CacheState::Miss,
            cost: Money::from_pico(1_000_001),
            latency: Duration::from_micros(12_999),
            loss: 0,
            outcome: Outcome::Ok,
            requests: Some(BucketSnapshot {
                limit: 600,
                remaining: 599,
                reset_after: Duration::from_millis(100),
            }),
            tokens: None,
        }
    }

    fn headers(head: &ReplyHead, form: Form) -> HeaderMap {
        let mut headers = HeaderMap::new();
        write(head, form, &mut headers);
        headers
    }

    #[test]
    fn the_evidence_stands_in_the_headers() {
        let headers = headers(&head(), Form::Whole);
        for (name, value) in [
            ("x-request-id", "req_00000000000000000000000000000001"),
            ("x-gw-config", "c0ffee"),
            ("x-gw-route", "fast"),
            ("x-gw-deployment", "ptu"),
            ("x-gw-attempts", "2"),
            ("x-gw-cache", "miss"),
            ("x-gw-cost-micros", "2"),
            ("x-gw-latency-ms", "12"),
            ("x-ratelimit-limit-requests", "600"),
            ("x-ratelimit-remaining-requests", "599"),
            ("x-ratelimit-reset-requests", "100ms"),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        assert_eq!(headers.len(), 11);
    }

    #[test]
    fn a_stream_leaves_cost_and_latency_to_its_record() {
        let headers = headers(&head(), Form::Stream);
        assert!(!headers.contains_key("x-gw-cost-micros") && !headers.contains_key("x-gw-latency-ms"));
    }

    #[test]
    fn loss_shows_where_there_is_one() {
        assert_eq!(headers(&ReplyHead { loss: 3, ..head() }, Form::Whole)["x-gw-loss"], "3");
    }

    #[test]
    fn numbers_are_written_whole() {
        for value in [0, 7, 10, 1_000_000, u64::MAX] {
            let mut text = String::from("x");
            push_number(&mut text, value);
            assert_eq!(text, format!("x{value}"));
        }
    }

    #[test]
    fn times_are_written_as_openai_does() {
        for (micros, expected) in [
            (0, "0ms"),
            (1, "1ms"),
            (17_000, "17ms"),
            (999_001, "1s"),
            (8_640_000, "8.64s"),
            (59_999_000, "59.999s"),
            (360_000_000, "6m0s"),
            (61_500_000, "1m1.5s"),
        ] {
            let mut text = String::new();
            push_reset(&mut text, Duration::from_micros(micros));
            assert_eq!(text, expected);
        }
    }
}
