//! Exactly one settlement, whatever comes twice, and money that adds up after every event.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gw_types::{Money, MonoTime, RequestId, TenantId, UtcTime};
use proptest::{collection::vec, prelude::*};

use super::{BookTotals, ReservationBook, ReservationState, Settlement};
use crate::{BudgetConfig, Limits, LimitsConfig, TenantLimits, TenantLimitsConfig, Window};

const UTC: UtcTime = UtcTime::from_micros(0);
const LIFE: Duration = Duration::from_secs(10);

fn usd(micros: u64) -> Money {
    Money::from_micros(micros)
}

fn id(n: u64) -> RequestId {
    RequestId::from_bits(u128::from(n))
}

fn tenant(limit: u64) -> Arc<TenantLimits> {
    let name = TenantId::new("a").unwrap();
    let budget = Some(BudgetConfig { limit: usd(limit), window: Window::Day });
    let tenants = vec![(name.clone(), TenantLimitsConfig { budget, ..TenantLimitsConfig::default() })];
    let config = LimitsConfig { tenants, deployments: vec![], pool_capacity: 1 };
    Limits::new(config, MonoTime::ZERO).unwrap().tenant(&name).unwrap()
}

fn spent_and_reserved(tenant: &TenantLimits) -> (Money, Money) {
    let read = tenant.snapshot(MonoTime::ZERO, UTC).budget.unwrap();
    (read.spent, read.reserved)
}

#[test]
fn the_first_settlement_counts_and_the_others_learn_of_it() {
    let (tenant, book) = (tenant(100), ReservationBook::new());
    book.open(id(1), tenant.reserve(usd(10), UTC).unwrap(), MonoTime::ZERO).unwrap();
    let second = tenant.reserve(usd(10), UTC).unwrap();
    assert_eq!(book.open(id(1), second, MonoTime::ZERO), Err(ReservationState::Reserved));
    assert_eq!(spent_and_reserved(&tenant), (Money::ZERO, usd(10)));
    assert_eq!(book.dispatched(&id(1)), Some(ReservationState::Dispatched));
    let committed = ReservationState::Committed(Settlement { reserved: usd(10), spent: usd(12) });
    assert_eq!(book.commit(&id(1), usd(12)), Some(committed));
    for again in
        [book.commit(&id(1), usd(5)), book.release(&id(1)), book.dispatched(&id(1)), book.state(&id(1))]
    {
        assert_eq!(again, Some(committed));
    }
    assert!(book.expire(MonoTime::from_nanos(u64::MAX)).is_empty());
    assert_eq!((book.commit(&id(2), usd(1)), book.state(&id(2))), (None, None));
    assert_eq!(spent_and_reserved(&tenant), (usd(12), Money::ZERO));
}

#[test]
fn what_nobody_settles_is_charged() {
    let (tenant, book) = (tenant(100), ReservationBook::new());
    for n in 1..=2 {
        book.open(id(n), tenant.reserve(usd(10 * n), UTC).unwrap(), MonoTime::from_nanos(n)).unwrap();
    }
    let charged = Settlement { reserved: usd(10), spent: usd(10) };
    assert_eq!(book.expire(MonoTime::from_nanos(1)), [(id(1), charged)]);
    assert_eq!(book.release(&id(1)), Some(ReservationState::Expired(charged)));
    assert_eq!(spent_and_reserved(&tenant), (usd(10), usd(20)));
    assert_eq!(book.release(&id(2)), Some(ReservationState::Released));
    assert_eq!(spent_and_reserved(&tenant), (usd(10), Money::ZERO));
}

#[test]
fn closed_reservations_are_forgotten_in_the_end() {
    let (tenant, book) = (tenant(100), ReservationBook::new());
    for n in 0..=super::CLOSED_MAX as u64 {
        book.open(id(n), tenant.reserve(Money::ZERO, UTC).unwrap(), MonoTime::ZERO).unwrap();
        book.release(&id(n));
    }
    assert_eq!(book.state(&id(0)), None);
    assert_eq!(book.state(&id(1)), Some(ReservationState::Released));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Open(u64, u64),
    Raise(u64, u64),
    Dispatch(u64),
    Commit(u64, u64),
    Release(u64),
    Forward(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let id = 0_u64..8;
    prop_oneof![
        4 => (id.clone(), 0_u64..30).prop_map(|(id, amount)| Event::Open(id, amount)),
        1 => (id.clone(), 0_u64..40).prop_map(|(id, amount)| Event::Raise(id, amount)),
        2 => id.clone().prop_map(Event::Dispatch),
        3 => (id.clone(), 0_u64..40).prop_map(|(id, actual)| Event::Commit(id, actual)),
        2 => id.prop_map(Event::Release),
        1 => (0_u64..8).prop_map(Event::Forward),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn i15_granted_is_open_and_committed_and_refunded(events in vec(event(), 1..40)) {
        let (tenant, book) = (tenant(100), ReservationBook::new());
        let (mut now, mut settled) = (MonoTime::ZERO, HashMap::<u64, ReservationState>::new());
        for event in events {
            let end = match event {
                Event::Open(n, amount) => {
                    if let Ok(reservation) = tenant.reserve(usd(amount), UTC) {
                        // Each under its id once; a second one is turned away and gives back what it held.
                        let _ = book.open(id(n), reservation, now.saturating_add(LIFE));
                    }
                    continue;
                }
                Event::Raise(n, amount) => {
                    let _ = book.raise_to(&id(n), usd(amount), UTC);
                    continue;
                }
                Event::Forward(seconds) => {
                    now = now.saturating_add(Duration::from_secs(seconds));
                    book.expire(now);
                    continue;
                }
                Event::Dispatch(n) => (n, book.dispatched(&id(n))),
                Event::Commit(n, actual) => (n, book.commit(&id(n), usd(actual))),
                Event::Release(n) => (n, book.release(&id(n))),
            };
            if let (n, Some(end @ (ReservationState::Committed(_) | ReservationState::Released | ReservationState::Expired(_)))) = end {
                prop_assert_eq!(*settled.entry(n).or_insert(end), end, "settled twice");
            }
            let BookTotals { granted, open, committed, refunded, overrun } = book.totals();
            prop_assert_eq!(granted, [open, committed, refunded].into_iter().sum());
            prop_assert_eq!(spent_and_reserved(&tenant), (committed.saturating_add(overrun), open));
            prop_assert!(committed.saturating_add(open) <= usd(100));
        }
        book.expire(MonoTime::from_nanos(u64::MAX));
        prop_assert_eq!(book.totals().open, Money::ZERO);
        prop_assert_eq!(spent_and_reserved(&tenant).1, Money::ZERO);
    }
}
