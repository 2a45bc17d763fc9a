//! How far a request has come: what is charged if everything ends now, and where the time went.

use std::time::Duration;

use gw_types::{LatencySplit, MonoTime, Usage};

use crate::estimate::Relayed;

/// How far the current provider call has come; decides what is charged if everything ends now.
#[derive(Clone, Debug, Default)]
pub(crate) enum Progress {
    /// No call is open.
    #[default]
    Idle,
    /// A call is open and nothing of its answer is known.
    Called { target: usize, stream: bool },
    /// A stream is being relayed.
    Streaming { target: usize, relayed: Relayed, usage: Option<Box<Usage>> },
    /// The whole answer is here; `bytes` of it are content.
    Answered { target: usize, bytes: u64, usage: Box<Usage> },
}

impl Progress {
    pub(crate) const fn target(&self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::Called { target, .. } | Self::Streaming { target, .. } | Self::Answered { target, .. } => {
                Some(*target)
            }
        }
    }

    /// Returns the bytes of content so far.
    pub(crate) const fn content_bytes(&self) -> u64 {
        match self {
            Self::Idle | Self::Called { .. } => 0,
            Self::Streaming { relayed, .. } => relayed.bytes,
            Self::Answered { bytes, .. } => *bytes,
        }
    }
}

/// Instants and sums from which the latency split is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) first_call: Option<MonoTime>,
    pub(crate) first_byte: Option<MonoTime>,
    pub(crate) attempt: Option<MonoTime>,
    pub(crate) backoff: Duration,
    /// Waiting for a slot, for tokens in flight, for the pace.
    queue: Duration,
    /// The part of it after the first call.
    queue_between: Duration,
    waiting_since: Option<MonoTime>,
}

impl Spans {
    /// Begins to wait in a queue.
    pub(crate) fn wait(&mut self, now: MonoTime) {
        self.waiting_since = Some(now);
    }

    /// Ends the wait.
    pub(crate) fn waited(&mut self, now: MonoTime) {
        let Some(since) = self.waiting_since.take() else { return };
        let waited = now.saturating_since(since);
        self.queue += waited;
        if self.first_call.is_some() {
            self.queue_between += waited;
        }
    }

    /// Returns where the time went; a wait that was broken off counts until now.
    pub(crate) fn split(mut self, arrived: MonoTime, now: MonoTime) -> LatencySplit {
        self.waited(now);
        let total = now.saturating_since(arrived);
        let between = self.backoff + self.queue_between;
        let until_first = self.first_call.map_or(Duration::ZERO, |call| {
            self.first_byte.unwrap_or(now).saturating_since(call).saturating_sub(between)
        });
        let rest = self.first_byte.map_or(Duration::ZERO, |first| now.saturating_since(first));
        let elsewhere = self.backoff + self.queue + until_first + rest;
        LatencySplit {
            total_us: micros(total),
            queue_us: micros(self.queue),
            backoff_us: micros(self.backoff),
            upstream_first_byte_us: micros(until_first),
            upstream_rest_us: micros(rest),
            own_us: micros(total.saturating_sub(elsewhere)),
        }
    }
}

/// Returns whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
