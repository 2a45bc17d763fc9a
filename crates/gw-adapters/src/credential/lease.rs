//! A credential that is fetched, kept, and fetched anew before it ends.

use std::{future::Future, sync::Arc, time::Duration};

use gw_types::{Clock, ErrorKind, GatewayError, MonoTime};
use parking_lot::Mutex;

/// How long before its end a credential is fetched anew; for short-lived ones half of their life.
const RENEW_BEFORE: Duration = Duration::from_secs(300);

/// How long a failed fetch stands for those that come after it, so that an outage is not asked about by every request.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// How long a value is kept even if a provider does not accept it: a permission that is missing is not cured by another token.
const VALUE_KEPT: Duration = Duration::from_secs(30);

/// The longest that one fetch may take.
const FETCH_TIME: Duration = Duration::from_secs(10);

/// A fetched value, and how long it holds.
pub(super) struct Fetched<T> {
    pub(super) value: T,
    pub(super) lifetime: Duration,
}

/// Keeps one fetched value. One task fetches at a time; while the old value still holds, nobody waits for that.
pub(super) struct Lease<T> {
    kept: Mutex<Kept<T>>,
    fetching: tokio::sync::Mutex<()>,
    clock: Arc<dyn Clock>,
}

enum Kept<T> {
    Nothing,
    Value { value: T, since: MonoTime, renew_at: MonoTime, until: MonoTime },
    Failure { error: GatewayError, until: MonoTime },
}

/// What is there.
enum Found<T> {
    Good(T),
    /// Holds, but is soon to end.
    Ending(T),
    Failure(GatewayError),
    Nothing,
}

impl<T: Clone> Lease<T> {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { kept: Mutex::new(Kept::Nothing), fetching: tokio::sync::Mutex::new(()), clock }
    }

    /// Returns the value, fetched first if it must be. Cancelling leaves what was there.
    ///
    /// # Errors
    /// What the fetch says, without the mark of ambiguity; `ProviderTimeout` if it takes longer than [`FETCH_TIME`].
    pub(super) async fn get<F>(&self, fetch: impl FnOnce() -> F) -> Result<T, GatewayError>
    where
        F: Future<Output = Result<Fetched<T>, GatewayError>>,
    {
        let (old, _guard) = match self.find() {
            Found::Good(value) => return Ok(value),
            Found::Failure(error) => return Err(error),
            Found::Ending(value) => match self.fetching.try_lock() {
                Ok(guard) => (Some(value), guard),
                Err(_) => return Ok(value),
            },
            Found::Nothing => {
                let guard = self.fetching.lock().await;
                match self.find() {
                    Found::Good(value) | Found::Ending(value) => return Ok(value),
                    Found::Failure(error) => return Err(error),
                    Found::Nothing => (None, guard),
                }
            }
        };
        let fetched = tokio::time::timeout(FETCH_TIME, fetch()).await.unwrap_or_else(|_| {
            Err(GatewayError::new(ErrorKind::ProviderTimeout, "no credential came in the time allowed"))
        });
        let now = self.clock.now();
        match fetched.map_err(GatewayError::unambiguous) {
            Ok(Fetched { value, lifetime }) => {
                let early = RENEW_BEFORE.min(lifetime / 2);
                *self.kept.lock() = Kept::Value {
                    value: value.clone(),
                    since: now,
                    renew_at: now.saturating_add(lifetime - early),
                    until: now.saturating_add(lifetime),
                };
                Ok(value)
            }
            Err(error) => match old {
                // The old one still holds; the next request tries again.
                Some(value) => Ok(value),
                None => {
                    let until = now.saturating_add(FAILURE_KEPT);
                    *self.kept.lock() = Kept::Failure { error: error.clone(), until };
                    Err(error)
                }
            },
        }
    }

    /// Drops the value, unless it was fetched only just.
    pub(super) fn forget(&self) {
        let now = self.clock.now();
        let mut kept = self.kept.lock();
        if let Kept::Value { since, .. } = &*kept
            && now.saturating_since(*since) >= VALUE_KEPT
        {
            *kept = Kept::Nothing;
        }
    }

    fn find(&self) -> Found<T> {
        let now = self.clock.now();
        match &*self.kept.lock() {
            Kept::Value { value, renew_at, .. } if now < *renew_at => Found::Good(value.clone()),
            Kept::Value { value, until, .. } if now < *until => Found::Ending(value.clone()),
            Kept::Failure { error, until } if now < *until => Found::Failure(error.clone()),
            Kept::Value { .. } | Kept::Failure { .. } | Kept::Nothing => Found::Nothing,
        }
    }
}

impl<T> std::fmt::Debug for Lease<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept = match &*self.kept.lock() {
            Kept::Nothing => "nothing",
            Kept::Value { .. } => "a value",
            Kept::Failure { .. } => "a failure",
        };
        write!(f, "Lease({kept})")
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use futures_util::{
        FutureExt,
        future::{join, pending},
    };
    use gw_types::{ErrorKind, GatewayError, ManualClock};

    use super::{FAILURE_KEPT, Fetched, Lease, RENEW_BEFORE, VALUE_KEPT};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn lease() -> (Lease<u32>, ManualClock) {
        let clock = ManualClock::default();
        (Lease::new(Arc::new(clock.clone())), clock)
    }

    async fn get(lease: &Lease<u32>, fetched: Result<u32, ErrorKind>) -> Result<u32, ErrorKind> {
        let fetched = fetched
            .map(|value| Fetched { value, lifetime: HOUR })
            .map_err(|kind| GatewayError::new(kind, "no").ambiguous());
        let got = lease.get(|| async { fetched }).await;
        assert!(!got.as_ref().is_err_and(GatewayError::is_ambiguous));
        got.map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn a_value_is_kept_until_shortly_before_its_end() {
        let (lease, clock) = lease();
        assert_eq!(get(&lease, Ok(1)).await, Ok(1));
        clock.advance(HOUR - RENEW_BEFORE - Duration::from_nanos(1));
        assert_eq!(get(&lease, Ok(2)).await, Ok(1));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(get(&lease, Ok(3)).await, Ok(3));
        lease.forget();
        assert_eq!(get(&lease, Ok(4)).await, Ok(3));
        clock.advance(VALUE_KEPT);
        lease.forget();
        assert_eq!(get(&lease, Ok(4)).await, Ok(4));
    }

    #[tokio::test]
    async fn while_the_old_one_holds_a_failed_fetch_hurts_nobody() {
        let (lease, clock) = lease();
        assert_eq!(get(&lease, Ok(1)).await, Ok(1));
        clock.advance(HOUR - Duration::from_nanos(1));
        assert_eq!(get(&lease, Err(ErrorKind::Transport)).await, Ok(1));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(get(&lease, Err(ErrorKind::Transport)).await, Err(ErrorKind::Transport));
    }

    #[tokio::test]
    async fn a_failure_stands_for_a_moment() {
        let (lease, clock) = lease();
        assert_eq!(get(&lease, Err(ErrorKind::ProviderAuth)).await, Err(ErrorKind::ProviderAuth));
        assert_eq!(get(&lease, Ok(1)).await, Err(ErrorKind::ProviderAuth));
        clock.advance(FAILURE_KEPT);
        assert_eq!(get(&lease, Ok(1)).await, Ok(1));
    }

    #[tokio::test]
    async fn one_fetches_and_the_others_wait_or_use_the_old_one() {
        let (lease, clock) = lease();
        let slow = lease.get(|| async {
            tokio::task::yield_now().await;
            Ok(Fetched { value: 1, lifetime: HOUR })
        });
        let (first, second) = join(slow, get(&lease, Ok(2))).await;
        assert_eq!((first.unwrap(), second), (1, Ok(1)));
        clock.advance(HOUR - RENEW_BEFORE);
        let mut renewing = Box::pin(lease.get(pending));
        assert!(renewing.as_mut().now_or_never().is_none());
        assert_eq!(get(&lease, Ok(3)).await, Ok(1));
        drop(renewing);
        assert_eq!(get(&lease, Ok(3)).await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_hangs_is_given_up() {
        let (lease, _clock) = lease();
        let got = lease.get(pending::<Result<Fetched<u32>, GatewayError>>).await;
        assert_eq!(got.map_err(|error| error.kind()), Err(ErrorKind::ProviderTimeout));
    }
}
