//! How durations stand in the effective configuration: in milliseconds, under the names of the file.

use std::time::Duration;

use gw_types::DeploymentTiming;
use serde::{Serialize, Serializer, ser::SerializeStruct};

fn count(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn millis<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    count(*duration).serialize(to)
}

#[expect(clippy::ref_option, reason = "the signature that `serialize_with` calls")]
pub(super) fn some_millis<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    duration.map(count).serialize(to)
}

pub(super) fn timing<S: Serializer>(timing: &DeploymentTiming, to: S) -> Result<S::Ok, S::Error> {
    let mut fields = to.serialize_struct("timing", 4)?;
    fields.serialize_field("expected_latency_ms", &count(timing.expected_latency))?;
    fields.serialize_field("min_attempt_ms", &count(timing.min_attempt))?;
    fields.serialize_field("attempt_timeout_ms", &count(timing.attempt_timeout))?;
    fields.serialize_field("stream_idle_timeout_ms", &count(timing.stream_idle))?;
    fields.end()
}
