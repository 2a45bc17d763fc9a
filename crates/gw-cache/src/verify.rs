//! Verified decisions: a similar answer is served only while a measured bound on wrong answers per hit holds.
//!
//! A threshold on similarity says nothing of how often a hit is wrong. Here every would-be hit is first only judged
//! (shadow: the model answers, and somebody says whether the stored answer would have been right). From the labels a
//! `Verifier` learns a score and finds the lowest threshold for which the share of wrong answers among hits is below
//! the target with the confidence that was asked for; then it serves above it, and goes on sending a share of the
//! would-be hits to the model, so that the labels stay fresh and a change is noticed. `EntryVerifier` is the other
//! policy: one decision an entry, which bounds wrong answers among ALL requests; see there why that is less.
//!
//! Both are pure: no clock, no chance of their own. The same calls give the same decisions.
//!
//! ```
//! use gw_cache::{Features, verify::{Verdict, Verifier, VerifierConfig, VerifierState}};
//!
//! let mut verifier = Verifier::new(VerifierConfig::default());
//! let near = Features { nearest: 0.95, ..Features::default() };
//! // Nothing is served before it was judged often enough.
//! for draw in 0..600 {
//!     let decision = verifier.decide(&near, draw << 54);
//!     if let Some(sample) = decision.sample {
//!         verifier.label(&sample, true);
//!     }
//! }
//! assert_eq!(verifier.report().state, VerifierState::Serving);
//! assert_eq!(verifier.decide(&near, u64::MAX).verdict, Verdict::Serve);
//! ```

mod bound;
mod drift;
mod entry;
mod logistic;
mod report;
mod sequence;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::{drift::Drift, logistic::Logistic, sequence::Passed};
use crate::Features;

pub use self::{
    bound::{share_lower, share_upper},
    entry::{EntryVerifier, EntryVerifierConfig},
    report::{VerifierReport, VerifierState, Why},
};

/// What a verifier promises, and how it learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifierConfig {
    /// The most wrong answers among a thousand hits. Default 100. 0 serves nothing.
    pub wrong_milli_max: u32,
    /// The confidence of that bound, in thousandths. Default 950.
    pub confidence_milli: u32,
    /// Would-be hits of a thousand that go to the model all the same, for labels. Default 100.
    pub explore_milli: u32,
    /// The same once [`Verifier::SETTLED_LABELS`] such labels have come without drift. Default 20.
    pub explore_settled_milli: u32,
    /// Labels between two fits. Default 100.
    pub refit_labels: u32,
    /// Labels that are remembered, half of them for the fit and half for the test; the oldest of a half goes first.
    /// Default 2,000.
    pub window_labels: usize,
    /// Would-be hits for which the tier stays off after a drift; then everything is learnt anew. Default 2,000.
    pub off_decisions: u32,
}

impl Default for VerifierConfig {
    fn default() -> Self {
        Self {
            wrong_milli_max: 100,
            confidence_milli: 950,
            explore_milli: 100,
            explore_settled_milli: 20,
            refit_labels: 100,
            window_labels: 2_000,
            off_decisions: 2_000,
        }
    }
}

impl VerifierConfig {
    fn target(&self) -> f64 {
        f64::from(self.wrong_milli_max.min(1_000)) / 1_000.0
    }

    fn risk(&self) -> f64 {
        1.0 - f64::from(self.confidence_milli.min(999)) / 1_000.0
    }
}

/// Says what to do with a would-be hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Give the stored answer.
    Serve,
    /// It could be served; ask the model instead, and label.
    Explore,
    /// Ask the model, and label.
    Shadow,
    /// Ask the model; no label is wanted.
    Off,
}

/// A verdict, and what its label is given with.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// To be given back with the label; `None` where none is wanted.
    pub sample: Option<Sample>,
}

/// A would-be hit that waits for its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: [f32; Features::COUNT],
    /// Whether it is for the test of the threshold, and not for the fit of the score.
    tests: bool,
    explored: bool,
    /// Labels from before a drift say nothing about after it.
    generation: u32,
}

/// Decides about the would-be hits of one partition by risk control on wrong answers per hit.
///
/// - Half of the labels fit a logistic score of the features, the others test it.
/// - The test is a fixed sequence: sorted by falling score, the first n, 1.1 n, 1.21 n, ... test labels; the threshold
///   is lowered as long as the upper Clopper-Pearson bound of the wrong ones is at most the target, and the first
///   failure ends it. As the sequence is fixed before the labels are seen, no correction for many tests is due.
/// - Every [`VerifierConfig::refit_labels`] labels score and test are made anew on the newest labels. Serving ends with
///   the first test that does not pass.
/// - Wrong answers in the explored share add up to evidence of drift (CUSUM); it switches the tier off at once.
///
/// What is promised: at a fit, with the confidence asked for, the share of wrong answers among would-be hits like those
/// labelled is at most the target. Three things can break it: would-be hits change (the reason for ageing, exploring
/// and the drift stop), each new fit is a new test (the confidence is per fit), and the judge errs (its own error adds).
///
/// Costs a few dozen multiplications a decision, and a few milliseconds a fit. Memory: 64 bytes a label.
#[derive(Clone, Debug)]
pub struct Verifier {
    config: VerifierConfig,
    state: VerifierState,
    why: Why,
    /// For the fit, oldest first.
    fitting: VecDeque<Labelled>,
    /// For the test, oldest first. While serving these come more slowly than the others; they have room of their own.
    testing: VecDeque<Labelled>,
    model: Logistic,
    passed: Option<Passed>,
    drift: Drift,
    since_fit: u32,
    off_left: u32,
    generation: u32,
    counts: Counts,
}

#[derive(Clone, Debug)]
struct Labelled {
    values: [f32; Features::COUNT],
    right: bool,
}

/// What was decided since the verifier began.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    misses: u64,
    candidates: u64,
    served: u64,
    labelled: u64,
    /// Of the present serving time.
    explored: u32,
    explored_wrong: u32,
}

impl Verifier {
    /// Explored labels after which the smaller share is explored.
    pub const SETTLED_LABELS: u32 = 100;

    /// Returns a verifier that knows nothing, in the state shadow.
    pub fn new(config: VerifierConfig) -> Self {
        Self {
            config,
            state: VerifierState::Shadow,
            why: Why::TooFewLabels,
            fitting: VecDeque::new(),
            testing: VecDeque::new(),
            model: Logistic::unfitted(),
            passed: None,
            drift: Drift::new(config.target().max(0.001)),
            since_fit: 0,
            off_left: 0,
            generation: 0,
            counts: Counts::default(),
        }
    }

    /// Counts a request without a would-be hit, for the hit rate.
    pub fn miss(&mut self) {
        self.counts.misses += 1;
    }

    /// Decides about a would-be hit. The draw is 64 random bits.
    pub fn decide(&mut self, features: &Features, draw: u64) -> Decision {
        self.counts.candidates += 1;
        let values = features.values();
        // Two draws from one: the halves of the bits are independent.
        let [explores, tests] = [draw >> 32, draw & 0xffff_ffff];
        let below = |half: u64, milli: u32| half * 1_000 < u64::from(milli) << 32;
        let tests_half = below(tests, Self::TEST_MILLI);
        let sample = |tests: bool, explored: bool| {
            Some(Sample { values, tests, explored, generation: self.generation })
        };
        match (self.state, &self.passed) {
            (VerifierState::Off, _) => {
                self.off_left = self.off_left.saturating_sub(1);
                if self.off_left == 0 {
                    (self.state, self.why) = (VerifierState::Shadow, Why::TooFewLabels);
                }
                Decision { verdict: Verdict::Off, sample: None }
            }
            (VerifierState::Serving, Some(passed)) => {
                let explores = below(explores, self.explore_milli());
                if self.model.score(&values) < passed.threshold {
                    // Served hits have labels for the explored share only; so have the others in the test, or the
                    // test would see another mixture than what is served.
                    Decision { verdict: Verdict::Shadow, sample: sample(tests_half && explores, false) }
                } else if explores {
                    Decision { verdict: Verdict::Explore, sample: sample(tests_half, true) }
                } else {
                    self.counts.served += 1;
                    Decision { verdict: Verdict::Serve, sample: None }
                }
            }
            (VerifierState::Shadow | VerifierState::Serving, _) => {
                Decision { verdict: Verdict::Shadow, sample: sample(tests_half, false) }
            }
        }
    }

    /// Returns the sample of a hit that was served, for a label that nobody asked for. It counts as an explored one: who
    /// speaks up about served answers speaks up about wrong ones first, so it can close the tier sooner, never later.
    pub fn served(&self, features: &Features, draw: u64) -> Sample {
        let tests = (draw & 0xffff_ffff) * 1_000 < u64::from(Self::TEST_MILLI) << 32;
        Sample { values: features.values(), tests, explored: true, generation: self.generation }
    }

    /// Test labels of a thousand.
    const TEST_MILLI: u32 = 500;

    /// Takes the label of a sample: whether the stored answer was right for the question.
    pub fn label(&mut self, sample: &Sample, right: bool) {
        if sample.generation != self.generation || self.state == VerifierState::Off {
            return;
        }
        self.counts.labelled += 1;
        let labels = if sample.tests { &mut self.testing } else { &mut self.fitting };
        labels.push_back(Labelled { values: sample.values, right });
        if labels.len() > self.config.window_labels / 2 {
            labels.pop_front();
        }
        if sample.explored && self.state == VerifierState::Serving {
            self.counts.explored = self.counts.explored.saturating_add(1);
            self.counts.explored_wrong = self.counts.explored_wrong.saturating_add(u32::from(!right));
            if self.drift.label(right) {
                self.switch_off();
                return;
            }
        }
        self.since_fit += 1;
        if self.since_fit >= self.config.refit_labels {
            self.fit();
        }
    }

    /// Returns what is known, for the report.
    pub fn report(&self) -> VerifierReport {
        let Counts { misses, candidates, served, labelled, explored, explored_wrong } = self.counts;
        let milli = |share: f64| report::milli(share);
        VerifierReport {
            state: self.state,
            why: self.why,
            lookups: misses + candidates,
            candidates,
            served,
            labelled,
            tested: self.passed.as_ref().map_or(0, |passed| passed.labels),
            tested_wrong: self.passed.as_ref().map_or(0, |passed| passed.wrong),
            wrong_milli_upper: self.passed.as_ref().map(|passed| milli(passed.upper)),
            threshold_milli: self.passed.as_ref().map(|passed| milli(passed.threshold)),
            explored,
            explored_wrong,
            explored_wrong_milli_upper: milli(share_upper(explored_wrong, explored, self.config.risk())),
        }
    }

    fn explore_milli(&self) -> u32 {
        let settled = self.counts.explored >= Self::SETTLED_LABELS;
        if settled { self.config.explore_settled_milli } else { self.config.explore_milli }
    }

    // ## Serving => Off
    fn switch_off(&mut self) {
        (self.state, self.why) = (VerifierState::Off, Why::Drift);
        self.fitting.clear();
        self.testing.clear();
        self.passed = None;
        self.model = Logistic::unfitted();
        self.since_fit = 0;
        self.off_left = self.config.off_decisions.max(1);
        self.generation = self.generation.wrapping_add(1);
    }

    // ## Shadow => (Shadow | Serving), Serving => (Shadow | Serving)
    fn fit(&mut self) {
        self.since_fit = 0;
        self.model = Logistic::fit(&self.fitting.iter().map(|label| (&label.values, label.right)));
        let testing = self.testing.iter();
        let scored = testing.map(|label| (self.model.score(&label.values), label.right)).collect();
        let (target, risk) = (self.config.target(), self.config.risk());
        let was_serving = self.state == VerifierState::Serving;
        self.passed = sequence::test(scored, target, risk);
        (self.state, self.why) = match &self.passed {
            Some(_) => (VerifierState::Serving, Why::BoundHolds),
            None if self.testing.len() < sequence::first(target, risk) => {
                (VerifierState::Shadow, Why::TooFewLabels)
            }
            None => (VerifierState::Shadow, Why::BoundFails),
        };
        if !was_serving && self.state == VerifierState::Serving {
            self.drift = Drift::new(target.max(0.001));
            (self.counts.explored, self.counts.explored_wrong) = (0, 0);
        }
    }
}
