//! Exact confidence bounds on a share (Clopper and Pearson 1934).

/// Halvings of the interval: more than the digits of a double.
const HALVINGS: u32 = 60;

/// Returns the largest share that is compatible with `wrong` of `all` at a risk of `risk`: the one-sided upper
/// Clopper-Pearson bound. 1 where nothing was seen or everything was wrong.
///
/// The share is the root of P(X <= wrong) = risk for X binomial; found by halving, in O(wrong) for each step.
pub fn share_upper(wrong: u32, all: u32, risk: f64) -> f64 {
    if wrong >= all {
        return 1.0;
    }
    let (mut low, mut high) = (f64::from(wrong) / f64::from(all), 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most(wrong, all, middle) > risk { low = middle } else { high = middle }
    }
    high
}

/// Returns the smallest share that is compatible with `wrong` of `all` at a risk of `risk`.
pub fn share_lower(wrong: u32, all: u32, risk: f64) -> f64 {
    if wrong == 0 { 0.0 } else { 1.0 - share_upper(all.saturating_sub(wrong), all, risk) }
}

/// Returns the fewest tries without a wrong one whose upper bound is at most the share.
pub(crate) fn fewest(share: f64, risk: f64) -> u32 {
    let fewest = risk.ln() / (1.0 - share).ln();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and far below 2^32"
    )]
    let fewest = fewest.ceil().clamp(1.0, 1e9) as u32;
    fewest
}

/// Returns P(X <= count) for X binomial, by the ratio of neighbouring terms, in logarithms against underflow.
fn at_most(count: u32, all: u32, share: f64) -> f64 {
    if share >= 1.0 {
        return 0.0;
    }
    let odds = (share / (1.0 - share)).ln();
    let mut term = f64::from(all) * (1.0 - share).ln();
    let mut sum = term.exp();
    for k in 0..count {
        term += odds + (f64::from(all - k) / f64::from(k + 1)).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{fewest, share_lower, share_upper};

    fn check(wrong: u32, all: u32, risk: f64, lower: f64, upper: f64) {
        let (low, high) = (share_lower(wrong, all, risk), share_upper(wrong, all, risk));
        assert!((low - lower).abs() < 5e-5 && (high - upper).abs() < 5e-5, "{wrong}/{all}: {low} {high}");
    }

    #[test]
    fn the_bounds_are_those_of_the_tables() {
        check(0, 10, 0.025, 0.0, 0.30850);
        check(1, 10, 0.025, 0.00253, 0.44502);
        check(5, 10, 0.025, 0.18709, 0.81291);
        check(10, 10, 0.025, 0.69150, 1.0);
        check(0, 29, 0.05, 0.0, 0.09815);
        check(3, 100, 0.05, 0.00823, 0.07571);
        check(0, 0, 0.05, 0.0, 1.0);
    }

    #[test]
    fn the_fewest_tries_are_those_whose_bound_reaches_the_share() {
        for (share, expected) in [(0.10, 29), (0.05, 59), (0.01, 299)] {
            assert_eq!(fewest(share, 0.05), expected);
            assert!(share_upper(0, expected, 0.05) <= share && share_upper(0, expected - 1, 0.05) > share);
        }
    }
}
