//! Whether a would-be hit was right: by comparison where that is enough, by a judge in the background otherwise.

use std::sync::Arc;

use bytes::Bytes;
use gw_cache::{CachedAnswer, Unlabelled, says_the_same};
use gw_types::{Classification, Completion, KeyIdentity, NormalizedRequest, Operation, RequestId, Residency};

use crate::{aside::Aside, pinned::Pinned, state::State};

/// Judgements under way at most; would-be hits beyond them wait for feedback.
const JUDGING_MAX: usize = 32;

/// Writes the question to a judge and reads what it says.
///
/// # Contract
/// Pure. The request is a plain chat request of few output tokens. What a judge says is a label only where it is clear:
/// `None` for anything else.
pub trait JudgeCodec: Send + Sync + std::fmt::Debug {
    /// Returns the request that asks whether two answers to a question say the same.
    fn request(&self, model: &str, question: &str, stored: &str, fresh: &str) -> Option<NormalizedRequest>;

    /// Reads the judge's answer.
    fn verdict(&self, raw: &Bytes) -> Option<bool>;
}

const _: fn(&dyn JudgeCodec) = |_object_safe| {};

/// A stored answer that could have been given, while the model is asked all the same.
pub(crate) struct WouldBe {
    pub(crate) request: RequestId,
    pub(crate) identity: KeyIdentity,
    pub(crate) label: Unlabelled,
    pub(crate) stored: Arc<CachedAnswer>,
    pub(crate) operation: Operation,
    /// Whether the caller has prescribed the answer's form: then equality is the label, either way.
    pub(crate) is_structured: bool,
    pub(crate) policy: Arc<Pinned>,
    pub(crate) route: usize,
    pub(crate) residency: Option<Residency>,
    pub(crate) classification: Classification,
}

impl WouldBe {
    /// Labels the would-be hit by the answer that the model has given instead: at once, or in the background.
    pub(crate) fn judge(self, state: &Arc<State>, question: &str, fresh: &CachedAnswer) {
        let read = |answer: &CachedAnswer| said(state, self.operation, answer);
        let (Some(stored), Some(fresh)) = (read(&self.stored), read(fresh)) else { return };
        let same = stored.len() == fresh.len()
            && stored.iter().zip(&fresh).all(|(one, other)| says_the_same(one, other));
        if same || self.is_structured {
            return state.decisions.label(&self.label, same);
        }
        state.decisions.expect(self.request.clone(), self.label.clone());
        let Some((target, request)) = self.question(state, question, &stored.join("\n"), &fresh.join("\n"))
        else {
            return;
        };
        if !state.tasks.can_spawn() {
            return;
        }
        let Some(place) = state.judging.take(JUDGING_MAX) else { return };
        let judged = Arc::clone(state);
        state.tasks.spawn(async move {
            let WouldBe { identity, policy, route, .. } = self;
            let call = Aside { identity, policy, route, target, purpose: "judge" };
            let said = call.ask(&judged, &request).await;
            if let Some(right) = said.and_then(|raw| judged.judge.as_ref()?.verdict(&raw)) {
                judged.decisions.judged(&self.request, right);
            }
            drop(place);
        });
    }

    /// Returns the judge's place and what it is asked.
    fn question(
        &self,
        state: &State,
        question: &str,
        stored: &str,
        fresh: &str,
    ) -> Option<(usize, NormalizedRequest)> {
        let judge = self.policy.route(self.route).1.judge.as_ref()?;
        let target = self.policy.place_of(judge)?;
        let mut request = state.judge.as_ref()?.request(judge.as_str(), question, stored, fresh)?;
        request.context.classification = Some(self.classification);
        request.context.residency.clone_from(&self.residency);
        Some((target, request))
    }
}

impl std::fmt::Debug for WouldBe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WouldBe").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Returns what an answer says, choice by choice.
fn said(state: &State, operation: Operation, answer: &CachedAnswer) -> Option<Vec<String>> {
    let texts =
        |completion: &Completion| completion.choices.iter().map(|choice| choice.text.clone()).collect();
    match (&answer.completion, &answer.raw) {
        (Some(completion), _) => Some(texts(completion)),
        (None, Some(raw)) => Some(texts(&state.codec(operation)?.completion(raw)?)),
        (None, None) => None,
    }
}
