//! Which requests belong together: equal ones, which may share a call, and those that name the same idempotency key.

use gw_types::{AttemptEnd, GatewayError, MonoTime, UtcTime};

use super::{
    script::{Ask, Control},
    stage::{AskLog, Call, Log},
};

/// How long a key is known, in microseconds of the wall clock.
const KEY_KNOWN_US: i64 = 24 * 60 * 60 * 1_000_000;

impl Ask {
    /// Returns whether a request asks for the very same bytes.
    fn is_like(&self, other: &Self) -> bool {
        let body = |ask: &Self| (ask.text, ask.stream, ask.max_tokens);
        self.tenant == other.tenant && body(self) == body(other)
    }

    /// Returns whether its answer may be somebody else's, in flight.
    fn may_share(&self) -> bool {
        self.cache == Control::Default && !self.side_effecting && self.key.is_none()
    }
}

impl Log {
    /// Returns the requests that may share a call with this one, as long as they are under way.
    pub(crate) fn twins(&self, number: usize) -> impl Iterator<Item = &AskLog> {
        let ask = &self.asks[number].ask;
        let others = self.asks.iter().enumerate().filter(move |(other, _)| *other != number);
        others.map(|(_, other)| other).filter(move |other| {
            self.shares
                && ask.may_share()
                && other.ask.may_share()
                && other.admitted
                && ask.is_like(&other.ask)
        })
    }

    /// Returns whether somebody else waits for the call of a request.
    pub(crate) fn is_followed(&self, number: usize) -> bool {
        self.twins(number).any(|twin| !twin.ended && !twin.gone)
    }

    /// Returns whether there is somebody who may share, or have shared, its call.
    pub(crate) fn has_twin(&self, number: usize) -> bool {
        self.twins(number).next().is_some()
    }

    /// Returns until when the call of a request may last: for those who share it, too.
    pub(crate) fn call_until(&self, number: usize) -> Option<MonoTime> {
        let own = self.asks[number].deadline;
        self.twins(number).filter_map(|twin| twin.deadline).chain(own).max()
    }

    /// Returns how long the slowest of those who read the answer of a request may pause: the call waits for its readers.
    pub(crate) fn slowest_reader(&self, number: usize) -> u32 {
        let own = self.asks[number].ask.reads_every;
        self.twins(number).map(|twin| twin.ask.reads_every).fold(own, u32::max)
    }

    /// Says whether a new call of a request is one too many among equal requests in flight.
    pub(crate) fn is_second_shared_call(&self, number: usize) -> bool {
        let world = self.asks[number].world;
        self.twins(number).any(|twin| twin.world == world && twin.calls.iter().any(|call| call.open))
    }

    /// Returns the other requests that name the same key.
    pub(crate) fn with_key(&self, number: usize) -> impl Iterator<Item = &AskLog> {
        let ask = &self.asks[number].ask;
        let others = self.asks.iter().enumerate().filter(move |(other, _)| *other != number);
        others.map(|(_, other)| other).filter(move |other| {
            ask.key.is_some() && (other.ask.tenant, other.ask.key) == (ask.tenant, ask.key)
        })
    }

    /// Says whether a call of a request breaks the promise of its idempotency key: one call for one key, but where it is
    /// proved that nothing came of the earlier one.
    pub(crate) fn breaks_key(&self, number: usize, utc: UtcTime) -> bool {
        self.with_key(number).any(|other| {
            let is_known = other.began_utc.is_some_and(|began| utc.micros() - began.micros() < KEY_KNOWN_US);
            is_known && other.calls.iter().any(Call::may_have_done)
        })
    }
}

impl AskLog {
    /// Returns whether an answer to this request may be given to another one.
    pub(crate) fn may_answer(&self, other: &Self) -> bool {
        self.ask.is_like(&other.ask)
    }
}

impl Call {
    /// Whether it may have done what was asked: it is under way, has answered, or nobody knows.
    fn may_have_done(&self) -> bool {
        let end = self.error.as_ref().map(GatewayError::attempt_end);
        self.open || self.said || matches!(end, None | Some(AttemptEnd::Unknown))
    }
}
