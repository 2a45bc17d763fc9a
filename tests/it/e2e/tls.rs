//! TLS on both listeners. The client is another gateway, whose provider the first one is.

use std::path::Path;

use gw_testkit::{FakeProvider, FaultScript, ok};

use crate::support::{Gw, Raw, Toml, chat, key_of, metric};

fn certificates() -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    workspace.join("crates/gw-adapters/tests/it/certificates").display().to_string()
}

fn encrypted(provider: &FakeProvider, more: &str) -> Toml {
    let folder = certificates();
    Toml::new()
        .server(&format!(
            "header_timeout_ms = 500\ntls = {{ certificate_file = \"{folder}/localhost.pem\", key_file = \"{folder}/localhost.key\"{more} }}"
        ))
        .upstream("up", provider)
        .route("m", &["up"])
        .tenant("a", "")
}

/// A gateway that asks the other one over TLS.
async fn client(of: &Gw) -> Gw {
    let url = format!("https://localhost:{}/v1", of.data.port());
    let roots = format!("ca_file = \"{}/root.pem\"", certificates());
    let toml = Toml::new()
        .upstream_with("far", &url, &roots, "model = \"m\"")
        .route("m", &["far"])
        .tenant("b", "")
        .var("UPSTREAM_KEY", &key_of("a"));
    Gw::start(&toml).await
}

#[tokio::test]
async fn the_data_plane_speaks_tls() {
    let provider = FakeProvider::start(FaultScript::of(ok("over tls"))).await.unwrap();
    let server = Gw::start(&encrypted(&provider, "")).await;
    let near = client(&server).await;
    assert_eq!(near.chat("b", &chat("m", "hello")).send().await.said(), "over tls");
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let stream = near.chat("b", &body).stream().await.rest().await;
    assert!(stream.contains("over") && stream.ends_with("data: [DONE]\n\n"), "{stream}");
    // Plain text is no TLS, and silence ends.
    let mut plain = Raw::connect(server.data).await;
    plain.send("GET /v1/models HTTP/1.1\r\nhost: gw\r\n\r\n").await;
    assert!(!plain.rest().await.contains("HTTP/1.1"));
    assert_eq!(Raw::connect(server.data).await.rest().await, "");
    let page = server.metrics().await;
    assert_eq!(metric(&page, "gw_refusals_total{reason=\"tls\"}"), 2, "{page}");
}

#[tokio::test]
async fn clients_without_a_certificate_stay_out_where_one_is_asked() {
    let provider = FakeProvider::start(FaultScript::of(ok("over tls"))).await.unwrap();
    let more = format!(", client_ca_file = \"{}/root.pem\"", certificates());
    let server = Gw::start(&encrypted(&provider, &more)).await;
    let near = client(&server).await;
    assert_eq!(near.chat("b", &chat("m", "hello")).send().await.status, 502);
    assert_eq!(provider.calls().len(), 0);
}
