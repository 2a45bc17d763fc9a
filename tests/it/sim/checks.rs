//! The invariants, looked at after every step.

use std::{collections::BTreeMap, time::Duration};

use gw_exec::{BreakerState, Gateway, ScopeSnapshot};
use gw_types::{AccountingRecord, CacheState, Clock, ErrorKind, Money, MonoTime, Outcome, TenantId};

use super::{
    client::{End, Seen},
    coverage::{count, count_seen},
    house::{self, cost, deployment_name, tenant_name},
    provider::{ask_of, marker},
    run::Run,
    script::{Control, Told as Usage},
    stage::{AskLog, Log, Recorded, Told},
    wire::{self, CANARY},
};

/// Time that a stream may take beyond its deadline where its client reads slowly, and the tick of a timer.
const TICK_US: u64 = 1;

/// How long the gateway waits for a record that is made when the deadline passes, or just before.
const STORING_US: u64 = 25_000;

/// What was checked so far.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    records: usize,
    /// The tenants, by number.
    names: Vec<TenantId>,
    /// What the records say so far, by tenant: spent, and billed beyond the bound.
    books: BTreeMap<TenantId, (Money, Money)>,
}

/// A tenant's limits before a request was first looked at.
#[derive(Debug)]
pub(crate) struct Before {
    scopes: Vec<ScopeSnapshot>,
}

type Verdict = Result<(), String>;

fn rule(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checks {
    /// Looks at the limits of the tenant of a request that begins.
    pub(crate) fn before(&self, run: &Run, number: usize) -> Before {
        let tenant = run.stage.with(|log| log.asks[number].ask.tenant);
        Before { scopes: run.gateway.scope_snapshots(&tenant_name(tenant)) }
    }

    /// After every poll.
    pub(crate) fn step(&mut self, run: &Run) -> Verdict {
        let fault = run.stage.with(|log| log.faults.pop());
        fault.map_or(Ok(()), Err)?;
        self.new_records(run)?;
        let tenants = run.stage.script.worlds[0].tenants.len();
        if self.names.is_empty() {
            self.names = (0..tenants).map(tenant_name).collect();
        }
        for tenant in 0..tenants {
            self.tenant(run, tenant)?;
        }
        let snapshot = run.gateway.snapshot();
        for (index, deployment) in snapshot.deployments.iter().enumerate() {
            let open = run.stage.with(|log| log.deployments[index].open);
            let in_use = deployment.in_use;
            rule(open <= in_use || deployment.limit.is_none(), || {
                format!("{}: {open} calls hold {in_use} slots", deployment.name)
            })?;
            if deployment.breaker.state == BreakerState::Open {
                run.stage.with(|log| log.count("open breaker"));
            }
        }
        Ok(())
    }

    fn tenant(&self, run: &Run, tenant: usize) -> Verdict {
        let open = run.stage.with(|log| open_calls(log, tenant));
        let name = &self.names[tenant];
        let spent = self.books.get(name).copied().unwrap_or_default();
        for scope in run.gateway.scope_snapshots(name) {
            for bucket in [&scope.requests, &scope.tokens].into_iter().flatten() {
                let (remaining, limit) = (bucket.remaining, bucket.limit);
                rule(remaining <= limit, || format!("i5: t{tenant} has {remaining} of {limit}"))?;
            }
            let in_use = scope.concurrency.in_use;
            let is_own = matches!(&scope.scope, gw_exec::Scope::Tenant(_));
            rule(!is_own || open <= in_use, || format!("t{tenant}: {open} calls hold {in_use} slots"))?;
            for budget in scope.budgets.iter().filter(|_| is_own) {
                let held = budget.spent.saturating_add(budget.reserved);
                let most = budget.limit.saturating_add(spent.1);
                rule(held <= most, || format!("i15: t{tenant} spent and reserved {held:?} of {most:?}"))?;
                rule(budget.spent == spent.0, || {
                    format!("i15: t{tenant} spent {:?}, its records say {:?}", budget.spent, spent.0)
                })?;
            }
        }
        Ok(())
    }

    fn new_records(&mut self, run: &Run) -> Verdict {
        run.ledger.look(|records| {
            for record in &records[self.records..] {
                self.records += 1;
                let (spent, overrun) = self.books.entry(record.tenant.clone()).or_default();
                *spent = spent.saturating_add(cost(record));
                *overrun = overrun.saturating_add(record.overrun);
                run.stage.with(|log| self.record(run, log, record))?;
            }
            Ok(())
        })
    }

    /// Judges a record when it is written.
    fn record(&self, run: &Run, log: &mut Log, record: &AccountingRecord) -> Verdict {
        let json = serde_json::to_string(record).unwrap();
        rule(!json.contains(CANARY), || {
            format!("i18: a record holds a prompt or a provider's words: {json}")
        })?;
        if record.traceparent.is_none() {
            // The client left before its request was read.
            return rule(record.attempts.is_empty() && record.cost.is_zero(), || {
                "i12: calls of nobody".to_owned()
            });
        }
        let number = ask_of(record.traceparent.as_ref());
        let (until, slowest) = (log.call_until(number), log.slowest_reader(number));
        let told = log.asks[number].told;
        let ask = &mut log.asks[number];
        ask.records += 1;
        let recorded = Recorded {
            outcome: record.outcome,
            error: record.error,
            cache: record.cache,
            is_replay: record.replay_of.is_some(),
        };
        ask.recorded = Some(recorded);
        let say = |what: &str| format!("{what} (request {number}): {json}");
        rule(ask.records == 1, || say("i12: two records"))?;
        rule(record.error != Some(ErrorKind::Internal), || say("internal"))?;
        // Of a shared call the record may come after the answer.
        let alike = told.is_none_or(|told| told_alike(recorded, told));
        rule(alike, || say("the record says something else than the client was told"))?;
        let mut calls: Vec<_> = ask.calls.iter().map(|call| deployment_name(call.deployment)).collect();
        let mut attempts: Vec<_> = record.attempts.iter().map(|attempt| attempt.deployment.clone()).collect();
        if run.stage.script.worlds[ask.world].hedge {
            // The one that lost stands before the one that won.
            calls.sort();
            attempts.sort();
        }
        rule(calls == attempts, || say("i12: the attempts are not the calls"))?;
        if record.cache.is_hit() || recorded.is_replay {
            let is_free = record.cost.is_zero() && record.side_costs.is_empty() && calls.is_empty();
            rule(is_free, || say("i8: a hit has cost something"))?;
        } else {
            let priced = house::pricing().cost(&record.usage).unwrap().money;
            rule(priced == record.cost, || say("the cost is not that of the usage"))?;
        }
        rule(!calls.is_empty() || record.cost.is_zero(), || say("i7: a refusal has cost something"))?;
        if let Some(ErrorKind::QuotaExceeded | ErrorKind::NotCached | ErrorKind::UnknownModel) = record.error
        {
            rule(calls.is_empty(), || say("i7: a refusal has called a provider"))?;
        }
        rule(record.outcome != Outcome::Cancelled || ask.gone, || say("cancelled, and the client waits"))?;
        let deadline = until.map_or(0, |at| at.nanos() / 1_000);
        let ended = run.stage.clock.now().nanos() / 1_000;
        let slack = TICK_US + u64::from(slowest) * 1_000;
        rule(ended <= deadline + slack, || say("i14: ended after its deadline"))?;
        let own = record.latency;
        let parts =
            own.queue_us + own.backoff_us + own.upstream_first_byte_us + own.upstream_rest_us + own.own_us;
        rule(parts <= own.total_us + 1 || own.backoff_us > 0, || {
            say("the parts of the latency are more than the whole")
        })?;
        if let Some(reserved) = Some(record.reserved).filter(|reserved| !reserved.is_zero()) {
            let covered = reserved.saturating_add(record.overrun);
            rule(cost(record) <= covered, || say("i15: more spent than reserved and overrun"))?;
        }
        served(ask, record, &say)?;
        count(log, record);
        Ok(())
    }

    /// When nothing can go on before time does.
    pub(crate) fn quiet(&self, run: &Run) -> Verdict {
        let script = &run.stage.script;
        let has_lanes = script.worlds.iter().flat_map(|world| &world.deployments);
        let has_lanes = has_lanes
            .clone()
            .any(|deployment| deployment.pace.is_some() || deployment.tokens_in_flight.is_some());
        for tenant in 0..script.worlds[0].tenants.len() {
            let (open, waiting, noting) = run.stage.with(|log| {
                let own = || {
                    let own = log.asks.iter().filter(|ask| ask.ask.tenant == tenant);
                    own.filter(|ask| !ask.ended && ask.records == 0)
                };
                // Before its first call a request with a key waits for the ledger, and has its place by then.
                let noting = own().filter(|ask| ask.ask.key.is_some() && ask.calls.is_empty());
                let noting = if run.ledger.is_stalled() { noting.count() } else { 0 };
                (open_calls(log, tenant), own().count(), u32::try_from(noting).unwrap())
            });
            for scope in run.gateway.scope_snapshots(&tenant_name(tenant)) {
                if !matches!(&scope.scope, gw_exec::Scope::Tenant(_)) {
                    continue;
                }
                let in_use = scope.concurrency.in_use;
                rule(has_lanes || (open..=open + noting).contains(&in_use), || {
                    format!("t{tenant} holds {in_use} slots for {open} calls")
                })?;
                let reserved: Money = scope.budgets.iter().map(|budget| budget.reserved).sum();
                rule(waiting > 0 || reserved.is_zero(), || {
                    format!("i15: t{tenant} reserves {reserved:?} for nobody")
                })?;
            }
        }
        for (index, deployment) in run.gateway.snapshot().deployments.iter().enumerate() {
            let open = run.stage.with(|log| log.deployments[index].open);
            let in_use = deployment.in_use;
            rule(has_lanes || deployment.limit.is_none() || in_use == open, || {
                format!("{} holds {in_use} slots for {open} calls", deployment.name)
            })?;
        }
        self.nobody_is_forgotten(run)?;
        let holders = run
            .stage
            .with(|log| log.asks.iter().filter(|ask| ask.admitted && !ask.lost && ask.records == 0).count());
        let taken = run.ledger.taken();
        rule(u32::try_from(holders).unwrap() == taken, || {
            format!("i12: {taken} places in the ledger for {holders} requests")
        })
    }

    /// A call, or a request without a record, whose client is gone goes on for somebody else or not at all.
    fn nobody_is_forgotten(&self, run: &Run) -> Verdict {
        run.stage.with(|log| {
            for (number, ask) in log.asks.iter().enumerate() {
                let is_gone = (ask.gone || ask.ended) && !ask.lost;
                let is_open = ask.calls.iter().any(|call| call.open) || ask.admitted && ask.records == 0;
                rule(!is_gone || !is_open || log.is_followed(number), || {
                    format!("i12: request {number} goes on for nobody")
                })?;
            }
            Ok(())
        })
    }

    /// When a request has ended.
    pub(crate) fn ended(&mut self, run: &Run, number: usize, seen: &Seen, before: Option<Before>) -> Verdict {
        self.new_records(run)?;
        run.stage.with(|log| {
            count_seen(log, seen);
            let ask = &mut log.asks[number];
            ask.told = Some(seen.told());
            if ask.recorded.is_some_and(|recorded| is_withheld(recorded, seen.told())) {
                log.count("record late");
            }
            // A call that has a task of its own hears of the end in its next turn, before time goes on.
            let may_go_on = log.has_twin(number);
            let ask = &log.asks[number];
            let say = |what: &str| format!("{what} (request {number}): {seen:?}");
            let open = ask.calls.iter().any(|call| call.open);
            rule(!open || may_go_on, || say("ended with an open call"))?;
            let was_read = !matches!(seen, Seen::Turned(_) | Seen::Left);
            rule(!was_read || may_go_on || ask.records == 1, || say("i12: answered without a record"))?;
            let alike = ask.recorded.is_none_or(|recorded| told_alike(recorded, seen.told()));
            let (now, deadline) =
                (run.stage.clock.now(), ask.deadline.unwrap_or(MonoTime::from_nanos(u64::MAX)));
            let pause = Duration::from_millis(ask.ask.reads_every.into());
            let is_late = now >= deadline && run.ledger.stalled_until() > deadline;
            let is_record_late = ask.recorded.is_some_and(|recorded| is_withheld(recorded, seen.told()));
            rule(alike || is_late && is_record_late, || {
                say("the record says something else than the client was told")
            })?;
            let slack = Duration::from_micros(STORING_US + TICK_US) + 2 * pause;
            let in_time = now <= deadline.saturating_add(slack);
            // A call that may be shared ends when its answer is in the buffer, from which it may be read late.
            let has_ended = ask.recorded.is_some_and(|recorded| recorded.error.is_none());
            let is_shared = run.stage.script.worlds[ask.world].cache;
            let is_over = matches!(seen, Seen::Left) || is_shared && has_ended && !pause.is_zero();
            rule(in_time || is_over, || say("i14: told after its deadline"))?;
            match seen {
                Seen::Turned(kind) => {
                    rule(*kind == ErrorKind::Overloaded && !ask.admitted, || say("turned away"))
                }
                Seen::Failed { kind, printed, attempts, .. } => {
                    let is_conflict = *kind == ErrorKind::IdempotencyConflict;
                    rule(!is_conflict || log.with_key(number).any(|other| other.admitted), || {
                        say("a conflict with nobody")
                    })?;
                    rule(!printed.contains(CANARY), || say("i18: an error prints a provider's words"))?;
                    rule(*attempts as usize == ask.calls.len(), || say("another number of attempts"))?;
                    rule(*kind != ErrorKind::Internal, || say("internal"))
                }
                Seen::Whole { text, hit } => answer(log, number, text, *hit, true).map_err(|what| say(&what)),
                Seen::Streamed { text, hit, end } => {
                    rule(*end != End::Silent, || say("a stream without an end"))?;
                    answer(log, number, text, *hit, *end == End::Done).map_err(|what| say(&what))
                }
                Seen::Left => Ok(()),
            }
        })?;
        let Some(before) = before else { return Ok(()) };
        self.refused_at_once(run, number, seen, &before)
    }

    /// A request that was refused when it was first looked at has taken nothing.
    fn refused_at_once(&self, run: &Run, number: usize, seen: &Seen, before: &Before) -> Verdict {
        let Seen::Failed { kind, attempts: 0, .. } = seen else { return Ok(()) };
        let tenant = run.stage.with(|log| log.asks[number].ask.tenant);
        let after = run.gateway.scope_snapshots(&tenant_name(tenant));
        rule(after == before.scopes, || {
            format!("i4: {} has taken something: {:?} {after:?}", kind.as_str(), before.scopes)
        })?;
        Ok(())
    }

    /// When everything is over.
    pub(crate) fn end(&mut self, run: &Run) -> Verdict {
        let asked = run.stage.with(|log| {
            let of = |what: fn(&AskLog) -> bool| log.asks.iter().filter(|ask| what(ask)).count();
            (of(|ask| ask.admitted && !ask.lost), of(|ask| ask.lost && ask.records > 0))
        });
        let records = run.ledger.look(<[_]>::len);
        rule(records == asked.0 && asked.1 == 0, || {
            format!("i12: {records} records of {} requests", asked.0)
        })?;
        is_at_rest(&run.gateway, run)
    }
}

fn is_at_rest(gateway: &Gateway, run: &Run) -> Verdict {
    let pool = gateway.snapshot().pool;
    rule(pool.shared_in_use == 0 && pool.waiting == 0, || format!("the pool is not at rest: {pool:?}"))?;
    for deployment in gateway.snapshot().deployments {
        let tokens = deployment.tokens_in_flight.unwrap_or_default().get();
        rule(deployment.in_use == 0 && tokens == 0, || {
            format!("a deployment is not at rest: {deployment:?}")
        })?;
    }
    // Buckets fill up again, whatever was taken or owed.
    run.stage.clock.advance(Duration::from_secs(86_400 * 365));
    for tenant in 0..run.stage.script.worlds[0].tenants.len() {
        for scope in gateway.scope_snapshots(&tenant_name(tenant)) {
            for bucket in [scope.requests, scope.tokens].into_iter().flatten() {
                rule(bucket.remaining == bucket.limit, || {
                    format!("i5: t{tenant} does not fill up: {bucket:?}")
                })?;
            }
        }
    }
    Ok(())
}

fn open_calls(log: &Log, tenant: usize) -> u32 {
    let own = log.asks.iter().filter(|ask| ask.ask.tenant == tenant);
    u32::try_from(own.flat_map(|ask| &ask.calls).filter(|call| call.open).count()).unwrap()
}

/// Returns whether a client is told of an error in place of an answer whose record is not stored in time.
fn is_withheld(recorded: Recorded, told: Told) -> bool {
    let was_answered = matches!(recorded.outcome, Outcome::Ok | Outcome::Capped);
    was_answered && told == Told::Failed(ErrorKind::Overloaded)
}

/// Returns whether the record says of the end what the client was told.
fn told_alike(recorded: Recorded, told: Told) -> bool {
    match told {
        Told::Failed(kind) => recorded.error == Some(kind),
        Told::Done => recorded.outcome == Outcome::Ok,
        Told::Capped => recorded.outcome == Outcome::Capped,
        Told::Nothing => true,
    }
}

/// Judges a record by what the provider has really done.
fn served(ask: &AskLog, record: &AccountingRecord, say: &impl Fn(&str) -> String) -> Verdict {
    if record.outcome != Outcome::Ok || record.cache.is_hit() || record.replay_of.is_some() {
        return Ok(());
    }
    let Some(last) = ask.calls.len().checked_sub(1) else { return Err(say("served by nobody")) };
    // Of two calls at once the first may have won.
    let served = ask.calls.iter().rposition(|call| call.complete).unwrap_or(last);
    rule(ask.calls[served].complete, || say("ok, but the answer was not complete"))?;
    rule(served == last || ask.calls.len() > 1 && ask.ask.stream, || say("served by an earlier call"))?;
    let play = ask.ask.plays.get(served).or(ask.ask.plays.last()).cloned().unwrap_or_default();
    // Doubled frames may hold the usage twice; it counts once.
    if play.usage == Usage::Truth && !ask.ask.stream {
        let told = (record.usage.input_total().get(), record.usage.output_total().get());
        let is_bound = record.facts.as_ref().and_then(|facts| facts.output_bound);
        let is_within = is_bound.is_none_or(|bound| told.1 <= bound.get() || record.usage.implausible);
        let truth = (wire::PROMPT_TOKENS, wire::output_tokens(&play));
        rule(told == truth || record.usage.implausible || !is_within, || {
            say("the usage is not what was told")
        })?;
    }
    Ok(())
}

/// Judges an answer by its marker: whose it is, and whether it may have been given.
fn answer(log: &Log, number: usize, text: &str, hit: bool, whole: bool) -> Result<(), String> {
    let ask = &log.asks[number];
    let mine = |number: usize, call: usize| marker(log.asks[number].ask.tenant, number, call);
    let source = log.asks.iter().enumerate().find_map(|(number, ask)| {
        (0..ask.calls.len()).find(|call| text.contains(&mine(number, *call))).map(|call| (number, call))
    });
    let Some((from, call)) = source else {
        return rule(!whole, || "an answer of nobody".to_owned());
    };
    let giver = &log.asks[from];
    rule(giver.ask.tenant == ask.ask.tenant, || "i9: another tenant's answer".to_owned())?;
    let given = &giver.calls[call];
    let recorded = ask.recorded;
    if recorded.is_some_and(|recorded| recorded.is_replay) {
        // The first request with the key may have had its answer from the cache.
        let had = |other: &AskLog| other.recorded.is_some_and(|recorded| recorded.cache == CacheState::Exact);
        let is_named = giver.ask.key == ask.ask.key && giver.may_answer(ask)
            || giver.ask.text == ask.ask.text && log.with_key(number).any(had);
        rule(is_named, || "an answer to another idempotency key".to_owned())?;
        let was_capped = giver.recorded.is_some_and(|recorded| recorded.outcome == Outcome::Capped);
        rule(given.complete || was_capped, || "an incomplete answer was kept for a key".to_owned())?;
    } else if recorded.is_some_and(|recorded| recorded.cache == CacheState::Coalesced) {
        rule(giver.may_answer(ask), || "an answer to another question was shared".to_owned())?;
        rule(!whole || given.complete, || "a truncated answer was given as whole".to_owned())?;
    } else if hit {
        rule(given.complete && given.stop, || "i10: an incomplete answer was kept".to_owned())?;
        let may = !giver.ask.side_effecting && giver.ask.cache != Control::NoStore;
        rule(may, || "i10: an answer was kept that must not be".to_owned())?;
        rule(giver.ask.text == ask.ask.text, || "an answer to another question".to_owned())?;
    } else {
        // Only a hedge may leave the answer to an earlier call, and then the later one has said nothing.
        let is_last = ask.calls[call + 1..].iter().all(|later| !later.said);
        rule(from == number && is_last, || "an answer of another call".to_owned())?;
        rule(!whole || given.complete, || "a truncated answer was given as whole".to_owned())?;
    }
    Ok(())
}
