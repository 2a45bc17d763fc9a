//! `/admin/v1/records`: what happened, newest first.

use std::collections::BTreeMap;

use gw_types::{ErrorKind, GatewayError, RecordQuery, RequestId, StoredRecord};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::{
    json, not_found,
    query::{self, Before, PageQuery},
    whole::whole,
};
use crate::{
    answer::{self, Answer},
    app::App,
};

/// A page of records. `next_before` asks for the next page; `null`: this one is the last. Where several gateways keep their
/// records in one database, it names the place in each chain, and each record its node.
#[derive(Debug, Serialize)]
struct Page {
    records: Vec<Value>,
    next_before: Option<Value>,
}

pub(super) async fn list(app: &App, query: Option<&str>) -> Result<Answer, GatewayError> {
    let wanted = query::records(query)?;
    let mut nodes = app.ledger.nodes().await?;
    if let Some(node) = wanted.node {
        nodes.retain(|known| *known == node);
        if nodes.is_empty() {
            return Err(query::malformed("no gateway of this number keeps its records here", "node"));
        }
    }
    let page = match (nodes.as_slice(), &wanted.before) {
        ([node], Before::Newest) => of_one(app, &wanted, (*node, None)).await?,
        ([node], Before::Seq(seq)) => of_one(app, &wanted, (*node, Some(*seq))).await?,
        (_, Before::Seq(_)) | ([_], Before::Nodes(_)) => {
            let message =
                "`before` is not from a page of these records; take a page's `next_before` as it is";
            return Err(query::malformed(message, "before"));
        }
        (_, Before::Newest) => of_all(app, &wanted, &nodes, BTreeMap::new()).await?,
        (_, Before::Nodes(places)) => of_all(app, &wanted, &nodes, places.clone()).await?,
    };
    json(&page)
}

async fn read(
    app: &App,
    wanted: &PageQuery,
    (node, before): (i64, Option<u64>),
) -> Result<Vec<StoredRecord>, GatewayError> {
    let (tenant, limit) = (wanted.tenant.clone(), wanted.limit);
    app.ledger.records(RecordQuery { tenant, node: Some(node), before, limit }).await
}

/// Returns a page of one chain.
async fn of_one(app: &App, wanted: &PageQuery, at: (i64, Option<u64>)) -> Result<Page, GatewayError> {
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let stored = read(app, wanted, at).await?;
    // A full page may be the last one; then the next is empty.
    let next_before = stored.last().map(|last| last.seq).filter(|_| stored.len() >= limit);
    let records = stored.iter().map(shown).collect::<Result<_, _>>()?;
    Ok(Page { records, next_before: next_before.map(Value::from) })
}

/// Returns a page of all chains, merged by when requests arrived; each chain keeps its own order. Reads as much as a page of
/// every chain.
async fn of_all(
    app: &App,
    wanted: &PageQuery,
    nodes: &[i64],
    mut places: BTreeMap<i64, u64>,
) -> Result<Page, GatewayError> {
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let mut chains = Vec::with_capacity(nodes.len());
    for node in nodes {
        let stored = read(app, wanted, (*node, places.get(node).copied())).await?;
        chains.push((*node, stored.into_iter().peekable()));
    }
    let mut records = Vec::new();
    while records.len() < limit {
        let newest = chains.iter_mut().filter_map(|(node, chain)| {
            let started = chain.peek()?.record.started;
            Some((started, *node, chain))
        });
        let Some((_, node, chain)) = newest.max_by_key(|(started, node, _)| (*started, *node)) else { break };
        if let Some(record) = chain.next() {
            places.insert(node, record.seq);
            let mut record = shown(&record)?;
            record["node"] = node.into();
            records.push(record);
        }
    }
    let token = || places.iter().map(|(node, seq)| format!("{node}:{seq}")).collect::<Vec<_>>().join(",");
    let next_before = (records.len() >= limit).then(|| Value::from(token()));
    Ok(Page { records, next_before })
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
