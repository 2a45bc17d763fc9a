//! What is learnt, from how many answers, and how well it covers.

use gw_types::{
    DeploymentName, Random, RouteName, SeededRandom, TaskClass, TenantId, TextClasses, TokenCount,
};

use super::{Estimator, InputEstimate, MilliTokens, Vocabulary};

fn tokens(n: u64) -> TokenCount {
    TokenCount::new(n)
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn deployment() -> DeploymentName {
    DeploymentName::new("d").unwrap()
}

fn route(name: &str) -> RouteName {
    RouteName::new(name).unwrap()
}

const BOUND: TokenCount = TokenCount::new(1_000);

fn estimate(estimator: &Estimator, name: &str, raw: u64) -> InputEstimate {
    estimator.input_estimate(Some(&deployment()), &tenant(name), MilliTokens::new(raw), BOUND)
}

fn learn(estimator: &Estimator, name: &str, raw: u64, actual: u64, times: usize) {
    for _ in 0..times {
        estimator.observe_input(Some(&deployment()), &tenant(name), MilliTokens::new(raw), tokens(actual));
    }
}

#[test]
fn calibration_takes_fifty_answers_and_then_is_exact_for_what_repeats() {
    let estimator = Estimator::new();
    // A short prompt in a template of 7 tokens, of which its provider makes 10.
    let raw = Vocabulary::O200k.tokens(&TextClasses::of("one two three")).plus(tokens(7)).get();
    let cold = estimate(&estimator, "a", raw);
    assert_eq!((cold.likely, cold.high, cold.calibrated), (tokens(11), tokens(11), false));
    learn(&estimator, "a", raw, 10, 49);
    assert!(!estimate(&estimator, "a", raw).calibrated);
    learn(&estimator, "a", raw, 10, 1);
    let warm = InputEstimate { likely: tokens(10), high: tokens(10), calibrated: true };
    assert_eq!(estimate(&estimator, "a", raw), warm);
    // A tenant that nobody knows yet gets what the deployment has shown.
    assert_eq!(estimate(&estimator, "b", raw), warm);
    learn(&estimator, "b", raw, 20, 50);
    assert_eq!(estimate(&estimator, "b", raw).likely, tokens(20));
    assert_eq!(estimate(&estimator, "a", raw), warm);
    assert_eq!(estimator.accuracy().inputs, 100);
}

#[test]
fn the_high_estimate_covers_what_varies_and_stays_below_the_bound() {
    let (estimator, random) = (Estimator::new(), SeededRandom::new(3));
    for _ in 0..5_000 {
        learn(&estimator, "a", 10_000, 10 + random.next_u64() % 11, 1);
    }
    let read = estimate(&estimator, "a", 10_000);
    assert!((tokens(14)..=tokens(16)).contains(&read.likely), "{read:?}");
    assert!((tokens(19)..=tokens(20)).contains(&read.high), "{read:?}");
    assert_eq!(estimate(&estimator, "a", 5_000_000).high, BOUND);
    assert_eq!(estimate(&estimator, "a", 0).likely, tokens(1));
    let accuracy = estimator.accuracy();
    assert!(accuracy.inputs_covered * 100 >= accuracy.inputs * 95, "{accuracy:?}");
}

#[test]
fn absurd_reports_teach_nothing() {
    let estimator = Estimator::new();
    learn(&estimator, "a", 10_000, 0, 60);
    learn(&estimator, "a", 10_000, 10_000_000, 60);
    learn(&estimator, "a", 0, 10, 60);
    learn(&estimator, "a", 10_000, u64::MAX, 60);
    assert!(!estimate(&estimator, "a", 10_000).calibrated);
}

#[test]
fn lengths_fall_back_from_cell_to_route_to_everything() {
    let estimator = Estimator::new();
    let chat = TaskClass::new("chat").unwrap();
    let read =
        |name: &str, way: &str| estimator.reserve_quantile(&tenant(name), Some(&route(way)), Some(&chat));
    let learn = |name: &str, way: &str, length: u64, times: usize| {
        for _ in 0..times {
            estimator.observe_output(&tenant(name), &route(way), Some(&chat), tokens(length));
        }
    };
    assert_eq!(read("a", "r"), None);
    learn("a", "r", 5, 29);
    assert_eq!(read("a", "r"), None);
    learn("a", "r", 5, 1);
    assert_eq!(
        (read("a", "r"), read("b", "r"), read("b", "s")),
        (Some(tokens(5)), Some(tokens(5)), Some(tokens(5)))
    );
    learn("b", "s", 80, 200);
    assert_eq!(
        (read("a", "r"), read("c", "r"), read("c", "s")),
        (Some(tokens(5)), Some(tokens(5)), Some(tokens(80)))
    );
}

#[test]
fn nine_of_ten_answers_are_covered() {
    let (estimator, random) = (Estimator::new(), SeededRandom::new(11));
    let (who, way) = (tenant("a"), route("r"));
    // Log-normal by the sum of twelve uniform values: lengths with a long tail.
    let length = || {
        let sum: u64 = (0..12).map(|_| random.next_u64() % 1_000).sum();
        ((super::as_float(sum) - 5_994.0) / 1_000.0 * 0.8 + 5.0).exp().round()
    };
    for _ in 0..1_030 {
        estimator.observe_output(&who, &way, None, tokens(super::to_integer(length())));
    }
    let read = estimator.accuracy();
    assert_eq!(read.outputs, 1_000);
    assert!((880..=920).contains(&read.outputs_covered), "{read:?}");
}

#[test]
fn output_bytes_are_learnt_by_deployment() {
    let estimator = Estimator::new();
    assert_eq!(estimator.output_estimate(&deployment(), 401), tokens(101));
    for _ in 0..50 {
        estimator.observe_output_bytes(&deployment(), 300, tokens(100));
    }
    assert_eq!(estimator.output_estimate(&deployment(), 300), tokens(100));
    assert_eq!(estimator.output_estimate(&deployment(), 0), TokenCount::ZERO);
}

#[test]
fn what_holds_of_no_deployment_is_learnt_apart() {
    let estimator = Estimator::new();
    for _ in 0..50 {
        estimator.observe_input(None, &tenant("a"), MilliTokens::new(10_000), tokens(30));
    }
    let read =
        |deployment| estimator.input_estimate(deployment, &tenant("a"), MilliTokens::new(10_000), BOUND);
    assert_eq!((read(None).likely, read(Some(&deployment())).likely), (tokens(30), tokens(10)));
    // Only estimates for a deployment can be right or wrong.
    assert_eq!(estimator.accuracy().inputs, 0);
    for _ in 0..30 {
        estimator.observe_output(&tenant("a"), &route("r"), None, tokens(7));
    }
    assert_eq!(estimator.reserve_quantile(&tenant("b"), None, None), Some(tokens(7)));
}

#[test]
fn a_scale_counts_without_the_estimator() {
    let estimator = Estimator::new();
    let cold = estimator.output_scale(&deployment());
    assert_eq!(
        (cold.tokens(401), cold.tokens_at_least(401), cold.noise_quarters()),
        (tokens(101), tokens(50), 8)
    );
    for _ in 0..50 {
        estimator.observe_output_bytes(&deployment(), 600, tokens(100));
    }
    let warm = estimator.output_scale(&deployment());
    assert_eq!(
        (warm.tokens(600), warm.tokens_at_least(600), warm.noise_quarters()),
        (tokens(100), tokens(50), 5)
    );
    assert!(warm.tokens(u64::MAX) < tokens(u64::MAX));
}
