//! Requests and tokens a minute as one decision: check all, then consume all.

use std::num::NonZeroU64;

use gw_types::MonoTime;

use crate::{Bucket, BucketSnapshot, Denied, Rate, bucket::Next, scopes::NodeLimits};

/// A scope's buckets. `None`: no limit.
#[derive(Debug)]
pub(crate) struct Rates {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// Where the buckets will stand if the take goes through; `None`: no such limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) requests: Option<Next>,
    pub(crate) tokens: Option<Next>,
}

/// Which buckets refused, and why; at least one did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) requests: Option<Denied>,
    pub(crate) tokens: Option<Denied>,
}

impl Rates {
    /// Returns full buckets.
    pub(crate) fn new(limits: &NodeLimits, now: MonoTime) -> Self {
        let full = |limit| Bucket::new(Rate::per_minute(limit), limit, now);
        Self { requests: limits.requests.map(full), tokens: limits.tokens.map(full) }
    }

    /// Changes the limits; a bucket that stays keeps its fill level, a new one is full.
    pub(crate) fn set(&mut self, limits: &NodeLimits, now: MonoTime) {
        set(&mut self.requests, limits.requests, now);
        set(&mut self.tokens, limits.tokens, now);
    }

    pub(crate) const fn is_limited(&self) -> bool {
        self.requests.is_some() || self.tokens.is_some()
    }

    pub(crate) const fn has_token_limit(&self) -> bool {
        self.tokens.is_some()
    }

    /// Returns how many requests and how many tokens a minute there may be.
    pub(crate) fn per_minute(&self) -> (Option<u64>, Option<u64>) {
        let most = |bucket: &Option<Bucket>| bucket.as_ref().map(Bucket::capacity);
        (most(&self.requests), most(&self.tokens))
    }

    /// Says whether one request and `tokens` tokens are there, and takes nothing.
    pub(crate) fn check(&mut self, tokens: u64, now: MonoTime) -> Result<Checked, Refused> {
        let check =
            |bucket: &mut Option<Bucket>, n| bucket.as_mut().map(|bucket| bucket.check(n, now)).transpose();
        match (check(&mut self.requests, 1), check(&mut self.tokens, tokens)) {
            (Ok(requests), Ok(tokens)) => Ok(Checked { requests, tokens }),
            (requests, tokens) => Err(Refused { requests: requests.err(), tokens: tokens.err() }),
        }
    }

    /// Takes what was checked under the same lock.
    pub(crate) fn consume(&mut self, checked: Checked) {
        if let (Some(bucket), Some(next)) = (&mut self.requests, checked.requests) {
            bucket.consume(next);
        }
        if let (Some(bucket), Some(next)) = (&mut self.tokens, checked.tokens) {
            bucket.consume(next);
        }
    }

    pub(crate) fn give_back_request(&mut self) {
        if let Some(bucket) = &mut self.requests {
            bucket.give_back(1);
        }
    }

    /// Says whether `tokens` tokens are there, and takes nothing.
    pub(crate) fn check_tokens(&mut self, tokens: u64, now: MonoTime) -> Result<Checked, Refused> {
        let next = self.tokens.as_mut().map(|bucket| bucket.check(tokens, now)).transpose();
        next.map(|tokens| Checked { requests: None, tokens })
            .map_err(|denied| Refused { requests: None, tokens: Some(denied) })
    }

    pub(crate) fn give_back_tokens(&mut self, tokens: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.give_back(tokens);
        }
    }

    /// Replaces taken tokens by used ones.
    pub(crate) fn settle_tokens(&mut self, taken: u64, used: u64, now: MonoTime) {
        if let Some(bucket) = &mut self.tokens {
            if used > taken {
                bucket.debit(used - taken, now);
            } else {
                bucket.give_back(taken - used);
            }
        }
    }

    pub(crate) fn snapshot(&mut self, now: MonoTime) -> (Option<BucketSnapshot>, Option<BucketSnapshot>) {
        let read = |bucket: &mut Option<Bucket>| bucket.as_mut().map(|bucket| bucket.snapshot(now));
        (read(&mut self.requests), read(&mut self.tokens))
    }
}

fn set(bucket: &mut Option<Bucket>, limit: Option<NonZeroU64>, now: MonoTime) {
    match (bucket.as_mut(), limit) {
        (Some(bucket), Some(limit)) => bucket.set_rate(Rate::per_minute(limit), limit, now),
        (None, Some(limit)) => *bucket = Some(Bucket::new(Rate::per_minute(limit), limit, now)),
        (_, None) => *bucket = None,
    }
}
