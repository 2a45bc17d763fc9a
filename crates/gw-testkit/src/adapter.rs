//! An adapter that plays a script in virtual time.

mod play;
mod step;

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use gw_types::{
    Adapter, Answer, AttemptPlan, Clock, Deployment, GatewayError, Loss, MonoTime, NormalizedRequest,
    Prepared,
};
use parking_lot::Mutex;

pub use self::step::{AdapterStep, TimedItem};

/// Calls kept; later ones are counted in nothing.
const CALLS_KEPT: usize = 10_000;

/// An adapter that plays a script: one step a call, the last step repeats, an empty script answers `ok`.
///
/// It waits on the clock that it was given and touches no socket, so a test drives it with a
/// [`gw_types::ManualClock`] and sees the same run every time.
#[derive(Debug)]
pub struct ScriptAdapter {
    clock: Arc<dyn Clock>,
    steps: Mutex<VecDeque<AdapterStep>>,
    loss: Loss,
    refusal: Option<GatewayError>,
    plans: Mutex<Vec<AttemptPlan>>,
    calls: Calls,
}

/// The calls of an adapter, shared with the streams that it returned.
type Calls = Arc<Mutex<Vec<AdapterCall>>>;

/// One call of an adapter. Prints without its body.
#[derive(Clone, PartialEq, Eq)]
pub struct AdapterCall {
    /// The body that would have been sent.
    pub body: Bytes,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether the caller wants to see the usage chunk.
    pub relay_usage: bool,
    /// When the call was made.
    pub at: MonoTime,
    /// How the call ended, as far as it has.
    pub end: CallEnd,
}

/// How a call of an adapter ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallEnd {
    /// It has not.
    #[default]
    Open,
    /// With a whole answer, or with a stream that was read to its end.
    Answered,
    /// With an error.
    Failed,
    /// The caller dropped it.
    Dropped,
}

impl ScriptAdapter {
    /// Returns an adapter that plays the steps by the clock.
    pub fn new(steps: impl IntoIterator<Item = AdapterStep>, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            steps: Mutex::new(steps.into_iter().collect()),
            loss: Loss::default(),
            refusal: None,
            plans: Mutex::default(),
            calls: Calls::default(),
        }
    }

    /// Reports a loss from every `prepare`.
    #[must_use]
    pub fn with_loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// Refuses every `prepare`.
    #[must_use]
    pub fn with_refusal(mut self, refusal: GatewayError) -> Self {
        self.refusal = Some(refusal);
        self
    }

    /// Returns what was prepared, oldest first.
    pub fn plans(&self) -> Vec<AttemptPlan> {
        self.plans.lock().clone()
    }

    /// Returns the calls, oldest first.
    pub fn calls(&self) -> Vec<AdapterCall> {
        self.calls.lock().clone()
    }

    fn next_step(&self) -> AdapterStep {
        let mut steps = self.steps.lock();
        let step = if steps.len() > 1 { steps.pop_front() } else { steps.front().cloned() };
        step.unwrap_or_else(|| AdapterStep::ok("ok"))
    }
}

#[async_trait]
impl Adapter for ScriptAdapter {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        let mut plans = self.plans.lock();
        if plans.len() < CALLS_KEPT {
            plans.push(*plan);
        }
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        Ok(Prepared { loss: self.loss.clone(), ..Prepared::new(request, deployment, request.body.clone()) })
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let step = self.next_step();
        let guard = play::CallGuard::open(&self.calls, &prepared, self.clock.now());
        play::play(step, prepared.stream, Arc::clone(&self.clock), guard).await
    }
}

impl std::fmt::Debug for AdapterCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdapterCall")
            .field("body", &format_args!("[{} bytes redacted]", self.body.len()))
            .field("stream", &self.stream)
            .field("relay_usage", &self.relay_usage)
            .field("at", &self.at)
            .field("end", &self.end)
            .finish()
    }
}
