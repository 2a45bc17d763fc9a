//! What a replay counted.

use crate::verify::{VerifierReport, share_lower, share_upper};

/// A part of a whole, with exact bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Share {
    /// The part.
    pub part: u32,
    /// The whole.
    pub all: u32,
}

impl Share {
    /// Returns the part of the whole, 0 to 1; 0 of nothing.
    pub fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { f64::from(self.part) / f64::from(self.all) }
    }

    /// Returns the Clopper-Pearson interval that holds the true share with a confidence of 95 %.
    pub fn interval(self) -> (f64, f64) {
        const TAIL: f64 = 0.025;
        (share_lower(self.part, self.all, TAIL), share_upper(self.part, self.all, TAIL))
    }

    pub(super) fn add(&mut self, belongs: bool) {
        self.part += u32::from(belongs);
        self.all += 1;
    }
}

/// The pairs of one kind.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct KindFigures {
    /// The rows' name for it.
    pub kind: String,
    /// Whether one answer serves both questions.
    pub same_answer: bool,
    /// Pairs whose second question got the first one's answer.
    pub served: Share,
}

/// What a replay counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Figures {
    /// Steps of the stream that were served from the cache.
    pub hits: Share,
    /// Wrong ones among those.
    pub wrong: Share,
    /// Entries that the stream left.
    pub stored: u32,
    /// Pairs with one answer that were served; those whose label depends on the application are left out.
    pub should_hit: Share,
    /// Pairs with two answers that were served, wrongly; those whose label depends on the application are left out.
    pub traps: Share,
    /// The pairs by kind, in the order of the rows.
    pub kinds: Vec<KindFigures>,
    /// What the verifier says at the end, where one decided.
    pub report: Option<VerifierReport>,
}

impl Figures {
    pub(super) fn kind(&mut self, kind: &str, same_answer: bool) -> &mut KindFigures {
        let found =
            self.kinds.iter().position(|known| known.kind == kind && known.same_answer == same_answer);
        let at = found.unwrap_or_else(|| {
            self.kinds.push(KindFigures { kind: kind.to_owned(), same_answer, served: Share::default() });
            self.kinds.len() - 1
        });
        &mut self.kinds[at]
    }
}
