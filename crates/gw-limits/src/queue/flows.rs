//! Whose turn it is: priority classes with an aging floor, and within a class the virtual token counter.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZeroU32,
};

use foldhash::fast::FixedState;
use gw_types::TenantId;

use crate::{Priority, Scope};

/// A class that has waited through so many turns of others is next. With three classes, two of which may come due
/// together, each gets at least one turn in twenty.
const SKIPPED_MAX: u32 = 18;

/// Parts of a token that counters count in, so that a division by a weight loses little.
const MICRO: u128 = 1_000_000;

/// Flows without a waiter that are kept beyond twice those that have one, before the pointless ones are forgotten.
const IDLE_SLACK: usize = 64;

/// A tenant in a class.
pub(super) type FlowId = (Priority, TenantId);

/// Who waits, in the order of their turns.
///
/// Source: Virtual Token Counter (Sheng et al., OSDI 2024). The counter of a tenant is the service that it had,
/// divided by its weight; the lowest counter among those that wait is next, ties by name. Who comes back from idling is
/// lifted to the lowest counter that waits, so idling earns no credit. Two tenants that wait all the time differ by
/// at most twice the largest charge. A counter has 128 bits and is never reset: it lasts for 10^32 tokens.
///
/// A tenant whose next request is blocked by a cap of its own scopes is parked at that scope, so that it costs those
/// behind it nothing. Every operation is O(log n).
#[derive(Debug, Default)]
pub(super) struct Flows {
    classes: [Class; Priority::ALL.len()],
    flows: HashMap<FlowId, Flow, FixedState>,
    parked: BTreeMap<Scope, BTreeSet<(Priority, u128, TenantId)>>,
    /// Flows that a freed slot has brought back since they were last looked at.
    fresh: Vec<FlowId>,
    waiting: usize,
    /// Flows with a waiter.
    busy: usize,
}

#[derive(Debug, Default)]
struct Class {
    /// Flows with a waiter that are not parked.
    ready: BTreeSet<(u128, TenantId)>,
    /// The counter of the flow that ran empty last.
    last: u128,
    waiting: usize,
    busy: usize,
    skipped: u32,
}

#[derive(Debug, Default)]
struct Flow {
    counter: u128,
    waiting: BTreeSet<u64>,
    parked_at: Option<Scope>,
    /// The scope whose freed slot made the flow ready again; if it cannot use it, the next one there may.
    freed_by: Option<Scope>,
}

/// The next waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) flow: FlowId,
    pub(super) waiter: u64,
}

impl Flows {
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn waiting_in(&self, flow: &FlowId) -> usize {
        self.flows.get(flow).map_or(0, |flow| flow.waiting.len())
    }

    /// Returns how many turns others have before a new waiter of the flow: those of higher classes, and one round of
    /// all busy flows of the class for each waiter of its own.
    pub(super) fn ahead(&self, flow: &FlowId) -> usize {
        let (own, class) = (self.waiting_in(flow), &self.classes[flow.0.index()]);
        let higher: usize = self.classes[..flow.0.index()].iter().map(|class| class.waiting).sum();
        let busy = class.busy + usize::from(own == 0);
        higher + class.waiting.min((own + 1) * busy - 1)
    }

    pub(super) fn push(&mut self, id: &FlowId, waiter: u64) {
        let class = &mut self.classes[id.0.index()];
        let flow = self.flows.entry(id.clone()).or_default();
        if flow.waiting.is_empty() {
            flow.counter = flow.counter.max(class.floor());
            class.ready.insert((flow.counter, id.1.clone()));
            class.busy += 1;
            self.busy += 1;
        }
        flow.waiting.insert(waiter);
        class.waiting += 1;
        self.waiting += 1;
    }

    /// Returns the next waiter that is not parked.
    pub(super) fn next(&self) -> Option<Turn> {
        let due = |class: &&Priority| self.classes[class.index()].skipped >= SKIPPED_MAX;
        let ready = Priority::ALL.iter().filter(|class| !self.classes[class.index()].ready.is_empty());
        let class = ready.clone().rfind(due).or_else(|| ready.clone().next())?;
        let (_, tenant) = self.classes[class.index()].ready.first()?;
        self.head(&(*class, tenant.clone()))
    }

    /// Returns a flow's first waiter, unless the flow is parked.
    pub(super) fn head(&self, id: &FlowId) -> Option<Turn> {
        let flow = self.flows.get(id).filter(|flow| flow.parked_at.is_none())?;
        let waiter = *flow.waiting.first()?;
        Some(Turn { flow: id.clone(), waiter })
    }

    /// Ends a waiter's turn: it is served and charged.
    pub(super) fn served(&mut self, turn: &Turn, tokens: u64, weight: NonZeroU32) {
        for (at, class) in self.classes.iter_mut().enumerate() {
            let waits = at != turn.flow.0.index() && !class.ready.is_empty();
            class.skipped = if waits { class.skipped.saturating_add(1) } else { 0 };
        }
        if let Some(flow) = self.flows.get_mut(&turn.flow) {
            flow.freed_by = None;
        }
        self.charge(&turn.flow, tokens, weight);
        self.leave(&turn.flow, turn.waiter);
    }

    /// Charges a flow for service; one that nobody knows any more has no counter that could matter.
    pub(super) fn charge(&mut self, id: &FlowId, tokens: u64, weight: NonZeroU32) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let before = flow.counter;
        flow.counter = before.saturating_add(u128::from(tokens) * MICRO / u128::from(weight.get()));
        let (class, tenant) = (&mut self.classes[id.0.index()], &id.1);
        if class.ready.remove(&(before, tenant.clone())) {
            class.ready.insert((flow.counter, tenant.clone()));
        }
        if let Some(parked) = flow.parked_at.as_ref().and_then(|scope| self.parked.get_mut(scope)) {
            parked.remove(&(id.0, before, tenant.clone()));
            parked.insert((id.0, flow.counter, tenant.clone()));
        }
    }

    /// Removes a waiter; returns whether there may be a turn for another one now.
    pub(super) fn leave(&mut self, id: &FlowId, waiter: u64) -> bool {
        let Some(flow) = self.flows.get_mut(id) else { return false };
        let was_head = flow.waiting.first() == Some(&waiter);
        if !flow.waiting.remove(&waiter) {
            return false;
        }
        self.waiting -= 1;
        self.classes[id.0.index()].waiting -= 1;
        let empty = flow.waiting.is_empty();
        // The next waiter of the flow may have other scopes than the one that was blocked.
        let unblocked = was_head && self.unpark(id);
        if empty { self.emptied(id) || unblocked } else { unblocked }
    }

    fn emptied(&mut self, id: &FlowId) -> bool {
        let Some(flow) = self.flows.get_mut(id) else { return false };
        let (counter, freed_by) = (flow.counter, flow.freed_by.take());
        let class = &mut self.classes[id.0.index()];
        class.ready.remove(&(counter, id.1.clone()));
        class.last = counter;
        class.busy -= 1;
        self.busy -= 1;
        if self.flows.len() > 2 * self.busy + IDLE_SLACK {
            let floors = Priority::ALL.map(|class| self.classes[class.index()].floor());
            // Whoever is at or below the floor would be lifted to it anyway.
            self.flows.retain(|id, flow| !flow.waiting.is_empty() || flow.counter > floors[id.0.index()]);
        }
        freed_by.is_some_and(|scope| self.freed(&scope))
    }

    /// Takes a flow out of the order until a slot of the scope comes back.
    pub(super) fn park(&mut self, id: &FlowId, scope: &Scope) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let freed_by = flow.freed_by.take();
        self.classes[id.0.index()].ready.remove(&(flow.counter, id.1.clone()));
        flow.parked_at = Some(scope.clone());
        self.parked.entry(scope.clone()).or_default().insert((id.0, flow.counter, id.1.clone()));
        // The slot that this flow could not use is for the next one that waits for it.
        if let Some(freed_by) = freed_by.filter(|freed_by| freed_by != scope) {
            self.freed(&freed_by);
        }
    }

    /// Brings back the first flow that is parked at a scope, because a slot came back there.
    pub(super) fn freed(&mut self, scope: &Scope) -> bool {
        let first = self.parked.get(scope).and_then(|parked| parked.first().cloned());
        let Some((class, _, tenant)) = first else { return false };
        let id = (class, tenant);
        let unparked = self.unpark(&id);
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.freed_by = Some(scope.clone());
        }
        self.fresh.push(id);
        unparked
    }

    /// Returns a flow that a freed slot has brought back and that has not used it.
    pub(super) fn next_fresh(&mut self) -> Option<FlowId> {
        while let Some(id) = self.fresh.pop() {
            if self.flows.get(&id).is_some_and(|flow| flow.freed_by.is_some()) {
                return Some(id);
            }
        }
        None
    }

    /// Offers the freed slot that a flow could not use to the next one that is parked for it.
    pub(super) fn pass_on(&mut self, id: &FlowId) {
        if let Some(scope) = self.flows.get_mut(id).and_then(|flow| flow.freed_by.take()) {
            self.freed(&scope);
        }
    }

    /// Brings back every flow, because the limits have changed.
    pub(super) fn unpark_all(&mut self) {
        let parked = self.parked.values().flatten().map(|(class, _, tenant)| (*class, tenant.clone()));
        for id in parked.collect::<Vec<_>>() {
            self.unpark(&id);
        }
    }

    /// Returns every flow that has a waiter.
    pub(super) fn busy(&self) -> Vec<FlowId> {
        let busy = self.flows.iter().filter(|(_, flow)| !flow.waiting.is_empty());
        let mut ids: Vec<_> = busy.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }

    fn unpark(&mut self, id: &FlowId) -> bool {
        let Some(flow) = self.flows.get_mut(id) else { return false };
        let Some(scope) = flow.parked_at.take() else { return false };
        if let Some(parked) = self.parked.get_mut(&scope) {
            parked.remove(&(id.0, flow.counter, id.1.clone()));
            if parked.is_empty() {
                self.parked.remove(&scope);
            }
        }
        let class = &mut self.classes[id.0.index()];
        // While its own cap held it back it did not compete, so it earned no credit.
        flow.counter = flow.counter.max(class.floor());
        class.ready.insert((flow.counter, id.1.clone()));
        true
    }

    #[cfg(test)]
    pub(super) fn counter(&self, id: &FlowId) -> u128 {
        self.flows.get(id).map_or(0, |flow| flow.counter)
    }
}

impl Class {
    /// The counter that whoever begins to wait has at least.
    fn floor(&self) -> u128 {
        self.ready.first().map_or(self.last, |(counter, _)| *counter)
    }
}
