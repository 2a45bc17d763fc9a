//! What the providers have seen: every call, whose it was, how it ended. It judges each call when it is made.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gw_types::{
    CacheState, Clock, ErrorKind, FallOver, GatewayError, Health, ManualClock, MonoTime, Outcome, Retry,
    UtcTime,
};
use parking_lot::Mutex;

use super::script::{Ask, Control, Script};

/// The log of a run, shared by clients, providers and checks.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) script: Arc<Script>,
    log: Mutex<Log>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) asks: Vec<AskLog>,
    pub(crate) deployments: Vec<DeploymentLog>,
    /// Invariants that were broken.
    pub(crate) faults: Vec<String>,
    /// Whether equal requests in flight share a call.
    pub(crate) shares: bool,
    /// What of all that can happen has happened, and how often.
    pub(crate) seen: BTreeMap<&'static str, u32>,
    /// Streams since the gateway started that might have been hedged, and hedges.
    streams: u64,
    hedges: u64,
}

/// One request and its calls.
#[derive(Debug)]
pub(crate) struct AskLog {
    pub(crate) ask: Ask,
    /// The configuration that it began with.
    pub(crate) world: usize,
    pub(crate) deadline: Option<MonoTime>,
    pub(crate) admitted: bool,
    pub(crate) calls: Vec<Call>,
    /// The client has gone away, or the gateway has stopped.
    pub(crate) gone: bool,
    /// The gateway was killed, so that there may be no record.
    pub(crate) lost: bool,
    pub(crate) ended: bool,
    pub(crate) records: u32,
    /// What its record says of its end.
    pub(crate) recorded: Option<Recorded>,
    /// How its client saw it end.
    pub(crate) told: Option<Told>,
    /// The wall clock when it was let in.
    pub(crate) began_utc: Option<UtcTime>,
}

/// What a record says of the end of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) cache: CacheState,
    pub(crate) is_replay: bool,
}

/// What a client was told of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Done,
    Capped,
    Failed(ErrorKind),
    /// Nothing, or it was not let in.
    Nothing,
}

/// One call of a provider.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) deployment: usize,
    credential: usize,
    pub(crate) open: bool,
    /// Whether a piece of content was given to the gateway.
    pub(crate) said: bool,
    /// Whether the answer came to its proper end.
    pub(crate) complete: bool,
    pub(crate) stop: bool,
    pub(crate) error: Option<GatewayError>,
    pub(crate) ended: MonoTime,
}

/// What a deployment has seen since the gateway started.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeploymentLog {
    pub(crate) open: u32,
    successes: u64,
    retries: u64,
}

impl Stage {
    pub(crate) fn new(script: &Arc<Script>, clock: &ManualClock) -> Arc<Self> {
        let deployments = vec![DeploymentLog::default(); script.worlds[0].deployments.len()];
        let log = Mutex::new(Log { deployments, shares: script.shares, ..Log::default() });
        Arc::new(Self { clock: clock.clone(), script: Arc::clone(script), log })
    }

    /// Looks at the log, or adds to it.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Log) -> T) -> T {
        look(&mut self.log.lock())
    }

    /// Notes a client; returns its number.
    ///
    /// Where equal requests in flight are not to share a call, the later one asks for an answer of its own, and leaves it
    /// in the cache all the same.
    pub(crate) fn enters(&self, ask: &Ask, world: usize) -> usize {
        let mut log = self.log.lock();
        let mut ask = ask.clone();
        let twin =
            |other: &AskLog| !other.ended && (other.ask.tenant, other.ask.text) == (ask.tenant, ask.text);
        if !log.shares && ask.cache == Control::Default && log.asks.iter().any(twin) {
            ask.cache = Control::NoCache;
        }
        log.asks.push(AskLog {
            ask,
            world,
            deadline: None,
            admitted: false,
            calls: Vec::new(),
            gone: false,
            lost: false,
            ended: false,
            records: 0,
            recorded: None,
            told: None,
            began_utc: None,
        });
        log.asks.len() - 1
    }

    /// Begins a call after judging whether it may be made.
    pub(crate) fn call(self: &Arc<Self>, ask: usize, (deployment, credential): (usize, usize)) -> CallGuard {
        let now = self.clock.now();
        let mut log = self.log.lock();
        let broken = self.may_call(&log, ask, (deployment, credential), now);
        log.faults.extend(broken.into_iter().map(|what| format!("{what} (request {ask})")));
        // With another credential it is no retry but a move.
        let before = log.asks[ask].last_ended();
        let is_retry = before.is_some_and(|last| {
            last.deployment == deployment && !(last.credential != credential && last.concerns_credential())
        });
        let kind = match before {
            _ if log.asks[ask].calls.iter().any(|call| call.open) => "hedge",
            None => "call",
            Some(_) if is_retry => "retry",
            Some(last) if last.deployment == deployment => "other credential",
            Some(_) => "fallback",
        };
        log.count(kind);
        log.hedges += u64::from(kind == "hedge");
        if log.hedges * 20 > log.streams {
            let what = format!("{} hedges of {} streams", log.hedges, log.streams);
            log.faults.push(what);
        }
        let seen = &mut log.deployments[deployment];
        seen.open += 1;
        seen.retries += u64::from(is_retry);
        // The arithmetic of the retry budget: ten tokens, a failure takes one, a success gives a tenth back, and more
        // than half must be left.
        if is_retry && seen.retries * 10 > 50 + seen.successes {
            let what = format!("i17: {} retries after {} successes", seen.retries, seen.successes);
            log.faults.push(what);
        }
        let calls = &mut log.asks[ask].calls;
        calls.push(Call {
            deployment,
            credential,
            open: true,
            said: false,
            complete: false,
            stop: false,
            error: None,
            ended: now,
        });
        let call = calls.len() - 1;
        CallGuard { stage: Arc::clone(self), ask, call }
    }

    /// Says which rules a call breaks.
    fn may_call(
        &self,
        log: &Log,
        ask: usize,
        (deployment, credential): (usize, usize),
        now: MonoTime,
    ) -> Vec<String> {
        let seen = &log.asks[ask];
        let world = &self.script.worlds[seen.world];
        let facts = &world.deployments[deployment];
        let mut broken = Vec::new();
        let mut rule = |holds: bool, what: &str| {
            if !holds {
                broken.push(what.to_owned());
            }
        };
        let is_wanted = log.is_followed(ask);
        rule(!seen.gone || is_wanted, "a call for a client that is gone");
        rule(!seen.ended || is_wanted, "a call for a request that has ended");
        rule(!log.is_second_shared_call(ask), "a second call for equal requests in flight");
        rule(!log.breaks_key(ask, self.clock.utc()), "a second call for an idempotency key");
        rule(!seen.ask.side_effecting || seen.calls.is_empty(), "i11: a side-effecting request is repeated");
        rule(seen.calls.len() < world.attempts as usize, "more calls than the route's attempts");
        let open: Vec<_> = seen.calls.iter().filter(|call| call.open).collect();
        let is_hedge = world.hedge && seen.ask.stream && !open.is_empty();
        rule(open.is_empty() || is_hedge, "a call while another one is open");
        rule(open.len() < 2, "a third call at once");
        let is_other = open.iter().all(|call| call.deployment != deployment);
        rule(is_other, "a hedge at the deployment that is slow");
        rule(seen.calls.iter().all(|call| !call.said), "another call after content was given");
        let own = seen.calls.iter().filter(|call| call.deployment == deployment).count();
        let each = facts.credentials.max(1);
        rule(own < facts.attempts as usize * each, "more calls than the deployment's attempts");
        let most = self.script.worlds.iter().map(|world| world.deployments[deployment].slots).max();
        let slots = self.script.worlds.iter().all(|world| world.deployments[deployment].slots.is_some());
        let most = most.flatten().filter(|_| slots);
        rule(most.is_none_or(|most| log.deployments[deployment].open < most), "more calls than slots");
        let need = Duration::from_millis(facts.min_ms.into());
        let fits = log.call_until(ask).is_some_and(|deadline| now.saturating_add(need) <= deadline);
        rule(fits, "i14: an attempt begins without its minimum of time");
        if let Some(last) = seen.last_ended().filter(|_| !is_hedge) {
            let kind = last.error.as_ref().map_or(ErrorKind::ProviderTimeout, GatewayError::kind);
            let retry = last.error.as_ref().map_or(kind.retryable() != Retry::Never, GatewayError::may_retry);
            let pinned = last.error.as_ref().is_some_and(GatewayError::is_pinned);
            let wait = last.error.as_ref().and_then(GatewayError::retry_after).unwrap_or_default();
            let is_move = last.credential != credential && last.concerns_credential();
            if last.deployment == deployment && is_move {
                rule(!pinned, "another credential for a pinned request");
            } else if last.deployment == deployment {
                rule(retry, &format!("a retry after {}", kind.as_str()));
                let waited = now.saturating_since(last.ended);
                rule(waited >= wait, "a retry before the provider's guidance");
            } else {
                let moves = kind.falls_over() != FallOver::Never && !pinned;
                rule(moves, &format!("a fallback after {}", kind.as_str()));
            }
        }
        broken
    }
}

impl AskLog {
    /// Returns the call that ended last.
    fn last_ended(&self) -> Option<&Call> {
        self.calls.iter().filter(|call| !call.open).max_by_key(|call| call.ended)
    }
}

impl Call {
    /// Whether it failed in a way that concerns what it was made with, and not who was asked.
    fn concerns_credential(&self) -> bool {
        let health = self.error.as_ref().map(|error| error.kind().harms_health());
        matches!(health, Some(Health::Credential | Health::Cooldown))
    }
}

/// One call; dropped when the gateway lets it go.
#[derive(Debug)]
pub(crate) struct CallGuard {
    stage: Arc<Stage>,
    ask: usize,
    call: usize,
}

impl CallGuard {
    fn with(&self, change: impl FnOnce(&mut Call)) {
        change(&mut self.stage.log.lock().asks[self.ask].calls[self.call]);
    }

    /// Content is given to the gateway.
    pub(crate) fn says(&self) {
        self.with(|call| call.said = true);
    }

    /// The call works so far: its stream has begun, or the answer is whole.
    pub(crate) fn works(&self) {
        let mut log = self.stage.log.lock();
        let deployment = log.asks[self.ask].calls[self.call].deployment;
        log.deployments[deployment].successes += 1;
    }

    /// The answer has come to its end.
    pub(crate) fn completes(&self, stop: bool) {
        self.with(|call| (call.complete, call.stop) = (true, stop));
    }

    pub(crate) fn fails(&self, error: &GatewayError) {
        self.with(|call| call.error = Some(error.clone()));
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let now = self.stage.clock.now();
        let mut log = self.stage.log.lock();
        let call = &mut log.asks[self.ask].calls[self.call];
        (call.open, call.ended) = (false, now);
        let deployment = call.deployment;
        log.deployments[deployment].open -= 1;
    }
}

impl Log {
    /// Notes that something has happened.
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Notes that a request was let in, and what may be expected of it.
    pub(crate) fn enters(&mut self, number: usize, deadline: MonoTime, utc: UtcTime) {
        let seen = &mut self.asks[number];
        (seen.admitted, seen.deadline, seen.began_utc) = (true, Some(deadline), Some(utc));
        self.streams += u64::from(seen.ask.stream);
    }

    /// The gateway has started again, and knows nothing of retries before.
    pub(crate) fn restarted(&mut self) {
        (self.streams, self.hedges) = (0, 0);
        for deployment in &mut self.deployments {
            (deployment.successes, deployment.retries) = (0, 0);
        }
    }
}
