//! How long to wait before the same deployment is asked again.

use std::time::Duration;

use gw_types::Random;

/// The largest first delay, doubled with every further retry.
const BASE: Duration = Duration::from_millis(100);
/// The largest delay of gw's own.
pub(crate) const CAP: Duration = Duration::from_secs(2);

/// A delay, and the number that chance put into it, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) delay: Duration,
    pub(crate) draw: u64,
}

/// Returns the delay before retry number `retry` (0 is the first): the provider's guidance or full jitter, whichever is
/// longer. Full jitter is uniform in `0..=min(CAP, BASE * 2^retry)` (Brooker 2015); guidance is never shortened.
pub(crate) fn backoff(retry: u32, guidance: Option<Duration>, random: &dyn Random) -> Backoff {
    let ceiling = BASE.saturating_mul(1_u32.checked_shl(retry.min(10)).unwrap_or(u32::MAX)).min(CAP);
    let micros = u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX);
    let draw = random.below(micros.saturating_add(1));
    Backoff { delay: Duration::from_micros(draw).max(guidance.unwrap_or_default()), draw }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::SeededRandom;

    use super::{BASE, CAP, backoff};

    #[test]
    fn jitter_stays_below_the_doubling_ceiling() {
        let random = SeededRandom::new(1);
        for retry in 0..20 {
            let ceiling = BASE.saturating_mul(1 << retry.min(10)).min(CAP);
            assert!((0..100).all(|_| backoff(retry, None, &random).delay <= ceiling));
        }
    }

    #[test]
    fn guidance_is_never_shortened() {
        let random = SeededRandom::new(1);
        let guidance = Duration::from_secs(60);
        assert_eq!(backoff(0, Some(guidance), &random).delay, guidance);
    }
}
