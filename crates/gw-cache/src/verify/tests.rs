//! The verifier, step by step.

use gw_types::{Random, SeededRandom};

use super::{Decision, Verdict, Verifier, VerifierConfig, VerifierState, Why, share_upper};
use crate::Features;

/// A stream of would-be hits whose answers are right with a chance that grows with the similarity.
struct World {
    verifier: Verifier,
    random: SeededRandom,
    served: u32,
    served_wrong: u32,
}

impl World {
    fn new(config: VerifierConfig, seed: u64) -> Self {
        let verifier = Verifier::new(config);
        Self { verifier, random: SeededRandom::new(seed), served: 0, served_wrong: 0 }
    }

    fn step(&mut self, wrong_milli: impl Fn(u64) -> u64) -> Decision {
        let nearest = self.random.below(1_000);
        let right = self.random.below(1_000) >= wrong_milli(nearest);
        let features = Features { nearest: nearest as f32 / 1_000.0, ..Features::default() };
        let decision = self.verifier.decide(&features, self.random.next_u64());
        if decision.verdict == Verdict::Serve {
            self.served += 1;
            self.served_wrong += u32::from(!right);
        }
        if let Some(sample) = &decision.sample {
            self.verifier.label(sample, right);
        }
        decision
    }

    fn run(&mut self, steps: u32, wrong_milli: impl Fn(u64) -> u64 + Copy) {
        for _ in 0..steps {
            self.step(wrong_milli);
        }
    }

    fn run_while(&mut self, goes_on: impl Fn(&Self) -> bool) {
        for _ in 0..2_000 {
            if !goes_on(self) {
                break;
            }
            self.step(|_| 1_000);
        }
    }

    fn state(&self) -> (VerifierState, Why) {
        let report = self.verifier.report();
        (report.state, report.why)
    }
}

/// Wrong half the time below 700 and almost never above.
fn world(nearest: u64) -> u64 {
    if nearest < 700 { 500 } else { 20 }
}

#[test]
fn it_goes_from_shadow_to_serving_to_off_and_learns_anew() {
    let config = VerifierConfig { off_decisions: 50, ..VerifierConfig::default() };
    let mut run = World::new(config, 1);
    assert_eq!(run.state(), (VerifierState::Shadow, Why::TooFewLabels));
    run.run(150, world);
    assert_eq!((run.served, run.state()), (0, (VerifierState::Shadow, Why::TooFewLabels)));
    run.run(3_000, world);
    assert_eq!(run.state(), (VerifierState::Serving, Why::BoundHolds));
    let report = run.verifier.report();
    assert!(report.wrong_milli_upper.unwrap() <= 100 && report.tested >= 87 && report.explored > 10);
    assert!(run.served > 400 && f64::from(run.served_wrong) / f64::from(run.served) < 0.1);
    // The judge turns hostile.
    let before = run.served;
    run.run_while(|world| world.state().0 == VerifierState::Serving);
    assert_eq!(run.state(), (VerifierState::Off, Why::Drift));
    assert!(run.served - before < 200);
    for _ in 0..50 {
        assert_eq!(run.step(world), Decision { verdict: Verdict::Off, sample: None });
    }
    assert_eq!(run.state(), (VerifierState::Shadow, Why::TooFewLabels));
    run.run(3_000, world);
    assert_eq!(run.state().0, VerifierState::Serving);
}

#[test]
fn it_serves_nothing_where_no_threshold_keeps_the_bound() {
    let mut hopeless = World::new(VerifierConfig::default(), 2);
    hopeless.run(3_000, |_| 300);
    assert_eq!((hopeless.served, hopeless.state()), (0, (VerifierState::Shadow, Why::BoundFails)));
    let nothing = VerifierConfig { wrong_milli_max: 0, ..VerifierConfig::default() };
    let mut strict = World::new(nothing, 3);
    strict.run(1_000, |_| 0);
    assert_eq!(strict.served, 0);
}

#[test]
fn the_bound_holds_in_nearly_every_run() {
    // The true share above the lowest threshold is what is promised, not the one that happened to be served.
    let failures = (0..20_u64)
        .filter(|seed| {
            let mut run = World::new(VerifierConfig::default(), 100 + seed);
            run.run(1_500, |nearest| if nearest < 800 { 400 } else { 60 });
            run.served > 30 && share_upper(run.served_wrong, run.served, 0.5) > 0.1 + 0.05
        })
        .count();
    assert!(failures <= 3, "{failures} of 20");
}

#[test]
fn a_share_of_what_could_be_served_is_explored() {
    let config =
        VerifierConfig { explore_milli: 250, explore_settled_milli: 250, ..VerifierConfig::default() };
    let mut run = World::new(config, 4);
    run.run(1_000, |_| 0);
    let (mut explored, mut served) = (0, 0);
    for _ in 0..2_000 {
        match run.step(|_| 0).verdict {
            Verdict::Explore => explored += 1,
            Verdict::Serve => served += 1,
            Verdict::Shadow | Verdict::Off => {}
        }
    }
    let share = f64::from(explored) / f64::from(explored + served);
    assert!((0.2..0.3).contains(&share), "{share}");
}

#[test]
fn labels_age() {
    let config = VerifierConfig { window_labels: 300, ..VerifierConfig::default() };
    let mut run = World::new(config, 5);
    run.run(2_000, |_| 0);
    assert_eq!((run.verifier.fitting.len(), run.verifier.testing.len()), (150, 150));
    assert_eq!(run.state().0, VerifierState::Serving);
    // Old labels say that everything is right; the newest that nothing is.
    run.run(4_000, |_| 1_000);
    assert_ne!(run.state().0, VerifierState::Serving);
}

#[test]
fn i13_the_same_calls_give_the_same_decisions() {
    let decisions = |seed| {
        let mut run = World::new(VerifierConfig::default(), seed);
        (0..1_500).map(|_| run.step(world)).collect::<Vec<_>>()
    };
    assert_eq!(decisions(7), decisions(7));
}

#[test]
fn labels_of_an_earlier_life_are_forgotten() {
    let mut run = World::new(VerifierConfig { off_decisions: 1, ..VerifierConfig::default() }, 8);
    let Some(old) = run.step(world).sample else { panic!("no label is wanted") };
    run.run(2_000, world);
    run.run_while(|world| world.verifier.generation == 0);
    let labelled = run.verifier.report().labelled;
    run.verifier.label(&old, true);
    assert_eq!(run.verifier.report().labelled, labelled);
}
