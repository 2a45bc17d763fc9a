//! Steps 5 and 10: answering from the past, and deciding what is remembered.

use std::sync::Arc;

use bytes::Bytes;
use gw_cache::{CacheKey, CachePolicy, CachedAnswer, KeyParts, Partition, WriteRule, may_read, storable};
use gw_types::{
    AnswerFacts, BoundedText, CacheControl, CacheState, Classification, Completion, DeploymentName,
    NormalizedRequest, Question, RequestId, Temperature,
};

use crate::{
    flight::Flight,
    pipeline::Hit,
    policy::{RoutePolicy, Target},
    state::State,
};

/// The longest streamed answer that is collected for the cache, in bytes of text; a longer one is relayed only.
pub(crate) const COLLECTED_BYTES_MAX: usize = 1_024 * 1_024;

/// What a look-up decided.
pub(crate) enum Lookup {
    /// An answer.
    Hit(Hit),
    /// No answer; what comes may be stored with this.
    Miss(Box<CacheWrite>),
    /// The cache is not for this request.
    Bypass,
}

/// Everything that storing an answer needs, decided before the call so that a failover does not change the key.
#[derive(Debug)]
pub(crate) struct CacheWrite {
    key: CacheKey,
    policy: CachePolicy,
    question: Option<(Partition, Question)>,
    control: CacheControl,
    side_effecting: bool,
    classification: Classification,
    temperature: Temperature,
    /// Whether equal requests in flight may share the call.
    shares: bool,
}

/// An answer on its way into the cache.
pub(crate) struct Remembered {
    pub(crate) raw: Option<Bytes>,
    pub(crate) completion: Option<Arc<Completion>>,
    pub(crate) facts: AnswerFacts,
    pub(crate) serving: DeploymentName,
    pub(crate) model_version: Option<BoundedText>,
    pub(crate) origin: RequestId,
    /// Whether the provider's terminal event, or the whole body, was seen.
    pub(crate) complete: bool,
}

impl CacheWrite {
    /// Returns the key under which equal requests in flight share one call; `None` where they do not.
    ///
    /// Streams and plain answers are different calls, and so are streams with and without a report of usage: what is
    /// shared are the provider's own bytes.
    pub(crate) fn shared_key(&self, request: &NormalizedRequest) -> Option<CacheKey> {
        let facts = &request.facts;
        self.shares.then(|| self.key.in_form(facts.stream, facts.stream && facts.include_usage))
    }

    /// Looks for an answer that has come since the first look.
    pub(crate) fn look_again(&self, flight: &mut Flight, request: &NormalizedRequest) -> Option<Hit> {
        exact(flight, request, &self.policy, &self.key)
    }

    /// Stores the answer in both tiers if the write rule allows. The rule lives in `gw-cache` and nowhere else.
    ///
    /// The exact tier holds it before the first await, so that a caller who does not wait loses only the other one.
    pub(crate) async fn store(self, state: Arc<State>, answer: Remembered) {
        let rule = WriteRule {
            policy: &self.policy,
            cache_control: self.control,
            side_effecting: self.side_effecting,
            classification: self.classification,
            temperature: self.temperature,
            complete: answer.complete,
        };
        let cached = CachedAnswer {
            raw: answer.raw,
            completion: answer.completion,
            facts: answer.facts,
            serving: answer.serving,
            model_version: answer.model_version,
            origin: answer.origin,
        };
        let Ok(storable) = storable(&rule, cached) else { return };
        let now = state.clock.now();
        if self.policy.exact {
            state.exact.put(self.key, storable.clone(), now);
        }
        if let Some((partition, question)) = self.question {
            // An embedder that fails costs a later hit, not this request.
            if state.semantic.put(&partition, &question, storable, now).await.is_err() {
                tracing::warn!("the embedder failed; an answer was not kept for similar requests");
            }
        }
    }
}

/// Looks for a remembered answer. The key is built on the primary candidate: the next equal request computes the same
/// primary and must find what a failover has answered.
pub(crate) async fn look_up(
    flight: &mut Flight,
    request: &NormalizedRequest,
    route: &RoutePolicy,
    primary: &Target,
    classification: Classification,
) -> Lookup {
    let Some(policy) = &route.cache else { return Lookup::Bypass };
    let context = &request.context;
    let temperature = request.facts.temperature;
    let readable = may_read(policy, context.cache, context.side_effecting, classification, temperature);
    if !readable && context.cache != CacheControl::NoCache {
        return Lookup::Bypass;
    }
    let Some((key, question)) = keys(flight, request, (route, policy), primary) else {
        return Lookup::Bypass;
    };
    flight.record().decision.cache_key = Some(key.digest_hex());
    if readable {
        if let Some(hit) = exact(flight, request, policy, &key) {
            return Lookup::Hit(hit);
        }
        if let Some(hit) = similar(flight, request, policy, question.as_ref()).await {
            return Lookup::Hit(hit);
        }
        flight.record().cache = CacheState::Miss;
    }
    Lookup::Miss(Box::new(CacheWrite {
        key,
        policy: policy.clone(),
        question,
        control: context.cache,
        side_effecting: context.side_effecting,
        classification,
        temperature,
        shares: readable && request.operation.generates(),
    }))
}

/// Exact first: cheaper, and more precise.
fn exact(
    flight: &mut Flight,
    request: &NormalizedRequest,
    policy: &CachePolicy,
    key: &CacheKey,
) -> Option<Hit> {
    let answer = policy.exact.then(|| flight.state.exact.get(key, flight.now())).flatten()?;
    let hit = in_the_form_asked_for(flight, request, answer)?;
    flight.record().cache = CacheState::Exact;
    Some(hit)
}

async fn similar(
    flight: &mut Flight,
    request: &NormalizedRequest,
    policy: &CachePolicy,
    question: Option<&(Partition, Question)>,
) -> Option<Hit> {
    let ((partition, question), semantic) = (question?, policy.semantic.as_ref()?);
    let state = Arc::clone(&flight.state);
    match state.semantic.get(partition, question, semantic, flight.now()).await {
        Ok(found) => {
            let found = found?;
            let hit = in_the_form_asked_for(flight, request, found.answer)?;
            let record = flight.record();
            record.cache = CacheState::Semantic;
            record.decision.similarity_milli = Some(found.score_milli);
            Some(hit)
        }
        Err(_) => {
            tracing::warn!("the embedder failed; similar requests were not looked for");
            None
        }
    }
}

fn keys(
    flight: &mut Flight,
    request: &NormalizedRequest,
    (route, policy): (&RoutePolicy, &CachePolicy),
    primary: &Target,
) -> Option<(CacheKey, Option<(Partition, Question)>)> {
    let state = Arc::clone(&flight.state);
    let record = flight.record();
    let parts = KeyParts {
        tenant: &record.tenant,
        route: record.route.as_ref()?,
        primary: &primary.deployment.name,
        model_version: primary.deployment.model_version.as_ref().map(BoundedText::as_str),
        operation: request.operation,
        policy_digest: route.digest.as_str(),
    };
    let question = policy
        .semantic
        .as_ref()
        .and_then(|_| state.codec(request.operation)?.question(request))
        .map(|question| (Partition::new(&parts), question));
    Some((CacheKey::new(&parts, &request.body)?, question))
}

/// A stream is replayed from neutral parts; a plain answer from its bytes where they were kept.
fn in_the_form_asked_for(
    flight: &Flight,
    request: &NormalizedRequest,
    answer: Arc<CachedAnswer>,
) -> Option<Hit> {
    if !request.facts.stream && answer.raw.is_some() {
        return Some(Hit { answer, completion: None });
    }
    let completion = match (&answer.completion, &answer.raw) {
        (Some(completion), _) => Arc::clone(completion),
        (None, Some(raw)) => Arc::new(flight.state.codec(request.operation)?.completion(raw)?),
        (None, None) => return None,
    };
    Some(Hit { answer, completion: Some(completion) })
}
