//! What goes out: line, headers, body, and that nothing of the request chooses the destination.

use std::time::Duration;

use gw_adapters::{ProviderConfig, ProviderKind};
use gw_types::{AttemptPlan, BoundedText, ErrorKind, Operation, Secret};

use crate::{
    server::{Act, Server, json},
    setup::{ANSWER, KEY, PLAN, Setup, asked, bounded, config, request},
};

async fn sent_by(make: impl FnOnce(&str) -> ProviderConfig, model: &str) -> String {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::with_model(make(&format!("http://{}", server.addr)), model);
    setup.plain().await.unwrap();
    server.requests().remove(0).replace(&server.addr.to_string(), "UP")
}

#[tokio::test]
async fn openai_request_is_exact() {
    let sent = sent_by(|base| config(&format!("{base}/v1")), "gpt-x").await;
    let body = r#"{"model":"gpt-x","stream":false,"stream_options":{"include_usage":false},"messages":[{"role":"user","content":"hello"}]}"#;
    let expected = format!(
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\naccept: application/json\r\n\
         accept-encoding: identity\r\nuser-agent: gw/{}\r\nauthorization: Bearer {KEY}\r\nhost: UP\r\n\
         content-length: {}\r\n\r\n{body}",
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    assert_eq!(sent, expected);
}

fn azure(base: &str, version: &str) -> ProviderConfig {
    let kind = ProviderKind::AzureOpenAi { api_version: version.to_owned() };
    ProviderConfig { kind, ..config(base) }
}

#[tokio::test]
async fn azure_has_its_own_path_and_header() {
    let sent = sent_by(|base| azure(base, "2024-10-21"), "gpt-4.1").await;
    let line = "POST /openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21 HTTP/1.1\r\n";
    assert!(sent.starts_with(line), "{sent}");
    assert!(sent.contains(&format!("\r\napi-key: {KEY}\r\n")) && !sent.contains("authorization"), "{sent}");
    let sent = sent_by(|base| azure(base, "v1"), "gpt-4.1").await;
    assert!(sent.starts_with("POST /openai/v1/chat/completions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(r#""model":"gpt-4.1""#), "{sent}");
}

#[tokio::test]
async fn compatible_needs_no_key_and_takes_static_headers() {
    let make = |base: &str| ProviderConfig {
        kind: ProviderKind::OpenAiCompatible { preset: None },
        api_key: None,
        headers: vec![
            ("X-Team".to_owned(), Secret::new("blue").unwrap()),
            ("User-Agent".to_owned(), Secret::new("own").unwrap()),
        ],
        ..config(base)
    };
    let sent = sent_by(make, "m").await;
    assert!(sent.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("\r\nx-team: blue\r\n") && sent.contains("\r\nuser-agent: own\r\n"), "{sent}");
    assert!(!sent.contains("authorization"), "{sent}");
}

#[tokio::test]
async fn the_time_left_goes_to_a_provider_that_takes_it() {
    async fn asked_of(kind: ProviderKind) -> String {
        let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
        let setup = Setup::with_model(ProviderConfig { kind, ..config(&server.url()) }, "m");
        let plan = AttemptPlan { timeout: Duration::from_millis(2_001), ..PLAN };
        let prepared = setup.adapter.prepare(&request(false, "hello"), &setup.deployment, &plan).unwrap();
        drop(setup.adapter.call(prepared).await);
        server.requests().remove(0)
    }
    let gemini = asked_of(ProviderKind::Gemini).await;
    assert!(gemini.contains("\r\nx-server-timeout: 3\r\n"), "{gemini}");
    let other = asked_of(ProviderKind::Anthropic).await;
    assert!(!other.contains("timeout"), "{other}");
}

#[tokio::test]
async fn traceparent_is_passed_on() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::at(&server.url());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut with = request(false, "hello");
    with.context.traceparent = Some(BoundedText::new(trace));
    with.context.tracestate = Some("rojo=1,a@b=2".into());
    let prepared = setup.adapter.prepare(&with, &setup.deployment, &PLAN).unwrap();
    setup.adapter.call(prepared).await.unwrap();
    setup.plain().await.unwrap();
    let requests = server.requests();
    assert!(requests[0].contains(&format!("\r\ntraceparent: {trace}\r\n")));
    assert!(requests[0].contains("\r\ntracestate: rojo=1,a@b=2\r\n"));
    assert!(!requests[1].contains("traceparent") && !requests[1].contains("tracestate"));
}

#[test]
fn the_output_bound_goes_into_the_kind_s_own_field() {
    for (kind, expected) in [
        (ProviderKind::OpenAi, r#""max_completion_tokens":7"#),
        (ProviderKind::AzureOpenAi { api_version: "v1".to_owned() }, r#""max_completion_tokens":7"#),
        (ProviderKind::OpenAiCompatible { preset: None }, r#""max_tokens":7"#),
    ] {
        let setup = Setup::new(ProviderConfig { kind, ..config("http://127.0.0.1:9") });
        let prepared = setup.adapter.prepare(&request(false, "x"), &setup.deployment, &bounded(7)).unwrap();
        let body = String::from_utf8(prepared.body.to_vec()).unwrap();
        assert!(body.contains(expected), "{body}");
    }
}

#[test]
fn other_operations_are_refused_before_any_call() {
    let setup = Setup::at("http://127.0.0.1:9");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let asked = asked(Operation::CountTokens, body);
    let error = setup.adapter.prepare(&asked, &setup.deployment, &PLAN).unwrap_err();
    assert_eq!((error.kind(), error.subject()), (ErrorKind::InvalidRequest, Some("count_tokens")));
}

#[tokio::test]
async fn clients_cannot_choose_where_the_gateway_connects() {
    let sink = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    // V2: fields that name a host are the provider's business; V3: a model's name stays a name, in path and body.
    for model in [format!("{}/#", sink.addr), format!("x@{}", sink.addr), "a%2f..%2fb".to_owned()] {
        let setup = Setup::with_model(azure(&format!("http://{}", server.addr), "2024-10-21"), &model);
        let body = format!(
            r#"{{"model":"{model}","api_base":"http://{0}","base_url":"http://{0}","messages":[{{"role":"user","content":"x"}}]}}"#,
            sink.addr
        );
        let prepared = setup.adapter.prepare(&crate::setup::parsed(body), &setup.deployment, &PLAN).unwrap();
        setup.adapter.call(prepared).await.unwrap();
    }
    // V6: a redirect is an answer that is none.
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n",
        sink.addr
    );
    let redirecting = Server::always(Act::Answer(redirect)).await;
    let setup = Setup::at(&redirecting.url());
    for stream in [false, true] {
        let error = setup.call(stream).await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::MalformedResponse, Some(302)));
        assert_eq!(error.http_status(gw_types::Dialect::OpenAi), 502);
    }
    assert_eq!((setup.in_use(), sink.sockets().accepted), (0, 0));
    let lines: Vec<_> = server.requests().iter().map(|r| r.lines().next().unwrap().to_owned()).collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("POST /openai/deployments/") && line.matches('/').count() == 6)
    );
}

#[tokio::test]
async fn i18_no_secret_is_printed() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::at(&server.url());
    let prepared = setup.prepare(false);
    let shown = format!("{:?} {:?} {prepared:?} {:?}", setup.provider, setup.adapter, setup.plain().await);
    for secret in [KEY, "hello", "Hi"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
