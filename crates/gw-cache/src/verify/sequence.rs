//! The test that finds a threshold: a fixed sequence of growing prefixes.

use super::bound::{fewest, share_upper};

/// A threshold that passed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Passed {
    /// The least score of a hit.
    pub(super) threshold: f64,
    /// Test labels at or above it.
    pub(super) labels: u32,
    /// Wrong ones among them.
    pub(super) wrong: u32,
    /// The upper bound of the share of wrong ones.
    pub(super) upper: f64,
}

/// How many times the fewest labels that can pass the first prefix has.
///
/// At the fewest one wrong label closes the tier, however good the rest is; at three times as many four wrong ones may
/// be among 87 (target 10 %). The first size is as fixed before the labels are seen as any other, so the error of the
/// test is the same.
const FIRST_SIZES: usize = 3;

/// Returns the size of the first prefix.
pub(super) fn first(target: f64, risk: f64) -> usize {
    if target <= 0.0 {
        return usize::MAX;
    }
    usize::try_from(fewest(target, risk)).unwrap_or(usize::MAX).saturating_mul(FIRST_SIZES)
}

/// Sorts test labels by falling score and lowers the threshold while the bound holds; `None` if the first prefix fails
/// or there are too few labels for it.
pub(super) fn test(mut scored: Vec<(f64, bool)>, target: f64, risk: f64) -> Option<Passed> {
    // Of equal scores the wrong ones first: no threshold could tell them apart, and none may profit from it.
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut size = first(target, risk);
    let mut passed = None;
    while size <= scored.len() {
        // All of a score are in or out.
        let threshold = scored[size - 1].0;
        let whole = scored.iter().take_while(|(score, _)| *score >= threshold);
        let (labels, wrong) = whole.fold((0_u32, 0_u32), |(all, wrong), (_, right)| {
            (all.saturating_add(1), wrong.saturating_add(u32::from(!right)))
        });
        let upper = share_upper(wrong, labels, risk);
        if upper > target {
            break;
        }
        passed = Some(Passed { threshold, labels, wrong, upper });
        let taken = usize::try_from(labels).unwrap_or(usize::MAX);
        size = taken.max(size).saturating_add((size / 10).max(1));
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::{Passed, first, test};

    fn labels(rights: impl Iterator<Item = bool>) -> Vec<(f64, bool)> {
        rights.zip(0_u32..).map(|(right, n)| (1.0 - f64::from(n) / 10_000.0, right)).collect()
    }

    #[test]
    fn the_first_failure_ends_the_sequence() {
        let size = first(0.1, 0.05);
        assert_eq!(test(labels((0..size - 1).map(|_| true)), 0.1, 0.05), None);
        let all_right = test(labels((0..500).map(|_| true)), 0.1, 0.05).unwrap();
        assert!(all_right.labels > 400 && all_right.wrong == 0);
        // A hundred right ones, then only wrong ones: the threshold stays where the bound still held.
        let turned = test(labels((0..500).map(|n| n < 100)), 0.1, 0.05).unwrap();
        assert!((87..110).contains(&turned.labels) && turned.upper <= 0.1, "{turned:?}");
        // Too many wrong ones at the top: what comes after does not count.
        assert_eq!(test(labels((0..2_000).map(|n| n > 20)), 0.1, 0.05), None);
        assert_eq!(test(labels((0..500).map(|_| true)), 0.0, 0.05), None);
    }

    #[test]
    fn equal_scores_stand_or_fall_together() {
        let mut scored = vec![(0.9, true); 200];
        scored.extend(vec![(0.9, false); 30]);
        assert_eq!(test(scored, 0.1, 0.05), None);
        let Some(Passed { labels, threshold, .. }) = test(vec![(0.9, true); 200], 0.1, 0.05) else {
            panic!("nothing passed")
        };
        assert_eq!((labels, threshold), (200, 0.9));
    }
}
