//! Idempotency keys in the file: one row each, beside the chain and not in it, since their state changes.

use std::time::Duration;

use gw_types::{KeyNote, KeyState, RequestId, SealHash, TenantId, UtcTime};
use rusqlite::{Connection, Row, params};
use tokio::sync::oneshot;

use super::reads::Unreadable;

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
pub(super) fn store(connection: &mut Connection, notes: Vec<Noting>) {
    if notes.is_empty() {
        return;
    }
    let stored = write(connection, &notes);
    if let Err(error) = &stored {
        tracing::error!(%error, keys = notes.len(), "idempotency keys cannot be written");
    }
    for Noting { stored: reply, .. } in notes {
        // Who has gone away need not be told.
        let _unheard = reply.send(stored.is_ok());
    }
}

fn write(connection: &mut Connection, notes: &[Noting]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let newest = notes.iter().map(|noting| noting.note.since).max();
    if let Some(newest) = newest {
        let oldest = newest.micros().saturating_sub(i64::try_from(KEPT.as_micros()).unwrap_or(i64::MAX));
        transaction
            .prepare_cached("DELETE FROM idempotency_keys WHERE since < ?1")?
            .execute(params![oldest])?;
    }
    for Noting { note, .. } in notes {
        let KeyNote { tenant, key, fingerprint, request, state, since } = note;
        let Some(state) = number(*state) else {
            let delete = "DELETE FROM idempotency_keys WHERE tenant = ?1 AND key = ?2";
            transaction.prepare_cached(delete)?.execute(params![tenant.as_str(), key.as_bytes()])?;
            continue;
        };
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO idempotency_keys (tenant, key, fingerprint, request, state, since)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                tenant.as_str(),
                key.as_bytes(),
                fingerprint.as_bytes(),
                request.as_str(),
                state,
                since.micros(),
            ])?;
    }
    transaction.commit()
}

/// Returns the notes of keys that were first used since the instant.
pub(super) fn since(connection: &Connection, since: UtcTime) -> Result<Vec<KeyNote>, Unreadable> {
    let mut statement = connection.prepare_cached(
        "SELECT tenant, key, fingerprint, request, state, since FROM idempotency_keys WHERE since >= ?1",
    )?;
    let rows = statement.query_map(params![since.micros()], |row| Ok(note(row)))?;
    rows.map(|row| row?.ok_or(Unreadable::Row)).collect()
}

fn note(row: &Row<'_>) -> Option<KeyNote> {
    let hash = |at: usize| SealHash::from_slice(row.get_ref(at).ok()?.as_blob().ok()?);
    let text = |at: usize| row.get_ref(at).ok()?.as_str().ok();
    Some(KeyNote {
        tenant: TenantId::new(text(0)?).ok()?,
        key: hash(1)?,
        fingerprint: hash(2)?,
        request: RequestId::try_from(text(3)?.to_owned()).ok()?,
        state: state(row.get(4).ok()?)?,
        since: UtcTime::from_micros(row.get(5).ok()?),
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
