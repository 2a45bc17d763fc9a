//! Everything that the design lists as bad input: a 4xx in the endpoint's error shape, at once, without a call.

use gw_testkit::{FakeProvider, FaultScript};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Gw, Raw, Toml, chat, key_of, metric, raw_chat};

async fn house() -> (FakeProvider, Gw) {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let toml = Toml::new()
        .part("[residency]\nonshore = [\"uk-south\"]")
        .upstream_with("up", &provider.base_url(), "", "region = \"uk-south\"")
        .route("m", &["up"])
        .tenant("a", "default_classification = \"internal\"");
    let gw = Gw::start(&toml).await;
    (provider, gw)
}

fn nested(levels: usize) -> Vec<u8> {
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}],\"x\":{deep}}}")
        .into_bytes()
}

/// A good request with one field changed.
fn with(field: &str, value: Value) -> Vec<u8> {
    let mut body = chat("m", "hello");
    body[field] = value;
    body.to_string().into_bytes()
}

fn without(field: &str) -> Vec<u8> {
    let mut body = chat("m", "hello");
    body.as_object_mut().unwrap().remove(field);
    body.to_string().into_bytes()
}

/// Bodies that are no JSON object: what each is, the body, the parameter that the error must name where it is one.
fn no_json() -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("nothing", Vec::new(), None),
        ("blanks", text(" \n "), None),
        ("no JSON", text("hello"), None),
        ("cut JSON", text("{\"model\":\"m\",\"messages\":[{\"role\":\"user\""), None),
        (
            "two values",
            text("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}{}"),
            None,
        ),
        ("a comma too many", text("{\"model\":\"m\",}"), None),
        ("NaN", text("{\"model\":\"m\",\"temperature\":NaN,\"messages\":[]}"), None),
        ("an array", text("[]"), None),
        ("null", text("null"), None),
        (
            "invalid UTF-8",
            b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}".to_vec(),
            None,
        ),
        ("100 levels of nesting", nested(100), None),
        ("100,000 levels of nesting", nested(100_000), None),
    ]
}

/// JSON that is no request.
fn fields() -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("no model", without("model"), Some("model")),
        ("a model of another type", with("model", json!(7)), Some("model")),
        ("an empty model", with("model", json!("")), Some("model")),
        ("null for a model", with("model", Value::Null), Some("model")),
        ("a long model", with("model", json!("m".repeat(300))), Some("model")),
        ("a model with a line end", with("model", json!("m\nm")), Some("model")),
        ("no messages", without("messages"), Some("messages")),
        ("empty messages", with("messages", json!([])), Some("messages")),
        ("messages of another type", with("messages", json!("hello")), Some("messages")),
        ("a message of another type", with("messages", json!(["hello"])), Some("messages[0]")),
        ("null for messages", with("messages", Value::Null), Some("messages")),
        ("n = 0", with("n", json!(0)), Some("n")),
        ("n = -1", with("n", json!(-1)), Some("n")),
        ("n = 1.5", with("n", json!(1.5)), Some("n")),
        ("n as text", with("n", json!("1")), Some("n")),
        ("n = 129", with("n", json!(129)), Some("n")),
        ("negative max_tokens", with("max_tokens", json!(-1)), Some("max_tokens")),
        ("max_tokens = 0", with("max_tokens", json!(0)), Some("max_tokens")),
        ("max_tokens as text", with("max_tokens", json!("5")), Some("max_tokens")),
        (
            "max_tokens beyond 64 bits",
            text(
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":99999999999999999999}",
            ),
            Some("max_tokens"),
        ),
        (
            "negative max_completion_tokens",
            with("max_completion_tokens", json!(-5)),
            Some("max_completion_tokens"),
        ),
        (
            "both token fields",
            text(
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":5,\"max_completion_tokens\":6}",
            ),
            Some("max_tokens"),
        ),
        ("stream as text", with("stream", json!("yes")), Some("stream")),
        ("stream_options of another type", with("stream_options", json!(1)), Some("stream_options")),
        (
            "include_usage as text",
            with("stream_options", json!({"include_usage": "yes"})),
            Some("stream_options.include_usage"),
        ),
        ("tools of another type", with("tools", json!({})), Some("tools")),
        ("temperature as text", with("temperature", json!("hot")), Some("temperature")),
        (
            "the model twice",
            text("{\"model\":\"m\",\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"),
            Some("model"),
        ),
    ]
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused_and_the_connection_lives_on() {
    let (provider, gw) = house().await;
    let bodies = [no_json(), fields()].concat();
    for (what, body, param) in &bodies {
        // Twice on one connection: whatever the first answer was, the second request is served.
        let mut raw = Raw::connect(gw.data).await;
        let request = String::from_utf8_lossy(&raw_chat("a", b"", body)).into_owned();
        assert!(request.contains("connection: close"));
        let kept = [&raw_chat("a", b"", body)[..]].concat();
        let kept = replace(&kept, b"connection: close", b"connection: keep-alive");
        assert!(raw.send(&kept).await, "{what}");
        raw.send(
            b"GET /v1/models HTTP/1.1\r\nhost: gw\r\nx-api-key: key-of-tenant-a\r\nconnection: close\r\n\r\n",
        )
        .await;
        let answers = raw.rest().await;
        assert!(answers.starts_with("HTTP/1.1 400 "), "{what}: {answers}");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{what}: the connection was given up: {answers}");
        assert!(
            answers.contains("HTTP/1.1 200 ") && answers.contains("\"object\":\"list\""),
            "{what}: {answers}"
        );
        // And once through a client, for the error's shape.
        let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a"));
        let answer = call.bytes(body.clone()).send().await;
        let error = answer.error();
        assert_eq!((answer.status, error["type"].as_str()), (400, Some("invalid_request_error")), "{what}");
        assert!(param.is_none() || error["param"].as_str() == *param, "{what}: {error}");
        assert_eq!(
            (answer.header("x-should-retry"), answer.header("x-gw-attempts")),
            ("false", "0"),
            "{what}"
        );
        assert!(answer.header("x-request-id").starts_with("req_"), "{what} has a record");
    }
    assert_eq!(provider.calls().len(), 0);
    for record in gw.records(2 * bodies.len()).await {
        assert_eq!(
            (record["outcome"].as_str(), record["error"].as_str()),
            (Some("refused"), Some("invalid_request"))
        );
    }
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[tokio::test]
async fn an_11_mb_body_is_refused_with_a_status() {
    let (provider, gw) = house().await;
    let big = with("x", json!("x".repeat(11 * 1_024 * 1_024)));
    let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a"));
    let answer = call.bytes(big.clone()).send().await;
    assert_eq!((answer.status, answer.error()["type"].as_str()), (413, Some("invalid_request_error")));
    // Without a stated length: counted as it comes.
    let mut raw = Raw::connect(gw.data).await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n",
        key_of("a")
    );
    raw.send(head).await;
    for piece in big.chunks(64 * 1_024) {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        if !raw.send(chunk).await {
            break;
        }
    }
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("invalid_request_error"), "{answer}");
    assert_eq!(provider.calls().len(), 0);
    let fits = with("x", json!("x".repeat(3 * 1_024 * 1_024)));
    let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a"));
    assert_eq!(call.bytes(fits).send().await.status, 200, "3 MB must pass");
}

#[tokio::test]
async fn bad_headers_are_refused_and_named() {
    let (provider, gw) = house().await;
    for (name, value, status, kind) in [
        ("x-gw-task-class", "two words", 400, "invalid_request_error"),
        ("x-gw-classification", "secret", 400, "invalid_request_error"),
        ("x-gw-classification", "public", 403, "permission_error"),
        ("x-gw-residency", "on,shore", 400, "invalid_request_error"),
        ("x-gw-residency", "offshore", 400, "invalid_request_error"),
        ("x-gw-deadline-ms", "0", 400, "invalid_request_error"),
        ("x-gw-deadline-ms", "-5", 400, "invalid_request_error"),
        ("x-gw-deadline-ms", "soon", 400, "invalid_request_error"),
        ("x-gw-deadline-ms", "86400000", 400, "invalid_request_error"),
        ("x-gw-side-effecting", "maybe", 400, "invalid_request_error"),
        ("x-gw-cache", "maybe", 400, "invalid_request_error"),
        ("x-request-id", &*"i".repeat(200), 400, "invalid_request_error"),
        ("traceparent", "not a trace", 400, "invalid_request_error"),
    ] {
        let answer = gw.chat("a", &chat("m", "hello")).header(name, value).send().await;
        let error = answer.error();
        assert_eq!((answer.status, error["type"].as_str()), (status, Some(kind)), "{name}: {value}");
        assert_eq!(error["param"], name, "{value}: {error}");
    }
    let body = chat("m", "hello").to_string();
    for line in [
        &b"x-gw-task-class: a\x01b\r\n"[..],
        b"x-request-id: a\x7fb\r\n",
        b"x-gw-prompt-version: a\tb\r\n",
        b"traceparent: \x80\r\n",
        b"x-other: a\x00b\r\n",
    ] {
        let mut raw = Raw::connect(gw.data).await;
        raw.send(raw_chat("a", line, body.as_bytes())).await;
        let answer = raw.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line:?}: {answer}");
        assert!(answer.contains("{\"error\":{\"message\":") && answer.contains("\"param\":"), "{answer}");
    }
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn paths_methods_media_types_and_keys_are_refused() {
    let (provider, gw) = house().await;
    let body = chat("m", "hello");
    let post = |path: &str| gw.call(Method::POST, path);
    for (what, call, status, kind) in [
        ("an unknown path", post("/v1/nothing").key(&key_of("a")).json(&body), 404, "invalid_request_error"),
        (
            "a method",
            gw.call(Method::PUT, "/v1/chat/completions").key(&key_of("a")).json(&body),
            405,
            "invalid_request_error",
        ),
        (
            "an unknown key",
            post("/v1/chat/completions").key("nobody's").json(&body),
            401,
            "authentication_error",
        ),
        ("no key", post("/v1/chat/completions").json(&body), 401, "authentication_error"),
        (
            "a media type",
            post("/v1/chat/completions").key(&key_of("a")).header("content-type", "text/plain").json(&body),
            415,
            "invalid_request_error",
        ),
        ("a coding", gw.chat("a", &body).header("content-encoding", "gzip"), 415, "invalid_request_error"),
        ("an unknown model", gw.chat("a", &chat("other", "hello")), 404, "invalid_request_error"),
    ] {
        let answer = call.send().await;
        assert_eq!((answer.status, answer.error()["type"].as_str()), (status, Some(kind)), "{what}");
    }
    assert_eq!(provider.calls().len(), 0);
    let page = gw.metrics().await;
    for (reason, count) in
        [("unknown_path", 1), ("method", 1), ("unauthenticated", 2), ("media_type", 1), ("encoding", 1)]
    {
        assert_eq!(metric(&page, &format!("gw_refusals_total{{reason=\"{reason}\"}}")), count, "{reason}");
    }
}

#[tokio::test]
async fn what_is_no_http_gets_a_status_too() {
    let (provider, gw) = house().await;
    let long = format!("GET / HTTP/1.1\r\nhost: gw\r\nx: {}\r\n\r\n", "x".repeat(300_000));
    let many = format!("GET / HTTP/1.1\r\nhost: gw\r\n{}\r\n", "x: y\r\n".repeat(2_000));
    for (bytes, statuses) in [
        ("hello\r\n\r\n", &["400"][..]),
        ("POST /v1/chat/completions HTTP/1.1\r\nhost gw\r\n\r\n", &["400"]),
        ("POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\ncontent-length: x\r\n\r\n", &["400"]),
        (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            &["400"],
        ),
        (&*long, &["431"]),
        (&*many, &["431"]),
    ] {
        let mut raw = Raw::connect(gw.data).await;
        raw.send(bytes).await;
        let answer = raw.rest().await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        let begun = &bytes[..bytes.len().min(60)];
        assert!(statuses.contains(&status) && answer.contains("{\"error\":{"), "{begun}: {answer}");
    }
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
}

/// A refusal that comes before the body does ends the connection and says so: a client that keeps connections would lose its
/// next request otherwise. A body that is here already is read over, and the connection lives on.
#[tokio::test]
async fn a_refusal_before_the_body_says_that_the_connection_ends() {
    let (provider, gw) = house().await;
    let request = |path: &str, key: &str, kind: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {key}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let (key, chat, json) = (key_of("a"), "/v1/chat/completions", "application/json");
    let refused = [
        (request(chat, "nobody", json, 3), "401"),
        (request("/v1/nothing", &key, json, 3), "404"),
        (request("/v1/models", &key, json, 3), "405"),
        (request(chat, &key, "text/html", 3), "415"),
    ];
    for (head, status) in refused {
        let mut raw = Raw::connect(gw.data).await;
        raw.send(&head).await;
        let answer = raw.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    let mut raw = Raw::connect(gw.data).await;
    raw.send(format!("{}{{}}", request(chat, "nobody", json, 2))).await;
    assert!(!raw.until("\r\n\r\n").await.contains("connection: close"));
    raw.send("GET /v1/models HTTP/1.1\r\nhost: gw\r\nconnection: close\r\n\r\n").await;
    assert!(raw.rest().await.contains("HTTP/1.1 401 "), "the connection lives on");
    assert_eq!(provider.calls().len(), 0);
}
