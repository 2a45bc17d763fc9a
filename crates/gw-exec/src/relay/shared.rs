//! A streamed answer of a call that several requests share.

use std::task::{Context, Poll};

use gw_cache::flight::Next;
use gw_types::{ErrorKind, GatewayError, Outcome};

use super::{Ending, RelayItem, poll_ending};
use crate::{
    flight::Flight,
    reply::Failure,
    sharing::{Follower, Leader, Part},
};

/// A place in a shared call.
#[derive(Debug)]
pub(super) struct Shared {
    place: Option<Place>,
    ending: Option<Ending>,
}

/// Whose place it is. The record of a leader is written by the call, that of a follower here.
#[derive(Debug)]
enum Place {
    Leader(Leader),
    Follower(Follower, Box<Flight>),
}

impl Shared {
    pub(super) fn leading(leader: Leader) -> Self {
        Self { place: Some(Place::Leader(leader)), ending: None }
    }

    pub(super) fn following(follower: Follower, flight: Box<Flight>) -> Self {
        Self { place: Some(Place::Follower(follower, flight)), ending: None }
    }

    pub(super) fn abort(&mut self, error: GatewayError) {
        if let Some(Place::Leader(leader)) = &mut self.place
            && leader.leave(&error).is_err()
        {
            // The answer has ended, and its record says how.
            return;
        }
        if self.place.is_some() {
            self.end(error.outcome(), RelayItem::Failed(error));
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<RelayItem>> {
        loop {
            let next = match &mut self.place {
                None => return poll_ending(&mut self.ending, cx),
                Some(Place::Leader(leader)) => leader.poll_next(cx).map(Ok),
                Some(Place::Follower(follower, _)) => follower.poll_next(cx),
            };
            match next {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Next::Item(part))) => {
                    if let Some(item) = self.take(part) {
                        return Poll::Ready(Some(item));
                    }
                }
                Poll::Ready(Ok(end)) => self.over(end),
                Poll::Ready(Err(error)) => self.end(error.outcome(), RelayItem::Failed(error)),
            }
        }
    }

    fn take(&mut self, part: Part) -> Option<RelayItem> {
        match part {
            Part::Bytes(bytes) => return Some(RelayItem::Bytes(bytes)),
            Part::Served(model) => {
                if let Some(Place::Follower(_, flight)) = &mut self.place {
                    flight.record().served_model = Some(model);
                }
            }
            Part::Lost(loss) => {
                if let Some(Place::Follower(_, flight)) = &mut self.place {
                    flight.lose(&loss);
                }
            }
            Part::Capped(output) => self.end(Outcome::Capped, RelayItem::Capped { output }),
            // Neither comes after the beginning of a stream.
            Part::Call(_) | Part::Opened(_) | Part::Whole(..) => {}
        }
        None
    }

    fn over(&mut self, end: Next<Part, Failure>) {
        let error = match end {
            Next::Complete => return self.end(Outcome::Ok, RelayItem::Done),
            Next::Failed(failure) => failure.error,
            Next::TooSlow => interrupted("the caller fell too far behind the others that share the answer"),
            Next::Lost | Next::Again | Next::Item(_) => interrupted("the shared call ended without its end"),
        };
        self.end(error.outcome(), RelayItem::Failed(error));
    }

    /// Leaves the call, and a follower's record.
    fn end(&mut self, outcome: Outcome, item: RelayItem) {
        let error = match &item {
            RelayItem::Failed(error) => Some(error),
            RelayItem::Bytes(_) | RelayItem::Done | RelayItem::Capped { .. } => None,
        };
        let storing = match self.place.take() {
            Some(Place::Follower(_, mut flight)) => Some(flight.close_and_store(outcome, error)),
            Some(Place::Leader(_)) | None => None,
        };
        self.ending = Some(Ending::new(storing, item));
    }
}

fn interrupted(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::StreamInterrupted, message)
}
