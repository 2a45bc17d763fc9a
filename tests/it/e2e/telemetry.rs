//! Spans and figures as a collector gets them, over real sockets.

use gw_testkit::{FakeProvider, FaultScript, ok, status};
use serde_json::Value;

use crate::support::{Collector, Gw, Told, Toml, chat, eventually, metric, run_gw};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn attribute(of: &Value, key: &str) -> Value {
    let found = of["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| {
        attribute["value"].as_object().unwrap().values().next().unwrap().clone()
    })
}

fn sent(provider: &FakeProvider) -> Vec<String> {
    let of = |headers: &[(String, String)]| {
        headers.iter().find(|(name, _)| name == "traceparent").map(|(_, value)| value.clone())
    };
    provider.calls().iter().filter_map(|call| of(&call.headers)).collect()
}

#[tokio::test]
async fn a_collector_gets_spans_in_the_callers_trace_and_nothing_of_what_was_said() {
    let provider = FakeProvider::start(FaultScript::of(status(503)).then(ok("MARKED-ANSWER"))).await.unwrap();
    let collector = Collector::start(&[]).await;
    let toml = Toml::new()
        .upstream("up", &provider)
        .upstream("next", &provider)
        .route("m", &["up", "next"])
        .tenant("a", "")
        .part(&format!(
            "{}authorization = {{ env = \"OTLP_KEY\" }}\nservice_name = \"front\"",
            collector.toml()
        ))
        .var("OTLP_KEY", "Bearer otlp");
    let gw = Gw::start(&toml).await;
    let call = gw.chat("a", &chat("m", "MARKED-PROMPT")).header("traceparent", CALLER);
    let answer = call.header("tracestate", "rojo=1").send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let unsampled = CALLER.replace("-01", "-00");
    gw.chat("a", &chat("m", "MARKED-PROMPT")).header("traceparent", &unsampled).send().await;
    gw.chat("a", &chat("m", "MARKED-PROMPT")).send().await;
    eventually("the spans", || async { (collector.spans().len() >= 5).then_some(()) }).await;
    gw.stop().await;
    let spans = collector.spans();
    assert_eq!(spans.len(), 5, "a request with two calls, a root with one; the unsampled one is nobody's");
    let (request, first, second) = (&spans[0], &spans[1], &spans[2]);
    assert_eq!((request["kind"].as_i64(), first["kind"].as_i64()), (Some(2), Some(3)));
    assert_eq!(request["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(request["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(request["name"], "chat m");
    assert_eq!(attribute(request, "gw.request.id"), answer.header("x-request-id"));
    assert_eq!(attribute(request, "gen_ai.operation.name"), "chat");
    assert_eq!(
        (&first["status"]["code"], attribute(first, "error.type")),
        (&2.into(), "provider_unavailable".into())
    );
    assert_eq!(
        (attribute(second, "gw.deployment"), attribute(second, "gw.attempt")),
        ("next".into(), "2".into())
    );
    for call in [first, second] {
        assert_eq!(call["parentSpanId"], request["spanId"]);
        assert!(call["startTimeUnixNano"].as_str() >= request["startTimeUnixNano"].as_str());
    }
    // Each call was told its own place, in the caller's trace or in one of gw's.
    let place = |span: &Value, flags: &str| {
        format!("00-{}-{}-{flags}", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap())
    };
    let sent = sent(&provider);
    assert_eq!(sent[..2], [place(first, "01"), place(second, "01")]);
    assert!(sent[2].starts_with(&unsampled[..36]) && sent[2].ends_with("-00"), "{}", sent[2]);
    assert_eq!(sent[3], place(&spans[4], "01"));
    assert_eq!(spans[3].get("parentSpanId"), None);
    // What the caller's trace says goes with its place, and with no other.
    let calls = provider.calls();
    let said: Vec<_> = calls.iter().map(|call| call.header("tracestate")).collect();
    assert_eq!(said, [Some("rojo=1"), Some("rojo=1"), None, None]);

    let told = collector.told();
    let last = told.iter().rev().find(|told| told.path == "/v1/metrics").unwrap();
    assert_eq!(last.authorization, "Bearer otlp");
    let metrics = &last.message["resourceMetrics"][0];
    assert_eq!(attribute(&metrics["resource"], "service.name"), "front");
    let counted = |name: &str| {
        let metrics = metrics["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let found = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let points = found["histogram"]["dataPoints"].as_array().unwrap();
        points.iter().map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(counted("gen_ai.server.request.duration"), 3);
    assert_eq!(counted("gen_ai.client.operation.duration"), 4, "a request with two calls, two with one");
    assert_eq!(counted("gen_ai.client.token.usage"), 6, "input and output of three answers");
    check_counters(&told);
    assert!(!format!("{told:?}").contains("MARKED"));
}

/// Counters are those of `/metrics`, in the last message too; gauges are told as long as the server is there.
fn check_counters(told: &[Told]) {
    let last = told.iter().rev().find(|told| told.path == "/v1/metrics").unwrap();
    let named = |told: &Told, name: &str| {
        let metrics = told.message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).cloned()
    };
    let points = |metric: Value, kind: &str| {
        let points = metric[kind]["dataPoints"].as_array().unwrap().clone();
        points
            .into_iter()
            .map(|point| {
                let error = attribute(&point, "error.type").as_str().map(str::to_owned);
                (error, point["asInt"].as_str().unwrap().to_owned())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(points(named(last, "gw.requests").unwrap(), "sum"), [(None, "3".to_owned())]);
    let mut attempts = points(named(last, "gw.attempts").unwrap(), "sum");
    attempts.sort();
    assert_eq!(attempts.last(), Some(&(Some("provider_unavailable".to_owned()), "1".to_owned())));
    assert_eq!(attempts.iter().filter_map(|(_, count)| count.parse::<u64>().ok()).sum::<u64>(), 4);
    let first = told.iter().find(|told| told.path == "/v1/metrics").unwrap();
    assert_eq!(points(named(first, "gw.ledger_has_place").unwrap(), "gauge"), [(None, "1".to_owned())]);
}

#[tokio::test]
async fn without_telemetry_the_callers_place_is_passed_on_as_it_is() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let gw = Gw::start(&Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "")).await;
    gw.chat("a", &chat("m", "hello")).header("traceparent", CALLER).send().await;
    gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!(sent(&provider), [CALLER]);
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up_and_is_told_of_once() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "")
        .part("[telemetry]\nendpoint = \"http://127.0.0.1:1\"\ninterval_ms = 100");
    let gw = Gw::start(&toml).await;
    for _ in 0..3 {
        assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
    }
    eventually("six lost messages", || async {
        let page = gw.admin("/metrics").send().await.text();
        (metric(&page, "gw_telemetry_messages_lost_total") >= 6).then_some(())
    })
    .await;
    let page = gw.admin("/metrics").send().await.text();
    assert_eq!(metric(&page, "gw_telemetry_untold_total"), 3);
    assert_eq!(gw.stderr().matches("collector takes nothing").count(), 1, "{}", gw.stderr());
}

#[tokio::test]
async fn a_collector_that_is_back_is_told_again() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let collector = Collector::start(&[503, 503, 429]).await;
    let toml =
        Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "").part(&collector.toml());
    let gw = Gw::start(&toml).await;
    eventually("the collector's return", || async { (!collector.told().is_empty()).then_some(()) }).await;
    gw.chat("a", &chat("m", "hello")).send().await;
    eventually("the spans", || async { (collector.spans().len() == 2).then_some(()) }).await;
    let log = gw.stderr();
    assert_eq!(log.matches("collector takes nothing").count(), 1, "{log}");
    assert_eq!(log.matches("collector takes messages again").count(), 1, "{log}");
}

#[tokio::test]
async fn a_reload_teaches_the_names_of_new_providers() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let collector = Collector::start(&[]).await;
    let house = |deployment: &str| {
        let toml = Toml::new().upstream(deployment, &provider).route("m", &[deployment]).tenant("a", "");
        toml.part(&collector.toml())
    };
    let gw = Gw::start(&house("old")).await;
    gw.write_config(&house("new"));
    assert_eq!(gw.admin_post("/admin/v1/reload").send().await.status, 200);
    gw.chat("a", &chat("m", "hello")).send().await;
    eventually("the spans", || async { (collector.spans().len() == 2).then_some(()) }).await;
    assert_eq!(attribute(&collector.spans()[1], "gen_ai.provider.name"), "new");
}

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    let check = |lines: &str, expected: &str| {
        let folder = tempfile::TempDir::new().unwrap();
        let toml = Toml::new().scripted("s", &["ok text=x"]).route("m", &["s"]).tenant("a", "");
        let toml = toml.part(&format!("[telemetry]\n{lines}"));
        std::fs::write(folder.path().join("gw.toml"), toml.text()).unwrap();
        let variables: Vec<_> = toml.environment().iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let output = run_gw(folder.path(), &["check", "gw.toml"], &variables);
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    check("", "missing `endpoint` in `telemetry`");
    check("endpoint = \"otel:4318\"", "`telemetry.endpoint` must begin with `http://` or `https://`");
    check("endpoint = \"http://u:p@otel:4318\"", "carries a user or password");
    check("endpoint = \"http://otel:4318/v1/traces\"", "ends with the path of a signal");
    check("endpoint = \"http://otel:4318?x=1\"", "has a query");
    check("endpoint = \"http://otel:4318\"\ninterval_ms = 1", "telemetry.interval_ms");
    check("endpoint = \"http://otel:4318\"\nservice_name = \"\"", "`telemetry.service_name` is empty");
    check("endpoint = \"http://otel:4318\"\nauthorization = \"Bearer x\"", "must not hold the secret itself");
    check("endpoint = \"http://otel:4318\"\nmetric = true", "metrics");
    check(
        "endpoint = \"http://otel:4318\"\ntraces = false\nmetrics = false",
        "tells of neither traces nor metrics",
    );
}
