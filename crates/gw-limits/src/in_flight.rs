//! Tokens in flight: how much work a deployment has before it at once.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Clock, MonoTime, Sleep, TokenCount};

use crate::{
    config::names,
    line::{LINE_MAX, Line},
    sync::Mutex,
};

/// A bound of the tokens of all calls in flight together.
///
/// Take it after the slot: whoever waits for a slot then holds no tokens that others could use. The line has no
/// overtaking, so that a large request is not starved by small ones.
#[derive(Debug)]
pub struct TokenBudget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    capacity: u64,
    in_use: u64,
    line: Line,
}

impl TokenBudget {
    /// Returns a budget of `capacity` tokens, all of them free.
    pub fn new(capacity: TokenCount) -> Self {
        Self { state: Mutex::new(State { capacity: capacity.get(), in_use: 0, line: Line::default() }) }
    }

    /// Changes the bound; calls in flight keep what they have.
    pub fn set_capacity(&self, capacity: TokenCount) {
        let first = {
            let mut state = self.state.lock();
            state.capacity = capacity.get();
            state.line.first_waker()
        };
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Returns the tokens in flight.
    pub fn in_use(&self) -> TokenCount {
        TokenCount::new(self.state.lock().in_use)
    }

    /// Joins the line for `tokens`; the future is ready once they are free, or at the deadline.
    ///
    /// # Errors
    /// At once: `RateLimited` that forbids a retry if the budget can never hold so many, `Overloaded` if ten thousand
    /// are in the line. The future: `DeadlineExceeded`, also if the budget was lowered below the request.
    pub fn join(
        self: &Arc<Self>,
        tokens: TokenCount,
        clock: &Arc<dyn Clock>,
        deadline: MonoTime,
    ) -> Result<TokenWait, GatewayError> {
        let mut state = self.state.lock();
        let refused = if tokens.get() > state.capacity {
            Some((ErrorKind::RateLimited, "the request is larger than the tokens that may be in flight"))
        } else {
            (state.line.len() >= LINE_MAX).then_some((ErrorKind::Overloaded, "the line for tokens is full"))
        };
        if let Some((kind, message)) = refused {
            drop(state);
            let error = GatewayError::new(kind, message).with_subject(names::IN_FLIGHT);
            return Err(if kind == ErrorKind::RateLimited { error.without_retry() } else { error });
        }
        let place = Some(state.line.join());
        drop(state);
        let timer = clock.sleep_until(deadline);
        Ok(TokenWait { budget: Arc::clone(self), tokens: tokens.get(), place, timer })
    }
}

/// A place in a [`TokenBudget`]'s line; dropping it leaves the line.
#[must_use = "dropping it leaves the line"]
pub struct TokenWait {
    budget: Arc<TokenBudget>,
    tokens: u64,
    /// `None` once it is over.
    place: Option<u64>,
    timer: Sleep,
}

impl Future for TokenWait {
    type Output = Result<TokensInFlight, GatewayError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(place) = self.place else { return Poll::Ready(Err(late())) };
        let taken = {
            let mut state = self.budget.state.lock();
            let free = state.capacity.saturating_sub(state.in_use);
            let fits = state.line.is_first(place, cx) && self.tokens <= free;
            if fits {
                state.in_use += self.tokens;
            }
            fits
        };
        if taken {
            let held = TokensInFlight { budget: Arc::clone(&self.budget), tokens: self.tokens };
            self.leave();
            return Poll::Ready(Ok(held));
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            self.leave();
            return Poll::Ready(Err(late()));
        }
        Poll::Pending
    }
}

impl TokenWait {
    fn leave(&mut self) {
        let Some(place) = self.place.take() else { return };
        let next = self.budget.state.lock().line.leave(place);
        if let Some(next) = next {
            next.wake();
        }
    }
}

impl Drop for TokenWait {
    fn drop(&mut self) {
        self.leave();
    }
}

impl std::fmt::Debug for TokenWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenWait").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// Tokens of one call in flight; dropping it gives them back.
#[must_use = "dropping it gives the tokens back"]
#[derive(Debug)]
pub struct TokensInFlight {
    budget: Arc<TokenBudget>,
    tokens: u64,
}

impl TokensInFlight {
    /// Returns how many they are.
    pub const fn tokens(&self) -> TokenCount {
        TokenCount::new(self.tokens)
    }
}

impl Drop for TokensInFlight {
    fn drop(&mut self) {
        let first = {
            let mut state = self.budget.state.lock();
            debug_assert!(state.in_use >= self.tokens, "more tokens came back than were taken");
            state.in_use = state.in_use.saturating_sub(self.tokens);
            state.line.first_waker()
        };
        if let Some(first) = first {
            first.wake();
        }
    }
}

fn late() -> GatewayError {
    GatewayError::new(ErrorKind::DeadlineExceeded, "no tokens were free before the request's deadline")
}
