//! What one worker does with one item.

use std::{sync::Arc, time::Duration};

use gw_types::{ErrorKind, GatewayError, KeyIdentity, Money, MonoTime, NormalizedRequest};

use super::{GenerationRequest, GenerationResult, GenerationStatus, ModelIdentity};
use crate::{Body, Failure, Gateway, Reply, ReplyHead};

/// The least time for which a refused item is asked again.
const LEAST_LEFT: Duration = Duration::from_millis(1);

/// How long an item waits that was refused without an instant: slots come free as calls end.
const PAUSE: Duration = Duration::from_millis(50);

/// What a result repeats of its request.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) request_id: String,
    pub(super) task_id: Option<String>,
    pub(super) identity: ModelIdentity,
}

/// An item before it begins.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) label: Arc<Label>,
    pub(super) request: Arc<NormalizedRequest>,
}

/// An item that has ended, and what was held of the batch's money for it.
pub(super) struct Done {
    pub(super) number: u64,
    pub(super) held: Option<Money>,
    pub(super) result: GenerationResult,
}

impl Item {
    pub(super) fn new(number: u64, request: GenerationRequest) -> Self {
        let GenerationRequest { request_id, task_id, identity, request } = request;
        let label = Arc::new(Label { request_id, task_id, identity });
        Self { number, label, request: Arc::new(request) }
    }

    /// Asks until there is an answer, a failure, or no time to ask again.
    pub(super) async fn run(
        mut self,
        gateway: Arc<Gateway>,
        caller: KeyIdentity,
        time: Option<Duration>,
        held: Option<Money>,
    ) -> Done {
        let clock = Arc::clone(gateway.clock());
        let began = clock.now();
        let until = began.saturating_add(time.unwrap_or_else(|| gateway.policy().default_deadline()));
        let mut result = GenerationResult::blank(&self.label, GenerationStatus::Ok);
        loop {
            let ended = self.ask(&gateway, &caller, until, held.is_some()).await;
            match ended {
                Ok(reply) => self.answered(&gateway, reply, &mut result),
                Err((head, error)) => {
                    let now = clock.now();
                    if let Some(pause) = pause(head.as_deref(), &error, until.saturating_since(now)) {
                        result.admission_wait += head.map_or(Duration::ZERO, |head| head.latency) + pause;
                        clock.sleep_until(now.saturating_add(pause)).await;
                        continue;
                    }
                    if let Some(head) = head {
                        note(&head, &mut result);
                    }
                    result.fail(&error);
                }
            }
            result.latency = clock.now().saturating_since(began).saturating_sub(result.admission_wait);
            return Done { number: self.number, held, result };
        }
    }

    async fn ask(
        &mut self,
        gateway: &Gateway,
        caller: &KeyIdentity,
        until: MonoTime,
        bounded: bool,
    ) -> Result<Reply<Body>, (Option<Box<ReplyHead>>, GatewayError)> {
        let mut admitted = gateway.admit(caller).map_err(|error| (None, error))?;
        if bounded {
            admitted.bound_output();
        }
        Arc::make_mut(&mut self.request).context.deadline =
            Some(until.saturating_since(gateway.clock().now()));
        let reply = gateway.complete(admitted, Arc::clone(&self.request)).await;
        reply.map_err(|Failure { head, error }| (Some(head), error))
    }

    fn answered(&self, gateway: &Gateway, reply: Reply<Body>, result: &mut GenerationResult) {
        note(&reply.head, result);
        result.deployment = reply.head.deployment;
        result.served_model = reply.head.served_model;
        match reply.body {
            Body::Completion(completion) => result.completions.clone_from(&completion.choices),
            Body::Raw(raw) => {
                if let Some(codec) = gateway.codec(self.request.operation) {
                    match codec.choices(&raw) {
                        Some(choices) => result.completions = choices,
                        None => result.fail(&GatewayError::new(
                            ErrorKind::MalformedResponse,
                            "the answer cannot be read whole",
                        )),
                    }
                }
                result.raw = Some(raw);
            }
        }
    }
}

fn note(head: &ReplyHead, result: &mut GenerationResult) {
    result.record_id = Some(head.id.clone());
    result.attempts = head.attempts;
    result.attempt_error_classes.clone_from(&head.attempt_errors);
    result.admission_wait += head.settled.queue;
    result.usage = head.settled.usage;
    result.cost = head.settled.cost;
}

/// Returns how long to wait before a refused item is asked again; `None` if that would not help.
///
/// Only gw's own refusals before any call: the pipeline has already done what can be done about a provider's.
fn pause(head: Option<&ReplyHead>, error: &GatewayError, left: Duration) -> Option<Duration> {
    let own = matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Overloaded);
    let called = head.is_some_and(|head| head.attempts > 0);
    if !own || called || error.forbids_retry() {
        return None;
    }
    let pause = error.retry_after().unwrap_or(PAUSE).max(LEAST_LEFT);
    (pause.saturating_add(LEAST_LEFT) < left).then_some(pause)
}
