//! The other policy: one decision an entry, after vCache (ICLR'26).

use std::collections::{HashMap, VecDeque};

use super::Verdict;

/// What an [`EntryVerifier`] promises, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryVerifierConfig {
    /// The most wrong answers among a thousand requests, hits and misses together. Default 10.
    pub wrong_milli_max: u32,
    /// Entries that are remembered; the oldest goes first. Default 50,000.
    pub entries_max: usize,
    /// Labels of an entry that are remembered; the oldest goes first. Default 64.
    pub entry_labels_max: usize,
}

impl Default for EntryVerifierConfig {
    fn default() -> Self {
        Self { wrong_milli_max: 10, entries_max: 50_000, entry_labels_max: 64 }
    }
}

/// Decides about would-be hits by what is known of their entry alone (policy A, after vCache).
///
/// Each entry keeps pairs of similarity and rightness, beginning with (0, wrong) and (1, right), and explores until it
/// has four real ones. Then a logistic curve through them gives the chance that the answer is right, and the uncertainty
/// of its middle point the chance with which the would-be hit is explored nevertheless.
///
/// Its bound is on wrong answers among ALL requests, where every miss counts as right: with few hits, a bound of 1 %
/// allows most hits to be wrong. Use [`super::Verifier`] unless that is what is wanted.
#[derive(Clone, Debug)]
pub struct EntryVerifier {
    config: EntryVerifierConfig,
    entries: HashMap<u64, VecDeque<(f64, bool)>, crate::key::DigestState>,
    order: VecDeque<u64>,
}

/// A logistic curve over the similarity, and how sure its middle is.
struct Curve {
    slope: f64,
    middle: f64,
    deviation: f64,
}

impl EntryVerifier {
    /// Labels below which an entry always explores, the two that it begins with included.
    const LABELS_MIN: usize = 6;
    /// Risks at which the middle is tried.
    const GRID: u32 = 50;
    /// The penalty on the slope's square: separated labels would drive it to infinity.
    const RIDGE: f64 = 0.01;
    const STEPS: usize = 25;

    /// Returns a verifier that knows no entry.
    pub fn new(config: EntryVerifierConfig) -> Self {
        Self { config, entries: HashMap::default(), order: VecDeque::new() }
    }

    /// Decides about a would-be hit of an entry at a similarity in thousandths. The draw is 64 random bits.
    pub fn decide(&self, entry: u64, score_milli: u32, draw: u64) -> Verdict {
        let Some(labels) = self.entries.get(&entry) else { return Verdict::Explore };
        if labels.len() + 2 < Self::LABELS_MIN {
            return Verdict::Explore;
        }
        #[expect(clippy::cast_precision_loss, reason = "53 bits of chance are enough")]
        let draw = (draw >> 11) as f64 / (1_u64 << 53) as f64;
        if draw < self.explore_chance(labels, f64::from(score_milli) / 1_000.0) {
            Verdict::Explore
        } else {
            Verdict::Serve
        }
    }

    /// Takes the label of an explored would-be hit. Where it is wrong, the new answer wants an entry of its own.
    pub fn label(&mut self, entry: u64, score_milli: u32, right: bool) {
        if self.config.entries_max == 0 {
            return;
        }
        if !self.entries.contains_key(&entry) {
            if self.entries.len() >= self.config.entries_max
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
            }
            self.order.push_back(entry);
        }
        let labels = self.entries.entry(entry).or_default();
        labels.push_back((f64::from(score_milli.min(1_000)) / 1_000.0, right));
        if labels.len() > self.config.entry_labels_max {
            labels.pop_front();
        }
    }

    /// Returns how likely a would-be hit is explored: the least, over the grid of risks, that keeps the bound.
    fn explore_chance(&self, labels: &VecDeque<(f64, bool)>, score: f64) -> f64 {
        let curve = Curve::fit(labels);
        let delta = f64::from(self.config.wrong_milli_max) / 1_000.0;
        (1..=Self::GRID)
            .map(|step| {
                let risk = f64::from(step) / f64::from(Self::GRID + 1);
                let middle = (curve.middle + normal_quantile(1.0 - risk) * curve.deviation).clamp(0.0, 1.0);
                let right = (1.0 - risk) / (1.0 + (-curve.slope * (score - middle)).exp());
                1.0 - delta / (1.0 - right).max(1e-12)
            })
            .fold(1.0_f64, f64::min)
            .max(0.0)
    }
}

impl Curve {
    fn fit(labels: &VecDeque<(f64, bool)>) -> Self {
        let samples = || labels.iter().copied().chain([(0.0, false), (1.0, true)]);
        let (mut constant, mut slope) = (0.0_f64, 1.0_f64);
        let mut information = [0.0; 3];
        for _ in 0..EntryVerifier::STEPS {
            let mut gradient = [0.0, -EntryVerifier::RIDGE * slope];
            information = [1e-9, 0.0, EntryVerifier::RIDGE];
            for (score, right) in samples() {
                let chance = 1.0 / (1.0 + (-(constant + slope * score)).exp());
                let residual = f64::from(u8::from(right)) - chance;
                let weight = chance * (1.0 - chance);
                gradient = [gradient[0] + residual, gradient[1] + residual * score];
                information[0] += weight;
                information[1] += weight * score;
                information[2] += weight * score * score;
            }
            let [a, b, c] = information;
            let determinant = (a * c - b * b).max(1e-12);
            constant += (c * gradient[0] - b * gradient[1]) / determinant;
            slope += (a * gradient[1] - b * gradient[0]) / determinant;
        }
        let slope = slope.max(1e-3);
        let [a, b, c] = information;
        let determinant = (a * c - b * b).max(1e-12);
        // The delta method for the middle -constant/slope.
        let (by_constant, by_slope) = (-1.0 / slope, constant / (slope * slope));
        let variance = (by_constant * by_constant * c - 2.0 * by_constant * by_slope * b
            + by_slope * by_slope * a)
            / determinant;
        let real = samples().count();
        Self {
            slope,
            middle: (-constant / slope).clamp(0.0, 1.0),
            deviation: if separated(labels) { separated_variance(real) } else { variance.max(0.0) }.sqrt(),
        }
    }
}

/// Returns whether a similarity tells all right labels from all wrong ones.
fn separated(labels: &VecDeque<(f64, bool)>) -> bool {
    let of = |right: bool| labels.iter().filter(move |label| label.1 == right).map(|label| label.0);
    let highest_wrong = of(false).fold(0.0, f64::max);
    let lowest_right = of(true).fold(1.0, f64::min);
    highest_wrong < lowest_right
}

/// Returns the variance of the middle where the labels are separated and the delta method says nothing; the table is
/// vCache's, with lines between its points.
fn separated_variance(labels: usize) -> f64 {
    const TABLE: [(f64, f64); 5] =
        [(6.0, 0.0354), (10.0, 0.0194), (20.0, 0.0131), (30.0, 0.0080), (40.0, 0.0052)];
    let labels = f64::from(u32::try_from(labels).unwrap_or(u32::MAX));
    let after = TABLE.partition_point(|(count, _)| *count <= labels);
    match (after.checked_sub(1).map(|before| TABLE[before]), TABLE.get(after)) {
        (Some((from, low)), Some(&(to, high))) => low + (high - low) * (labels - from) / (to - from),
        (None, _) => TABLE[0].1,
        (Some((_, last)), None) => last,
    }
}

/// Returns the quantile of the normal distribution, to about 5e-4 (Abramowitz and Stegun 26.2.23).
fn normal_quantile(share: f64) -> f64 {
    let tail = share.min(1.0 - share).max(1e-12);
    let t = (-2.0 * tail.ln()).sqrt();
    let quantile = t
        - (2.515_517 + 0.802_853 * t + 0.010_328 * t * t)
            / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t);
    if share < 0.5 { -quantile } else { quantile }
}

#[cfg(test)]
mod tests {
    use super::{EntryVerifier, EntryVerifierConfig, Verdict, normal_quantile};

    #[test]
    fn an_entry_explores_until_it_is_known() {
        let config = EntryVerifierConfig { wrong_milli_max: 50, ..EntryVerifierConfig::default() };
        let mut verifier = EntryVerifier::new(config);
        for n in 0..40 {
            assert!(n >= 4 || verifier.decide(1, 950, u64::MAX) == Verdict::Explore);
            verifier.label(1, if n % 2 == 0 { 950 } else { 300 }, n % 2 == 0);
        }
        assert_eq!(verifier.decide(1, 980, u64::MAX), Verdict::Serve);
        assert_eq!(verifier.decide(1, 200, u64::MAX / 2), Verdict::Explore);
        assert_eq!(verifier.decide(2, 980, u64::MAX), Verdict::Explore);
        // However sure, some would-be hits are explored.
        assert_eq!(verifier.decide(1, 980, 0), Verdict::Explore);
    }

    #[test]
    fn entries_and_labels_are_bounded() {
        let config =
            EntryVerifierConfig { entries_max: 3, entry_labels_max: 5, ..EntryVerifierConfig::default() };
        let mut verifier = EntryVerifier::new(config);
        (0..100).for_each(|n| verifier.label(n % 10, 900, true));
        assert_eq!((verifier.entries.len(), verifier.order.len()), (3, 3));
        (0..100).for_each(|_| verifier.label(9, 900, true));
        assert_eq!(verifier.entries[&9].len(), 5);
    }

    #[test]
    fn the_quantile_is_that_of_the_tables() {
        for (share, expected) in [(0.5, 0.0), (0.975, 1.95996), (0.025, -1.95996), (0.99, 2.32635)] {
            assert!((normal_quantile(share) - expected).abs() < 1e-3, "{share}");
        }
    }
}
