//! Everyone whom one request concerns: its scopes, resolved once, and what it takes from all of them.

use std::sync::Arc;

use gw_types::{Money, MonoTime, TokenCount, UtcTime};
use smallvec::SmallVec;

use crate::{
    Admission, BucketSnapshot, DeploymentSlots, PoolSnapshot, Reservation, Scope, ScopeRefusal,
    ScopeSnapshot, Slot, Worth,
    admission::{RateRefusals, Taken},
    node::{Node, NodeState},
    queue::Pool,
    quota::{Quota, Refusal},
    reservation::Hold,
    scopes::ORGANISATIONS_MAX,
    slots::NoSlot,
    sync::MutexGuard,
};

/// Scopes of one request, at most: key, tenant, organisations, model, the whole, deployment.
pub(crate) const SCOPES_MAX: usize = 5 + ORGANISATIONS_MAX;

/// One value for each scope of a request, in lock order.
pub(crate) type PerScope<T> = SmallVec<[T; SCOPES_MAX]>;

/// Names those whom a request concerns.
#[derive(Clone, Copy, Debug)]
pub struct SubjectIds<'a> {
    /// The caller's key by name; one without limits of its own makes no difference.
    pub key: Option<&'a str>,
    /// The tenant; its organisations follow from the configuration.
    pub tenant: &'a str,
    /// The model as the caller named it; one without limits of its own makes no difference.
    pub model: Option<&'a str>,
}

/// The scopes of a request.
///
/// Every take is decided in all scopes before anything is taken in any: their locks are taken in one fixed order (kind
/// of scope, then name), all verdicts are collected, and then all is taken or nothing. So a refusal consumes nothing,
/// and it can name every limit that refused. A clone is two counters; it stays good across a change of the limits, but
/// then may lack scopes that are new: resolve once a request, not once a process.
///
/// Where a request is let through nothing is allocated, as long as it concerns at most 8 caps on money.
#[derive(Clone, Debug)]
pub struct Subject {
    /// In lock order.
    chain: Arc<[Arc<Node>]>,
    /// After all others in lock order.
    deployment: Option<Arc<DeploymentSlots>>,
}

impl Subject {
    pub(crate) fn new(mut nodes: PerScope<Arc<Node>>) -> Self {
        nodes.sort_unstable_by(|a, b| a.scope().cmp(b.scope()));
        Self { chain: nodes.into_iter().collect(), deployment: None }
    }

    /// Returns the subject together with a deployment, in place of the one it may have had.
    #[must_use]
    pub fn at(&self, deployment: &Arc<DeploymentSlots>) -> Self {
        Self { chain: Arc::clone(&self.chain), deployment: Some(Arc::clone(deployment)) }
    }

    /// Returns the subject of a deployment alone: what its calls take beside what their callers take.
    pub fn of_deployment(deployment: &Arc<DeploymentSlots>) -> Self {
        Self { chain: Arc::from([]), deployment: Some(Arc::clone(deployment)) }
    }

    /// Returns the scopes, in lock order.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.nodes().map(Node::scope)
    }

    /// Returns whether money is limited in any scope.
    pub fn has_budget(&self) -> bool {
        self.nodes().any(|node| node.lock().quotas.iter().any(Quota::has_budget))
    }

    /// Returns whether tokens a minute are limited in any scope.
    pub fn has_token_limit(&self) -> bool {
        self.nodes().any(|node| node.lock().rates.has_token_limit())
    }

    /// Refuses if a money window of any scope is spent: the cheapest refusal, before anything is taken.
    ///
    /// # Errors
    /// `QuotaExceeded` naming every cap whose spent >= limit, with the time until the last of them has room.
    pub fn check_quota(&self, utc: UtcTime) -> Result<(), ScopeRefusal> {
        self.quota_verdicts(utc).map_err(|refused| ScopeRefusal::by_budgets(self, &refused))
    }

    pub(crate) fn quota_verdicts(&self, utc: UtcTime) -> Result<(), BudgetRefusals> {
        let mut refused = BudgetRefusals::new();
        for (at, node) in self.nodes().enumerate() {
            let state = node.lock();
            refused.extend(state.quotas.iter().filter_map(|quota| Some((at, quota.check(utc).err()?))));
        }
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }

    /// Takes one request and `tokens` tokens from the rates of every scope, or nothing from any.
    ///
    /// # Errors
    /// [`ScopeRefusal`] names every limit that refused; its `retry_after` is the instant at which all of them have
    /// enough, and not a nanosecond earlier, if nobody else takes any.
    pub fn admit(&self, tokens: TokenCount, now: MonoTime) -> Result<Admission, ScopeRefusal> {
        self.take_rates(tokens, now).map_err(|refused| ScopeRefusal::by_rates(self, &refused, now))
    }

    pub(crate) fn take_rates(&self, tokens: TokenCount, now: MonoTime) -> Result<Admission, RateRefusals> {
        let mut states = self.lock();
        let (mut checked, mut refused) = (PerScope::new(), RateRefusals::new());
        for (at, state) in states.iter_mut().enumerate() {
            match state.rates.check(tokens.get(), now) {
                Ok(next) => checked.push(next),
                Err(denied) => refused.push((at, denied)),
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        let mut taken = Taken { requests: 0, tokens: 0, amount: tokens.get() };
        for (at, (state, next)) in states.iter_mut().zip(checked).enumerate() {
            taken.requests |= u16::from(next.requests.is_some()) << at;
            taken.tokens |= u16::from(next.tokens.is_some()) << at;
            state.rates.consume(next);
        }
        drop(states);
        Ok(Admission::new(self.clone(), taken))
    }

    /// Gives back what was taken of tokens and takes `tokens` instead, in every scope; or only gives back.
    pub(crate) fn replace_tokens(
        &self,
        taken: Taken,
        tokens: u64,
        now: MonoTime,
    ) -> Result<(), RateRefusals> {
        let mut states = self.lock();
        let (mut checked, mut refused) = (PerScope::new(), RateRefusals::new());
        for (at, state) in states.iter_mut().enumerate().filter(|(at, _)| taken.tokens >> at & 1 == 1) {
            state.rates.give_back_tokens(taken.amount);
            match state.rates.check_tokens(tokens, now) {
                Ok(next) => checked.push((at, next)),
                Err(denied) => refused.push((at, denied)),
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        for (at, next) in checked {
            states[at].rates.consume(next);
        }
        Ok(())
    }

    /// Holds in the current window of every cap of every scope the amount that the cap asks for, or nothing in any.
    ///
    /// # Errors
    /// `QuotaExceeded`, naming every cap that refused, if spent + reserved + amount would pass its limit or spent has
    /// reached it. `retry_after` is the time until the last of them has room, or short where only requests in flight
    /// stand in the way; an amount above a limit has none and forbids a retry.
    pub fn reserve(&self, worth: impl Into<Worth>, utc: UtcTime) -> Result<Reservation, ScopeRefusal> {
        self.hold(worth.into(), utc).map_err(|refused| ScopeRefusal::by_budgets(self, &refused))
    }

    pub(crate) fn hold(&self, worth: Worth, utc: UtcTime) -> Result<Reservation, BudgetRefusals> {
        let mut states = self.lock();
        let mut refused = BudgetRefusals::new();
        for (at, state) in states.iter_mut().enumerate() {
            let no = |quota: &mut Quota| Some((at, quota.verdict(worth.by(quota.estimate()), utc).err()?));
            refused.extend(state.quotas.iter_mut().filter_map(no));
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        let mut holds = SmallVec::new();
        for (node, state) in (0..).zip(states.iter_mut()) {
            for (quota, one) in (0..).zip(state.quotas.iter_mut()) {
                let estimate = one.estimate();
                let period = one.hold(worth.by(estimate), utc);
                holds.extend(period.map(|period| Hold { node, quota, period, estimate }));
            }
        }
        drop(states);
        Ok(Reservation::new(self.clone(), worth, holds))
    }

    /// Raises what is held, in every window that it is held in, or in none.
    pub(crate) fn raise(
        &self,
        holds: &[Hold],
        held: Worth,
        worth: Worth,
        utc: UtcTime,
    ) -> Result<(), BudgetRefusals> {
        let mut states = self.lock();
        let no = |hold: &Hold| {
            let at = usize::from(hold.node);
            let quota = states.get(at)?.quotas.get(usize::from(hold.quota))?;
            let (held, amount) = (held.by(hold.estimate), worth.by(hold.estimate));
            Some((at, quota.raise_verdict(hold.period, held, amount, utc).err()?))
        };
        let refused: BudgetRefusals = holds.iter().filter_map(no).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        for hold in holds {
            let state = states.get_mut(usize::from(hold.node));
            if let Some(quota) = state.and_then(|state| state.quotas.get_mut(usize::from(hold.quota))) {
                let (held, amount) = (held.by(hold.estimate), worth.by(hold.estimate));
                quota.raise(hold.period, amount.saturating_sub(held));
            }
        }
        Ok(())
    }

    /// Ends what is held: in every scope at once, so that no snapshot sees a part of it. `None`: all of it is spent.
    pub(crate) fn settle(&self, holds: &[Hold], held: Worth, spent: Option<Money>) {
        let mut states = self.lock();
        for hold in holds {
            let state = states.get_mut(usize::from(hold.node));
            if let Some(quota) = state.and_then(|state| state.quotas.get_mut(usize::from(hold.quota))) {
                let reserved = held.by(hold.estimate);
                quota.settle(hold.period, reserved, spent.unwrap_or(reserved));
            }
        }
    }

    /// Takes a slot in every scope, or in none: of the tenant's reserved ones while any is free, else a shared one.
    ///
    /// # Errors
    /// `RateLimited` naming every scope whose own cap is reached; else `Overloaded` if every shared slot, or every slot
    /// of the deployment, is in use.
    pub fn slot(&self) -> Result<Slot, ScopeRefusal> {
        self.try_slot().map_err(|refused| ScopeRefusal::by_slots(self, &refused))
    }

    pub(crate) fn try_slot(&self) -> Result<Slot, SlotRefusals> {
        let mut states = self.lock();
        let no = |(at, (node, state)): (usize, (&Node, &MutexGuard<'_, NodeState>))| {
            Some((at, state.share.verdict(node.shared()).err()?))
        };
        let refused: SlotRefusals = self.nodes().zip(&states).enumerate().filter_map(no).collect();
        if !refused.is_empty() {
            return Err(refused);
        }
        // The pool and the deployment are counts without a lock, so they can still refuse what was just possible. Only
        // a tenant has a pool, and a chain has one tenant.
        let mut pools = self.nodes().zip(&states).enumerate();
        let from_pool = pools.find_map(|(at, (node, state))| {
            node.shared().filter(|_| state.share.needs_shared()).map(|shared| (at, shared))
        });
        if let Some((at, _)) = from_pool.filter(|(_, shared)| !shared.try_take()) {
            return Err(vec![(at, NoSlot::Pool)]);
        }
        if self.deployment.as_ref().is_some_and(|deployment| !deployment.gauge().try_take()) {
            from_pool.inspect(|(_, shared)| shared.give_back(1));
            return Err(vec![(self.chain.len(), NoSlot::Deployment)]);
        }
        states.iter_mut().for_each(|state| state.share.count());
        drop(states);
        Ok(Slot::new(self.clone()))
    }

    /// Takes a slot that nobody misses: one that the tenant has reserved and does not use, or a shared one while more
    /// than half of them are free and nobody waits. For work that is welcome but not needed.
    pub fn spare_slot(&self) -> Option<Slot> {
        if let Some(pool) = self.pool() {
            let PoolSnapshot { shared, shared_in_use, waiting } = pool.snapshot();
            let needs_shared =
                self.nodes().any(|node| node.shared().is_some() && node.lock().share.needs_shared());
            if waiting > 0 || needs_shared && shared_in_use >= shared / 2 {
                return None;
            }
        }
        self.try_slot().ok()
    }

    /// Gives a slot back in every scope.
    pub(crate) fn slot_back(&self) {
        for node in self.nodes() {
            node.lock().share.give_back(node.shared());
        }
        if let Some(deployment) = &self.deployment {
            deployment.gauge().give_back(1);
        }
        if let Some(pool) = self.pool() {
            pool.released(self);
        }
    }

    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        self.chain.iter().find_map(|node| node.pool())
    }

    pub(crate) fn without_deployment(&self) -> Self {
        Self { chain: Arc::clone(&self.chain), deployment: None }
    }

    /// Returns the tightest rate of requests and the tightest of tokens a minute: the one with the least left, of
    /// several the one that takes longest to fill. No allocation.
    pub fn rates(&self, now: MonoTime) -> (Option<BucketSnapshot>, Option<BucketSnapshot>) {
        let mut tightest = (None, None);
        for state in &mut self.lock() {
            let (requests, tokens) = state.rates.snapshot(now);
            tighten(&mut tightest.0, requests);
            tighten(&mut tightest.1, tokens);
        }
        tightest
    }

    /// Returns whether a rate or a cap on money holds for any scope.
    pub fn is_limited(&self) -> bool {
        self.nodes().any(|node| {
            let state = node.lock();
            state.rates.is_limited() || state.quotas.iter().any(Quota::has_budget)
        })
    }

    /// Returns every scope's limits and use, in lock order, all of the same instant.
    pub fn snapshot(&self, now: MonoTime, utc: UtcTime) -> Vec<ScopeSnapshot> {
        let mut states = self.lock();
        let scopes = self.nodes().zip(states.iter_mut());
        scopes.map(|(node, state)| ScopeSnapshot::read(node.scope().clone(), state, now, utc)).collect()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        let deployment = self.deployment.as_ref().map(|deployment| deployment.node());
        self.chain.iter().map(|node| &**node).chain(deployment)
    }

    pub(crate) fn node(&self, at: usize) -> Option<&Node> {
        match self.chain.get(at) {
            Some(node) => Some(node),
            None => self.deployment.as_ref().map(|deployment| deployment.node()),
        }
    }

    /// All locks, in the one order that all takers keep.
    fn lock(&self) -> PerScope<MutexGuard<'_, NodeState>> {
        self.nodes().map(Node::lock).collect()
    }
}

fn tighten(kept: &mut Option<BucketSnapshot>, other: Option<BucketSnapshot>) {
    let rank = |bucket: &BucketSnapshot| (bucket.remaining, std::cmp::Reverse(bucket.reset_after));
    *kept = kept.iter().chain(&other).min_by_key(|bucket| rank(bucket)).copied();
}

/// Which caps on money refused, by the place of their scope.
pub(crate) type BudgetRefusals = Vec<(usize, Refusal)>;
/// Which scopes had no slot, by their place.
pub(crate) type SlotRefusals = Vec<(usize, NoSlot)>;
