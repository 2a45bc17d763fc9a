//! Vectors of questions that a deployment makes: calls beside the request, with records of their own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_cache::{Probe, SemanticCache};
use gw_types::{Classification, KeyIdentity, LedgerPlace, NormalizedRequest, Question, Residency};

use crate::{attempts::Served, flight::Flight, pinned::Pinned, pipeline, state::State};

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
    pub(crate) identity: KeyIdentity,
    pub(crate) policy: Arc<Pinned>,
    pub(crate) route: usize,
    pub(crate) target: usize,
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
        let model = &self.policy.target(self.target).deployment.name;
        let mut request = codec.request(model.as_str(), &text)?;
        request.context.classification = Some(self.classification);
        request.context.residency.clone_from(&self.residency);
        request.context.deadline = Some(time.max(Duration::from_millis(1)));
        let raw = self.ask(state, &request).await?;
        let probe = codec.vector(&raw).and_then(|vector| SemanticCache::probe_of(question, vector));
        if probe.is_none() {
            tracing::warn!(deployment = %model, "the embedder's answer holds no vector");
        }
        probe
    }

    /// Asks the embedder, as a request of the same tenant with a record of its own.
    async fn ask(&self, state: &Arc<State>, request: &NormalizedRequest) -> Option<Bytes> {
        let subject = self.policy.subject(&self.identity.tenant)?.clone();
        let place = LedgerPlace::take(Arc::clone(&state.ledger)).ok()?;
        let policy = Arc::clone(&self.policy);
        let mut flight = Flight::new(Arc::clone(state), policy, subject, &self.identity, place);
        flight.side = Some("embedding");
        // Boxed: a request within a request would be a future of endless size.
        match Box::pin(pipeline::on_the_side(&mut flight, request, (self.route, self.target))).await {
            Ok(Served::Complete(answer)) => {
                pipeline::finish(flight).await;
                Some(answer.raw)
            }
            Ok(Served::Stream(_)) => None,
            Err(error) => {
                tracing::warn!(kind = error.kind().as_str(), "the embedder could not be asked");
                drop(flight.fail(error, false).await);
                None
            }
        }
    }
}
