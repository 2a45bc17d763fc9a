//! Steps 5 and 10: answering from the past, and deciding what is remembered.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_cache::{
    CacheKey, CachePolicy, CachedAnswer, Embedder, KeyParts, Partition, Probe, SemanticCache,
    SemanticDecision, Storable, WriteRule, may_read, storable, verify::Verdict,
};
use gw_types::{
    AnswerFacts, BoundedText, CacheControl, CacheState, Capability, Classification, Completion,
    DeploymentName, KeyIdentity, NormalizedRequest, Question, RequestId, Temperature,
};

use crate::{
    aside::Aside,
    embedding::Embedding,
    flight::Flight,
    judging::WouldBe,
    pipeline::Hit,
    policy::{RouteEmbedder, RoutePolicy, Target},
    state::State,
};

/// The longest streamed answer that is collected for the cache, in bytes of text; a longer one is relayed only.
pub(crate) const COLLECTED_BYTES_MAX: usize = 1_024 * 1_024;

/// Vectors under way at most that no request waits for.
const EMBEDDING_LATE_MAX: usize = 32;

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
    pub(crate) async fn store(self: Box<Self>, state: Arc<State>, answer: Remembered) {
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
            state.exact.put(self.key.clone(), storable.clone(), now);
        }
        let Self { asked, would_be, .. } = *self;
        let Some(asked) = asked else { return };
        if let Some(would_be) = would_be {
            would_be.judge(&state, &asked.question.text, storable.answer());
        }
        match asked.probe.clone() {
            Some(probe) => state.semantic.put_probe(&asked.partition, &probe, storable, now),
            None if asked.embedder.is_cheap() => asked.keep(&state, storable).await,
            None => keep_later(&state, asked, storable),
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
    embedder: AskedEmbedder,
}

impl Asked {
    /// Keeps the answer to a question that nobody has embedded yet.
    async fn keep(&self, state: &Arc<State>, answer: Storable) {
        if let Some(probe) = Box::pin(self.embedder.probe(state, &self.question, Wanted::Store)).await {
            state.semantic.put_probe(&self.partition, &probe, answer, state.clock.now());
        }
    }
}

/// Keeps an answer once another machine has embedded its question, which nobody waits for. Beyond the bound of such work
/// it is not kept for similar questions.
fn keep_later(state: &Arc<State>, asked: Asked, answer: Storable) {
    if !state.tasks.can_spawn() {
        return;
    }
    let Some(place) = state.embedding_late.take(EMBEDDING_LATE_MAX) else { return };
    let keeper = Arc::clone(state);
    state.tasks.spawn(async move {
        asked.keep(&keeper, answer).await;
        drop(place);
    });
}

/// What a vector is wanted for.
#[derive(Clone, Copy)]
enum Wanted {
    /// The request waits, and so much is left of its time.
    LookUp { left: Duration },
    /// Nobody waits.
    Store,
}

/// Who embeds a request's question.
#[derive(Debug)]
enum AskedEmbedder {
    Own,
    Local(Arc<dyn Embedder>),
    Deployment(Box<Embedding>),
    /// The route names a deployment that the policy does not have.
    Nobody,
}

impl AskedEmbedder {
    fn of(flight: &mut Flight, request: &NormalizedRequest, place: Place<'_>, class: Classification) -> Self {
        let name = match &place.route.embedder {
            RouteEmbedder::Own => return Self::Own,
            RouteEmbedder::Local(embedder) => return Self::Local(Arc::clone(embedder)),
            RouteEmbedder::Deployment(name) => name,
        };
        let policy = Arc::clone(&flight.policy);
        let Some(target) = policy.place_of(name) else { return Self::Nobody };
        let record = flight.record();
        let identity = KeyIdentity { tenant: record.tenant.clone(), key: record.key.clone() };
        Self::Deployment(Box::new(Embedding {
            call: Aside { identity, policy, route: place.index, target, purpose: "embedding" },
            residency: request.context.residency.clone(),
            classification: class,
        }))
    }

    /// Whether a vector costs neither money nor another machine's time.
    fn is_cheap(&self) -> bool {
        matches!(self, Self::Own | Self::Local(_))
    }

    /// Embeds a question. An embedder that fails costs a hit and not the request.
    ///
    /// Callers box it: a request whose route compares nothing carries no room for it.
    async fn probe(&self, state: &Arc<State>, question: &Question, wanted: Wanted) -> Option<Probe> {
        let probe = match (self, wanted) {
            (Self::Own, _) => state.semantic.probe(question).await,
            (Self::Local(embedder), _) => SemanticCache::probe_by(question, embedder.as_ref()).await,
            (Self::Deployment(embedding), Wanted::LookUp { left }) => {
                return embedding.look_up(state, question, left).await;
            }
            (Self::Deployment(embedding), Wanted::Store) => return embedding.store(state, question).await,
            (Self::Nobody, _) => return None,
        };
        probe.unwrap_or_else(|_| {
            tracing::warn!("the embedder failed; similar requests were not compared");
            None
        })
    }
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
    let Some((key, mut asked)) = keys(flight, request, (place, policy), classification) else {
        return Lookup::Bypass;
    };
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
    if !asked.embedder.is_cheap() && !state.semantic.holds(&asked.partition, flight.now()) {
        // There is nothing to find: the vector can wait until the answer is there.
        return Similar::Nothing;
    }
    let left = flight.remaining(flight.now());
    asked.probe = Box::pin(asked.embedder.probe(&state, &asked.question, Wanted::LookUp { left })).await;
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
    (place, policy): (Place<'_>, &CachePolicy),
    classification: Classification,
) -> Option<(CacheKey, Option<Asked>)> {
    let state = Arc::clone(&flight.state);
    let asked = policy.semantic.as_ref().and_then(|_| state.codec(request.operation)?.question(request));
    let asked = asked.map(|question| (question, AskedEmbedder::of(flight, request, place, classification)));
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
    let mut asked = asked.map(|(question, embedder)| {
        let partition = Partition::new(&parts);
        Asked { partition, question, probe: None, embedder }
    });
    if policy.epoch > 0 {
        key = key.at_epoch(policy.epoch);
        asked = asked.map(|asked| Asked { partition: asked.partition.at_epoch(policy.epoch), ..asked });
    }
    if let Some(locale) = &request.context.locale {
        asked = asked.map(|asked| Asked { partition: asked.partition.in_locale(locale.as_str()), ..asked });
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
