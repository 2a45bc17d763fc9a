//! `/admin/v1/records`: what happened, newest first.

use gw_types::{AccountingRecord, GatewayError, RequestId, StoredRecord};
use serde::Serialize;

use super::{json, not_found, query};
use crate::{answer::Answer, app::App};

/// A page of records. `next_before` asks for the next page; `null`: this one is the last.
#[derive(Debug, Serialize)]
struct Page {
    records: Vec<Numbered>,
    next_before: Option<u64>,
}

/// A record with its number in the ledger.
#[derive(Debug, Serialize)]
struct Numbered {
    seq: u64,
    #[serde(flatten)]
    record: AccountingRecord,
}

impl From<StoredRecord> for Numbered {
    fn from(StoredRecord { seq, record }: StoredRecord) -> Self {
        Self { seq, record }
    }
}

pub(super) async fn list(app: &App, query: Option<&str>) -> Result<Answer, GatewayError> {
    let wanted = query::records(query)?;
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let records: Vec<Numbered> = app.ledger.records(wanted).await?.into_iter().map(Numbered::from).collect();
    // A full page may be the last one; then the next is empty.
    let next_before = records.last().map(|last| last.seq).filter(|_| records.len() >= limit);
    json(&Page { records, next_before })
}

pub(super) async fn one(app: &App, id: &str) -> Result<Answer, GatewayError> {
    let none = || not_found("no record has this id");
    let id = RequestId::try_from(id.to_owned()).map_err(|_| none())?;
    let record = app.ledger.record(&id).await?.ok_or_else(none)?;
    json(&Numbered::from(record))
}
