//! I4 over scopes: verdicts of all, then all or nothing; every limit that refuses is named, and the wait is tight.

use gw_limits::{
    Admission, Limits, OrganisationConfig, Reservation, Scope, ScopeLimitsConfig, ScopesConfig, Slot,
    Subject, SubjectIds, TenantScopeConfig,
};
use gw_types::{ErrorKind, Money, MonoTime, TokenCount};
use proptest::{collection::vec, prelude::*};

use super::STEPS_MAX;
use crate::{
    fixture::{START, UTC, config, id, none, usd},
    model::Level,
    scopes::daily,
};

/// Requests, tokens, calls at once, money; `None`: no limit.
type Shape = (Option<u64>, Option<u64>, Option<u32>, Option<u64>);

fn shape() -> impl Strategy<Value = Shape> {
    let of = proptest::option::of::<std::ops::Range<u64>>;
    (of(1..6), of(1..50), proptest::option::of(1_u32..4), of(1..40))
}

/// One scope as plain numbers.
#[derive(Clone, Debug)]
struct ScopeModel {
    name: &'static str,
    requests: Option<Level>,
    tokens: Option<Level>,
    slots: (Option<u32>, u32),
    /// Limit, spent, reserved.
    money: Option<(u64, u64, u64)>,
}

/// The organisation of both tenants, and everything.
const NAMES: [&str; 2] = ["organisation:group", "global"];

fn scope_limits((requests, tokens, max_concurrency, money): Shape) -> ScopeLimitsConfig {
    ScopeLimitsConfig {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        max_concurrency,
        budgets: money.map(daily).into_iter().collect(),
    }
}

fn scope_model(name: &'static str, (requests, tokens, slots, money): Shape) -> ScopeModel {
    ScopeModel {
        name,
        requests: requests.map(Level::full),
        tokens: tokens.map(Level::full),
        slots: (slots, 0),
        money: money.map(|limit| (limit, 0, 0)),
    }
}

fn limits(shapes: &[Shape; 2]) -> Limits {
    let member = TenantScopeConfig { parent: Some(id("group")), budgets: vec![] };
    let scopes = ScopesConfig {
        tenants: vec![(id("a"), member.clone()), (id("b"), member)],
        organisations: vec![(
            id("group"),
            OrganisationConfig { parent: None, limits: scope_limits(shapes[0]) },
        )],
        global: scope_limits(shapes[1]),
        ..ScopesConfig::default()
    };
    Limits::with_scopes(config(&[("a", &none()), ("b", &none())], 100), &scopes, START).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(bool, u64, u64),
    Finish(usize, u64, u64),
    Abandon(usize),
    Forward(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), 0_u64..60, 0_u64..12).prop_map(|(who, tokens, cost)| Step::Start(who, tokens, cost)),
        2 => (0_usize..8, 0_u64..80, 0_u64..12).prop_map(|(at, tokens, cost)| Step::Finish(at, tokens, cost)),
        1 => (0_usize..8).prop_map(Step::Abandon),
        2 => (0_u64..40_000_000_000).prop_map(Step::Forward),
    ]
}

struct Flight {
    tokens: u64,
    cost: u64,
    admission: Admission,
    slot: Slot,
    reservation: Reservation,
}

fn short(bucket: Option<&Level>, n: u64) -> bool {
    bucket.is_some_and(|bucket| !bucket.has(n))
}

/// Admits where every scope of the model does, and names exactly those that do not.
fn admit(subject: &Subject, models: &[ScopeModel], tokens: u64, clock: u64) -> Option<Admission> {
    let mut expected = Vec::new();
    for model in models {
        let both = [
            ("requests_per_minute", short(model.requests.as_ref(), 1)),
            ("tokens_per_minute", short(model.tokens.as_ref(), tokens)),
        ];
        expected.extend(
            both.iter().filter(|(_, short)| *short).map(|(limit, _)| format!("{}.{limit}", model.name)),
        );
    }
    match subject.admit(TokenCount::new(tokens), MonoTime::from_nanos(clock)) {
        Ok(admission) => {
            assert_eq!(expected, Vec::<String>::new());
            Some(admission)
        }
        Err(refusal) => {
            let named: Vec<_> = refusal.refused_by.iter().map(ToString::to_string).collect();
            assert_eq!((named, refusal.error.kind()), (expected, ErrorKind::RateLimited));
            if let Some(wait) = refusal.error.retry_after() {
                let ready = clock + u64::try_from(wait.as_nanos()).unwrap();
                let at = |nanos| {
                    models.iter().all(|model| {
                        model.requests.as_ref().is_none_or(|bucket| bucket.has_at(1, nanos))
                            && model.tokens.as_ref().is_none_or(|bucket| bucket.has_at(tokens, nanos))
                    })
                };
                assert!(at(ready) && !at(ready - 1), "the wait is not tight");
            } else {
                let impossible =
                    |model: &ScopeModel| model.tokens.as_ref().is_some_and(|bucket| !bucket.can_hold(tokens));
                assert!(models.iter().any(impossible) && refusal.error.forbids_retry());
            }
            None
        }
    }
}

fn start(subject: &Subject, models: &mut [ScopeModel], tokens: u64, cost: u64, clock: u64) -> Option<Flight> {
    let admission = admit(subject, models, tokens, clock)?;
    let capped = models.iter().any(|model| model.slots.0.is_some_and(|max| model.slots.1 >= max));
    let slot = subject.slot();
    assert_eq!(slot.is_err(), capped);
    let poor = models.iter().any(|model| {
        model.money.is_some_and(|(limit, spent, reserved)| spent >= limit || spent + reserved + cost > limit)
    });
    let (slot, reservation) = (slot.ok()?, subject.reserve(usd(cost), UTC));
    assert_eq!(reservation.is_err(), poor);
    let reservation = reservation.ok()?;
    for model in models {
        model.requests.iter_mut().for_each(|bucket| bucket.take(1));
        model.tokens.iter_mut().for_each(|bucket| bucket.take(i128::from(tokens)));
        model.slots.1 += 1;
        model.money.iter_mut().for_each(|money| money.2 += cost);
    }
    Some(Flight { tokens, cost, admission, slot, reservation })
}

fn end(models: &mut [ScopeModel], flight: &Flight, used: u64, spent: u64) {
    for model in models {
        model.tokens.iter_mut().for_each(|bucket| bucket.take(i128::from(used) - i128::from(flight.tokens)));
        model.slots.1 -= 1;
        if let Some(money) = &mut model.money {
            (money.1, money.2) = (money.1 + spent, money.2 - flight.cost);
        }
    }
}

fn agree(subject: &Subject, models: &[ScopeModel], clock: u64) {
    let read = subject.snapshot(MonoTime::from_nanos(clock), UTC);
    for (read, model) in read.iter().filter(|read| !matches!(read.scope, Scope::Tenant(_))).zip(models) {
        assert_eq!(read.scope.to_string(), model.name);
        assert_eq!(
            read.requests.map(|bucket| bucket.remaining),
            model.requests.as_ref().map(Level::remaining)
        );
        assert_eq!(read.tokens.map(|bucket| bucket.remaining), model.tokens.as_ref().map(Level::remaining));
        assert_eq!(read.concurrency.in_use, model.slots.1);
        let money = read.budgets.first().map(|budget| (budget.limit, budget.spent, budget.reserved));
        assert_eq!(
            money,
            model.money.map(|(limit, spent, reserved)| (usd(limit), usd(spent), usd(reserved)))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn i04_scopes_take_all_or_nothing(shapes in [shape(), shape()], steps in vec(step(), 1..STEPS_MAX)) {
        let limits = limits(&shapes);
        let subjects = ["a", "b"].map(|tenant| limits.subject(&SubjectIds { key: None, tenant, model: None }).unwrap());
        let mut models = [scope_model(NAMES[0], shapes[0]), scope_model(NAMES[1], shapes[1])];
        let (mut clock, mut flights) = (0_u64, Vec::<Flight>::new());
        for step in steps {
            match step {
                Step::Start(who, tokens, cost) => {
                    flights.extend(start(&subjects[usize::from(who)], &mut models, tokens, cost, clock));
                }
                Step::Finish(at, used, spent) if at < flights.len() => {
                    let flight = flights.swap_remove(at);
                    end(&mut models, &flight, used, spent);
                    drop(flight.slot);
                    flight.reservation.commit(usd(spent));
                    flight.admission.settle(TokenCount::new(used), MonoTime::from_nanos(clock));
                }
                Step::Abandon(at) if at < flights.len() => {
                    let flight = flights.swap_remove(at);
                    end(&mut models, &flight, 0, 0);
                    models.iter_mut().for_each(|model| model.requests.iter_mut().for_each(|bucket| bucket.take(-1)));
                }
                Step::Finish(..) | Step::Abandon(_) => {}
                Step::Forward(by) => clock += by,
            }
            for model in &mut models {
                model.requests.iter_mut().chain(&mut model.tokens).for_each(|bucket| bucket.advance_to(clock));
            }
            agree(&subjects[0], &models, clock);
        }
        flights.clear();
        for read in subjects[0].snapshot(MonoTime::from_nanos(clock), UTC) {
            prop_assert_eq!(read.concurrency.in_use, 0);
            prop_assert!(read.budgets.iter().all(|budget| budget.reserved == Money::ZERO));
        }
    }
}
