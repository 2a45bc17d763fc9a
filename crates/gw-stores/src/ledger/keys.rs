//! Idempotency keys in the database: one row each, beside the chain and not in it, since their state changes.

use std::time::Duration;

use gw_types::{KeyNote, KeyState, RequestId, SealHash, TenantId, UtcTime};
use tokio::sync::oneshot;

use super::reads::Unreadable;
use crate::sql::{Db, Row, SqlError, Value};

/// How long a row is kept after the key was first used.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A note on its way to the writer, and who waits for it.
#[derive(Debug)]
pub(super) struct Noting {
    pub(super) note: KeyNote,
    pub(super) stored: oneshot::Sender<bool>,
}

/// Stores notes in one transaction and tells those who wait. What cannot be stored is not tried again: whoever waits
/// does not call a provider.
pub(super) fn store(db: &Db, notes: Vec<Noting>) {
    if notes.is_empty() {
        return;
    }
    let stored = write(db, &notes);
    if let Err(error) = &stored {
        tracing::error!(%error, keys = notes.len(), "idempotency keys cannot be written");
    }
    for Noting { stored: reply, .. } in notes {
        // Who has gone away need not be told.
        let _unheard = reply.send(stored.is_ok());
    }
}

const STORE: &str = "
    INSERT INTO idempotency_keys (tenant, key, fingerprint, request, state, since)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (tenant, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, request = excluded.request, state = excluded.state, since = excluded.since";

fn write(db: &Db, notes: &[Noting]) -> Result<(), SqlError> {
    let transaction = db.transaction()?;
    let newest = notes.iter().map(|noting| noting.note.since).max();
    if let Some(newest) = newest {
        let oldest = newest.micros().saturating_sub(i64::try_from(KEPT.as_micros()).unwrap_or(i64::MAX));
        transaction.execute("DELETE FROM idempotency_keys WHERE since < ?1", &[Value::Int(oldest)])?;
    }
    for Noting { note, .. } in notes {
        let KeyNote { tenant, key, fingerprint, request, state, since } = note;
        let (tenant, key) = (Value::Text(tenant.as_str()), Value::Bytes(key.as_bytes()));
        let Some(state) = number(*state) else {
            transaction
                .execute("DELETE FROM idempotency_keys WHERE tenant = ?1 AND key = ?2", &[tenant, key])?;
            continue;
        };
        let (fingerprint, request) = (Value::Bytes(fingerprint.as_bytes()), Value::Text(request.as_str()));
        let (state, since) = (Value::Int(state), Value::Int(since.micros()));
        transaction.execute(STORE, &[tenant, key, fingerprint, request, state, since])?;
    }
    transaction.commit()
}

/// Returns the notes of keys that were first used since the instant.
pub(super) fn since(db: &Db, since: UtcTime) -> Result<Vec<KeyNote>, Unreadable> {
    let read =
        "SELECT tenant, key, fingerprint, request, state, since FROM idempotency_keys WHERE since >= ?1";
    let mut notes = Vec::new();
    db.each(read, &[Value::Int(since.micros())], |row| {
        notes.push(note(row).ok_or(Unreadable::Row)?);
        Ok::<_, Unreadable>(true)
    })?;
    Ok(notes)
}

fn note(row: &Row<'_>) -> Option<KeyNote> {
    let hash = |at: usize| SealHash::from_slice(row.bytes(at).ok()?);
    let text = |at: usize| row.text(at).ok();
    Some(KeyNote {
        tenant: TenantId::new(text(0)?).ok()?,
        key: hash(1)?,
        fingerprint: hash(2)?,
        request: RequestId::try_from(text(3)?.to_owned()).ok()?,
        state: state(row.int(4).ok()?)?,
        since: UtcTime::from_micros(row.int(5).ok()?),
    })
}

/// Returns what stands for a state; a released key has no row.
const fn number(state: KeyState) -> Option<i64> {
    match state {
        KeyState::Dispatched => Some(0),
        KeyState::Answered => Some(1),
        KeyState::Released => None,
    }
}

const fn state(number: i64) -> Option<KeyState> {
    match number {
        0 => Some(KeyState::Dispatched),
        1 => Some(KeyState::Answered),
        _ => None,
    }
}
