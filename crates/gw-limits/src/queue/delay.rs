//! Controlled delay: how long anybody may wait in a queue that does not get empty.

use std::{collections::HashMap, time::Duration};

use foldhash::fast::FixedState;
use gw_types::MonoTime;

use super::{Ticket, flows::FlowId};
use crate::Priority;

/// The longest wait in a queue that does not get empty: a twentieth of the deadline, and at most this.
const SHORT_MAX: Duration = Duration::from_millis(500);
/// The same as a part of what the request had of its deadline when it came.
const SHORT_PART: u32 = 20;
/// A queue that was not empty for so many short waits does not get empty: there is more to do than can be done.
const LONG: u32 = 20;

/// Knows when the queue was empty last.
///
/// Source: controlled delay as used at Facebook (Maurer, "Fail at Scale", ACM Queue 2015), with waits scaled to the deadline.
/// A burst is worked off in the order of its arrival, since the queue gets empty in between. Where more comes than can be
/// served, waiting helps nobody: whoever has waited longer than a short time is turned away at its turn, so that those behind
/// it are served while they still have the time to be.
///
/// The lowest class is left out: nobody waits for batches, and they have deadlines of their own.
///
/// Each tenant's queue in each class is looked at by itself: who asks for more than can be done is turned away, and not who
/// asks for a little beside it. Names come from the configuration, so the map is bounded by it.
#[derive(Debug, Default)]
pub(super) struct Delay {
    queues: HashMap<FlowId, Queued, FixedState>,
}

/// One tenant's queue in one class.
#[derive(Clone, Copy, Debug)]
struct Queued {
    last_empty: MonoTime,
    /// After which time without being empty it is known not to get empty.
    long: Duration,
}

impl Delay {
    /// Notes that the queue is empty, as a request comes that may wait so long.
    pub(super) fn empty(&mut self, flow: &FlowId, had: Duration, now: MonoTime) {
        let queued = Queued { last_empty: now, long: short(had) * LONG };
        match self.queues.get_mut(flow) {
            Some(queue) => *queue = queued,
            None => drop(self.queues.insert(flow.clone(), queued)),
        }
    }

    /// Says whether the queue has not been empty for so long that it will not get empty by waiting.
    pub(super) fn lasts(&self, flow: &FlowId, now: MonoTime) -> bool {
        let lasts = |queue: &Queued| now.saturating_since(queue.last_empty) > queue.long;
        flow.0 != Priority::Low && self.queues.get(flow).is_some_and(lasts)
    }

    /// Says whether a request whose turn it is has waited too long.
    pub(super) fn is_too_long(
        &self,
        flow: &FlowId,
        joined: MonoTime,
        ticket: &Ticket,
        now: MonoTime,
    ) -> bool {
        let had = ticket.deadline.saturating_since(joined);
        let (short, long) = (short(had), short(had) * LONG);
        let last_empty = self.queues.get(flow).map_or(joined, |queue| queue.last_empty);
        let allowed = if now.saturating_since(last_empty) > long { short } else { long };
        match ticket.priority {
            Priority::High | Priority::Normal => now.saturating_since(joined) > allowed,
            Priority::Low => false,
        }
    }
}

fn short(had: Duration) -> Duration {
    (had / SHORT_PART).min(SHORT_MAX)
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use gw_types::{MonoTime, TenantId, TokenCount};

    use super::Delay;
    use crate::{Priority, Ticket};

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// The queue was empty at 0; a request that came at `joined` with so much time gets its turn at `now`.
    #[track_caller]
    fn check(priority: Priority, joined: u64, deadline: u64, now: u64, too_long: bool) {
        let ticket = Ticket {
            priority,
            weight: NonZeroU32::MIN,
            input: TokenCount::ZERO,
            max_queue: 10,
            deadline: at(joined + deadline),
            needs: Duration::ZERO,
        };
        let (mut delay, flow) = (Delay::default(), (priority, TenantId::new("t").unwrap()));
        delay.empty(&flow, Duration::from_millis(deadline), at(0));
        assert_eq!(delay.is_too_long(&flow, at(joined), &ticket, at(now)), too_long);
        // Another tenant's queue is not this one.
        let other = (priority, TenantId::new("other").unwrap());
        assert!(now - joined > 9_999 || !delay.is_too_long(&other, at(joined), &ticket, at(now)));
    }

    #[test]
    fn a_burst_is_worked_off() {
        check(Priority::Normal, 0, 60_000, 9_999, false);
        check(Priority::Normal, 0, 2_000, 2_000, false);
    }

    #[test]
    fn where_the_queue_does_not_get_empty_only_the_short_wait_is_left() {
        check(Priority::Normal, 10_000, 60_000, 10_500, false);
        check(Priority::Normal, 10_000, 60_000, 10_501, true);
        check(Priority::High, 10_000, 60_000, 10_501, true);
        check(Priority::Normal, 10_000, 2_000, 10_100, false);
        check(Priority::Normal, 10_000, 2_000, 10_101, true);
    }

    #[test]
    fn a_queue_lasts_that_has_not_been_empty_for_twenty_short_waits() {
        let (mut delay, flow) = (Delay::default(), (Priority::Normal, TenantId::new("t").unwrap()));
        assert!(!delay.lasts(&flow, at(100_000)));
        delay.empty(&flow, Duration::from_secs(2), at(0));
        assert!(!delay.lasts(&flow, at(2_000)) && delay.lasts(&flow, at(2_001)));
        delay.empty(&flow, Duration::from_secs(2), at(2_001));
        assert!(!delay.lasts(&flow, at(2_002)));
    }

    #[test]
    fn batches_have_deadlines_of_their_own() {
        check(Priority::Low, 10_000, 600_000, 300_000, false);
    }
}
