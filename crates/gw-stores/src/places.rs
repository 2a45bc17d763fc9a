//! The places of a ledger's queue: a bounded counter.

use std::sync::atomic::{AtomicUsize, Ordering};

use gw_types::LedgerQueue;

/// Counts the places in use, from 0 to a bound.
///
/// The counter guards no memory of its own (the queue's lock does), so its operations are relaxed.
#[derive(Debug)]
pub(crate) struct Places {
    used: AtomicUsize,
    bound: usize,
}

impl Places {
    pub(crate) const fn new(bound: usize) -> Self {
        Self { used: AtomicUsize::new(0), bound }
    }

    /// Returns how many are in use, and how many there are.
    pub(crate) fn queue(&self) -> LedgerQueue {
        LedgerQueue { used: self.used.load(Ordering::Relaxed), places: self.bound }
    }

    /// Takes a place; returns whether there was one.
    pub(crate) fn take(&self) -> bool {
        let next = |used: usize| (used < self.bound).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Gives places back; more than are in use leave none in use.
    pub(crate) fn give_back(&self, count: usize) {
        let next = |used: usize| Some(used.saturating_sub(count));
        let result = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        debug_assert!(result.is_ok_and(|used| used >= count), "a place was given back that was not taken");
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn places_are_bounded_and_come_back() {
        let places = Places::new(2);
        assert_eq!([places.take(), places.take(), places.take()], [true, true, false]);
        assert_eq!(places.queue(), gw_types::LedgerQueue { used: 2, places: 2 });
        places.give_back(1);
        assert_eq!([places.take(), places.take()], [true, false]);
        places.give_back(2);
        assert_eq!([places.take(), places.take(), places.take()], [true, true, false]);
    }
}
