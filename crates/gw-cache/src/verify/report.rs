//! What a verifier says of itself.

/// Says what a verifier does with would-be hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifierState {
    /// Judges them and serves none.
    Shadow,
    /// Serves those above the threshold.
    Serving,
    /// Leaves them alone.
    Off,
}

/// Says why a verifier is in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Too few labels for the smallest test.
    TooFewLabels,
    /// No threshold keeps the bound.
    BoundFails,
    /// The bound holds above the threshold.
    BoundHolds,
    /// Explored answers were wrong too often in a row.
    Drift,
}

impl Why {
    /// Returns the reason as a sentence's end.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFewLabels => "too few labels for a test",
            Self::BoundFails => "no threshold keeps the bound on wrong answers",
            Self::BoundHolds => "the bound on wrong answers holds",
            Self::Drift => "explored answers were wrong too often",
        }
    }
}

/// What a verifier knows, at a moment. Shares are in thousandths, bounds rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct VerifierReport {
    /// What it does.
    pub state: VerifierState,
    /// Why.
    pub why: Why,
    /// Requests that were looked up.
    pub lookups: u64,
    /// Would-be hits among them.
    pub candidates: u64,
    /// Hits that were served.
    pub served: u64,
    /// Labels that came, in all.
    pub labelled: u64,
    /// Test labels at or above the threshold.
    pub tested: u32,
    /// Wrong ones among them.
    pub tested_wrong: u32,
    /// The upper bound of wrong answers per hit; `None` where nothing passed.
    pub wrong_milli_upper: Option<u32>,
    /// The least score of a hit; `None` where nothing passed.
    pub threshold_milli: Option<u32>,
    /// Labels of would-be hits that were explored, since serving began.
    pub explored: u32,
    /// Wrong ones among them.
    pub explored_wrong: u32,
    /// The upper bound of wrong answers per hit that the explored ones alone give.
    pub explored_wrong_milli_upper: u32,
}

impl VerifierReport {
    /// Returns hits among lookups, in thousandths.
    pub fn hit_milli(&self) -> u64 {
        self.served.saturating_mul(1_000).checked_div(self.lookups).unwrap_or(0)
    }
}

/// Returns a share in thousandths, rounded up.
pub(super) fn milli(share: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000")]
    let milli = (share * 1_000.0).ceil().clamp(0.0, 1_000.0) as u32;
    milli
}
