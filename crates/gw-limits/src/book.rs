//! Reservations by the request's id: for settlements that come from elsewhere, late, or twice.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::FixedState;
use gw_errors::GatewayError;
use gw_types::{Money, MonoTime, RequestId, UtcTime};

use crate::{Reservation, sync::Mutex};

/// Closed reservations that are remembered, so that a repetition finds what the first settlement did.
const CLOSED_MAX: usize = 10_000;

/// Where a reservation stands: `Reserved`, then `Dispatched`, then one of the others, which are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// Held; the call was not made.
    Reserved,
    /// Held; the call may have been made.
    Dispatched,
    /// Ended: `spent` is charged.
    Committed(Settlement),
    /// Ended: nothing is charged, because the provider did not process the call.
    Released,
    /// Nobody settled it in time. What was reserved is charged, as an estimate: money is never refunded in silence.
    Expired(Settlement),
}

/// What a settlement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What had been held.
    pub reserved: Money,
    /// What is charged.
    pub spent: Money,
}

impl Settlement {
    /// Returns what is charged beyond what was held.
    pub const fn overrun(self) -> Money {
        self.spent.saturating_sub(self.reserved)
    }

    /// Returns what went back.
    pub const fn refunded(self) -> Money {
        self.reserved.saturating_sub(self.spent)
    }
}

/// Sums over all reservations of a book; `granted = open + committed + refunded` at any moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookTotals {
    /// All that was ever held.
    pub granted: Money,
    /// What is held now.
    pub open: Money,
    /// What was charged out of what was held.
    pub committed: Money,
    /// What went back.
    pub refunded: Money,
    /// What was charged beyond what was held; not granted, and counted apart.
    pub overrun: Money,
}

/// Open reservations by id, and the last ones that were closed.
///
/// Each is settled exactly once: whoever comes second, or again, learns what the first did and changes nothing. The
/// book is as large as there are open reservations; [`ReservationBook::expire`] bounds their age.
#[derive(Debug, Default)]
pub struct ReservationBook {
    state: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    entries: HashMap<RequestId, Entry, FixedState>,
    by_expiry: BTreeSet<(MonoTime, RequestId)>,
    /// The oldest first.
    closed: VecDeque<RequestId>,
    totals: BookTotals,
}

#[derive(Debug)]
enum Entry {
    Open { reservation: Reservation, expires: MonoTime },
    Closed(ReservationState),
}

impl ReservationBook {
    /// Returns an empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a reservation, which expires at `expires` unless it is settled before.
    ///
    /// # Errors
    /// The state of the one that stands under the id already; the new one is dropped, so nothing is held twice.
    pub fn open(
        &self,
        id: RequestId,
        reservation: Reservation,
        expires: MonoTime,
    ) -> Result<(), ReservationState> {
        // Dropped after the lock is released: the drop settles.
        let refused = {
            let mut book = self.state.lock();
            match book.entries.get(&id) {
                Some(known) => Some((known.state(), reservation)),
                None => {
                    book.totals.granted = book.totals.granted.saturating_add(reservation.amount());
                    book.totals.open = book.totals.open.saturating_add(reservation.amount());
                    book.by_expiry.insert((expires, id.clone()));
                    book.entries.insert(id, Entry::Open { reservation, expires });
                    None
                }
            }
        };
        refused.map_or(Ok(()), |(state, _)| Err(state))
    }

    /// Returns where a reservation stands; `None` if it is not known, or closed too long ago.
    pub fn state(&self, id: &RequestId) -> Option<ReservationState> {
        self.state.lock().entries.get(id).map(Entry::state)
    }

    /// Marks that the call may have been made.
    pub fn dispatched(&self, id: &RequestId) -> Option<ReservationState> {
        let mut book = self.state.lock();
        let entry = book.entries.get_mut(id)?;
        if let Entry::Open { reservation, .. } = entry {
            reservation.dispatched();
        }
        Some(entry.state())
    }

    /// Raises what is held, as [`Reservation::raise_to`] does; a closed one stays as it is.
    ///
    /// # Errors
    /// `QuotaExceeded` if a window does not hold the difference.
    pub fn raise_to(&self, id: &RequestId, amount: Money, utc: UtcTime) -> Result<(), GatewayError> {
        let mut book = self.state.lock();
        let Some(Entry::Open { reservation, .. }) = book.entries.get_mut(id) else { return Ok(()) };
        let before = reservation.amount();
        reservation.raise_to(amount, utc)?;
        let more = reservation.amount().saturating_sub(before);
        book.totals.granted = book.totals.granted.saturating_add(more);
        book.totals.open = book.totals.open.saturating_add(more);
        Ok(())
    }

    /// Charges the actual cost, once; returns where the reservation stands afterwards.
    pub fn commit(&self, id: &RequestId, actual: Money) -> Option<ReservationState> {
        self.state
            .lock()
            .close(id, |reserved| ReservationState::Committed(Settlement { reserved, spent: actual }))
    }

    /// Gives everything back, once; returns where the reservation stands afterwards.
    pub fn release(&self, id: &RequestId) -> Option<ReservationState> {
        self.state.lock().close(id, |_| ReservationState::Released)
    }

    /// Charges every reservation that should have been settled by `now`; returns them, the oldest first.
    pub fn expire(&self, now: MonoTime) -> Vec<(RequestId, Settlement)> {
        let mut book = self.state.lock();
        let mut expired = Vec::new();
        while let Some((_, id)) = book.by_expiry.first().filter(|(at, _)| *at <= now).cloned() {
            let as_held = |reserved| ReservationState::Expired(Settlement { reserved, spent: reserved });
            if let Some(ReservationState::Expired(settlement)) = book.close(&id, as_held) {
                expired.push((id, settlement));
            }
        }
        expired
    }

    /// Returns the sums.
    pub fn totals(&self) -> BookTotals {
        self.state.lock().totals
    }
}

impl Book {
    /// ## (Reserved | Dispatched) => (Committed | Released | Expired); a closed one stays as it is.
    fn close(
        &mut self,
        id: &RequestId,
        end: impl FnOnce(Money) -> ReservationState,
    ) -> Option<ReservationState> {
        let entry = self.entries.get_mut(id)?;
        let Entry::Open { reservation, .. } = entry else { return Some(entry.state()) };
        let end = end(reservation.amount());
        let Entry::Open { reservation, expires } = std::mem::replace(entry, Entry::Closed(end)) else {
            return Some(end);
        };
        let reserved = reservation.amount();
        let settlement = match end {
            ReservationState::Committed(settlement) | ReservationState::Expired(settlement) => settlement,
            ReservationState::Released | ReservationState::Reserved | ReservationState::Dispatched => {
                Settlement { reserved, spent: Money::ZERO }
            }
        };
        reservation.commit(settlement.spent);
        self.by_expiry.remove(&(expires, id.clone()));
        self.totals.open = self.totals.open.saturating_sub(reserved);
        self.totals.committed =
            self.totals.committed.saturating_add(reserved.saturating_sub(settlement.refunded()));
        self.totals.refunded = self.totals.refunded.saturating_add(settlement.refunded());
        self.totals.overrun = self.totals.overrun.saturating_add(settlement.overrun());
        self.closed.push_back(id.clone());
        if self.closed.len() > CLOSED_MAX
            && let Some(oldest) = self.closed.pop_front()
        {
            self.entries.remove(&oldest);
        }
        Some(end)
    }
}

impl Entry {
    const fn state(&self) -> ReservationState {
        match self {
            Self::Open { reservation, .. } if reservation.is_dispatched() => ReservationState::Dispatched,
            Self::Open { .. } => ReservationState::Reserved,
            Self::Closed(state) => *state,
        }
    }
}
