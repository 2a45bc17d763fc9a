//! What the command line needs of the cache without a gateway: labelled questions through the real tier.

use gw_cache::{
    BuiltInEmbedder, SemanticPolicy,
    evaluate::{Dataset, Decider, Figures, evaluate},
    verify::{Verifier, VerifierConfig},
};
use gw_types::SeededRandom;

/// The thresholds that are tried, in thousandths.
const THRESHOLDS: [u32; 7] = [600, 650, 700, 750, 800, 850, 900];

/// Where the chance of exploration begins: the same rows give the same figures.
const SEED: u64 = 1;

/// What one way to decide made of labelled questions.
#[derive(Clone, Debug, serde::Serialize)]
pub struct EvaluatedCache {
    /// What decided: `threshold 0.80`, or `verified 10 %`.
    pub decided_by: String,
    /// What was counted.
    pub figures: Figures,
}

/// Replays labelled questions through the semantic tier, once for each of some thresholds and once under a verifier
/// with its defaults.
///
/// # Errors
/// The first line that is no row.
pub async fn evaluate_cache(lines: &str) -> Result<Vec<EvaluatedCache>, String> {
    let data = Dataset::read(lines).map_err(|bad| bad.to_string())?;
    let fixed = |threshold_milli: u32| {
        let name = format!("threshold {}.{:03}", threshold_milli / 1_000, threshold_milli % 1_000);
        (name, Decider::Fixed(SemanticPolicy { threshold_milli }))
    };
    let config = VerifierConfig::default();
    let bound = config.wrong_milli_max;
    let name = format!("verified {}.{} %", bound / 10, bound % 10);
    let verified = (name, Decider::Verified(Box::new(Verifier::new(config))));
    let mut evaluated = Vec::new();
    for (decided_by, mut decider) in THRESHOLDS.map(fixed).into_iter().chain([verified]) {
        let random = SeededRandom::new(SEED);
        let figures = evaluate(&data, BuiltInEmbedder::Hashing.embedder(), &mut decider, &random).await;
        let figures = figures.map_err(|error| error.to_string())?;
        evaluated.push(EvaluatedCache { decided_by, figures });
    }
    Ok(evaluated)
}
