//! Notices that answers have become worse: CUSUM on the explored share (Page 1954).

/// Adds up evidence that the share of wrong answers is three times the target, and not the target.
///
/// Each label adds the logarithm of the likelihood ratio; the sum never goes below 0, so that a good past does not
/// hide a bad present. At a target of 10 % four wrong answers in a row are enough, and one in ten never is.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    wrong: f64,
    right: f64,
    sum: f64,
}

impl Drift {
    /// The sum that counts as drift: odds of about 55 to 1.
    const LIMIT: f64 = 4.0;
    /// How much worse than the target is drift.
    const FACTOR: f64 = 3.0;
    /// The share that drift means, at most.
    const SHARE_MAX: f64 = 0.6;

    pub(super) fn new(target: f64) -> Self {
        let worse = (target * Self::FACTOR).clamp(target, Self::SHARE_MAX.max(target));
        Self { wrong: (worse / target).ln(), right: ((1.0 - worse) / (1.0 - target)).ln(), sum: 0.0 }
    }

    /// Takes a label; returns whether answers have drifted.
    pub(super) fn label(&mut self, right: bool) -> bool {
        self.sum = (self.sum + if right { self.right } else { self.wrong }).max(0.0);
        self.sum >= Self::LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::Drift;

    fn labels_to_drift(target: f64, right: impl Fn(u32) -> bool) -> Option<u32> {
        let mut drift = Drift::new(target);
        (1..=2_000).find(|&n| drift.label(right(n)))
    }

    #[test]
    fn a_turn_is_noticed_within_a_few_labels_and_the_target_never() {
        assert_eq!(labels_to_drift(0.1, |_| false), Some(4));
        assert_eq!(labels_to_drift(0.1, |n| n % 10 != 0), None);
        assert_eq!(labels_to_drift(0.05, |_| false), Some(4));
        assert!(
            labels_to_drift(0.1, |n| n < 1_000 || n % 2 == 0).is_some_and(|n| (1_001..1_030).contains(&n))
        );
    }
}
