//! Faults of gw's own: one answer, one count, and the server goes on.

use std::sync::Arc;

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, GatewayError, KeyIdentity, KeyNote, KeyStore, Ledger, Receipt, RecordQuery, RequestId,
    Secret, SpendRow, StoredRecord, UtcTime,
};

use crate::support::{CONFIG, ask, chat_request, exchange, start_of, start_over};

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

/// A ledger that an idempotency key brings to fall, which is asked for in the middle of the pipeline.
#[derive(Debug)]
struct BrittleLedger(Arc<dyn Ledger>);

#[async_trait]
impl Ledger for BrittleLedger {
    fn take_place(&self) -> bool {
        self.0.take_place()
    }

    fn give_place_back(&self) {
        self.0.give_place_back();
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        self.0.append(record)
    }

    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        self.0.records(query).await
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        self.0.record(id).await
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        self.0.spend_since(since).await
    }

    fn note_key(&self, _note: KeyNote) -> Receipt {
        panic!("a fault of gw's own")
    }

    async fn flush(&self) {
        self.0.flush().await;
    }
}

#[tokio::test]
async fn a_panic_in_the_pipeline_is_one_500_one_record_and_one_metric() {
    let running = start_over(CONFIG, |ledger| Arc::new(BrittleLedger(ledger)), |_| {}).await;
    let reply = running.chat_with("idempotency-key: once\r\n", &ask("echo")).await;
    assert_eq!((reply.status, &*reply.error_type()), (500, "server_error"), "{}", reply.body);
    let records = running.admin("/admin/v1/records").await.json();
    let records = records["records"].as_array().unwrap();
    let ended = |at: usize| (records[at]["outcome"].as_str(), records[at]["error"].as_str());
    assert_eq!((records.len(), ended(0)), (1, (Some("failed"), Some("internal"))));
    let page = running.admin("/metrics").await.body;
    let counted = page.lines().filter(|line| line.starts_with("gw_requests_total{"));
    let counted: Vec<_> = counted.filter(|line| !line.ends_with(" 0")).collect();
    assert!(counted.len() == 1 && counted[0].contains("internal") && counted[0].ends_with(" 1"), "{page}");
    assert!(page.contains("gw_refusals_total{reason=\"fault\"} 1"), "{page}");
    // What it held is given back, and the next request is served.
    let tenants = running.admin("/admin/v1/tenants").await.json();
    assert_eq!(tenants["tenants"][0]["concurrency"]["in_use"], 0, "{tenants}");
    assert_eq!(running.chat(&ask("echo")).await.status, 200);
}
