//! What a provider's settings must be.

use std::sync::Arc;

use gw_types::{ManualClock, ProviderName, Secret};

use super::Provider;
use crate::{InvalidProvider, ProviderConfig, ProviderKind, TransportConfig};

fn config(kind: ProviderKind) -> ProviderConfig {
    ProviderConfig {
        name: ProviderName::new("p").unwrap(),
        kind,
        base_url: "http://a.example/v1".to_owned(),
        api_key: Secret::new("key-1"),
        credentials: None,
        headers: Vec::new(),
        transport: TransportConfig::default(),
    }
}

fn check(config: ProviderConfig, expected: impl Into<Option<InvalidProvider>>) {
    assert_eq!(Provider::new(config, Arc::new(ManualClock::default())).err(), expected.into());
}

fn azure() -> ProviderKind {
    ProviderKind::AzureOpenAi { api_version: "2024-10-21".to_owned() }
}

fn header(name: &str, value: &str) -> Vec<(String, Secret)> {
    vec![(name.to_owned(), Secret::new(value).unwrap())]
}

#[test]
fn only_openai_has_a_base_of_its_own() {
    for (kind, expected) in [
        (ProviderKind::OpenAi, None),
        (ProviderKind::OpenAiCompatible { preset: None }, Some(InvalidProvider::MissingBaseUrl)),
        (azure(), Some(InvalidProvider::MissingBaseUrl)),
    ] {
        check(ProviderConfig { base_url: String::new(), ..config(kind) }, expected);
    }
    let query = ProviderConfig { base_url: "http://a/?x".to_owned(), ..config(azure()) };
    check(query, Some(InvalidProvider::BaseUrl("has a query (`?`), which a base cannot have")));
}

#[test]
fn a_key_is_needed_unless_a_header_or_the_kind_stands_in() {
    let keyless = |kind| ProviderConfig { api_key: None, ..config(kind) };
    check(keyless(ProviderKind::OpenAi), Some(InvalidProvider::MissingKey));
    check(keyless(azure()), Some(InvalidProvider::MissingKey));
    check(keyless(ProviderKind::OpenAiCompatible { preset: None }), None);
    check(ProviderConfig { headers: header("Authorization", "Bearer t"), ..keyless(azure()) }, None);
    let odd = ProviderConfig { api_key: Secret::new("k\u{20ac}y"), ..config(azure()) };
    check(odd, Some(InvalidProvider::Key));
}

#[test]
fn headers_cannot_steer_the_connection() {
    for name in ["Host", "content-length", "Transfer-Encoding", "connection", "a b", ""] {
        check(
            ProviderConfig { headers: header(name, "x"), ..config(azure()) },
            Some(InvalidProvider::HeaderName(name.to_owned())),
        );
    }
}

#[test]
fn limits_and_versions_are_checked() {
    let transport = TransportConfig { max_connections: 0, ..TransportConfig::default() };
    check(ProviderConfig { transport, ..config(azure()) }, Some(InvalidProvider::NoConnections));
    let kind = ProviderKind::AzureOpenAi { api_version: " ".to_owned() };
    check(config(kind), Some(InvalidProvider::ApiVersion));
}

#[test]
fn i18_debug_shows_no_secret() {
    let config = ProviderConfig {
        api_key: Secret::new("canary-key"),
        headers: header("x-extra", "canary-header"),
        ..config(ProviderKind::OpenAi)
    };
    let shown = format!("{config:?}");
    let provider = Provider::new(config, Arc::new(ManualClock::default())).unwrap();
    assert!(!format!("{shown}{provider:?}").contains("canary"));
}
