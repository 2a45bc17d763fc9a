//! Steps 5 and 10: answering from the past, and deciding what is remembered.

use std::sync::Arc;

use bytes::Bytes;
use gw_cache::{
    CacheKey, CachePolicy, CachedAnswer, KeyParts, Partition, Probe, SemanticDecision, WriteRule, may_read,
    storable, verify::Verdict,
};
use gw_types::{
    AnswerFacts, BoundedText, CacheControl, CacheState, Capability, Classification, Completion,
    DeploymentName, KeyIdentity, NormalizedRequest, Question, RequestId, Temperature,
};

use crate::{
    flight::Flight,
    judging::WouldBe,
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
    asked: Option<Asked>,
    would_be: Option<Box<WouldBe>>,
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
        let Some(asked) = self.asked else { return };
        if let Some(would_be) = self.would_be {
            would_be.judge(&state, &asked.question.text, storable.answer());
        }
        let probe = match asked.probe {
            Some(probe) => Some(probe),
            // Nobody has looked: the caller did not want to read.
            None => match state.semantic.probe(&asked.question).await {
                Ok(probe) => probe,
                Err(_) => {
                    // An embedder that fails costs a later hit, not this request.
                    tracing::warn!("the embedder failed; an answer was not kept for similar requests");
                    None
                }
            },
        };
        if let Some(probe) = probe {
            state.semantic.put_probe(&asked.partition, &probe, storable, now);
        }
    }
}

/// Where a request's answers are remembered.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The route's place in the policy.
    pub(crate) index: usize,
    pub(crate) route: &'a RoutePolicy,
    pub(crate) primary: &'a Target,
}

/// What similar requests have to say.
enum Similar {
    Hit(Hit),
    /// One that is not given, and whether it would have been right is asked.
    WouldBe(Box<WouldBe>),
    Nothing,
}

/// A question, embedded once for the look-up and for the store after it.
#[derive(Debug)]
struct Asked {
    partition: Partition,
    question: Question,
    probe: Option<Probe>,
}

/// Looks for a remembered answer. The key is built on the primary candidate: the next equal request computes the same
/// primary and must find what a failover has answered.
pub(crate) async fn look_up(
    flight: &mut Flight,
    request: &NormalizedRequest,
    place: Place<'_>,
    classification: Classification,
) -> Lookup {
    let Some(policy) = &place.route.cache else { return Lookup::Bypass };
    let context = &request.context;
    let temperature = request.facts.temperature;
    let readable = may_read(policy, context.cache, context.side_effecting, classification, temperature);
    if !readable && context.cache != CacheControl::NoCache {
        return Lookup::Bypass;
    }
    let Some((key, mut asked)) = keys(flight, request, place, policy) else { return Lookup::Bypass };
    flight.record().decision.cache_key = Some(key.digest_hex());
    let mut would_be = None;
    if readable {
        if let Some(hit) = exact(flight, request, policy, &key) {
            return Lookup::Hit(hit);
        }
        match similar(flight, request, (place, policy), asked.as_mut(), classification).await {
            Similar::Hit(hit) => return Lookup::Hit(hit),
            Similar::WouldBe(one) => would_be = Some(one),
            Similar::Nothing => {}
        }
        flight.record().cache = CacheState::Miss;
    }
    Lookup::Miss(Box::new(CacheWrite {
        key,
        policy: policy.clone(),
        asked,
        would_be,
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
    (place, policy): (Place<'_>, &CachePolicy),
    asked: Option<&mut Asked>,
    classification: Classification,
) -> Similar {
    let (Some(asked), Some(semantic)) = (asked, policy.semantic.as_ref()) else { return Similar::Nothing };
    let state = Arc::clone(&flight.state);
    match state.semantic.probe(&asked.question).await {
        Ok(probe) => asked.probe = probe,
        Err(_) => {
            tracing::warn!("the embedder failed; similar requests were not looked for");
            return Similar::Nothing;
        }
    }
    let Some(probe) = &asked.probe else { return Similar::Nothing };
    let found = state.semantic.nearest(&asked.partition, probe, semantic.threshold_milli, flight.now());
    let draw = match policy.decision {
        SemanticDecision::Fixed => 0,
        SemanticDecision::PerHit(_) | SemanticDecision::PerEntry(_) => state.random.next_u64(),
    };
    let (verdict, label) = state.decisions.decide(&asked.partition, policy.decision, found.as_ref(), draw);
    let Some(found) = found else { return Similar::Nothing };
    let record = flight.record();
    record.decision.similarity_milli = Some(found.score_milli);
    let (id, identity) =
        (record.id.clone(), KeyIdentity { tenant: record.tenant.clone(), key: record.key.clone() });
    match (verdict, label) {
        (Verdict::Serve, label) => {
            let Some(hit) = in_the_form_asked_for(flight, request, found.answer) else {
                return Similar::Nothing;
            };
            flight.record().cache = CacheState::Semantic;
            if let Some(label) = label {
                state.decisions.expect(id, label);
            }
            Similar::Hit(hit)
        }
        (Verdict::Explore | Verdict::Shadow | Verdict::Off, Some(label)) => {
            Similar::WouldBe(Box::new(WouldBe {
                request: id,
                identity,
                label,
                stored: found.answer,
                operation: request.operation,
                is_structured: request.facts.needs.contains(Capability::JsonSchema),
                policy: Arc::clone(&flight.policy),
                route: place.index,
                residency: request.context.residency.clone(),
                classification,
            }))
        }
        (Verdict::Explore | Verdict::Shadow | Verdict::Off, None) => Similar::Nothing,
    }
}

fn keys(
    flight: &mut Flight,
    request: &NormalizedRequest,
    place: Place<'_>,
    policy: &CachePolicy,
) -> Option<(CacheKey, Option<Asked>)> {
    let state = Arc::clone(&flight.state);
    let record = flight.record();
    let primary = &place.primary.deployment;
    let parts = KeyParts {
        tenant: &record.tenant,
        route: record.route.as_ref()?,
        primary: &primary.name,
        model_version: primary.model_version.as_ref().map(BoundedText::as_str),
        operation: request.operation,
        policy_digest: place.route.digest.as_str(),
    };
    let mut key = CacheKey::new(&parts, &request.body)?;
    let asked = policy.semantic.as_ref().and_then(|_| state.codec(request.operation)?.question(request));
    let mut asked = asked.map(|question| Asked { partition: Partition::new(&parts), question, probe: None });
    if policy.epoch > 0 {
        key = key.at_epoch(policy.epoch);
        asked = asked.map(|asked| Asked { partition: asked.partition.at_epoch(policy.epoch), ..asked });
    }
    // A provider that gets these may answer otherwise for them.
    for (name, value) in &request.context.passed {
        key = key.beside(name.as_str(), value);
        asked = asked.map(|asked| Asked { partition: asked.partition.beside(name.as_str(), value), ..asked });
    }
    Some((key, asked))
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
