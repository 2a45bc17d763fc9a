//! The way out: proxies, static headers.

use gw_testkit::{FakeProvider, FaultScript, ok};

use crate::support::{Gw, Toml, chat};

#[tokio::test]
async fn proxy_variables_are_honoured() {
    // For plain HTTP a proxy is a server that is asked for whole URLs.
    let proxy = FakeProvider::start(FaultScript::of(ok("through the proxy"))).await.unwrap();
    let direct = FakeProvider::start(FaultScript::of(ok("directly"))).await.unwrap();
    let toml = Toml::new()
        .upstream_with("far", "http://provider.invalid/v1", "", "")
        .upstream("near", &direct)
        .route("far", &["far"])
        .route("near", &["near"])
        .tenant("a", "");
    let variables = [("HTTP_PROXY", &*proxy.url()), ("NO_PROXY", "127.0.0.1,localhost")];
    let gw = Gw::start_with(&toml, &[], &variables).await;
    assert_eq!(gw.chat("a", &chat("far", "hello")).send().await.said(), "through the proxy");
    assert_eq!(gw.chat("a", &chat("near", "hello")).send().await.said(), "directly");
    let seen = proxy.calls();
    assert_eq!((seen.len(), seen[0].path.as_str()), (1, "http://provider.invalid/v1/chat/completions"));
    assert_eq!(seen[0].header("host"), Some("provider.invalid"));
}

#[tokio::test]
async fn static_headers_of_a_provider_are_sent_and_the_callers_key_is_not() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let headers = "headers = { OpenAI-Organization = \"org-1\", X-Team = { env = \"TEAM\" } }";
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), headers, "")
        .route("m", &["up"])
        .tenant("a", "")
        .var("TEAM", "team-9");
    let gw = Gw::start(&toml).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let call =
        gw.chat("a", &chat("m", "hello")).header("traceparent", trace).header("x-mine", "secret-of-mine");
    assert_eq!(call.header("cookie", "session=1").send().await.status, 200);
    let call = &provider.calls()[0];
    assert_eq!((call.header("openai-organization"), call.header("x-team")), (Some("org-1"), Some("team-9")));
    assert_eq!(call.header("traceparent"), Some(trace));
    assert_eq!((call.header("x-mine"), call.header("cookie")), (None, None));
    assert!(call.headers.iter().all(|(_, value)| !value.contains("key-of-tenant")));
}

#[tokio::test]
async fn azure_is_asked_in_its_own_way() {
    let provider = FakeProvider::start(FaultScript::default()).await.unwrap();
    let azure = "kind = \"azure-openai\"\napi_version = \"2024-10-21\"";
    let toml = Toml::new()
        .upstream_with("ptu", &provider.url(), azure, "model = \"gpt-4.1\"")
        .route("m", &["ptu"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
    let call = &provider.calls()[0];
    assert_eq!(call.path, "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21");
    assert_eq!(call.header("api-key"), Some("sk-upstream-key-of-the-gateway"));
    assert_eq!(call.header("authorization"), None);
}
