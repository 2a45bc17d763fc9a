//! A scripted stream: frames, with pauses by the clock, read by the real decoder.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use gw_types::{Clock, GatewayError, Sleep, StreamItem};

use crate::http::Decoder;

pub(super) struct ScriptedStream {
    frames: VecDeque<Bytes>,
    /// Before each frame but the first two, so that role and first word come at once.
    pause: Duration,
    sent: usize,
    sleep: Option<Sleep>,
    decoder: Decoder,
    decoded: VecDeque<StreamItem>,
    ended: bool,
    clock: Arc<dyn Clock>,
}

impl ScriptedStream {
    pub(super) fn new(
        frames: VecDeque<Bytes>,
        pause: Duration,
        decoder: Decoder,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { frames, pause, sent: 0, sleep: None, decoder, decoded: VecDeque::new(), ended: false, clock }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.pause.is_zero() && self.sent >= 2 && !self.frames.is_empty() {
            let sleep = self
                .sleep
                .get_or_insert_with(|| self.clock.sleep_until(self.clock.now().saturating_add(self.pause)));
            ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
        }
        self.sent += 1;
        Poll::Ready(self.frames.pop_front())
    }
}

impl Stream for ScriptedStream {
    type Item = Result<StreamItem, GatewayError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.decoded.pop_front() {
                this.ended |= item.facts.terminal || item.facts.error.is_some();
                return Poll::Ready(Some(Ok(item)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            match ready!(this.poll_frame(cx)) {
                Some(frame) => this.decoder.push(frame, &mut this.decoded),
                None => {
                    this.ended = true;
                    return Poll::Ready(Some(this.decoder.end().map_err(GatewayError::ambiguous)));
                }
            }
        }
    }
}
