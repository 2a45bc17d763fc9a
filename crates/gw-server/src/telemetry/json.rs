//! The JSON form of OTLP: ids in hexadecimal, whole numbers of 64 bits as texts.

use gw_types::UtcTime;
use serde_json::{Value, json};

/// Who speaks.
pub(super) struct Speaker {
    pub(super) service: String,
    /// Tells this process from others of the service: figures of two must not be taken for one's.
    pub(super) instance: u128,
}

impl Speaker {
    pub(super) fn resource(&self) -> Value {
        json!({"attributes": [
            text("service.name", &self.service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &format!("{:032x}", self.instance)),
            text("telemetry.sdk.name", "gw"),
            text("telemetry.sdk.language", "rust"),
            text("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ]})
    }
}

/// One attribute.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// One attribute that is a whole number.
pub(super) fn whole(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// One attribute that is yes or no.
pub(super) fn flag(key: &str, value: bool) -> Value {
    json!({"key": key, "value": {"boolValue": value}})
}

/// An instant some microseconds after another, in nanoseconds since 1970.
pub(super) fn nanos(at: UtcTime, after_us: u64) -> String {
    let micros = i128::from(at.micros()) + i128::from(after_us);
    (micros.max(0) * 1_000).to_string()
}

/// The part of the program that speaks.
pub(super) fn scope() -> Value {
    json!({"name": "gw", "version": env!("CARGO_PKG_VERSION")})
}
