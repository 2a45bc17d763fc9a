//! Metrics computed from records.

use std::sync::Arc;

use async_trait::async_trait;
use gw_testkit::sample_record;
use gw_types::{
    AccountingRecord, CacheState, ErrorKind, GatewayError, Ledger, Outcome, Receipt, RecordQuery, RequestId,
    SpendRow, StoredRecord, TenantId, UtcTime,
};
use parking_lot::Mutex;

use super::{Label, Metrics, MetricsLedger, names::Names};
use crate::refusal::Reason;

/// Keeps what it was given.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<RequestId>>);

#[async_trait]
impl Ledger for Kept {
    fn take_place(&self) -> bool {
        true
    }

    fn give_place_back(&self) {}

    fn append(&self, record: Box<AccountingRecord>) -> Receipt {
        self.0.lock().push(record.id);
        Receipt::Queued
    }

    async fn records(&self, _query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError> {
        Ok(Vec::new())
    }

    async fn record(&self, _id: &RequestId) -> Result<Option<StoredRecord>, GatewayError> {
        Ok(None)
    }

    async fn spend_since(&self, _since: UtcTime) -> Result<Vec<SpendRow>, GatewayError> {
        Ok(Vec::new())
    }

    async fn flush(&self) {}
}

fn check(page: &str, line: &str) {
    assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
}

fn series(page: &str) -> usize {
    page.lines().filter(|line| !line.starts_with('#')).count()
}

#[test]
fn a_record_is_counted_and_passed_on() {
    let (kept, metrics) = (Arc::new(Kept::default()), Arc::new(Metrics::new()));
    let ledger = MetricsLedger::new(Arc::clone(&kept) as Arc<dyn Ledger>, Arc::clone(&metrics));
    let record = sample_record(7);
    let attempts = record.attempts.len();
    let (id, route) = (record.id.clone(), record.route.clone().unwrap());
    drop(ledger.append(Box::new(record)));
    assert_eq!(*kept.0.lock(), [id]);
    let page = metrics.counters();
    check(
        &page,
        &format!(
            r#"gw_requests_total{{outcome="capped",error="stream_interrupted",operation="chat",route="{route}"}} 1"#
        ),
    );
    check(&page, r#"gw_cache_total{state="miss"} 1"#);
    check(&page, "gw_request_seconds_count 1");
    let counted: usize = page
        .lines()
        .filter(|line| line.starts_with("gw_attempts_total"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum();
    assert_eq!(counted, attempts);
}

#[test]
fn known_tenants_have_their_own_series() {
    let metrics = Metrics::new();
    let tenant = TenantId::new("wholesale").unwrap();
    let counters = metrics.per_tenant.counters(&Label::of_tenant(&tenant));
    *metrics.names.write() =
        Names::for_test(vec![(tenant, counters)], metrics.per_tenant.counters(&Label::Other));
    let mut record = sample_record(2);
    metrics.observe(&record);
    record.tenant = TenantId::new("unheard-of").unwrap();
    metrics.observe(&record);
    let page = metrics.counters();
    for tenant in ["wholesale", "other"] {
        check(&page, &format!(r#"gw_tokens_total{{tenant="{tenant}",class="input"}} 1000"#));
        check(&page, &format!(r#"gw_tokens_total{{tenant="{tenant}",class="cached_input"}} 200"#));
        check(&page, &format!(r#"gw_tokens_total{{tenant="{tenant}",class="output"}} 100"#));
        check(&page, &format!(r#"gw_cost_pico_usd_total{{tenant="{tenant}"}} 2000003"#));
    }
    assert!(!page.contains("unheard-of"));
}

#[test]
fn client_input_cannot_create_metric_series() {
    let metrics = Metrics::new();
    let vary = |number: u32| {
        let mut record = sample_record(number);
        record.route = None;
        record.outcome = Outcome::Refused;
        record.error = Some(ErrorKind::UnknownModel);
        record.tenant = TenantId::new(&format!("tenant-{number}")).unwrap();
        if let Some(facts) = &mut record.facts {
            facts.model = gw_types::BoundedText::new(&format!("model-{number}\n\""));
            facts.user = Some(gw_types::BoundedText::new(&format!("user-{number}")));
        }
        for attempt in &mut record.attempts {
            attempt.deployment = gw_types::DeploymentName::new(&format!("deployment-{number}")).unwrap();
        }
        record
    };
    metrics.observe(&vary(0));
    metrics.refused(Reason::UnknownPath);
    let before = series(&metrics.counters());
    for number in 1..1_000 {
        metrics.observe(&vary(number));
        metrics.refused(Reason::UnknownPath);
    }
    assert_eq!(series(&metrics.counters()), before);
}

#[test]
fn each_request_is_counted_once_by_its_final_outcome() {
    let metrics = Metrics::new();
    for (outcome, error, times) in [
        (Outcome::Ok, None, 7),
        (Outcome::Failed, Some(ErrorKind::StreamInterrupted), 1),
        (Outcome::Cancelled, Some(ErrorKind::Cancelled), 1),
        (Outcome::Refused, Some(ErrorKind::RateLimited), 1),
    ] {
        for number in 0..times {
            let mut record = sample_record(number);
            (record.outcome, record.error, record.cache) = (outcome, error, CacheState::Bypass);
            metrics.observe(&record);
        }
    }
    let page = metrics.counters();
    let count = |outcome: &str| -> u64 {
        let prefix = format!(r#"gw_requests_total{{outcome="{outcome}""#);
        page.lines()
            .filter(|line| line.starts_with(&prefix))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    };
    assert_eq!(["ok", "failed", "cancelled", "refused"].map(count), [7, 1, 1, 1]);
    check(&page, r#"gw_cache_total{state="bypass"} 10"#);
    check(&page, "gw_request_seconds_count 10");
}

#[test]
fn errors_of_unknown_shape_are_counted_by_deployment() {
    let metrics = Metrics::new();
    let mut record = sample_record(1);
    metrics.observe(&record);
    assert!(!metrics.counters().contains("gw_unclassified_errors_total{"));
    record.attempts[0].unclassified = true;
    metrics.observe(&record);
    check(&metrics.counters(), "gw_unclassified_errors_total{deployment=\"other\"} 1");
}
