//! `[telemetry]`: a collector that is told of requests and figures.

use std::time::Duration;

use gw_adapters::FetchClient;
use serde::{Serialize, Serializer};

use crate::{
    reader::Node,
    secret::{ListenerSecret, Outside},
    source::Located,
};

/// `[telemetry]`, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TelemetryEntry {
    /// The collector's address, without the paths of signals.
    pub(crate) endpoint: Located<String>,
    /// What `authorization` is sent with every message; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) authorization: Option<Located<ListenerSecret>>,
    pub(crate) service_name: String,
    pub(crate) traces: bool,
    pub(crate) metrics: bool,
    #[serde(rename = "interval_ms", serialize_with = "millis")]
    pub(crate) interval: Duration,
}

/// The paths that OTLP over HTTP adds to a collector's address.
const SIGNALS: [&str; 3] = ["/v1/traces", "/v1/metrics", "/v1/logs"];
/// The longest name of a service, in bytes.
const SERVICE_BYTES_MAX: usize = 128;
/// What the service is called where the file does not say.
const SERVICE: &str = "gw";
/// How often the collector is told where the file does not say.
const INTERVAL: Duration = Duration::from_secs(5);
/// The most often, in ms.
const INTERVAL_MS_MIN: i64 = 100;
/// The rarest, in ms.
const INTERVAL_MS_MAX: i64 = 600_000;

/// Reads the table; absent: nobody is told.
pub(super) fn read(node: Option<Node<'_>>, outside: Outside<'_>) -> Option<TelemetryEntry> {
    let node = node?;
    let mut section = node.section()?;
    let endpoint = section.required("endpoint", "\"http://127.0.0.1:4318\"").and_then(|node| endpoint(&node));
    let authorization = section
        .optional("authorization")
        .and_then(|node| outside.listener_secret(&node, |_| ()))
        .map(|(found, ())| found);
    let service = section.optional("service_name").and_then(|node| service(&node));
    let mut flag = |key: &'static str| section.optional(key).and_then(|node| node.flag()).unwrap_or(true);
    let (traces, metrics) = (flag("traces"), flag("metrics"));
    let interval = section.millis_within("interval_ms", INTERVAL_MS_MIN..=INTERVAL_MS_MAX);
    section.finish();
    if !traces && !metrics {
        node.fault(
            format!("`{}` tells of neither traces nor metrics", node.path()),
            "leave out one `false`, or the whole table",
        );
    }
    Some(TelemetryEntry {
        endpoint: endpoint?,
        authorization,
        service_name: service.unwrap_or_else(|| SERVICE.to_owned()),
        traces,
        metrics,
        interval: interval.unwrap_or(INTERVAL),
    })
}

fn endpoint(node: &Node<'_>) -> Option<Located<String>> {
    let text = node.text()?;
    let wrong = match FetchClient::check_url(text) {
        Err(wrong) => wrong,
        Ok(()) if text.contains('?') => "has a query, which no collector's address has",
        Ok(()) if SIGNALS.iter().any(|path| text.trim_end_matches('/').ends_with(path)) => {
            "ends with the path of a signal, which gw adds itself"
        }
        Ok(()) => return Some(Located::new(text.to_owned(), node.span())),
    };
    let message = format!("`{}` {wrong}", node.path());
    node.fault(message, "write it as `http://HOST:4318`; credentials go into `authorization`");
    None
}

fn service(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if text.len() > SERVICE_BYTES_MAX {
        node.fault(
            format!("`{}` is too long", node.path()),
            format!("write at most {SERVICE_BYTES_MAX} bytes"),
        );
        return None;
    }
    Some(text.to_owned())
}

fn millis<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u128(duration.as_millis())
}
