//! Vectors of questions that a deployment makes: calls beside the request, with records of their own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_cache::{Probe, SemanticCache};
use gw_types::{Classification, NormalizedRequest, Question, Residency};

use crate::{aside::Aside, state::State};

/// What a look-up may wait for a vector, as a share of what is left of the request's time. An embedder that does not
/// answer must leave the model time enough.
const TIME_SHARE: u32 = 4;

/// What a vector may take after the answer, when nobody waits for it.
const STORE_TIME: Duration = Duration::from_secs(30);

/// Writes the request for a vector and reads the answer.
///
/// # Contract
/// Pure. One text, one vector; the same model gives vectors of the same dimensions.
pub trait EmbeddingCodec: Send + Sync + std::fmt::Debug {
    /// Returns the request for the vector of a text.
    fn request(&self, model: &str, text: &str) -> Option<NormalizedRequest>;

    /// Reads the vector; `None` where the answer does not hold exactly one.
    fn vector(&self, raw: &Bytes) -> Option<Vec<f32>>;
}

const _: fn(&dyn EmbeddingCodec) = |_object_safe| {};

/// On whose behalf, and where, a question becomes a vector.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    pub(crate) call: Aside,
    pub(crate) residency: Option<Residency>,
    pub(crate) classification: Classification,
}

impl Embedding {
    /// Embeds a question for a look-up that `left` remains for; `None` where there is nothing to compare or the embedder
    /// did not answer, which is a miss and no failure.
    pub(crate) async fn look_up(
        &self,
        state: &Arc<State>,
        question: &Question,
        left: Duration,
    ) -> Option<Probe> {
        self.probe(state, question, left / TIME_SHARE).await
    }

    /// Embeds a question whose answer is to be kept.
    pub(crate) async fn store(&self, state: &Arc<State>, question: &Question) -> Option<Probe> {
        self.probe(state, question, STORE_TIME).await
    }

    async fn probe(&self, state: &Arc<State>, question: &Question, time: Duration) -> Option<Probe> {
        let codec = state.embedding.as_ref()?;
        // No provider takes an empty text.
        let text = SemanticCache::words(question).filter(|text| !text.is_empty())?;
        let model = &self.call.policy.target(self.call.target).deployment.name;
        let mut request = codec.request(model.as_str(), &text)?;
        request.context.classification = Some(self.classification);
        request.context.residency.clone_from(&self.residency);
        request.context.deadline = Some(time.max(Duration::from_millis(1)));
        let raw = self.call.ask(state, &request).await?;
        let probe = codec.vector(&raw).and_then(|vector| SemanticCache::probe_of(question, vector));
        if probe.is_none() {
            tracing::warn!(deployment = %model, "the embedder's answer holds no vector");
        }
        probe
    }
}
