//! A streamed answer as the bytes of server-sent events.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use gw_exec::{Relay, RelayItem};
use gw_types::{ErrorKind, GatewayError};

use crate::{
    app::App,
    gate::Gate,
    lifecycle::Phase,
    refusal::{fault, shutting_down},
    wire::StreamEnding,
};

/// A streamed answer on its way out: no task and no channel, the client's demand drives the provider.
///
/// The ending is the dialect's own: the final marker behind a complete answer, an error event and no marker behind one
/// that broke off. Dropping it drops the relay, which cancels the provider's call and settles.
pub(crate) struct Events {
    relay: Option<Box<Relay>>,
    ending: StreamEnding,
    app: Arc<App>,
    gate: Gate,
}

impl Events {
    pub(crate) fn new(relay: Box<Relay>, ending: StreamEnding, app: Arc<App>) -> Self {
        Self { relay: Some(relay), ending, app, gate: Gate::new() }
    }

    /// Returns the next bytes, or `None` once the stream has ended.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let Some(relay) = &mut self.relay else { return Poll::Ready(None) };
            if self.app.lifecycle.phase() == Phase::Closing {
                relay.abort(shutting_down());
                self.gate.open();
            }
            // A fault in the pipeline must not take the connection's other requests with it.
            let poll = |cx: &mut Context<'_>| Pin::new(relay).poll_next(cx);
            let polled = catch_unwind(AssertUnwindSafe(|| self.gate.poll(cx, poll)));
            let Ok(polled) = polled else {
                tracing::error!("a stream met a fault of gw's own");
                let last = self.ending.failed(&fault());
                return self.end(last);
            };
            let last = match ready!(polled) {
                Some(RelayItem::Bytes(bytes)) if bytes.is_empty() => continue,
                Some(RelayItem::Bytes(bytes)) => {
                    self.ending.observe(&bytes);
                    return Poll::Ready(Some(bytes));
                }
                Some(RelayItem::Done) => self.ending.done(),
                Some(RelayItem::Capped { output }) => self.ending.capped(output),
                Some(RelayItem::Failed(error)) => self.ending.failed(&error),
                None => self.ending.failed(&GatewayError::new(
                    ErrorKind::StreamInterrupted,
                    "the stream ended before its end",
                )),
            };
            return self.end(last);
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.relay.is_none()
    }

    fn end(&mut self, last: Bytes) -> Poll<Option<Bytes>> {
        self.relay = None;
        Poll::Ready((!last.is_empty()).then_some(last))
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("ended", &self.has_ended()).finish_non_exhaustive()
    }
}
