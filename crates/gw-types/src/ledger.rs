//! The seam between the pipeline and the store of its records.

use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;

use crate::{
    AccountingRecord, BoundedText, DeploymentName, ErrorKind, GatewayError, KeyName, KeyNote, Money,
    RequestId, TenantId, UtcTime,
};

/// Keeps the records.
///
/// # Contract
/// A place is taken before a request is worked on and is either used by exactly one `append` or given back; a record
/// with a place is never refused. `append` returns at once; its [`Receipt`] resolves when the record is as durable as
/// the store promises. Records of one caller task are stored in the order of their appends.
#[async_trait]
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// Takes a place in the writer's queue; returns whether there was one.
    fn take_place(&self) -> bool;

    /// Gives back a place that was not used.
    fn give_place_back(&self);

    /// Uses a place.
    fn append(&self, record: Box<AccountingRecord>) -> Receipt;

    /// Returns the records that match, newest first.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn records(&self, query: RecordQuery) -> Result<Vec<StoredRecord>, GatewayError>;

    /// Returns the numbers of the gateways whose records are kept there, this one's first. A ledger that is one gateway's
    /// alone is node 0.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn nodes(&self) -> Result<Vec<i64>, GatewayError> {
        Ok(vec![0])
    }

    /// Returns the record with the id.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn record(&self, id: &RequestId) -> Result<Option<StoredRecord>, GatewayError>;

    /// Returns what each tenant and key has spent since the instant, sorted by both.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn spend_since(&self, since: UtcTime) -> Result<Vec<SpendRow>, GatewayError>;

    /// Returns what was spent since the instant, by everything that a budget can be for; sorted by all of it.
    ///
    /// A ledger that knows no more than [`Ledger::spend_since`] leaves model and deployment out.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn spend_details_since(&self, since: UtcTime) -> Result<Vec<SpendDetail>, GatewayError> {
        let rows = self.spend_since(since).await?;
        Ok(rows.into_iter().map(SpendDetail::from).collect())
    }

    /// Returns the proof that a record stands in the store's chain, as JSON; `None`: there is no such record.
    ///
    /// # Errors
    /// `Intake` with 404 if the store keeps no chain, or has no key to sign it with; `Overloaded` if it cannot be read or
    /// written now.
    async fn receipt(&self, _id: &RequestId) -> Result<Option<String>, GatewayError> {
        let message = "the ledger keeps its records in no chain";
        Err(GatewayError::new(ErrorKind::Intake, message).with_status(404))
    }

    /// Keeps what is known of an idempotency key, in the place of what was known before. The receipt resolves when that
    /// survives what the store promises of records; nobody is called for a key before it has.
    ///
    /// A ledger that does not outlive the process keeps nothing: then the key is known for as long as the gateway runs.
    fn note_key(&self, note: KeyNote) -> Receipt {
        drop(note);
        Receipt::Queued
    }

    /// Returns what is known of the keys that were first used since the instant, in no order.
    ///
    /// # Errors
    /// `Overloaded` if the store cannot be read now.
    async fn key_notes_since(&self, since: UtcTime) -> Result<Vec<KeyNote>, GatewayError> {
        let _nothing_is_kept = since;
        Ok(Vec::new())
    }

    /// Returns how full the writer's queue is; `None`: the store does not say.
    fn queue(&self) -> Option<LedgerQueue> {
        None
    }

    /// Returns whether the store cannot be written now. What is on its way to it is kept and tried again, and nobody new is
    /// let in.
    fn is_failing(&self) -> bool {
        false
    }

    /// Waits until every appended record is stored.
    async fn flush(&self);
}

/// How full a ledger's queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerQueue {
    /// Places in use: requests in flight, and records that are not stored yet.
    pub used: usize,
    /// Places there are; a request that finds none is refused.
    pub places: usize,
}

/// A record as the store numbered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The place in the store, counting up from 1.
    pub seq: u64,
    /// The record.
    pub record: AccountingRecord,
}

/// Which records are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// Only records of this tenant.
    pub tenant: Option<TenantId>,
    /// Of which gateway, as [`Ledger::nodes`] numbers them; `None`: of this one.
    pub node: Option<i64>,
    /// Only records with a smaller `seq`: where the last page ended.
    pub before: Option<u64>,
    /// How many at most, 1 to 1,000.
    pub limit: u32,
}

/// What one key of a tenant has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendRow {
    /// The tenant.
    pub tenant: TenantId,
    /// The key.
    pub key: KeyName,
    /// The sum of cost and side costs.
    pub spent: Money,
}

/// What was spent for one combination of everything that a budget can be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendDetail {
    /// The tenant.
    pub tenant: TenantId,
    /// The key.
    pub key: KeyName,
    /// The model as the caller named it; `None`: not known.
    pub model: Option<BoundedText>,
    /// The deployment that was paid: the serving one for the cost, its own for a side cost; `None`: not known.
    pub deployment: Option<DeploymentName>,
    /// The sum of cost and side costs.
    pub spent: Money,
}

impl From<SpendRow> for SpendDetail {
    fn from(SpendRow { tenant, key, spent }: SpendRow) -> Self {
        Self { tenant, key, model: None, deployment: None, spent }
    }
}

/// Resolves when an appended record is stored.
pub enum Receipt {
    /// Nothing to wait for.
    Queued,
    /// Resolves to whether the record is stored.
    Pending(Pin<Box<dyn Future<Output = Result<(), GatewayError>> + Send + Sync>>),
}

impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Queued => "Receipt::Queued",
            Self::Pending(_) => "Receipt::Pending",
        })
    }
}

/// A place in the ledger's queue; given back on drop unless used.
#[derive(Debug)]
pub struct LedgerPlace {
    ledger: Option<Arc<dyn Ledger>>,
}

impl LedgerPlace {
    /// Takes a place.
    ///
    /// # Errors
    /// `Overloaded` if the queue is full, or the store fails.
    pub fn take(ledger: Arc<dyn Ledger>) -> Result<Self, GatewayError> {
        if ledger.take_place() {
            return Ok(Self { ledger: Some(ledger) });
        }
        let why =
            if ledger.is_failing() { "the ledger cannot be written" } else { "the ledger's queue is full" };
        Err(GatewayError::new(ErrorKind::Overloaded, why).with_retry_after(std::time::Duration::from_secs(1)))
    }

    /// Uses the place for a record.
    pub fn append(mut self, record: Box<AccountingRecord>) -> Receipt {
        match self.ledger.take() {
            Some(ledger) => ledger.append(record),
            None => Receipt::Queued,
        }
    }
}

impl Drop for LedgerPlace {
    fn drop(&mut self) {
        if let Some(ledger) = self.ledger.take() {
            ledger.give_place_back();
        }
    }
}
