//! The labelled pairs beside the workspace, through the real tier.

use std::path::Path;

use gw_cache::{
    BuiltInEmbedder, SemanticPolicy,
    evaluate::{Dataset, Decider, Figures, evaluate},
    verify::{Verdict, Verifier, VerifierConfig, VerifierState},
};
use gw_types::SeededRandom;

use crate::support::{must_run, ready, report_skip};

/// Returns the rows of a file, the first so many; none where the folder is absent, which is reported.
fn rows(file: &str, rows_max: usize) -> Option<Dataset> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/semantic-pairs");
    match std::fs::read_to_string(folder.join(file)) {
        Ok(text) => {
            let mut data = Dataset::read(&text).unwrap();
            data.steps.truncate(rows_max);
            Some(data)
        }
        Err(_) => {
            assert!(!must_run(), "the labelled pairs are absent");
            report_skip("the labelled pairs");
            None
        }
    }
}

fn replay(data: &Dataset, decider: &mut Decider) -> Figures {
    let random = SeededRandom::new(1);
    ready(evaluate(data, BuiltInEmbedder::Hashing.embedder(), decider, &random)).unwrap()
}

fn fixed(threshold_milli: u32) -> Decider {
    Decider::Fixed(SemanticPolicy { threshold_milli })
}

#[test]
fn traps_are_answered_wrongly_on_under_a_tenth_at_800_and_above() {
    let Some(pairs) = rows("question-pairs.dev.jsonl", 0) else { return };
    for threshold in [800, 900] {
        let figures = replay(&pairs, &mut fixed(threshold));
        assert!(figures.traps.all > 140 && figures.traps.share() < 0.05, "{threshold}: {:?}", figures.traps);
        assert!(threshold > 800 || figures.should_hit.share() > 0.28, "{:?}", figures.should_hit);
    }
}

#[test]
fn conversations_with_other_turns_never_meet() {
    for file in ["conversation-parts.dev.jsonl", "conversation-long.dev.jsonl"] {
        let Some(pairs) = rows(file, 0) else { return };
        let figures = replay(&pairs, &mut fixed(600));
        assert!(figures.traps.all >= 17 && figures.traps.share() < 0.02, "{:?}", figures.traps);
    }
}

#[test]
fn a_fixed_threshold_hits_and_counts() {
    let Some(stream) = rows("intent-stream.dev.jsonl", 400) else { return };
    let figures = replay(&stream, &mut fixed(700));
    assert_eq!((figures.hits.all, figures.hits.part + figures.stored), (400, 400));
    assert_eq!(figures.wrong.all, figures.hits.part);
    assert!(figures.hits.part > 15, "{:?}", figures.hits);
}

#[test]
fn a_verifier_begins_in_shadow_and_answers_no_trap_before_it_knows() {
    let Some(pairs) = rows("question-pairs.dev.jsonl", 0) else { return };
    let mut decider = Decider::Verified(Box::new(Verifier::new(VerifierConfig::default())));
    let figures = replay(&pairs, &mut decider);
    assert!(figures.traps.share() < 0.1, "{:?}", figures.traps);
    let report = figures.report.unwrap();
    assert!(report.labelled > 50 && report.candidates <= report.lookups, "{report:?}");
    let Decider::Verified(mut verifier) = decider else { panic!("another decider") };
    let decision = verifier.decide(&Default::default(), 0);
    assert!(report.state != VerifierState::Shadow || decision.verdict == Verdict::Shadow);
}
