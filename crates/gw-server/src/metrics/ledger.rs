//! A ledger that counts what passes through it.

use std::sync::Arc;

use async_trait::async_trait;
use gw_types::{
    AccountingRecord, GatewayError, KeyNote, Ledger, LedgerQueue, Receipt, RecordQuery, RequestId,
    SpendDetail, SpendRow, StoredRecord, UtcTime,
};

use super::Metrics;
use crate::{log_line, telemetry::Telemetry};

/// A ledger that shows every record to the metrics and to the log on its way to another ledger.
///
/// The record of a request is made once, on every path out; counting it there counts every request once.
#[derive(Debug)]
pub struct MetricsLedger {
    inner: Arc<dyn Ledger>,
    metrics: Arc<Metrics>,
    telemetry: Option<Arc<Telemetry>>,
}

impl MetricsLedger {
    /// Wraps a ledger.
    pub fn new(inner: Arc<dyn Ledger>, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics, telemetry: None }
    }

    /// Shows every record to whoever tells a collector of it, too.
    #[must_use]
    pub fn with_telemetry(self, telemetry: Option<Arc<Telemetry>>) -> Self {
        Self { telemetry, ..self }
    }
}

#[async_trait]
impl Ledger for MetricsLedger {
    fn take_place(&self) -> bool {
        self.inner.take_place()
    }

    fn give_place_back(&self) {
        self.inner.give_place_back();
    }

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        self.metrics.observe(&record);
        log_line::write(&record);
        if let Some(telemetry) = &self.telemetry {
            telemetry.observe(&record);
        }
        self.inner.append(record)
    }

    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        self.inner.records(query).await
    }

    async fn nodes(&self) -> Result<Vec<i64>, GatewayError> {
        self.inner.nodes().await
    }

    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        self.inner.record(id).await
    }

    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        self.inner.spend_since(since).await
    }

    async fn spend_details_since(&self, since: UtcTime) -> Result<Vec<SpendDetail>, GatewayError> {
        self.inner.spend_details_since(since).await
    }

    fn note_key(&self, note: KeyNote) -> Receipt {
        self.inner.note_key(note)
    }

    async fn key_notes_since(&self, since: UtcTime) -> Result<Vec<KeyNote>, GatewayError> {
        self.inner.key_notes_since(since).await
    }

    async fn receipt(&self, id: &RequestId) -> Result<Option<String>, GatewayError> {
        self.inner.receipt(id).await
    }

    fn queue(&self) -> Option<LedgerQueue> {
        self.inner.queue()
    }

    fn is_failing(&self) -> bool {
        self.inner.is_failing()
    }

    async fn flush(&self) {
        self.inner.flush().await;
    }
}
