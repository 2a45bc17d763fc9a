//! What a request took from the rates of its scopes.

use gw_types::{MonoTime, TokenCount};

use crate::{ScopeRefusal, Subject, rates::Refused};

/// Which rates refused, by the place of their scope.
pub(crate) type RateRefusals = Vec<(usize, Refused)>;

/// What was taken: a bit for each scope that counted the request, and for each that counted its tokens.
///
/// A scope that had no such limit then stays uncounted, also when it has one by the time of the settlement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) requests: u16,
    pub(crate) tokens: u16,
    pub(crate) amount: u64,
}

/// One request and its tokens, taken from the rates of one or more scopes.
///
/// Dropped unsettled it gives everything back: that is what a refusal further on does.
#[must_use = "dropping it gives everything back"]
#[derive(Debug)]
pub struct Admission {
    subject: Subject,
    /// `None` once settled.
    taken: Option<Taken>,
}

impl Admission {
    pub(crate) fn new(subject: Subject, taken: Taken) -> Self {
        Self { subject, taken: Some(taken) }
    }

    /// Keeps the request and replaces the tokens that were taken by those that were used.
    ///
    /// Fewer: the rest goes back. More: the excess is debited, and what comes next waits until it is repaid.
    pub fn settle(mut self, actual: TokenCount, now: MonoTime) {
        let Some(taken) = self.taken.take() else { return };
        for (at, node) in self.subject.nodes().enumerate() {
            if taken.tokens >> at & 1 == 1 {
                node.lock().rates.settle_tokens(taken.amount, actual.get(), now);
            }
        }
    }

    /// Takes other tokens in the place of those that were taken, now that more is known of the request.
    ///
    /// # Errors
    /// [`ScopeRefusal`] names every limit that does not hold so many; everything has gone back.
    pub fn adjust(mut self, tokens: TokenCount, now: MonoTime) -> Result<Self, ScopeRefusal> {
        let Some(mut taken) = self.taken.filter(|taken| taken.amount != tokens.get()) else {
            return Ok(self);
        };
        let replaced = self.subject.replace_tokens(taken, tokens.get(), now);
        taken.amount = tokens.get();
        match replaced {
            Ok(()) => {
                self.taken = Some(taken);
                Ok(self)
            }
            Err(refused) => {
                self.taken = Some(Taken { tokens: 0, ..taken });
                Err(ScopeRefusal::by_rates(&self.subject, &refused, now))
            }
        }
    }

    /// Keeps the request, which is load, and gives the tokens back: the answer came from a cache.
    pub fn settle_hit(mut self) {
        if let Some(taken) = self.taken.take() {
            self.give_back(Taken { requests: 0, ..taken });
        }
    }

    fn give_back(&self, taken: Taken) {
        for (at, node) in self.subject.nodes().enumerate() {
            let (request, tokens) = (taken.requests >> at & 1 == 1, taken.tokens >> at & 1 == 1);
            if !(request || tokens) {
                continue;
            }
            let mut state = node.lock();
            if request {
                state.rates.give_back_request();
            }
            if tokens {
                state.rates.give_back_tokens(taken.amount);
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.give_back(taken);
        }
    }
}
