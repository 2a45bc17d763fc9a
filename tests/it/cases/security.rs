//! Kind `security`: who is let in, and where the gateway connects.

use gw_testkit::{FakeProvider, FaultScript, status};
use http::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Gw, Raw, Toml, chat, key_of};

/// Spellings of the one route that calls a provider.
const SPELLINGS: [&str; 11] = [
    "/v1/chat/completions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/chat/completions/",
    "/V1/Chat/Completions",
    "/x/../v1/chat/completions",
    "/v1/%63hat/completions",
    "/v1%2Fchat%2Fcompletions",
    "/v1/chat/completions;a=b",
    "/v1/chat/completions?key=",
    "http://gw/v1/chat/completions",
];

async fn house(script: FaultScript) -> (FakeProvider, Gw) {
    let provider = FakeProvider::start(script).await.unwrap();
    let toml = Toml::new()
        .server("admin_keys = [{ env = \"ADMIN_KEY\" }]")
        .var("ADMIN_KEY", "key-of-the-admin")
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    (provider, gw)
}

/// Sends a chat request in a spelling of its own, with header lines; returns status and the rest.
async fn ask(to: std::net::SocketAddr, method: &str, target: &str, headers: &str) -> (u16, String) {
    let body = chat("m", "hello").to_string();
    let mut raw = Raw::connect(to).await;
    raw.send(format!(
        "{method} {target} HTTP/1.1\r\nhost: gw\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{headers}\r\n{body}",
        body.len()
    ))
    .await;
    let answer = raw.rest().await;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer}")), answer)
}

#[tokio::test]
async fn every_spelling_of_a_route_needs_credentials() {
    let (provider, gw) = house(FaultScript::default()).await;
    for spelling in SPELLINGS {
        let (status, _) = ask(gw.data, "POST", spelling, "").await;
        assert!(matches!(status, 401 | 404), "{spelling}: {status}");
    }
    for header in ["x-original-url", "x-rewrite-url", "x-http-method-override"] {
        let line = format!("{header}: /v1/chat/completions\r\n");
        let (status, _) = ask(gw.data, "POST", "/v1/models", &line).await;
        assert!(matches!(status, 401 | 404 | 405), "{header}: {status}");
    }
    let key = key_of("a");
    for (value, statuses) in [
        ("Bearer ".to_owned(), &[401_u16][..]),
        ("Bearer null".to_owned(), &[401]),
        // What a careless store would hold of the key.
        ("Bearer 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8".to_owned(), &[401]),
        (format!("Basic {key}"), &[401]),
        (format!("Bearer {key}\r\nauthorization: Bearer {key}"), &[400]),
        (format!("Bearer {key}\r\nauthorization: Bearer nobody"), &[400]),
    ] {
        let (status, answer) =
            ask(gw.data, "POST", "/v1/chat/completions", &format!("authorization: {value}\r\n")).await;
        assert!(statuses.contains(&status), "{value}: {answer}");
    }
    assert_eq!(provider.calls().len(), 0);
    let (status, answer) =
        ask(gw.data, "POST", "/v1/chat/completions", &format!("authorization: bearer {key}\r\n")).await;
    assert_eq!(status, 200, "a scheme in lower case: {answer}");
}

#[tokio::test]
async fn every_spelling_of_a_route_needs_credentials_of_the_right_kind() {
    let (_provider, gw) = house(FaultScript::default()).await;
    let tenant = format!("authorization: Bearer {}\r\n", key_of("a"));
    for page in
        ["/metrics", "/admin/v1/records", "/admin/v1/tenants", "/admin/v1/deployments", "/admin/v1/reload"]
    {
        let tail = &page[1..];
        for spelling in [
            page.to_owned(),
            format!("/{page}"),
            format!("{page}/"),
            page.to_uppercase(),
            format!("/x/..{page}"),
            format!("/%{:02x}{}", tail.as_bytes()[0], &tail[1..]),
            format!("{page};a=b"),
            format!("{page}?key="),
        ] {
            for method in ["GET", "POST"] {
                let (status, _) = ask(gw.admin, method, &spelling, "").await;
                assert_eq!(status, 401, "{method} {spelling} without a key");
                let (status, _) = ask(gw.admin, method, &spelling, &tenant).await;
                assert!(matches!(status, 403 | 404), "{method} {spelling} with a tenant's key: {status}");
            }
        }
        // The admin's key opens nothing on the data plane, and the data plane has no admin pages.
        let (status, _) = ask(gw.data, "GET", page, &tenant).await;
        assert_eq!(status, 404, "{page}");
    }
    let (status, _) =
        ask(gw.data, "POST", "/v1/chat/completions", "authorization: Bearer key-of-the-admin\r\n").await;
    assert_eq!(status, 401);
    let page = gw.admin("/metrics").key("key-of-the-admin").send().await.text();
    for secret in [key_of("a"), "key-of-the-admin".to_owned(), "gwk1".to_owned()] {
        assert!(!page.contains(&secret), "{secret}");
    }
}

/// A listener that nothing configured points at.
struct Sink(TcpListener);

impl Sink {
    async fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// Checks that nobody has come: whoever did is in the queue of the socket already.
    async fn was_left_alone(&self) {
        let came = tokio::time::timeout(std::time::Duration::from_millis(50), self.0.accept()).await;
        assert!(came.is_err(), "the gateway connected to the sink");
    }
}

#[tokio::test]
async fn clients_cannot_choose_where_the_gateway_connects() {
    let (provider, gw) = house(FaultScript::default()).await;
    let sink = Sink::open().await;
    let at = sink.address();
    let authorization = format!("authorization: Bearer {}\r\n", key_of("a"));
    // V1 and V4: headers and targets are not where a destination comes from.
    for header in [
        "x-base-url",
        "x-upstream",
        "x-gw-base-url",
        "x-portkey-custom-host",
        "helicone-target-url",
        "x-forwarded-host",
        "forwarded",
        "x-forwarded-server",
        "x-host",
        "proxy",
    ] {
        let lines = format!("{authorization}{header}: http://{at}\r\n");
        let (status, answer) = ask(gw.data, "POST", "/v1/chat/completions", &lines).await;
        assert!(matches!(status, 200 | 400), "{header}: {answer}");
    }
    for target in [format!("http://{at}/v1/chat/completions"), format!("http://gw@{at}/v1/chat/completions")]
    {
        let (status, answer) = ask(gw.data, "POST", &target, &authorization).await;
        assert!(status < 500, "{target}: {answer}");
    }
    let (status, answer) = ask(gw.data, "CONNECT", &at, &authorization).await;
    assert!((400..500).contains(&status), "{answer}");
    let before = provider.calls().len();
    // V2: fields of the body are the provider's own business; gw reads none of them.
    for field in ["api_base", "base_url", "endpoint", "host", "api_key", "custom_llm_provider"] {
        let mut body = chat("m", "hello");
        body[field] = Value::from(format!("http://{at}/v1"));
        let status = gw.chat("a", &body).send().await.status;
        assert!(matches!(status, 200 | 400), "{field}: {status}");
    }
    assert!(provider.calls().len() <= before + 6);
    let before = provider.calls().len();
    // V3: a model is a name and no part of a place.
    for model in [
        format!("{at}/#"),
        format!("http://{at}/#"),
        format!("x@{at}"),
        "a%2f..%2fb".to_owned(),
        "../../m".to_owned(),
    ] {
        let answer = gw.chat("a", &chat(&model, "hello")).send().await;
        assert_eq!(
            (answer.status, answer.error()["code"].as_str()),
            (404, Some("model_not_found")),
            "{model}"
        );
    }
    assert_eq!(provider.calls().len(), before, "V3");
    // V5: gw fetches no image.
    for url in [format!("http://{at}/i.png"), "http://169.254.169.254/latest/meta-data".to_owned()] {
        let mut body = chat("m", "hello");
        body["messages"][0]["content"] = json!([{"type": "image_url", "image_url": {"url": url}}]);
        assert_eq!(gw.chat("a", &body).send().await.status, 200);
    }
    for call in provider.calls() {
        assert_eq!(call.header("authorization"), Some("Bearer sk-upstream-key-of-the-gateway"));
        assert_eq!(call.header("host"), Some(provider.addr().to_string().as_str()));
        assert_eq!(call.path, "/v1/chat/completions");
    }
    sink.was_left_alone().await;
    let (status, _) = ask(gw.data, "GET", "/v1/models", &authorization).await;
    assert_eq!(status, 200);
    assert_eq!(gw.call(Method::GET, "/").send().await.status, 200);
}

#[tokio::test]
async fn clients_cannot_choose_where_the_gateway_connects_nor_can_a_provider() {
    let sink = Sink::open().await;
    let place = format!("http://{}/v1/chat/completions", sink.address());
    let script = [302, 307, 308]
        .into_iter()
        .fold(FaultScript::default(), |script, code| script.then(status(code).header("location", &place)));
    let (provider, gw) = house(script).await;
    for code in [302, 307, 308] {
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        assert_eq!(answer.status, 502, "V6: {code}: {}", answer.text());
        assert_eq!(answer.header("location"), "");
        answer.error();
    }
    assert_eq!(provider.calls().len(), 3);
    sink.was_left_alone().await;
}
