//! A line of waiters, first in, first out: only the first may go.

use std::{
    collections::BTreeMap,
    task::{Context, Waker},
};

/// Waiters of one line, at most.
pub(crate) const LINE_MAX: usize = 10_000;

/// Who waits, by the number that each drew. Every operation is O(log n).
#[derive(Debug, Default)]
pub(crate) struct Line {
    next: u64,
    waiting: BTreeMap<u64, Option<Waker>>,
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Draws a number.
    pub(crate) fn join(&mut self) -> u64 {
        let place = self.next;
        self.next += 1;
        self.waiting.insert(place, None);
        place
    }

    /// Says whether a waiter is the first, and remembers whom to wake when that changes.
    pub(crate) fn is_first(&mut self, place: u64, cx: &Context<'_>) -> bool {
        let first = self.waiting.first_key_value().is_some_and(|(first, _)| *first == place);
        if let Some(waker) = self.waiting.get_mut(&place) {
            *waker = Some(cx.waker().clone());
        }
        first
    }

    /// Leaves, served or not; returns the new first waiter's waker if the first has changed.
    pub(crate) fn leave(&mut self, place: u64) -> Option<Waker> {
        let first = self.waiting.first_key_value().is_some_and(|(first, _)| *first == place);
        self.waiting.remove(&place);
        self.first_waker().filter(|_| first)
    }

    pub(crate) fn first_waker(&self) -> Option<Waker> {
        self.waiting.first_key_value().and_then(|(_, waker)| waker.clone())
    }
}
