//! Requests and tokens a minute as one decision: check all, then consume all.

use std::num::NonZeroU64;

use gw_types::MonoTime;

use crate::{Bucket, BucketSnapshot, Denied, Rate, config::ValidTenant};

/// A tenant's buckets. `None`: no limit.
#[derive(Debug)]
pub(crate) struct Rates {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// What one request took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) requests: Option<u64>,
    pub(crate) tokens: Option<u64>,
}

/// Which buckets refused, and why; at least one did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) requests: Option<Denied>,
    pub(crate) tokens: Option<Denied>,
}

impl Rates {
    /// Returns full buckets.
    pub(crate) fn new(limits: &ValidTenant, now: MonoTime) -> Self {
        let full = |limit| Bucket::new(Rate::per_minute(limit), limit, now);
        Self { requests: limits.requests.map(full), tokens: limits.tokens.map(full) }
    }

    /// Changes the limits; a bucket that stays keeps its fill level, a new one is full.
    pub(crate) fn set(&mut self, limits: &ValidTenant, now: MonoTime) {
        set(&mut self.requests, limits.requests, now);
        set(&mut self.tokens, limits.tokens, now);
    }

    pub(crate) const fn has_token_limit(&self) -> bool {
        self.tokens.is_some()
    }

    /// Takes one request and `tokens` tokens, or nothing.
    pub(crate) fn take(&mut self, tokens: u64, now: MonoTime) -> Result<Taken, Refused> {
        let mut taken = Taken::default();
        let check =
            |bucket: &mut Option<Bucket>, n| bucket.as_mut().map(|bucket| bucket.check(n, now)).transpose();
        match (check(&mut self.requests, 1), check(&mut self.tokens, tokens)) {
            (Ok(request), Ok(token)) => {
                if let (Some(bucket), Some(next)) = (&mut self.requests, request) {
                    bucket.consume(next);
                    taken.requests = Some(1);
                }
                if let (Some(bucket), Some(next)) = (&mut self.tokens, token) {
                    bucket.consume(next);
                    taken.tokens = Some(tokens);
                }
                Ok(taken)
            }
            (requests, tokens) => Err(Refused { requests: requests.err(), tokens: tokens.err() }),
        }
    }

    /// Returns what was taken, all of it.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        if let (Some(bucket), Some(n)) = (&mut self.requests, taken.requests) {
            bucket.give_back(n);
        }
        if let (Some(bucket), Some(n)) = (&mut self.tokens, taken.tokens) {
            bucket.give_back(n);
        }
    }

    /// Replaces taken tokens by used ones. A request that was admitted without a token limit stays uncounted.
    pub(crate) fn settle_tokens(&mut self, taken: Taken, used: u64, now: MonoTime) {
        if let (Some(bucket), Some(n)) = (&mut self.tokens, taken.tokens) {
            if used > n {
                bucket.debit(used - n, now);
            } else {
                bucket.give_back(n - used);
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
