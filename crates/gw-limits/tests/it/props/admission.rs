//! I4: a refusal by rates, slots or budget leaves every other limit as it was.

use gw_limits::{Admission, Reservation, Slot, TenantLimits, TenantLimitsConfig, Window};
use gw_types::{ErrorKind, Money, MonoTime, TokenCount};
use proptest::{collection::vec, prelude::*};
use std::sync::Arc;

use super::{STEPS_MAX, config};
use crate::{
    fixture::{UTC, budget, none, tenant, usd},
    model::Level,
};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Tokens and cost of a request, as far as the limits let it.
    Start(u64, u64),
    /// Which request ends, with what tokens and cost.
    Finish(usize, u64, u64),
    Hit(usize),
    Abandon(usize),
    Forward(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..8;
    prop_oneof![
        6 => (0_u64..60, 0_u64..12).prop_map(|(tokens, cost)| Step::Start(tokens, cost)),
        2 => (which.clone(), 0_u64..80, 0_u64..12).prop_map(|(at, tokens, cost)| Step::Finish(at, tokens, cost)),
        1 => which.clone().prop_map(Step::Hit),
        1 => which.prop_map(Step::Abandon),
        2 => (0_u64..40_000_000_000).prop_map(Step::Forward),
    ]
}

struct Flight {
    tokens: u64,
    admission: Admission,
    slot: Slot,
    reservation: Reservation,
}

/// The order of the pipeline: rates, then slot, then money; what was taken before a refusal is dropped.
fn start(tenant: &Arc<TenantLimits>, tokens: u64, cost: u64, now: MonoTime) -> Result<Flight, Refusal> {
    let admission = tenant.admit(TokenCount::new(tokens), now).map_err(|refusal| {
        let names = refusal.refused_by.to_vec();
        Refusal { kind: refusal.error.kind(), names, wait: refusal.error.retry_after().map(|d| d.as_nanos()) }
    })?;
    let later = |error: gw_types::GatewayError| Refusal { kind: error.kind(), names: vec![], wait: None };
    let slot = tenant.slot().map_err(later)?;
    let reservation = tenant.reserve(usd(cost), UTC).map_err(later)?;
    Ok(Flight { tokens, admission, slot, reservation })
}

struct Refusal {
    kind: ErrorKind,
    names: Vec<&'static str>,
    wait: Option<u128>,
}

/// The rates refuse exactly where the model does, and say the first instant at which it would not.
fn check_refusal(refusal: &Refusal, requests: &Level, tokens: &Level, n: u64, clock: u64) {
    let short = [("requests_per_minute", !requests.has(1)), ("tokens_per_minute", !tokens.has(n))];
    let expected: Vec<_> = short.iter().filter(|(_, short)| *short).map(|(name, _)| *name).collect();
    assert_eq!(refusal.names, expected);
    let Some(wait) = refusal.wait else {
        assert!(expected.is_empty() || !tokens.can_hold(n), "a wait that helps must be told");
        return;
    };
    let ready = clock + u64::try_from(wait).unwrap();
    let at = |nanos| requests.has_at(1, nanos) && tokens.has_at(n, nanos);
    assert!(at(ready) && !at(ready - 1), "the wait is not tight");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i04_refusal_consumes_nothing(
        requests in 1_u64..6, tokens in 1_u64..50, slots in 1_u32..4, limit in 1_u64..40,
        steps in vec(step(), 1..STEPS_MAX)
    ) {
        let tenant = tenant(&TenantLimitsConfig {
            requests_per_minute: Some(requests),
            tokens_per_minute: Some(tokens),
            max_concurrency: Some(slots),
            budget: budget(limit, Window::Day),
            ..none()
        });
        let (mut requests, mut tokens) = (Level::full(requests), Level::full(tokens));
        let (mut clock, mut spent, mut flights) = (0_u64, 0_u64, Vec::<Flight>::new());
        for step in steps {
            let now = MonoTime::from_nanos(clock);
            match step {
                Step::Start(n, cost) => {
                    let before = tenant.snapshot(now, UTC);
                    match start(&tenant, n, cost, now) {
                        Ok(flight) => {
                            prop_assert!(requests.has(1) && tokens.has(n));
                            requests.take(1);
                            tokens.take(i128::from(n));
                            flights.push(flight);
                        }
                        Err(refusal) => {
                            prop_assert_eq!(before, tenant.snapshot(now, UTC));
                            let by_rates = !refusal.names.is_empty();
                            prop_assert_eq!(by_rates, !(requests.has(1) && tokens.has(n)));
                            check_refusal(&refusal, &requests, &tokens, n, clock);
                            prop_assert!(!by_rates || refusal.kind == ErrorKind::RateLimited);
                        }
                    }
                }
                Step::Finish(at, used, cost) if at < flights.len() => {
                    let flight = flights.swap_remove(at);
                    drop(flight.slot);
                    let overrun = flight.reservation.commit(usd(cost));
                    flight.admission.settle(TokenCount::new(used), now);
                    spent += cost;
                    prop_assert!(overrun <= usd(cost));
                    tokens.take(i128::from(used) - i128::from(flight.tokens));
                }
                Step::Hit(at) if at < flights.len() => {
                    let flight = flights.swap_remove(at);
                    flight.admission.settle_hit();
                    tokens.take(-i128::from(flight.tokens));
                }
                Step::Abandon(at) if at < flights.len() => {
                    let flight = flights.swap_remove(at);
                    tokens.take(-i128::from(flight.tokens));
                    requests.take(-1);
                }
                Step::Finish(..) | Step::Hit(_) | Step::Abandon(_) => {}
                Step::Forward(by) => clock += by,
            }
            requests.advance_to(clock);
            tokens.advance_to(clock);
            let read = tenant.snapshot(MonoTime::from_nanos(clock), UTC);
            prop_assert_eq!(read.requests.unwrap().remaining, requests.remaining());
            prop_assert_eq!(read.tokens.unwrap().remaining, tokens.remaining());
            prop_assert_eq!(read.concurrency.in_use as usize, flights.len());
            let held: Money = flights.iter().map(|flight| flight.reservation.amount()).sum();
            let money = read.budget.unwrap();
            prop_assert_eq!((money.spent, money.reserved), (usd(spent), held));
        }
        flights.clear();
        let after = tenant.snapshot(MonoTime::from_nanos(clock), UTC);
        prop_assert_eq!((after.concurrency.in_use, after.budget.unwrap().reserved), (0, Money::ZERO));
    }
}
