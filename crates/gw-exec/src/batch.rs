//! Many requests at once: a stream of requests in, a stream of results out, bounded in every resource.
//!
//! Nothing is spawned. The stream owns every call that it has begun, so whoever drops it has cancelled all of them and
//! has back what they held before the drop returns; and no worker can outlive its caller.

mod circuit;
mod item;
mod purse;
mod request;
mod result;
mod seen;
mod workers;

use std::{
    collections::{BTreeMap, VecDeque},
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use futures_util::StreamExt;
use gw_types::{ErrorKind, GatewayError, KeyIdentity, Money};

use self::{
    circuit::Circuit,
    item::{Done, Item, Label},
    purse::Purse,
    workers::Workers,
};
pub use self::{
    request::{GenerationRequest, ModelIdentity},
    result::{GenerationResult, GenerationStatus},
    seen::SeenIds,
};
use crate::Gateway;

/// Workers of one batch, at most.
pub const BATCH_WORKERS_MAX: usize = 10_000;

/// Results that wait for an earlier one, for each worker, where they are handed out in input order.
const WINDOW_PER_WORKER: usize = 16;

/// How a batch is run.
#[derive(Clone, Debug)]
pub struct BatchConfig {
    /// As whom the requests are made.
    pub caller: KeyIdentity,
    /// Requests in work at once; more than [`BATCH_WORKERS_MAX`] is taken as that.
    pub max_concurrency: NonZeroUsize,
    /// In which order results come.
    pub order: Order,
    /// What a failed item does to the rest.
    pub on_failure: OnFailure,
    /// The time of one item, all its waiting included; `None`: the policy's default.
    pub deadline: Option<Duration>,
    /// The most that the batch may cost. An item is begun only if what it may cost at most still fits.
    pub max_cost: Option<Money>,
    /// Whether ids must be compared.
    pub ids: Ids,
}

impl BatchConfig {
    /// Returns a batch of the caller's with so many workers: results as they come, failures kept beside them, ids
    /// compared, nothing else bounded.
    pub const fn new(caller: KeyIdentity, max_concurrency: NonZeroUsize) -> Self {
        Self {
            caller,
            max_concurrency,
            order: Order::Completion,
            on_failure: OnFailure::Continue,
            deadline: None,
            max_cost: None,
            ids: Ids::Compare,
        }
    }
}

/// In which order results come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As items end.
    Completion,
    /// As items came in. At most 16 results a worker wait for an earlier one; then no item is begun.
    Input,
}

/// What a failed item does to the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Nothing.
    Continue,
    /// No other is begun, and those in work are cancelled and handed out as such.
    Stop,
}

/// Whether ids must be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// The second item with an id fails. Costs 16 to 35 bytes an item.
    Compare,
    /// The caller has seen to it that no two are equal.
    Unique,
}

/// Why a batch ended before its input did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An item failed, and the batch was to stop then.
    Failure,
    /// The next item might have passed the most that the batch may cost.
    MaxCost,
    /// Items failed one after the other with a class that the next ones would share.
    Fatal(ErrorKind),
}

impl Gateway {
    /// Answers the requests of a stream, at most `max_concurrency` at once; a request is taken from the stream only
    /// when a worker is free for it.
    ///
    /// Every item goes through the whole pipeline by itself and leaves its own records. What gw's own rates or slots
    /// refuse with an instant at which to come back is asked again then, as long as the item's deadline allows; that
    /// time counts as its wait for admission. An item that cannot be served becomes a failed result and no error.
    ///
    /// Dropping the stream cancels what is in work and gives back all that it held; the gateway stays usable.
    pub fn generate_many<S>(self: &Arc<Self>, requests: S, config: BatchConfig) -> Batch<S>
    where
        S: Stream<Item = GenerationRequest> + Unpin,
    {
        let purse = config.max_cost.map(Purse::new);
        Batch {
            gateway: Arc::clone(self),
            workers: config.max_concurrency.get().min(BATCH_WORKERS_MAX),
            config,
            source: Some(requests),
            next_in: 0,
            next_out: 0,
            held: None,
            running: Workers::default(),
            in_work: BTreeMap::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            seen: SeenIds::default(),
            purse,
            circuit: Circuit::default(),
            stop: None,
        }
    }
}

/// The results of [`Gateway::generate_many`].
#[must_use = "nothing is asked until it is polled"]
pub struct Batch<S> {
    gateway: Arc<Gateway>,
    config: BatchConfig,
    workers: usize,
    /// `None` once it has ended, or the batch was stopped.
    source: Option<S>,
    next_in: u64,
    next_out: u64,
    /// An item that may cost more than is left until others have settled.
    held: Option<Item>,
    running: Workers<Done>,
    /// What is known of the items that are running, by their number.
    in_work: BTreeMap<u64, Arc<Label>>,
    /// Results by their number, where an earlier one is still missing.
    waiting: BTreeMap<u64, GenerationResult>,
    ready: VecDeque<GenerationResult>,
    seen: SeenIds,
    purse: Option<Purse>,
    circuit: Circuit,
    stop: Option<Stop>,
}

impl<S> Batch<S> {
    /// Returns why the batch ended early, once it has.
    pub const fn stopped(&self) -> Option<Stop> {
        self.stop
    }

    /// Returns how many items are in work.
    pub fn in_work(&self) -> usize {
        self.running.len()
    }

    /// Ends the batch: cancels what is in work, which is handed out as cancelled, and takes no more.
    pub fn cancel(&mut self) {
        self.source = None;
        self.running.clear();
        for (number, label) in std::mem::take(&mut self.in_work) {
            self.put(number, GenerationResult::cancelled(&label));
        }
        if let Some(held) = self.held.take() {
            self.put(held.number, GenerationResult::cancelled(&held.label));
        }
    }

    fn put(&mut self, number: u64, result: GenerationResult) {
        match self.config.order {
            Order::Completion => self.ready.push_back(result),
            Order::Input => {
                self.waiting.insert(number, result);
                while let Some(next) = self.waiting.remove(&self.next_out) {
                    self.next_out += 1;
                    self.ready.push_back(next);
                }
            }
        }
    }

    fn stop(&mut self, why: Stop) {
        self.stop.get_or_insert(why);
        self.cancel();
    }

    /// Takes what an item came to.
    fn finished(&mut self, done: Done) {
        let Done { number, held, result } = done;
        self.in_work.remove(&number);
        if let (Some(purse), Some(held)) = (&mut self.purse, held) {
            purse.settle(held, result.cost);
        }
        let (failed, fatal) =
            (result.status == GenerationStatus::Failed, self.circuit.judge(result.error_class));
        self.put(number, result);
        if let Some(kind) = fatal {
            self.stop(Stop::Fatal(kind));
        } else if failed && self.config.on_failure == OnFailure::Stop {
            self.stop(Stop::Failure);
        }
    }

    fn has_room(&self) -> bool {
        self.ready.is_empty()
            && self.running.len() < self.workers
            && self.waiting.len() + self.running.len() < self.workers.saturating_mul(WINDOW_PER_WORKER)
    }
}

impl<S: Stream<Item = GenerationRequest> + Unpin> Batch<S> {
    /// Begins items as long as workers are free and the source has any.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while self.has_room() {
            let Some(item) = self.next(cx) else { return };
            if self.config.ids == Ids::Compare && !self.seen.insert(&item.label.request_id) {
                let error = GatewayError::new(ErrorKind::InvalidRequest, "an earlier item has the same id");
                self.put(item.number, GenerationResult::refused(&item.label, &error));
                continue;
            }
            self.begin(item);
            if self.held.is_some() {
                return;
            }
        }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Option<Item> {
        let Poll::Ready(next) = self.source.as_mut()?.poll_next_unpin(cx) else { return None };
        let Some(request) = next else {
            self.source = None;
            return None;
        };
        let number = self.next_in;
        self.next_in += 1;
        Some(Item::new(number, request))
    }

    /// Begins an item, or keeps it back until its price fits, or stops where it never will.
    fn begin(&mut self, item: Item) {
        let held = match &mut self.purse {
            None => None,
            Some(purse) => {
                let most = purse::most(&self.gateway, &self.config.caller, &item.request);
                if !purse.hold(most) {
                    let never = self.running.is_empty();
                    self.held = Some(item);
                    if never {
                        self.stop(Stop::MaxCost);
                    }
                    return;
                }
                Some(most)
            }
        };
        self.in_work.insert(item.number, Arc::clone(&item.label));
        let (gateway, caller) = (Arc::clone(&self.gateway), self.config.caller.clone());
        let run = item.run(gateway, caller, self.config.deadline, held);
        // One that ends at once is done here, before the next one begins.
        if let Some(done) = self.running.begin(Box::pin(run)) {
            self.finished(done);
        }
    }
}

impl<S: Stream<Item = GenerationRequest> + Unpin> Stream for Batch<S> {
    type Item = GenerationResult;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let batch = self.get_mut();
        loop {
            if let Some(result) = batch.ready.pop_front() {
                return Poll::Ready(Some(result));
            }
            match batch.held.take() {
                Some(held) => batch.begin(held),
                None => batch.fill(cx),
            }
            if !batch.ready.is_empty() {
                continue;
            }
            if batch.running.is_empty() && batch.source.is_none() && batch.held.is_none() {
                return Poll::Ready(None);
            }
            match batch.running.poll_ended(cx) {
                Poll::Ready(done) => batch.finished(done),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<S> std::fmt::Debug for Batch<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("taken", &self.next_in)
            .field("in_work", &self.running.len())
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
