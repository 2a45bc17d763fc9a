//! The share of the deadline that one attempt gets.

use std::time::Duration;

use gw_types::DeploymentTiming;

/// Added to the expected latency of every candidate that is left time for: connecting and gw's own work.
const MARGIN: Duration = Duration::from_millis(10);

/// Returns how long an attempt may take so that the candidates after it can still be tried.
///
/// The attempt leaves the sum of their expected latencies and a margin each. Where that leaves less than its own
/// minimum and expected latency, candidates are given up from the end of the chain. Never longer than `remaining`.
pub(crate) fn attempt_timeout<'a>(
    own: &DeploymentTiming,
    remaining: Duration,
    others: impl Iterator<Item = &'a DeploymentTiming>,
) -> Duration {
    let own_need = own.min_attempt.max(own.expected_latency);
    let mut left = remaining;
    for other in others {
        let need = other.expected_latency.max(other.min_attempt).saturating_add(MARGIN);
        match left.checked_sub(need) {
            Some(rest) if rest >= own_need => left = rest,
            Some(_) | None => break,
        }
    }
    left.min(own.attempt_timeout)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::DeploymentTiming;

    use super::attempt_timeout;

    fn timing(expected_ms: u64, ceiling_ms: u64) -> DeploymentTiming {
        DeploymentTiming {
            expected_latency: Duration::from_millis(expected_ms),
            min_attempt: Duration::from_millis(100),
            attempt_timeout: Duration::from_millis(ceiling_ms),
            ..DeploymentTiming::default()
        }
    }

    fn check(remaining_ms: u64, own: (u64, u64), others: &[u64], expected_ms: u64) {
        let others: Vec<DeploymentTiming> = others.iter().map(|ms| timing(*ms, 60_000)).collect();
        let got = attempt_timeout(&timing(own.0, own.1), Duration::from_millis(remaining_ms), others.iter());
        assert_eq!(got, Duration::from_millis(expected_ms));
    }

    #[test]
    fn alone_it_gets_what_is_left_up_to_its_ceiling() {
        check(3_000, (900, 60_000), &[], 3_000);
        check(3_000, (900, 1_000), &[], 1_000);
    }

    #[test]
    fn three_hanging_targets_all_fit_into_one_deadline() {
        check(3_000, (900, 60_000), &[900, 900], 1_180);
        check(1_820, (900, 60_000), &[900], 910);
        check(910, (900, 60_000), &[], 910);
    }

    #[test]
    fn candidates_are_given_up_from_the_end() {
        check(2_000, (900, 60_000), &[900, 900], 1_090);
        check(1_000, (900, 60_000), &[900, 900], 1_000);
    }
}
