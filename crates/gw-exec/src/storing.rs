//! How long an answer waits for its record.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use gw_types::{ErrorKind, GatewayError, MonoTime, Receipt, Sleep};

use crate::state::State;

/// How long the ledger has where the deadline has passed or is about to: that an answer came in time, or that the
/// deadline passed, should be in the record before it is told.
pub(crate) const GRACE: Duration = Duration::from_millis(25);

/// A record on its way into the ledger, or a note of a key. It is waited for until the request's deadline, and stored
/// whether or not anybody waits.
pub(crate) struct Storing {
    receipt: Receipt,
    state: Arc<State>,
    until: MonoTime,
    /// The attempt that may have had an effect which the caller does not learn of.
    attempt: Option<String>,
    /// Here once the ledger was found to be slower than at once.
    timer: Option<Sleep>,
}

/// Why what was waited for is not known to be stored.
pub(crate) enum Unstored {
    /// The ledger has not said so in time.
    Late,
    /// The ledger cannot say so.
    Unconfirmed(GatewayError),
}

impl Storing {
    /// Waits until `deadline`, and for [`GRACE`] from now on at least.
    pub(crate) fn new(receipt: Receipt, state: Arc<State>, deadline: MonoTime) -> Self {
        let until = deadline.max(state.clock.now().saturating_add(GRACE));
        Self { receipt, state, until, attempt: None, timer: None }
    }

    /// Names the attempt by which the request may have changed something.
    pub(crate) fn with_attempt(mut self, attempt: Option<String>) -> Self {
        self.attempt = attempt;
        self
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unstored>> {
        let Receipt::Pending(stored) = &mut self.receipt else { return Poll::Ready(Ok(())) };
        if let Poll::Ready(stored) = stored.as_mut().poll(cx) {
            return Poll::Ready(stored.map_err(Unstored::Unconfirmed));
        }
        let timer = self.timer.get_or_insert_with(|| self.state.clock.sleep_until(self.until));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(Unstored::Late))
    }

    /// As [`Storing::poll`] for a record. A ledger that cannot say so has kept the record.
    pub(crate) fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        Poll::Ready(match ready!(self.poll(cx)) {
            Ok(()) => Ok(()),
            Err(Unstored::Unconfirmed(_)) => {
                tracing::error!("the ledger could not confirm a record");
                Ok(())
            }
            Err(Unstored::Late) => Err(match &self.attempt {
                Some(attempt) => record_late().ambiguous().with_attempt(attempt),
                None => record_late(),
            }),
        })
    }
}

impl std::fmt::Debug for Storing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storing").field("until", &self.until).finish_non_exhaustive()
    }
}

/// What the caller of an answer is told whose record the ledger does not store in time. The record says how the call
/// ended, and is stored when the ledger can.
pub(crate) fn record_late() -> GatewayError {
    GatewayError::new(ErrorKind::Overloaded, "the ledger did not store the record before the deadline")
}
