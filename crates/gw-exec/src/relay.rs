//! A streamed answer on its way to the caller: of its request's own call, or of one that it shares.

mod own;
mod shared;

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use gw_types::{GatewayError, NormalizedRequest, TokenCount};

pub(crate) use self::own::Own;
use self::shared::Shared;
use crate::{
    flight::Flight,
    opening::Opened,
    remember::CacheWrite,
    sharing::{Follower, Leader},
    storing::Storing,
};

/// One step of a relayed stream. After anything but `Bytes` the stream ends.
pub enum RelayItem {
    /// Complete events in the caller's wire format.
    Bytes(Bytes),
    /// The answer is complete; the dialect's final marker is due.
    Done,
    /// The answer was ended at the reserved cap; a finish reason `length` and the final marker are due.
    Capped {
        /// The output that was charged: the cap.
        output: TokenCount,
    },
    /// The answer broke off; the dialect's error event is due, and no final marker.
    Failed(GatewayError),
}

impl std::fmt::Debug for RelayItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes([{} bytes redacted])", bytes.len()),
            Self::Done => f.write_str("Done"),
            Self::Capped { output } => write!(f, "Capped({output})"),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
        }
    }
}

/// A streamed answer, as a stream of [`RelayItem`]s.
///
/// Owns everything that the request holds. The provider's bytes are relayed without a copy; where nobody shares the
/// call, polling drives the provider without a task or a channel, and a slow reader slows the provider down: at once, or
/// once the buffer for those who may still follow is full. The record is stored before the last item is returned.
/// Dropping it at any point settles what was relayed, and cancels the provider's call at once unless others read it.
#[derive(Debug)]
pub struct Relay(Kind);

#[derive(Debug)]
enum Kind {
    Own(Box<Own>),
    Shared(Box<Shared>),
}

impl Relay {
    /// Relays the request's own call, which nobody shares.
    pub(crate) fn alone(
        flight: Box<Flight>,
        request: &NormalizedRequest,
        opened: Opened,
        write: Option<Box<CacheWrite>>,
    ) -> Self {
        Self(Kind::Own(Box::new(Own::begin(flight, request, opened, write))))
    }

    /// Relays the call that the request leads.
    pub(crate) fn leading(leader: Leader) -> Self {
        Self(Kind::Shared(Box::new(Shared::leading(leader))))
    }

    /// Relays the call that the request follows.
    pub(crate) fn following(follower: Follower, flight: Box<Flight>) -> Self {
        Self(Kind::Shared(Box::new(Shared::following(follower, flight))))
    }

    /// Breaks the answer off with an error of gw's own: what was relayed is settled and recorded, and the error is the
    /// last item. Does nothing once the answer has ended.
    pub fn abort(&mut self, error: GatewayError) {
        match &mut self.0 {
            Kind::Own(own) => own.abort(error),
            Kind::Shared(shared) => shared.abort(error),
        }
    }
}

impl Stream for Relay {
    type Item = RelayItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RelayItem>> {
        match &mut self.get_mut().0 {
            Kind::Own(own) => Pin::new(own.as_mut()).poll_next(cx),
            Kind::Shared(shared) => shared.poll_next(cx),
        }
    }
}

/// The last item of a stream, which waits for its record.
#[derive(Debug)]
struct Ending {
    storing: Option<Storing>,
    item: RelayItem,
}

impl Ending {
    fn new(storing: Option<Storing>, item: RelayItem) -> Self {
        Self { storing, item }
    }
}

/// Gives the last item once the record is stored, or an error where it is not stored before the deadline.
fn poll_ending(ending: &mut Option<Ending>, cx: &mut Context<'_>) -> Poll<Option<RelayItem>> {
    let Some(waiting) = ending else { return Poll::Ready(None) };
    let stored = match &mut waiting.storing {
        Some(storing) => ready!(storing.poll_record(cx)),
        None => Ok(()),
    };
    Poll::Ready(ending.take().map(|ending| match (stored, ending.item) {
        // A failure is told as it is: its record says so too, whenever it is stored.
        (Ok(()), item) | (Err(_), item @ RelayItem::Failed(_)) => item,
        (Err(error), RelayItem::Bytes(_) | RelayItem::Done | RelayItem::Capped { .. }) => {
            RelayItem::Failed(error)
        }
    }))
}
