//! The keys of every tenant, bounded in number and in what their answers weigh.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use foldhash::fast::FixedState;
use gw_types::{KeyNote, KeyState, MonoTime, RequestId, SealHash, TenantId};
use parking_lot::Mutex;

use super::{KEPT, KeptAnswer};

/// Keys of one tenant; more are refused until the oldest is a day old.
pub(super) const TENANT_KEYS_MAX: usize = 65_536;
/// What the answers of one tenant weigh, in bytes; beyond that its oldest answers are forgotten, and not their keys.
pub(super) const TENANT_BYTES_MAX: usize = 16 << 20;
/// What all answers weigh, in bytes. A tenant makes room by forgetting answers of its own.
pub(super) const BYTES_MAX: usize = 256 << 20;
/// The longest answer that is kept, in bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Every key. Tenants come from the configuration, and for a day from one before it.
#[derive(Debug, Default)]
pub(crate) struct KeyTable(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tenants: HashMap<TenantId, Keys, FixedState>,
    /// What all answers weigh.
    bytes: usize,
    serial: u64,
}

#[derive(Debug, Default)]
struct Keys {
    entries: HashMap<SealHash, Entry, FixedState>,
    /// Keys by when they are forgotten; the serial number tells those of one instant apart.
    by_expiry: BTreeMap<(MonoTime, u64), SealHash>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    fingerprint: SealHash,
    request: RequestId,
    at: (MonoTime, u64),
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    InFlight,
    Answered(Option<Arc<KeptAnswer>>),
    Ambiguous,
}

/// A place in the table that is in flight.
#[derive(Debug)]
pub(super) struct Place {
    tenant: TenantId,
    key: SealHash,
    serial: u64,
}

/// What stands in the table for a key.
#[derive(Debug)]
pub(super) enum Found {
    OtherBody,
    InFlight,
    Ambiguous { of: RequestId },
    Answered { of: RequestId, answer: Option<Arc<KeptAnswer>> },
    Full { until: Duration },
}

impl KeyTable {
    /// Claims a key. Amortised cost of one look-up and one insertion into a tree.
    pub(super) fn claim(&self, note: &KeyNote, now: MonoTime) -> Result<Place, Found> {
        let mut inner = self.0.lock();
        let inner = &mut *inner;
        inner.serial += 1;
        let serial = inner.serial;
        let keys = inner.tenants.entry(note.tenant.clone()).or_default();
        inner.bytes -= keys.expire(now);
        if let Some(entry) = keys.entries.get(&note.key) {
            return Err(entry.found(note));
        }
        if keys.entries.len() >= TENANT_KEYS_MAX {
            let oldest = keys.by_expiry.first_key_value();
            let until = oldest.map_or(KEPT, |((at, _), _)| at.saturating_since(now));
            return Err(Found::Full { until });
        }
        keys.insert(note, (now.saturating_add(KEPT), serial), Phase::InFlight);
        Ok(Place { tenant: note.tenant.clone(), key: note.key, serial })
    }

    /// Puts in what is known from before a restart. A call without a known end is ambiguous; of answers nothing is left.
    pub(super) fn restore(&self, note: &KeyNote, until: MonoTime) {
        let phase = match note.state {
            KeyState::Dispatched => Phase::Ambiguous,
            KeyState::Answered => Phase::Answered(None),
            KeyState::Released => return,
        };
        let mut inner = self.0.lock();
        inner.serial += 1;
        let serial = inner.serial;
        let keys = inner.tenants.entry(note.tenant.clone()).or_default();
        if keys.entries.len() < TENANT_KEYS_MAX && !keys.entries.contains_key(&note.key) {
            keys.insert(note, (until, serial), phase);
        }
    }

    fn change(&self, place: &Place, change: impl FnOnce(&mut Keys, &mut usize)) {
        let mut inner = self.0.lock();
        let Inner { tenants, bytes, .. } = &mut *inner;
        let Some(keys) = tenants.get_mut(&place.tenant) else { return };
        // One that has run for a day has lost its place, and another may stand there.
        if keys.entries.get(&place.key).is_some_and(|entry| entry.at.1 == place.serial) {
            change(keys, bytes);
        }
    }
}

impl Place {
    pub(super) fn answered(&self, answer: Option<Arc<KeptAnswer>>, table: &KeyTable) {
        table.change(self, |keys, all| {
            let weight = answer.as_ref().map_or(0, |answer| answer.bytes());
            let answer = answer.filter(|_| weight <= ANSWER_BYTES_MAX && keys.make_room(weight, all));
            if answer.is_some() {
                keys.bytes += weight;
                *all += weight;
            }
            keys.set(&self.key, Phase::Answered(answer));
        });
    }

    pub(super) fn ambiguous(&self, table: &KeyTable) {
        table.change(self, |keys, _| keys.set(&self.key, Phase::Ambiguous));
    }

    pub(super) fn release(&self, table: &KeyTable) {
        table.change(self, |keys, all| *all -= keys.remove(&self.key));
    }
}

impl Entry {
    fn found(&self, note: &KeyNote) -> Found {
        if self.fingerprint != note.fingerprint {
            return Found::OtherBody;
        }
        let of = self.request.clone();
        match &self.phase {
            Phase::InFlight => Found::InFlight,
            Phase::Ambiguous => Found::Ambiguous { of },
            Phase::Answered(answer) => Found::Answered { of, answer: answer.clone() },
        }
    }
}

impl Keys {
    fn insert(&mut self, note: &KeyNote, at: (MonoTime, u64), phase: Phase) {
        let entry = Entry { fingerprint: note.fingerprint, request: note.request.clone(), at, phase };
        self.by_expiry.insert(at, note.key);
        self.entries.insert(note.key, entry);
    }

    fn set(&mut self, key: &SealHash, phase: Phase) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.phase = phase;
        }
    }

    /// Forgets a key; returns what its answer weighed.
    fn remove(&mut self, key: &SealHash) -> usize {
        let Some(entry) = self.entries.remove(key) else { return 0 };
        self.by_expiry.remove(&entry.at);
        let weight = entry.weight();
        self.bytes -= weight;
        weight
    }

    /// Forgets what is a day old; returns what it weighed.
    fn expire(&mut self, now: MonoTime) -> usize {
        let mut weight = 0;
        while let Some((&(at, _), &key)) = self.by_expiry.first_key_value()
            && at <= now
        {
            weight += self.remove(&key);
        }
        weight
    }

    /// Forgets the tenant's oldest answers until another one fits; returns whether it does.
    fn make_room(&mut self, weight: usize, all: &mut usize) -> bool {
        let fits = |own: usize, all: usize| own + weight <= TENANT_BYTES_MAX && all + weight <= BYTES_MAX;
        if fits(self.bytes, *all) {
            return true;
        }
        for key in self.by_expiry.values() {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            let freed = entry.weight();
            if freed > 0 {
                entry.phase = Phase::Answered(None);
                self.bytes -= freed;
                *all -= freed;
            }
            if fits(self.bytes, *all) {
                return true;
            }
        }
        false
    }
}

impl Entry {
    fn weight(&self) -> usize {
        match &self.phase {
            Phase::Answered(Some(answer)) => answer.bytes(),
            Phase::Answered(None) | Phase::InFlight | Phase::Ambiguous => 0,
        }
    }
}

#[cfg(test)]
mod tests;
