//! The life of a request, steps 1 to 8. The order is a decision; each step says why it stands where it does.

use std::{cell::RefCell, future::poll_fn, hash::BuildHasher, sync::Arc, time::Duration};

use foldhash::fast::FixedState;
use gw_cache::{CacheKey, CachedAnswer};
use gw_routing::{
    AllAvailable, Availability, Exclusion, ExclusionReason, Live, RouteQuery, Selection, Strategy,
};
use gw_types::{
    AnswerFacts, BoundedText, Classification, CompleteAnswer, Completion, ErrorKind, ExclusionRecord,
    FactsRecord, GatewayError, Money, MonoTime, NormalizedRequest, Outcome, Residency, RouteName, TenantId,
};
use smallvec::SmallVec;

use crate::{
    admission::{self, OUTPUT_BOUND, output_bound},
    attempts::{Attempts, Served},
    estimate,
    flight::{Expected, Flight},
    gateway::wrong_form,
    health::Moment,
    idempotency::{self, Claimed, KeptBody, KeptContent},
    pinned::Pinned,
    policy::{TenantPolicy, TokenFacts},
    remember::{CacheWrite, Lookup, Place, Remembered, look_up},
    reply::{Body, Failure, Reply, ReplyHead, StreamBody},
    schema, shared_limits,
};

/// The beginning of a body that a conversation is recognised by, in bytes.
const AFFINITY_BYTES: usize = 1_024;

/// What is known once the cache was asked: steps 1 to 5.
pub(crate) enum Decided {
    /// An answer from the past.
    Hit(Hit),
    /// What a request with the same idempotency key was answered.
    Kept(KeptContent),
    /// A provider must be called.
    Call(Box<Outgoing>),
}

/// A remembered answer, in the form that the caller asked for.
pub(crate) struct Hit {
    pub(crate) answer: Arc<CachedAnswer>,
    pub(crate) completion: Option<Arc<Completion>>,
}

/// A call that is decided and not made yet: who may answer, what limits it, where its answer is remembered.
#[derive(Debug)]
pub(crate) struct Outgoing {
    selection: Selection,
    limited: bool,
    budgeted: bool,
    /// Decided before the call, so that a failover does not change the key.
    pub(crate) write: Option<Box<CacheWrite>>,
}

/// What a request and its tenant say together.
struct Effective {
    classification: Classification,
    residency: SmallVec<[Residency; 2]>,
    /// The routes that the key is for; empty: all.
    routes: Vec<RouteName>,
    /// Whether money or tokens are limited for anyone whom the request concerns.
    limited: bool,
    budgeted: bool,
}

/// Runs steps 1 to 4, 7 and 8 for a request that gw makes on the side, at one deployment.
///
/// # Errors
/// Any refusal that the tenant's own request could meet, and the provider's; `PolicyViolation` where the deployment may
/// not see what the request holds.
pub(crate) async fn on_the_side(
    flight: &mut Flight,
    request: &NormalizedRequest,
    (route, target): (usize, usize),
) -> Result<Served, GatewayError> {
    let effective = read_request(flight, request)?;
    let policy = Arc::clone(&flight.policy);
    let tenant = flight.record().tenant.clone();
    let query = RouteQuery {
        residency: &effective.residency,
        input_tokens_at_least: estimate::input_at_least(&request.facts),
        budgeted: effective.budgeted,
        ..RouteQuery::new(&request.facts.model, &tenant, effective.classification)
    };
    if policy.router().against(target, &query).is_some() {
        let message = "the deployment may not see what the request holds";
        return Err(GatewayError::new(ErrorKind::PolicyViolation, message));
    }
    admission::check_quota(flight)?;
    admission::admit(flight, request)?;
    let record = flight.record();
    record.route = Some(policy.route(route).0.clone());
    record.primary = Some(policy.target(target).deployment.name.clone());
    let chain = [target].into_iter().collect();
    let selection = Selection { route: Some(route), chain, last_resort: true, ..Selection::default() };
    let Effective { limited, budgeted, .. } = effective;
    Outgoing { selection, limited, budgeted, write: None }.make(flight, request).await
}

/// Runs steps 1 to 5.
pub(crate) async fn decide(
    flight: &mut Flight,
    request: &NormalizedRequest,
) -> Result<Decided, GatewayError> {
    let effective = read_request(flight, request)?;
    // 2. Cheapest refusal first: a spent window needs no bucket, no route and no provider.
    admission::check_quota(flight)?;
    // 3. Before routing and before the cache: the rate limit protects the gateway too, and a hit is load. What is
    // taken here goes back on any refusal of gw's own up to step 7, because the guard is simply dropped.
    admission::admit(flight, request)?;
    // Behind the rate limit, since a replay is load, and before everything that could lead to another call. A replay gets
    // its tokens back, like a hit.
    if let Some(kept) = claim_key(flight, request)? {
        return Ok(Decided::Kept(kept));
    }
    // 4. Pure. The primary candidate must be known before the cache can be asked.
    let (selection, home) = route(flight, request, &effective)?;
    let pinned = Arc::clone(&flight.policy);
    let (_, route) = pinned.route(selection.route.unwrap_or_default());
    // 5. After routing: the same words at another deployment are another answer.
    let place = Place { index: selection.route.unwrap_or_default(), route, primary: pinned.target(home) };
    let lookup = look_up(flight, request, place, effective.classification).await;
    let write = match lookup {
        Lookup::Hit(hit) => {
            note_hit(flight, &hit);
            return Ok(Decided::Hit(hit));
        }
        Lookup::Miss(write) => Some(write),
        Lookup::Bypass => None,
    };
    if request.context.cache == gw_types::CacheControl::OnlyIfCached {
        return Err(GatewayError::new(
            ErrorKind::NotCached,
            "no cached answer, and the request asked for nothing else",
        ));
    }
    let Effective { limited, budgeted, .. } = effective;
    Ok(Decided::Call(Box::new(Outgoing { selection, limited, budgeted, write })))
}

impl Hit {
    /// Answers whole.
    pub(crate) async fn whole(self, mut flight: Box<Flight>) -> Result<Reply<Body>, Failure> {
        let (body, content) = match (&self.answer.raw, self.completion) {
            (_, Some(completion)) => {
                (Body::Completion(Arc::clone(&completion)), KeptContent::Completion(completion))
            }
            (Some(raw), None) => (Body::Raw(raw.clone()), KeptContent::Whole(KeptBody(raw.clone()))),
            (None, None) => return Err(flight.fail(wrong_form(), false).await),
        };
        flight.keep_answer(content);
        Ok(Reply { head: finish(flight).await?, body })
    }

    /// Answers as a stream.
    pub(crate) async fn stream(self, mut flight: Box<Flight>) -> Result<Reply<StreamBody>, Failure> {
        let Some(completion) = self.completion else { return Err(flight.fail(wrong_form(), false).await) };
        flight.keep_answer(KeptContent::Completion(Arc::clone(&completion)));
        Ok(Reply { head: finish(flight).await?, body: StreamBody::Completion(completion) })
    }
}

impl KeptContent {
    /// Answers whole. The fingerprint tells whole answers from streams, so the form is always the one asked for.
    pub(crate) async fn whole(self, flight: Box<Flight>) -> Result<Reply<Body>, Failure> {
        match self {
            Self::Whole(KeptBody(raw)) => Ok(Reply { head: finish(flight).await?, body: Body::Raw(raw) }),
            Self::Completion(completion) => {
                Ok(Reply { head: finish(flight).await?, body: Body::Completion(completion) })
            }
            Self::Events(_) => Err(flight.fail(wrong_form(), false).await),
        }
    }

    /// Answers as a stream.
    pub(crate) async fn stream(self, flight: Box<Flight>) -> Result<Reply<StreamBody>, Failure> {
        match self {
            Self::Events(kept) => {
                // What was cut once is cut each time it is given, and its record says so.
                let outcome = if kept.capped.is_some() { Outcome::Capped } else { Outcome::Ok };
                Ok(Reply { head: finish_as(flight, outcome).await?, body: StreamBody::Kept(kept) })
            }
            Self::Completion(completion) => {
                Ok(Reply { head: finish(flight).await?, body: StreamBody::Completion(completion) })
            }
            Self::Whole(_) => Err(flight.fail(wrong_form(), false).await),
        }
    }
}

impl Outgoing {
    /// Returns the key under which equal requests in flight share the call; `None`: none does.
    pub(crate) fn shared_key(&self, request: &NormalizedRequest) -> Option<CacheKey> {
        // What a key names is a call of its own.
        let write = self.write.as_ref().filter(|_| request.context.idempotency_key.is_none())?;
        write.shared_key(request)
    }

    /// Runs steps 7 and 8.
    pub(crate) async fn make(
        &self,
        flight: &mut Flight,
        request: &NormalizedRequest,
    ) -> Result<Served, GatewayError> {
        let selection = &self.selection;
        let policy = Arc::clone(&flight.policy);
        let (route_name, route) = policy.route(selection.route.unwrap_or_default());
        let primary = &policy.target(selection.chain[0]).deployment;
        schema::prepare(flight, request);
        // 7. Everything that the call may take is reserved before it is made.
        let counts_tokens = |index: &usize| policy.target_state(*index).counts_tokens;
        let attempts = Attempts {
            request,
            chain: &selection.chain,
            max_attempts: if selection.last_resort { 1 } else { route.max_attempts.get() },
            is_bounded: self.limited || selection.chain.iter().any(counts_tokens),
            budgeted: self.budgeted,
            route,
            hedge: policy.hedge(selection.route.unwrap_or_default()).filter(|_| !selection.last_resort),
        };
        take_limits(flight, &attempts, route_name, primary).await?;
        // 8. Attempts against what is left of the deadline.
        flight.state.retries.ratio().request();
        if let Some(hedge) = attempts.hedge.filter(|_| request.facts.stream) {
            hedge.request();
        }
        let served = attempts.run(flight).await?;
        note_serving(flight);
        Ok(served)
    }
}

/// Claims the request's idempotency key, or returns what an earlier request with it was answered.
fn claim_key(flight: &mut Flight, request: &NormalizedRequest) -> Result<Option<KeptContent>, GatewayError> {
    let (state, tenant) = (Arc::clone(&flight.state), flight.record().tenant.clone());
    let Some(claimed) = idempotency::claim(&state, &tenant, flight.id(), request) else { return Ok(None) };
    match claimed? {
        Claimed::New(claim) => {
            flight.held.claim = Some(claim);
            Ok(None)
        }
        Claimed::Answered { of, answer } => {
            let record = flight.record();
            record.replay_of = Some(of);
            record.serving.clone_from(&answer.serving);
            record.model_version.clone_from(&answer.model_version);
            record.served_model.clone_from(&answer.served_model);
            flight.lose(&answer.loss);
            Ok(Some(answer.content.clone()))
        }
    }
}

/// Step 7. What is taken before a later part refuses goes back when the flight ends.
async fn take_limits(
    flight: &mut Flight,
    attempts: &Attempts<'_>,
    route: &RouteName,
    primary: &gw_types::Deployment,
) -> Result<(), GatewayError> {
    let bound = attempts.is_bounded.then(|| output_bound(attempts.request, attempts.route, primary));
    let input = admission::expect_at(flight, attempts.request, attempts.chain[0]);
    flight.output_bound = bound;
    if let Some(facts) = &mut flight.record().facts {
        facts.output_bound = bound;
    }
    if let Some(bound) = bound {
        admission::expect_output(flight, attempts.request, (route, attempts.route), bound);
    }
    admission::adjust_tokens(flight)?;
    let slot = admission::take_slot(flight, primary.timing.min_attempt).await;
    slot.map_err(|error| admission::turned_away(flight, error))?;
    let worth = attempts.budgeted.then(|| attempts.worth(flight, attempts.chain[0], input));
    if let Some(worth) = worth {
        admission::reserve(flight, worth)?;
    }
    shared_limits::take(flight, worth).await
}

/// Step 1, and what the request says about itself. A request may tighten what its tenant begins with, never loosen it.
fn read_request(flight: &mut Flight, request: &NormalizedRequest) -> Result<Effective, GatewayError> {
    let policy = Arc::clone(&flight.policy);
    let unknown = TenantPolicy::new(Classification::Restricted);
    let tenant = policy.tenant(&flight.record().tenant.clone()).unwrap_or(&unknown);
    let context = &request.context;
    let deadline = context.deadline.unwrap_or_else(|| policy.default_deadline());
    admission::resolve_subject(flight, &request.facts.model);
    let (budgeted, has_token_limit) = (flight.subject.has_budget(), flight.subject.has_token_limit());
    let raw_anywhere = estimate::raw_input(&request.facts, &TokenFacts::default());
    flight.expected = Expected {
        raw_anywhere,
        input: raw_anywhere.rounded_up(),
        choices: request.facts.choices,
        is_text_alone: estimate::is_text_alone(&request.facts),
        has_token_limit,
        ..Expected::default()
    };
    let classification = context.classification.unwrap_or(tenant.default_classification);
    let residency: SmallVec<[Residency; 2]> =
        tenant.residency.iter().chain(&context.residency).cloned().collect();
    record_request(flight, request, classification, &residency, deadline);
    if deadline.is_zero() || deadline > policy.max_deadline() {
        return Err(GatewayError::new(
            ErrorKind::InvalidRequest,
            "the deadline must be from 1 ms to the server's maximum",
        )
        .with_param("x-gw-deadline-ms"));
    }
    flight.deadline = flight.arrived.saturating_add(deadline);
    if classification < tenant.default_classification {
        return Err(GatewayError::new(
            ErrorKind::PolicyViolation,
            "the request's classification is below its tenant's default, which it may only raise",
        )
        .with_subject(tenant.default_classification.as_str())
        .with_param("x-gw-classification"));
    }
    if context.residency.as_ref().is_some_and(|asked| !policy.knows_residency(asked)) {
        return Err(GatewayError::new(
            ErrorKind::InvalidRequest,
            "the residency names no group of the configuration",
        )
        .with_param("x-gw-residency"));
    }
    let scope = tenant.scope(&flight.record().key).cloned().unwrap_or_default();
    if scope.classification_ceiling.is_some_and(|ceiling| classification > ceiling) {
        return Err(GatewayError::new(
            ErrorKind::PolicyViolation,
            "the request's classification is above what its key may send",
        )
        .with_param("x-gw-classification"));
    }
    let model = &request.facts.model;
    if !scope.permits(model)
        || !scope.routes.is_empty() && !policy.router().knows_model_by(&scope.routes, model)
    {
        return Err(unknown_model());
    }
    let limited = budgeted || has_token_limit || flight.must_bound;
    Ok(Effective { classification, residency, routes: scope.routes, limited, budgeted })
}

/// A model that the key may not ask for is answered like one that does not exist.
fn unknown_model() -> GatewayError {
    let message = "no such model for this key; GET /v1/models lists those there are";
    GatewayError::new(ErrorKind::UnknownModel, message).with_param("model")
}

fn record_request(
    flight: &mut Flight,
    request: &NormalizedRequest,
    classification: Classification,
    residency: &[Residency],
    deadline: Duration,
) {
    let estimated_input = flight.expected.input;
    let (facts, context) = (&request.facts, &request.context);
    let tags = flight.policy.tags(&context.metadata);
    let record = flight.record();
    record.client_request_id.clone_from(&context.client_request_id);
    record.traceparent.clone_from(&context.traceparent);
    record.prompt_version.clone_from(&context.prompt_version);
    record.schema_version.clone_from(&context.schema_version);
    record.facts = Some(FactsRecord {
        operation: request.operation,
        model: BoundedText::new(&facts.model),
        stream: facts.stream,
        task_class: context.task_class.clone(),
        classification,
        residency: residency.to_vec(),
        needs: facts.needs,
        text_bytes: facts.text_bytes,
        messages: facts.messages,
        tool_bytes: facts.tool_bytes,
        images: facts.images,
        audio: facts.audio,
        choices: facts.choices,
        estimated_input,
        calibrated_input: None,
        estimated_output: None,
        requested_output: facts.output.map(|output| output.tokens),
        output_bound: None,
        side_effecting: context.side_effecting,
        cache_control: context.cache,
        deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        user: facts.user.clone(),
        tags,
    });
}

/// Step 4. Returns, beside the decision, the deployment whose words are remembered.
fn route(
    flight: &mut Flight,
    request: &NormalizedRequest,
    effective: &Effective,
) -> Result<(Selection, usize), GatewayError> {
    let policy = Arc::clone(&flight.policy);
    let facts = &request.facts;
    let tenant = flight.record().tenant.clone();
    let share_key = facts.user.as_ref().map_or(flight.id().as_str(), BoundedText::as_str);
    let metadata = request.context.metadata.pairs();
    let query = RouteQuery {
        metadata: &metadata,
        routes: &effective.routes,
        task_class: request.context.task_class.as_ref(),
        residency: &effective.residency,
        needs: facts.needs,
        input_tokens_at_least: estimate::input_at_least(facts),
        output_tokens: facts.output.map(|output| output.tokens),
        budgeted: effective.budgeted,
        audio: facts.audio,
        images: facts.images > 0,
        input_tokens_estimate: flight.expected.raw_anywhere.rounded_up(),
        stream: facts.stream,
        share_key: Some(share_key),
        affinity: policy.is_sticky().then(|| affinity(&tenant, &request.body)),
        ..RouteQuery::new(&facts.model, &tenant, effective.classification)
    };
    let moment = Moment {
        policy: &policy,
        now: flight.now(),
        random: flight.state.random.as_ref(),
        draws: RefCell::default(),
    };
    // What a pinned request goes on from lives at the primary, well or ill; every other could only say that it does not
    // know it.
    let availability: &dyn Availability = if request.context.pinned { &AllAvailable } else { &moment };
    let mut selection = select(flight, request, &query, (moment.now, availability));
    if request.context.pinned {
        selection.chain.truncate(1);
    }
    let exclusions = selection
        .exclusions
        .iter()
        .map(|exclusion| ExclusionRecord {
            route: policy.route(exclusion.route).0.clone(),
            deployment: policy.target(exclusion.deployment).deployment.name.clone(),
            reason: BoundedText::new(moment.reason(exclusion.deployment, exclusion.reason)),
        })
        .collect();
    let shares = moment.into_draws();
    let record = flight.record();
    record.decision.exclusions = exclusions;
    let Some(index) = selection.route.filter(|_| !selection.chain.is_empty()) else {
        return Err(if selection.refused.is_some() {
            GatewayError::new(ErrorKind::PolicyViolation, "such requests are declared refused")
        } else if selection.fits_no_window() {
            // No outage: the same request will never fit, and its sender can shorten it.
            GatewayError::new(ErrorKind::ContextLengthExceeded, "the request fits in no context window")
        } else if selection.model_known {
            GatewayError::new(ErrorKind::NoRouteAvailable, nobody_may(&selection))
        } else {
            unknown_model()
        });
    };
    record.decision.draws.extend(shares.iter().chain(&selection.draws));
    record.decision.last_resort = selection.last_resort;
    record.decision.candidates =
        selection.chain.iter().map(|index| policy.target(*index).deployment.name.clone()).collect();
    record.route = Some(policy.route(index).0.clone());
    let home = home(&policy, &selection);
    record.primary = Some(policy.target(home).deployment.name.clone());
    Ok((selection, home))
}

/// Says why nobody may answer, where that is one thing that the operator can change.
fn nobody_may(selection: &Selection) -> &'static str {
    let for_want_of_a_price = |exclusion: &Exclusion| exclusion.reason == ExclusionReason::MissingPrice;
    if !selection.exclusions.is_empty() && selection.exclusions.iter().all(for_want_of_a_price) {
        return "no deployment has a price for the audio or the images of this request, and a budget applies";
    }
    "no deployment may answer this request"
}

/// Asks the router, with the moment that strategies go by.
fn select(
    flight: &Flight,
    request: &NormalizedRequest,
    query: &RouteQuery<'_>,
    (now, availability): (MonoTime, &dyn Availability),
) -> Selection {
    let policy = &flight.policy;
    let in_flight = |target| {
        let slots = policy.target_state(target).slots.as_ref();
        slots.map_or(0, |slots| u64::from(slots.in_use()))
    };
    let worst_case = |target| {
        let deployment = &policy.target(target).deployment;
        let named = request.facts.output.map(|output| output.tokens);
        let bound = named.or(deployment.max_output_tokens).unwrap_or(OUTPUT_BOUND);
        estimate::worst_case(&request.facts, &policy.deployment_policy(target).tokens, bound, deployment)
    };
    policy.router().select(
        query,
        &Live {
            now,
            availability,
            in_flight: &in_flight,
            worst_case: &worst_case,
            random: flight.state.random.as_ref(),
            strategies: policy.strategies(),
        },
    )
}

/// Returns whose words are remembered: the deployment that would be the primary if all were well. An ill one keeps its
/// place, so that what it has answered is found while it is ill, and what others answer for it when it is well again.
fn home(policy: &Pinned, selection: &Selection) -> usize {
    let primary = selection.chain[0];
    let route = selection.route.and_then(|route| policy.router().route(route));
    let Some(route) = route.filter(|route| route.strategy == Strategy::Ordered) else { return primary };
    let ill = selection.exclusions.iter().filter(|exclusion| {
        exclusion.reason == ExclusionReason::Unavailable && Some(exclusion.route) == selection.route
    });
    let place = |deployment: &usize| {
        let name = &policy.target(*deployment).deployment.name;
        route.deployments.iter().position(|one| one == name)
    };
    ill.map(|exclusion| exclusion.deployment).chain([primary]).min_by_key(place).unwrap_or(primary)
}

/// Returns what a conversation is recognised by: its tenant and the beginning of its body, which later turns repeat.
fn affinity(tenant: &TenantId, body: &[u8]) -> u64 {
    FixedState::default().hash_one((tenant, &body[..body.len().min(AFFINITY_BYTES)]))
}

/// Puts into the record who made a remembered answer. The answer carries facts about its own making: its cost and
/// attempts are wrong for this request and stay out; who made it is evidence and goes in.
pub(crate) fn note_hit(flight: &mut Flight, Hit { answer, .. }: &Hit) {
    let policy = &flight.policy;
    let serving = policy.place_of(&answer.serving).map(|place| &policy.target(place).deployment);
    let worth =
        serving.zip(answer.facts.usage).and_then(|(serving, usage)| serving.pricing.cost(&usage).ok());
    flight.lose(&answer.facts.loss);
    let record = flight.record();
    record.origin = Some(answer.origin.clone());
    record.saved = worth.map_or(Money::ZERO, |worth| worth.money);
    record.serving = Some(answer.serving.clone());
    record.model_version.clone_from(&answer.model_version);
    record.served_model.clone_from(&answer.facts.served_model);
}

fn note_serving(flight: &mut Flight) {
    let policy = Arc::clone(&flight.policy);
    let record = flight.record();
    record.serving = record.attempts.last().map(|attempt| attempt.deployment.clone());
    record.model_version = record.serving.as_ref().and_then(|serving| {
        policy.place_of(serving).and_then(|place| policy.target(place).deployment.model_version.clone())
    });
}

/// Step 10 for a whole answer.
pub(crate) async fn remember(flight: &mut Flight, write: Option<Box<CacheWrite>>, answer: &CompleteAnswer) {
    let Some(write) = write else { return };
    let facts = AnswerFacts { loss: flight.lost().clone(), ..answer.facts.clone() };
    let record = flight.record();
    let Some(serving) = record.serving.clone() else { return };
    let remembered = Remembered {
        raw: Some(answer.raw.clone()),
        completion: None,
        facts,
        serving,
        model_version: record.model_version.clone(),
        origin: record.id.clone(),
        complete: true,
    };
    write.store(Arc::clone(&flight.state), remembered).await;
}

/// Steps 9 and 11 for a whole answer: settles, leaves the record, returns the evidence.
///
/// # Errors
/// `Overloaded` where the ledger does not store the record before the deadline: no answer goes out without.
pub(crate) async fn finish(flight: Box<Flight>) -> Result<ReplyHead, Failure> {
    finish_as(flight, Outcome::Ok).await
}

async fn finish_as(mut flight: Box<Flight>, outcome: Outcome) -> Result<ReplyHead, Failure> {
    let mut head = flight.head(outcome);
    head.cost = flight.cost_so_far();
    let mut storing = flight.close_and_store(outcome, None);
    head.refresh(&flight);
    match poll_fn(|cx| storing.poll_record(cx)).await {
        Ok(()) => Ok(head),
        Err(error) => Err(Failure { head: Box::new(head), error }),
    }
}
