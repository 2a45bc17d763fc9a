//! The gateway: long-lived state and the policy of the moment.

use std::sync::{Arc, atomic::Ordering};

use arc_swap::ArcSwap;
use gw_cache::InvalidationScope;
use gw_limits::{Limits, ScopeSnapshot, SubjectIds, TenantSnapshot};
use gw_types::{
    Clock, DeploymentName, DialectCodec, ErrorKind, GatewayError, KeyIdentity, KeyNote, LedgerPlace,
    ModelName, NormalizedRequest, Operation, Outcome, RequestId, TenantId, UtcTime,
};

use crate::{
    attempts::Served,
    flight::Flight,
    idempotency::{self, KeptBody, KeptContent},
    pinned::Pinned,
    pipeline::{self, Decided},
    policy::Policy,
    relay::Relay,
    reply::{Body, Failure, Reply, StreamBody},
    sharing::Sharing,
    snapshot::{CacheReport, CacheScopeUsage, GatewaySnapshot},
    state::{State, StateConfig},
};

/// Answers requests: the whole pipeline from step 0 to the record.
#[derive(Debug)]
pub struct Gateway {
    state: Arc<State>,
    policy: ArcSwap<Pinned>,
}

/// A caller who was let in: a place in the ledger, a pinned policy, an arrival time.
///
/// Becomes an answer through [`Gateway::complete`] or [`Gateway::stream`], or a refusal through [`Admitted::refuse`];
/// a drop is recorded as `cancelled`.
#[derive(Debug)]
pub struct Admitted {
    flight: Box<Flight>,
}

impl Admitted {
    /// Returns the id that the request's record will have.
    pub fn id(&self) -> &RequestId {
        self.flight.id()
    }

    /// Returns whether the request's metadata must be read: whether the policy that it began with goes by it.
    pub fn reads_metadata(&self) -> bool {
        self.flight.policy.reads_metadata()
    }

    /// Has an output bound sent, though no budget and no limit asks for one: somebody counts on what the call can cost.
    pub(crate) fn bound_output(&mut self) {
        self.flight.must_bound = true;
    }

    /// Ends the request with a refusal, which its record names.
    pub async fn refuse(self, error: GatewayError) -> Failure {
        self.flight.fail(error, false).await
    }
}

impl Gateway {
    /// Returns a gateway over the state, with its first policy.
    pub fn new(state: StateConfig, policy: Policy) -> Self {
        let state = State::new(state);
        let policy = ArcSwap::from_pointee(Pinned::new(policy, &state));
        Self { state: Arc::new(state), policy }
    }

    /// Puts another policy in force. Requests in flight keep the one they began with; state is kept.
    pub fn reload(&self, policy: Policy) {
        self.policy.store(Arc::new(Pinned::new(policy, &self.state)));
    }

    /// Returns the policy of the moment.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(self.policy.load().policy())
    }

    /// Returns the source of time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.state.clock
    }

    /// Returns the limits of every scope: to change them before a reload, and to bring back what the ledger knows.
    ///
    /// Scopes that a change adds are heeded from the next [`Gateway::reload`] on.
    pub fn limits(&self) -> &Limits {
        &self.state.limits
    }

    /// Brings back the idempotency keys that the ledger knows. For the start, before the first request.
    pub fn restore_keys(&self, notes: Vec<KeyNote>) {
        idempotency::restore(&self.state, notes);
    }

    /// Returns since when keys must be brought back.
    pub fn keys_known_since(&self) -> UtcTime {
        let day = i64::try_from(idempotency::KEPT.as_micros()).unwrap_or(i64::MAX);
        UtcTime::from_micros(self.state.clock.utc().micros().saturating_sub(day))
    }

    /// Says that what is still in flight is about to be ended by the gateway and not by its clients, as records then say.
    pub fn ends(&self) {
        self.state.ends.store(true, Ordering::SeqCst);
    }

    /// Returns the model names that a tenant may ask for, sorted.
    pub fn models(&self, tenant: &TenantId) -> Vec<ModelName> {
        self.policy.load().models(tenant)
    }

    /// Returns the model names that a caller's key may ask for, sorted.
    pub fn models_of(&self, caller: &KeyIdentity) -> Vec<ModelName> {
        self.policy.load().models_of(caller)
    }

    /// Returns a tenant's limits and how far they are used.
    pub fn tenant_snapshot(&self, tenant: &TenantId) -> Option<TenantSnapshot> {
        let limits = self.state.limits.tenant(tenant)?;
        Some(limits.snapshot(self.state.clock.now(), self.state.clock.utc()))
    }

    /// Returns slots, queue, deployments and the estimates' accuracy, for metrics.
    pub fn snapshot(&self) -> GatewaySnapshot {
        GatewaySnapshot::read(&self.state, &self.policy.load())
    }

    /// Returns the limits of a tenant, of the organisations above it and of the whole, and how far they are used.
    pub fn scope_snapshots(&self, tenant: &TenantId) -> Vec<ScopeSnapshot> {
        let ids = SubjectIds { key: None, tenant: tenant.as_str(), model: None };
        let subject = self.state.limits.subject(&ids);
        subject
            .map_or_else(Vec::new, |subject| subject.snapshot(self.state.clock.now(), self.state.clock.utc()))
    }

    /// Returns how many calls are in flight at a deployment.
    pub fn deployment_in_use(&self, deployment: &DeploymentName) -> u32 {
        self.state.limits.deployment(deployment).map_or(0, |slots| slots.in_use())
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn pinned(&self) -> Arc<Pinned> {
        self.policy.load_full()
    }

    pub(crate) fn codec(&self, operation: Operation) -> Option<&Arc<dyn DialectCodec>> {
        self.state.codec(operation)
    }

    /// Step 0: lets a caller in. The place in the ledger is taken here, so that no record can be lost for want of room.
    ///
    /// # Errors
    /// `Overloaded` if the ledger's queue is full or its store fails, or the tenant's queue for a slot is full and does not
    /// get empty; `Forbidden` if the tenant is not in the configuration any more.
    pub fn admit(&self, identity: &KeyIdentity) -> Result<Admitted, GatewayError> {
        let policy = self.policy.load_full();
        let subject = policy.subject(&identity.tenant).cloned().ok_or_else(|| {
            GatewayError::new(ErrorKind::Forbidden, "the key's tenant is not in the configuration any more")
        })?;
        // Before the body is read: under overload, reading what is refused anyway is the work that there is too much of.
        let queue = policy.queue(identity);
        subject.may_come(queue.priority, queue.max_queue, self.state.clock.now())?;
        let place = LedgerPlace::take(Arc::clone(&self.state.ledger))?;
        Ok(Admitted { flight: Flight::new(Arc::clone(&self.state), policy, subject, queue, identity, place) })
    }

    /// Answers a request whole.
    ///
    /// Dropping the future cancels the provider's call, settles and leaves the record.
    ///
    /// # Errors
    /// Any kind of the table, with the evidence of what was tried.
    pub async fn complete(
        &self,
        admitted: Admitted,
        request: impl Into<Arc<NormalizedRequest>>,
    ) -> Result<Reply<Body>, Failure> {
        let (mut flight, request) = (admitted.flight, request.into());
        let side_effecting = request.context.side_effecting;
        let mut outgoing = match pipeline::decide(&mut flight, &request).await {
            Ok(Decided::Hit(hit)) => return hit.whole(flight).await,
            Ok(Decided::Kept(kept)) => return kept.whole(flight).await,
            Ok(Decided::Call(outgoing)) => outgoing,
            Err(error) => return Err(flight.fail(error, side_effecting).await),
        };
        if let Some(key) = outgoing.shared_key(&request) {
            return Sharing { flight, request, outgoing, key }.whole().await;
        }
        match outgoing.make(&mut flight, &request).await {
            Ok(Served::Complete(answer)) => {
                flight.keep_answer(KeptContent::Whole(KeptBody(answer.raw.clone())));
                pipeline::remember(&mut flight, outgoing.write.take(), &answer).await;
                Ok(Reply { head: pipeline::finish(flight).await?, body: Body::Raw(answer.raw) })
            }
            Ok(Served::Stream(_)) => Err(flight.fail(wrong_form(), side_effecting).await),
            Err(error) => Err(flight.fail(error, side_effecting).await),
        }
    }

    /// Answers a request as a stream; returns once its first meaningful event is here.
    ///
    /// Until then retry and fallback work as for a whole answer. Dropping the future or the stream cancels the
    /// provider's call, settles and leaves the record.
    ///
    /// # Errors
    /// Any kind of the table, with the evidence of what was tried.
    pub async fn stream(
        &self,
        admitted: Admitted,
        request: impl Into<Arc<NormalizedRequest>>,
    ) -> Result<Reply<StreamBody>, Failure> {
        let (mut flight, request) = (admitted.flight, request.into());
        let side_effecting = request.context.side_effecting;
        let mut outgoing = match pipeline::decide(&mut flight, &request).await {
            Ok(Decided::Hit(hit)) => return hit.stream(flight).await,
            Ok(Decided::Kept(kept)) => return kept.stream(flight).await,
            Ok(Decided::Call(outgoing)) => outgoing,
            Err(error) => return Err(flight.fail(error, side_effecting).await),
        };
        if let Some(key) = outgoing.shared_key(&request) {
            return Sharing { flight, request, outgoing, key }.stream().await;
        }
        match outgoing.make(&mut flight, &request).await {
            Ok(Served::Stream(opened)) => {
                let mut head = flight.head(Outcome::Ok);
                head.refresh(&flight);
                let relay = Relay::alone(flight, &request, opened, outgoing.write.take());
                Ok(Reply { head, body: StreamBody::Relay(Box::new(relay)) })
            }
            Ok(Served::Complete(_)) => Err(flight.fail(wrong_form(), side_effecting).await),
            Err(error) => Err(flight.fail(error, side_effecting).await),
        }
    }

    /// Returns what the caches hold and have decided.
    pub fn cache_report(&self) -> CacheReport {
        CacheReport::read(&self.state)
    }

    /// Returns what [`Gateway::invalidate_cache`] would remove.
    pub fn cache_matching(&self, scope: &InvalidationScope) -> CacheScopeUsage {
        let State { exact, semantic, .. } = &*self.state;
        CacheScopeUsage { exact: exact.matching(scope), semantic: semantic.matching(scope) }
    }

    /// Forgets the answers of the scope, and what was learnt of them. Calls in flight may still leave theirs.
    pub fn invalidate_cache(&self, scope: &InvalidationScope) -> CacheScopeUsage {
        let State { exact, semantic, decisions, .. } = &*self.state;
        decisions.invalidate(scope);
        CacheScopeUsage { exact: exact.invalidate(scope), semantic: semantic.invalidate(scope) }
    }

    /// Takes what somebody says about a similar answer: whether the stored answer was, or would have been, right for the
    /// request. Returns whether such a request is known and still waits.
    pub fn feedback(&self, request: &RequestId, right: bool) -> bool {
        self.state.decisions.feedback(request, right)
    }

    /// Waits until everything has ended that goes on without the request that began it: calls that others share,
    /// judgements of similar answers, settlements of limits that replicas share. To be called once no request is let in
    /// any more.
    pub async fn finish(&self) {
        self.state.tasks.ended().await;
    }
}

pub(crate) fn wrong_form() -> GatewayError {
    GatewayError::new(ErrorKind::Internal, "the answer has another form than the request asked for")
}
