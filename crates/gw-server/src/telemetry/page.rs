//! The counters and gauges of `/metrics` as OTLP has them, so that the two cannot disagree.
//!
//! Histograms stay on the page: what they are of, the GenAI histograms tell. The page's bounds on series hold here too.

use serde_json::{Value, json};

use super::json::text;

/// What a metric is, as far as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// A metric that is being read.
struct Metric<'p> {
    name: &'p str,
    help: &'p str,
    kind: Kind,
    points: Vec<Value>,
}

/// Reads the page; `gw_requests_total` is told as `gw.requests`. Without `gauges`, those are left out: nobody is there whose
/// state they could be. O(bytes of the page).
pub(super) fn read(page: &str, gauges: bool, times: &(String, String)) -> Vec<Value> {
    let mut all = Vec::new();
    let mut help = ("", "");
    let mut metric: Option<Metric<'_>> = None;
    for line in page.lines() {
        if let Some((name, said)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help = (name, said);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            all.extend(metric.take().as_ref().and_then(told));
            let kind = match kind {
                "counter" => Some(Kind::Counter),
                "gauge" if gauges => Some(Kind::Gauge),
                _ => None,
            };
            let help = if help.0 == name { help.1 } else { "" };
            metric = kind.map(|kind| Metric { name, help, kind, points: Vec::new() });
        } else if let Some(metric) = &mut metric {
            metric.points.extend(point(line, metric, times));
        }
    }
    all.extend(metric.as_ref().and_then(told));
    all
}

/// Reads one sample, such as `gw_attempts_total{deployment="d",error="none"} 3`.
fn point(line: &str, metric: &Metric<'_>, (started, now): &(String, String)) -> Option<Value> {
    let (series, value) = line.rsplit_once(' ')?;
    let value: i64 = value.parse().ok().or_else(|| value.parse::<u64>().ok().map(|_| i64::MAX))?;
    let labels = series.strip_prefix(metric.name)?;
    let labels = if metric.kind == Kind::Counter { labels.strip_prefix("_total")? } else { labels };
    let labels = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix('}')).unwrap_or_default();
    let mut attributes = Vec::new();
    // No value holds a quote or a comma: all are names of the configuration or words of the code.
    for (key, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
        match (key, value.trim_matches('"')) {
            // What did not fail has no type of error.
            ("error", "none") => {}
            ("error", kind) => attributes.push(text("error.type", kind)),
            (key, value) => attributes.push(text(&format!("gw.{key}"), value)),
        }
    }
    let mut point = json!({"attributes": attributes, "timeUnixNano": now, "asInt": value.to_string()});
    if metric.kind == Kind::Counter {
        point["startTimeUnixNano"] = started.as_str().into();
    }
    Some(point)
}

/// Returns the form that OTLP has for a metric; `None` if it has no series yet.
fn told(metric: &Metric<'_>) -> Option<Value> {
    if metric.points.is_empty() {
        return None;
    }
    let name = metric.name.strip_prefix("gw_").unwrap_or(metric.name);
    let mut told = json!({"name": format!("gw.{name}"), "description": metric.help.trim_end_matches('.')});
    match metric.kind {
        // Counts since the start are `cumulative`, which OTLP numbers 2.
        Kind::Counter => {
            told["sum"] =
                json!({"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": metric.points});
        }
        Kind::Gauge => told["gauge"] = json!({"dataPoints": metric.points}),
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    const PAGE: &str = "# HELP gw_attempts Provider calls; error is none where they worked.\n# TYPE gw_attempts counter\n\
        gw_attempts_total{deployment=\"d\",error=\"none\"} 3\ngw_attempts_total{deployment=\"d\",error=\"timeout\"} 1\n\
        # HELP gw_own_seconds The gateway's own work.\n# TYPE gw_own_seconds histogram\ngw_own_seconds_sum 0.5\n\
        gw_own_seconds_count 2\n# HELP gw_refusals Turned away.\n# TYPE gw_refusals counter\n\
        # HELP gw_connections Client connections open.\n# TYPE gw_connections gauge\ngw_connections -1\n# EOF\n";

    #[test]
    fn counters_and_gauges_are_told_and_nothing_else() {
        let times = ("1".to_owned(), "2".to_owned());
        let deployment = json!({"key": "gw.deployment", "value": {"stringValue": "d"}});
        let error = json!({"key": "error.type", "value": {"stringValue": "timeout"}});
        let counter = json!({
            "name": "gw.attempts",
            "description": "Provider calls; error is none where they worked",
            "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [
                {"attributes": [deployment], "startTimeUnixNano": "1", "timeUnixNano": "2", "asInt": "3"},
                {"attributes": [deployment, error], "startTimeUnixNano": "1", "timeUnixNano": "2", "asInt": "1"},
            ]},
        });
        let gauge = json!({
            "name": "gw.connections",
            "description": "Client connections open",
            "gauge": {"dataPoints": [{"attributes": [], "timeUnixNano": "2", "asInt": "-1"}]},
        });
        assert_eq!(read(PAGE, true, &times), [counter.clone(), gauge]);
        assert_eq!(read(PAGE, false, &times), [counter]);
        assert!(read("", true, &times).is_empty());
    }
}
