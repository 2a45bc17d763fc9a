//! The pool of slots, and the queue of those for whom there is none yet.

mod delay;
mod flows;
#[cfg(test)]
mod tests;
mod waiting;

use std::{collections::HashMap, num::NonZeroU32, sync::Arc, task::Waker, time::Duration};

use foldhash::fast::FixedState;
use gw_errors::{ErrorKind, GatewayError};
use gw_types::{Clock, MonoTime, TenantId, TokenCount};
use smallvec::SmallVec;

pub use self::waiting::Waiting;
use self::{
    delay::Delay,
    flows::{FlowId, Flows, Turn},
};
use crate::{
    Scope, Slot, Subject,
    config::names,
    gauge::Gauge,
    slots::NoSlot,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering, fence},
    },
};

/// Requests that wait in one pool, at most, whatever their tenants may queue.
const WAITERS_MAX: usize = 10_000;
/// What a token of output weighs against one of input, as in the VTC artifact.
const OUTPUT_WEIGHT: u64 = 2;
/// Hand-overs after which their pace is believed.
const PACE_SAMPLES: u32 = 8;
/// The share of one interval in the pace is 1 to this.
const PACE_MEMORY: u64 = 8;
/// What is advised as long as the pace is not known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How urgent a request is. A higher class goes first, but each class that waits gets at least one turn in twenty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Somebody waits for the answer, and more depends on it.
    High,
    /// Somebody waits for the answer.
    #[default]
    Normal,
    /// Nobody waits: batches, evaluations.
    Low,
}

impl Priority {
    /// Every class, the most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    const fn index(self) -> usize {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

/// What a request says that is willing to wait for a slot.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    /// The class.
    pub priority: Priority,
    /// The tenant's share against others; 1 is usual.
    pub weight: NonZeroU32,
    /// Input that the tenant is charged for at its turn. Output is charged as it comes: [`Subject::charge_output`].
    pub input: TokenCount,
    /// Requests of the tenant in this class that may wait; with 0 there is no waiting.
    pub max_queue: u32,
    /// When the request must have left the queue.
    pub deadline: MonoTime,
    /// What must be left of the deadline at the turn, or the turn is useless.
    pub needs: Duration,
}

/// The slots of all tenants, and who waits for one.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The slots that no tenant has reserved.
    pub(crate) shared: Gauge,
    /// How many wait. Written under the queue's lock, and read without it by whoever gives a slot back.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    flows: Flows,
    waiters: HashMap<u64, Waiter, FixedState>,
    /// The number of the next waiter: within a flow the lower is first.
    next: u64,
    pace: Pace,
    delay: Delay,
}

#[derive(Debug)]
struct Waiter {
    subject: Subject,
    clock: Arc<dyn Clock>,
    flow: FlowId,
    ticket: Ticket,
    joined: MonoTime,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Queued(Option<Waker>),
    /// The turn has come, and the slot is the waiter's.
    Served(Slot),
    /// The turn came too late.
    Late,
    /// It has waited too long in a queue that does not get empty.
    Shed,
}

/// The pool of slots and its queue, read at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSnapshot {
    /// Slots that no tenant has reserved.
    pub shared: u32,
    /// Shared slots in use.
    pub shared_in_use: u32,
    /// Requests that wait for a slot.
    pub waiting: usize,
}

/// How fast waiters get their turns, from the intervals between turns while others wait.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    interval_ns: u64,
    samples: u32,
    last: Option<MonoTime>,
}

/// Whom a pass through the queue must wake once the lock is released.
type Wakers = SmallVec<[Waker; 2]>;

impl Pool {
    pub(crate) fn new() -> Self {
        Self { shared: Gauge::new(0), waiting: AtomicUsize::new(0), queue: Mutex::new(Queue::default()) }
    }

    pub(crate) fn snapshot(&self) -> PoolSnapshot {
        let waiting = self.waiting.load(Ordering::Relaxed);
        PoolSnapshot { shared: self.shared.limit(), shared_in_use: self.shared.in_use(), waiting }
    }

    /// Hands what a subject gave back to those who wait.
    ///
    /// No wake-up is lost: whoever begins to wait counts itself before it looks for a slot, and whoever gives one back
    /// does so before it looks at the count; with a fence between the two steps, at least one of them sees the other.
    pub(crate) fn released(&self, subject: &Subject) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut queue = self.queue.lock();
        for scope in subject.scopes() {
            queue.flows.freed(scope);
        }
        let wakers = queue.pass(subject.tenant());
        self.unlock(queue, wakers);
    }

    /// Looks at everyone who waits anew, because the limits have changed.
    pub(crate) fn reconfigured(&self) {
        let mut queue = self.queue.lock();
        queue.flows.unpark_all();
        let mut wakers = queue.pass(None);
        for flow in queue.flows.busy() {
            // A reservation may have grown.
            while queue.turn_of(&flow, &mut wakers) {}
        }
        self.unlock(queue, wakers);
    }

    /// Begins to wait; the slot may be there at once.
    fn join(&self, subject: &Subject, ticket: Ticket, clock: &Arc<dyn Clock>) -> Result<u64, GatewayError> {
        let tenant = subject.tenant().cloned();
        let Some(tenant) = tenant else { return Err(NoSlot::Pool.into_error()) };
        let (flow, now) = ((ticket.priority, tenant), clock.now());
        let mut queue = self.queue.lock();
        queue.may_wait(&flow, &ticket, now)?;
        if queue.flows.waiting_in(&flow) == 0 {
            queue.delay.empty(&flow, ticket.deadline.saturating_since(now), now);
        }
        let waiter = queue.next;
        queue.next += 1;
        queue.flows.push(&flow, waiter);
        self.waiting.store(queue.flows.waiting(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let (subject, tenant, clock) = (subject.clone(), flow.1.clone(), Arc::clone(clock));
        let phase = Phase::Queued(None);
        queue.waiters.insert(waiter, Waiter { subject, clock, flow, ticket, joined: now, phase });
        let wakers = queue.pass(Some(&tenant));
        self.unlock(queue, wakers);
        Ok(waiter)
    }

    /// Ends a wait, by its end or before; what the waiter had comes back and must be dropped outside the lock.
    fn leave(&self, waiter: u64) -> Option<Waiter> {
        let mut queue = self.queue.lock();
        let left = queue.waiters.remove(&waiter)?;
        let mut wakers = Wakers::new();
        if matches!(left.phase, Phase::Queued(_)) && queue.flows.leave(&left.flow, waiter) {
            wakers = queue.pass(Some(&left.flow.1));
        }
        self.unlock(queue, wakers);
        Some(left)
    }

    fn charge(&self, flow: &FlowId, tokens: u64, weight: NonZeroU32) {
        self.queue.lock().flows.charge(flow, tokens, weight);
    }

    fn unlock(&self, queue: crate::sync::MutexGuard<'_, Queue>, wakers: Wakers) {
        self.waiting.store(queue.flows.waiting(), Ordering::SeqCst);
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Queue {
    /// Says whether a request may wait: there is room, and by the pace so far its turn comes in time.
    fn may_wait(&self, flow: &FlowId, ticket: &Ticket, now: MonoTime) -> Result<(), GatewayError> {
        let wait = self.pace.estimate(self.flows.ahead(flow) + 1);
        let own = self.flows.waiting_in(flow);
        if own >= ticket.max_queue as usize || self.flows.waiting() >= WAITERS_MAX {
            return Err(overloaded("the queue for a slot is full", wait));
        }
        if wait.is_some_and(|wait| now.saturating_add(wait + ticket.needs) > ticket.deadline) {
            return Err(overloaded("a slot will not be free before the request's deadline", wait));
        }
        if now.saturating_add(ticket.needs) > ticket.deadline {
            return Err(late());
        }
        Ok(())
    }

    /// Gives turns as long as there are slots; then those that `tenant` has reserved.
    fn pass(&mut self, tenant: Option<&TenantId>) -> Wakers {
        let mut wakers = Wakers::new();
        while let Some(turn) = self.flows.next() {
            if !self.try_turn(&turn, &mut wakers) {
                break;
            }
        }
        // The pool is in use. A slot that came back under another cap may still serve someone with a reserved slot.
        // Who is turned away there has not used it.
        while let Some(flow) = self.flows.next_fresh() {
            while self.turn_of(&flow, &mut wakers) {}
            self.flows.pass_on(&flow);
        }
        // A tenant whose call has ended, or that has just come, may have one free, too.
        if let Some(tenant) = tenant {
            for class in Priority::ALL {
                while self.turn_of(&(class, tenant.clone()), &mut wakers) {}
            }
        }
        wakers
    }

    /// Tries a turn of one flow out of order; returns whether somebody has left for it, served or turned away.
    fn turn_of(&mut self, flow: &FlowId, wakers: &mut Wakers) -> bool {
        let before = self.flows.waiting_in(flow);
        let turn = self.flows.head(flow);
        turn.is_some_and(|turn| self.try_turn(&turn, wakers)) && self.flows.waiting_in(flow) < before
    }

    /// Tries a turn; returns whether it is worth trying another one.
    fn try_turn(&mut self, turn: &Turn, wakers: &mut Wakers) -> bool {
        let Some(waiter) = self.waiters.get_mut(&turn.waiter) else {
            debug_assert!(false, "a turn without a waiter");
            return self.flows.leave(&turn.flow, turn.waiter);
        };
        let (ticket, now) = (waiter.ticket, waiter.clock.now());
        if now.saturating_add(ticket.needs) > ticket.deadline {
            wakers.extend(waiter.phase.end(Phase::Late));
            self.flows.leave(&turn.flow, turn.waiter);
            return true;
        }
        // The last one is served however long it has waited, or the slot would be idle.
        if self.flows.waiting_in(&turn.flow) > 1
            && self.delay.is_too_long(&waiter.flow, waiter.joined, &ticket, now)
        {
            wakers.extend(waiter.phase.end(Phase::Shed));
            self.flows.leave(&turn.flow, turn.waiter);
            return true;
        }
        match waiter.subject.try_slot() {
            Ok(slot) => {
                wakers.extend(waiter.phase.end(Phase::Served(slot)));
                self.flows.served(turn, ticket.input.get(), ticket.weight);
                self.pace.turn(now, self.flows.waiting() > 0);
                true
            }
            Err(refused) => {
                let capped = refused.iter().find(|(_, why)| *why != NoSlot::Pool);
                let Some(node) = capped.and_then(|(at, _)| waiter.subject.node(*at)) else { return false };
                self.flows.park(&turn.flow, node.scope());
                true
            }
        }
    }
}

impl Phase {
    /// Returns whom to wake.
    fn end(&mut self, with: Self) -> Option<Waker> {
        match std::mem::replace(self, with) {
            Self::Queued(waker) => waker,
            Self::Served(_) | Self::Late | Self::Shed => None,
        }
    }
}

impl Pace {
    fn turn(&mut self, now: MonoTime, others_wait: bool) {
        if let Some(last) = self.last {
            let interval = u64::try_from(now.saturating_since(last).as_nanos()).unwrap_or(u64::MAX);
            let memory = PACE_MEMORY.min(u64::from(self.samples) + 1);
            self.interval_ns = self.interval_ns - self.interval_ns / memory + interval / memory;
            self.samples = self.samples.saturating_add(1);
        }
        // An idle time says nothing about how fast slots come back.
        self.last = others_wait.then_some(now);
    }

    /// Returns how long so many turns take, if the pace is known.
    fn estimate(&self, turns: usize) -> Option<Duration> {
        let turns = u64::try_from(turns).unwrap_or(u64::MAX);
        (self.samples >= PACE_SAMPLES).then(|| Duration::from_nanos(self.interval_ns.saturating_mul(turns)))
    }
}

impl Subject {
    /// Takes a slot, or waits for one in the order of the pool's queue.
    ///
    /// A free reserved slot of the tenant is had at once, whoever waits. Otherwise nobody is overtaken: a slot that
    /// comes back goes to the next in the queue, by class, then by the service that tenants had, then by age. Dropping
    /// the future at any moment ends the wait; a slot that was on its way to it goes on to the next. The subject's
    /// deployment counts at [`DeploymentSlots::try_acquire`], not here.
    ///
    /// [`DeploymentSlots::try_acquire`]: crate::DeploymentSlots::try_acquire
    ///
    /// # Errors
    /// At once: with `max_queue` 0 what [`Subject::slot`] says; `Overloaded` if the queue is full or, by the pace of
    /// the last turns, the turn would come too late, with that pace's wait as `retry_after`; `DeadlineExceeded` if
    /// there is too little time as it is. The future: `DeadlineExceeded`.
    pub fn acquire(&self, ticket: Ticket, clock: &Arc<dyn Clock>) -> Result<Waiting, GatewayError> {
        let alone = self.without_deployment();
        let Some(pool) = alone.pool().cloned() else { return Ok(Waiting::ready(alone.slot()?)) };
        if ticket.max_queue == 0 || pool.waiting.load(Ordering::SeqCst) == 0 {
            match alone.slot() {
                Ok(slot) => return Ok(Waiting::ready(slot)),
                Err(refusal) if ticket.max_queue == 0 => return Err(refusal.error),
                Err(_) => {}
            }
        }
        let waiter = pool.join(&alone, ticket, clock)?;
        Ok(Waiting::queued(pool, waiter, clock.sleep_until(ticket.deadline)))
    }

    /// Refuses a request before anything of it is read, where whatever it is it could not even wait: the tenant's queue of
    /// the class is full, and has not been empty for so long that more is asked than can be done. One load while nobody
    /// waits.
    ///
    /// # Errors
    /// `Overloaded`, with the wait as `retry_after` as far as the pace of the turns is known.
    pub fn may_come(&self, priority: Priority, max_queue: u32, now: MonoTime) -> Result<(), GatewayError> {
        let waited_for = self.pool().filter(|pool| pool.waiting.load(Ordering::Relaxed) > 0);
        let (Some(pool), Some(tenant)) = (waited_for, self.tenant()) else { return Ok(()) };
        let (flow, queue) = ((priority, tenant.clone()), pool.queue.lock());
        let waiting = queue.flows.waiting_in(&flow);
        if max_queue == 0 || waiting < max_queue as usize || !queue.delay.lasts(&flow, now) {
            return Ok(());
        }
        let wait = queue.pace.estimate(queue.flows.ahead(&flow) + 1);
        Err(overloaded("the queue for a slot is full, and does not get empty", wait))
    }

    /// Charges the tenant for output that it has got, so that its later requests wait for others accordingly.
    pub fn charge_output(&self, priority: Priority, weight: NonZeroU32, tokens: TokenCount) {
        // Counters order those who wait. While nobody does there is nothing to keep in order, and no lock to take.
        let waited_for = self.pool().filter(|pool| pool.waiting.load(Ordering::Relaxed) > 0);
        if let (Some(pool), Some(tenant)) = (waited_for, self.tenant()) {
            pool.charge(&(priority, tenant.clone()), tokens.get().saturating_mul(OUTPUT_WEIGHT), weight);
        }
    }

    fn tenant(&self) -> Option<&TenantId> {
        self.scopes().find_map(|scope| match scope {
            Scope::Tenant(tenant) => Some(tenant),
            Scope::Key(..)
            | Scope::Organisation(_)
            | Scope::Model(_)
            | Scope::Global
            | Scope::Deployment(_) => None,
        })
    }
}

fn overloaded(message: &'static str, wait: Option<Duration>) -> GatewayError {
    GatewayError::new(ErrorKind::Overloaded, message)
        .with_subject(names::QUEUE)
        .with_retry_after(wait.unwrap_or(RETRY_AFTER))
}

fn shed() -> GatewayError {
    overloaded("the request has waited too long for a slot in a queue that does not get empty", None)
}

fn late() -> GatewayError {
    GatewayError::new(ErrorKind::DeadlineExceeded, "no slot was free before the request's deadline")
}
