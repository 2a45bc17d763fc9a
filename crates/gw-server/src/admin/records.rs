//! `/admin/v1/records`: what happened, newest first.

use gw_types::{ErrorKind, GatewayError, RequestId, StoredRecord};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::{json, not_found, query, whole::whole};
use crate::{
    answer::{self, Answer},
    app::App,
};

/// A page of records. `next_before` asks for the next page; `null`: this one is the last.
#[derive(Debug, Serialize)]
struct Page {
    records: Vec<Value>,
    next_before: Option<u64>,
}

pub(super) async fn list(app: &App, query: Option<&str>) -> Result<Answer, GatewayError> {
    let wanted = query::records(query)?;
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let stored = app.ledger.records(wanted).await?;
    // A full page may be the last one; then the next is empty.
    let next_before = stored.last().map(|last| last.seq).filter(|_| stored.len() >= limit);
    let records = stored.iter().map(shown).collect::<Result<_, _>>()?;
    json(&Page { records, next_before })
}

pub(super) async fn one(app: &App, id: &str) -> Result<Answer, GatewayError> {
    let none = || not_found("no record has this id");
    let id = RequestId::try_from(id.to_owned()).map_err(|_| none())?;
    let record = app.ledger.record(&id).await?.ok_or_else(none)?;
    json(&shown(&record)?)
}

/// Returns the proof that the record stands in the ledger's chain, as `gw ledger verify --receipt` takes it.
pub(super) async fn receipt(app: &App, id: &str) -> Result<Answer, GatewayError> {
    let none = || not_found("no record has this id");
    let id = RequestId::try_from(id.to_owned()).map_err(|_| none())?;
    let receipt = app.ledger.receipt(&id).await?.ok_or_else(none)?;
    Ok(answer::json(StatusCode::OK, receipt.into()))
}

fn shown(record: &StoredRecord) -> Result<Value, GatewayError> {
    whole(record).map_err(|_| GatewayError::new(ErrorKind::Internal, "a record cannot be written as JSON"))
}
