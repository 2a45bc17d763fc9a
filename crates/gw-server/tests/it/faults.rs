//! Faults of gw's own: one answer, one count, and the server goes on.

use std::sync::Arc;

use gw_types::{KeyIdentity, KeyStore, Secret};

use crate::support::{CONFIG, ask, chat_request, exchange, start_of};

/// A store that one key brings to fall.
#[derive(Debug)]
struct Brittle(Arc<dyn KeyStore>);

impl KeyStore for Brittle {
    fn identify(&self, presented: &Secret) -> Option<KeyIdentity> {
        assert!(presented.expose() != "sk-brittle", "a fault of gw's own");
        self.0.identify(presented)
    }

    fn anonymous(&self) -> Option<KeyIdentity> {
        None
    }
}

#[tokio::test]
async fn a_panic_is_one_500_and_one_count_and_no_more() {
    let running = start_of(CONFIG, |parts| parts.keys = Arc::new(Brittle(Arc::clone(&parts.keys)))).await;
    let request = chat_request("", &ask("echo")).replace("sk-acme-1", "sk-brittle");
    let reply = exchange(running.data, &request).await;
    assert_eq!((reply.status, &*reply.error_type()), (500, "server_error"));
    assert!(!reply.body.contains("a fault of gw's own\","), "{}", reply.body);
    assert_eq!(running.chat(&ask("echo")).await.status, 200, "the next request is served");
    let page = running.admin("/metrics").await.body;
    assert!(page.contains("gw_refusals_total{reason=\"fault\"} 1"), "{page}");
    let records = running.admin("/admin/v1/records").await.json();
    assert_eq!(records["records"].as_array().map(Vec::len), Some(1), "only what was let in has a record");
}
