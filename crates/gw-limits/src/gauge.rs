//! A bounded count of what is in use, without a lock.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Counts slots in use up to a limit that may change.
///
/// The count never wraps. It may stand above the limit after the limit was lowered; then nothing is taken until enough
/// came back. Nothing but the count itself is published through it, so relaxed ordering suffices.
#[derive(Debug)]
pub(crate) struct Gauge {
    limit: AtomicU32,
    in_use: AtomicU32,
}

impl Gauge {
    /// A limit that the count can reach but not pass.
    pub(crate) const UNLIMITED: u32 = u32::MAX;

    pub(crate) fn new(limit: u32) -> Self {
        Self { limit: AtomicU32::new(limit), in_use: AtomicU32::new(0) }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.in_use() >= self.limit()
    }

    /// Takes one slot if there is one.
    pub(crate) fn try_take(&self) -> bool {
        let limit = self.limit();
        let below_limit = |in_use: u32| (in_use < limit).then(|| in_use + 1);
        self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below_limit).is_ok()
    }

    /// Counts slots that are held already, whatever the limit says.
    pub(crate) fn count_held(&self, slots: u32) {
        let add = |in_use: u32| Some(in_use.saturating_add(slots));
        // The closure never declines.
        let _ = self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Gives slots back.
    pub(crate) fn give_back(&self, slots: u32) {
        let before = self.in_use.fetch_sub(slots, Ordering::Relaxed);
        debug_assert!(before >= slots, "more slots came back than were taken");
    }
}
