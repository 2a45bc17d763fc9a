//! Waiting for a slot: order, deadlines, cancellation, and that nothing is lost.

use std::{
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use gw_limits::{
    Limits, Priority, ScopeLimitsConfig, ScopesConfig, Slot, Subject, SubjectIds, TenantLimitsConfig, Ticket,
    Waiting,
};
use gw_types::{Clock, ErrorKind, GatewayError, ManualClock, MonoTime, TokenCount};
use proptest::{collection::vec, prelude::*};

use crate::fixture::{START, UTC, config, none};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A clock and whoever waits by it.
struct House {
    limits: Limits,
    manual: ManualClock,
    clock: Arc<dyn Clock>,
    woken: Arc<Woken>,
}

impl House {
    fn new(tenants: &[(&str, &TenantLimitsConfig)], slots: u32, scopes: &ScopesConfig) -> Self {
        let limits = Limits::with_scopes(config(tenants, slots), scopes, START).unwrap();
        let manual = ManualClock::default();
        let clock: Arc<dyn Clock> = Arc::new(manual.clone());
        Self { limits, manual, clock, woken: Arc::default() }
    }

    fn subject(&self, tenant: &str) -> Subject {
        self.limits.subject(&SubjectIds { key: None, tenant, model: None }).unwrap()
    }

    fn acquire(&self, tenant: &str, ticket: Ticket) -> Result<Waiting, GatewayError> {
        self.subject(tenant).acquire(ticket, &self.clock)
    }

    fn poll(&self, waiting: &mut Waiting) -> Poll<Result<Slot, GatewayError>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(waiting).poll(&mut Context::from_waker(&waker))
    }

    fn waits(&self, waiting: &mut Waiting) -> bool {
        self.poll(waiting).is_pending()
    }

    fn slot(&self, waiting: &mut Waiting) -> Slot {
        match self.poll(waiting) {
            Poll::Ready(Ok(slot)) => slot,
            other => panic!("no slot: {other:?}"),
        }
    }

    fn woken(&self) -> usize {
        self.woken.0.swap(0, Ordering::Relaxed)
    }
}

fn ticket() -> Ticket {
    Ticket {
        priority: Priority::Normal,
        weight: NonZeroU32::MIN,
        input: TokenCount::new(100),
        max_queue: 100,
        deadline: MonoTime::from_nanos(60_000_000_000),
        needs: Duration::from_secs(1),
    }
}

#[test]
fn a_slot_that_comes_back_goes_to_the_next() {
    let house = House::new(&[("a", &none()), ("b", &none())], 1, &ScopesConfig::default());
    let first = house.acquire("a", ticket()).unwrap();
    assert!(first.is_ready());
    let mut waits: Vec<_> =
        ["a", "a", "b"].iter().map(|name| house.acquire(name, ticket()).unwrap()).collect();
    assert!(waits.iter_mut().all(|wait| house.waits(wait)));
    drop(first);
    assert_eq!(house.woken(), 1);
    let slot = house.slot(&mut waits[0]);
    // A was served before, so B is next although it came last.
    drop(slot);
    assert_eq!(house.woken(), 1);
    let slot = house.slot(&mut waits[2]);
    assert!(house.waits(&mut waits[1]));
    drop(slot);
    drop(house.slot(&mut waits[1]));
    assert_eq!(house.subject("a").snapshot(START, UTC)[0].concurrency.in_use, 0);
}

#[test]
fn nobody_is_overtaken_but_a_reserved_slot_is_had_at_once() {
    let reserved = TenantLimitsConfig { reserved_concurrency: 1, ..none() };
    let house = House::new(&[("a", &none()), ("own", &reserved)], 2, &ScopesConfig::default());
    let held = house.subject("a").slot().unwrap();
    let mut queued = house.acquire("a", ticket()).unwrap();
    let mut own = house.acquire("own", ticket()).unwrap();
    let mut second = house.acquire("own", ticket()).unwrap();
    assert!(house.waits(&mut queued) && house.waits(&mut second));
    // Its own reserved slot comes back: nobody else can have it, whoever came first.
    drop(house.slot(&mut own));
    assert!(house.waits(&mut queued));
    drop(house.slot(&mut second));
    drop(held);
    drop(house.slot(&mut queued));
}

#[test]
fn a_cap_of_one_tenant_holds_up_no_other() {
    let capped = TenantLimitsConfig { max_concurrency: Some(1), ..none() };
    let house = House::new(&[("a", &capped), ("b", &none())], 2, &ScopesConfig::default());
    let (a, b) = (house.subject("a").slot().unwrap(), house.subject("b").slot().unwrap());
    let (mut wait_a, mut wait_b) =
        (house.acquire("a", ticket()).unwrap(), house.acquire("b", ticket()).unwrap());
    assert!(house.waits(&mut wait_a) && house.waits(&mut wait_b));
    drop(b);
    assert!(house.waits(&mut wait_a));
    let b = house.slot(&mut wait_b);
    drop(a);
    drop((house.slot(&mut wait_a), b));
}

#[test]
fn who_leaves_loses_no_slot() {
    let house = House::new(&[("a", &none())], 1, &ScopesConfig::default());
    let held = house.subject("a").slot().unwrap();
    let mut waits: Vec<_> = (0..3).map(|_| house.acquire("a", ticket()).unwrap()).collect();
    assert!(waits.iter_mut().all(|wait| house.waits(wait)));
    drop(held);
    // The slot is on its way to the first, who leaves, and then to the second, who leaves too.
    drop(waits.remove(0));
    drop(waits.remove(0));
    assert_eq!(house.woken(), 3);
    drop(house.slot(&mut waits[0]));
    assert!(house.subject("a").slot().is_ok());
}

#[test]
fn a_waiter_leaves_at_its_deadline_and_is_refused_if_it_cannot_make_it() {
    let house = House::new(&[("a", &none())], 1, &ScopesConfig::default());
    let held = house.subject("a").slot().unwrap();
    let mut wait = house.acquire("a", ticket()).unwrap();
    let mut late =
        house.acquire("a", Ticket { deadline: MonoTime::from_nanos(5_000_000_000), ..ticket() }).unwrap();
    assert!(house.waits(&mut wait) && house.waits(&mut late));
    house.manual.advance(Duration::from_millis(4_500));
    let hopeless = Ticket { deadline: MonoTime::from_nanos(5_000_000_000), ..ticket() };
    assert_eq!(house.acquire("a", hopeless).unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    house.manual.advance(Duration::from_millis(500));
    assert!(
        matches!(house.poll(&mut late), Poll::Ready(Err(error)) if error.kind() == ErrorKind::DeadlineExceeded)
    );
    house.manual.advance(Duration::from_millis(54_500));
    assert!(house.waits(&mut wait));
    // Half a second is left of a deadline that needs one: the turn is useless.
    drop(held);
    assert!(
        matches!(house.poll(&mut wait), Poll::Ready(Err(error)) if error.kind() == ErrorKind::DeadlineExceeded)
    );
    assert!(house.subject("a").slot().is_ok());
}

#[test]
fn a_full_queue_refuses_and_says_how_long_it_takes() {
    let house = House::new(&[("a", &none())], 1, &ScopesConfig::default());
    let mut held = house.subject("a").slot().unwrap();
    let none_at_all = house.acquire("a", Ticket { max_queue: 0, ..ticket() }).unwrap_err();
    assert_eq!(
        (none_at_all.kind(), none_at_all.subject()),
        (ErrorKind::Overloaded, Some("tenant:a.pool_capacity"))
    );
    // Batches wait as long as their deadline allows.
    let batch = Ticket { priority: Priority::Low, ..ticket() };
    let two = Ticket { max_queue: 2, deadline: MonoTime::from_nanos(300_000_000_000), ..batch };
    let mut waits: Vec<_> = (0..2).map(|_| house.acquire("a", two).unwrap()).collect();
    let full = house.acquire("a", two).unwrap_err();
    assert_eq!((full.kind(), full.subject()), (ErrorKind::Overloaded, Some("max_queue")));
    assert_eq!(full.retry_after(), Some(Duration::from_secs(1)));
    // A slot comes back every 2 s.
    for _ in 0..20 {
        house.manual.advance(Duration::from_secs(2));
        drop(held);
        held = house.slot(&mut waits.remove(0));
        waits.push(house.acquire("a", two).unwrap());
    }
    let full = house.acquire("a", two).unwrap_err();
    assert_eq!(full.retry_after(), Some(Duration::from_secs(6)));
    // With three turns ahead, 6 s and 1 s of work do not fit into 6.5 s.
    waits.pop();
    let hurry = Ticket { deadline: house.clock.now().saturating_add(Duration::from_millis(4_500)), ..two };
    let refused = house.acquire("a", hurry).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.retry_after()),
        (ErrorKind::Overloaded, Some(Duration::from_secs(4)))
    );
}

#[test]
fn where_the_queue_does_not_get_empty_the_oldest_are_shed_and_the_last_is_served() {
    let house = House::new(&[("a", &none()), ("b", &none())], 1, &ScopesConfig::default());
    let mut held = house.subject("a").slot().unwrap();
    let three = |house: &House| Ticket {
        max_queue: 3,
        deadline: house.clock.now().saturating_add(Duration::from_secs(60)),
        ..ticket()
    };
    let mut waits: Vec<_> = (0..3).map(|_| house.acquire("a", three(&house)).unwrap()).collect();
    // A burst is worked off in its order for twenty short waits.
    for _ in 0..5 {
        house.manual.advance(Duration::from_secs(2));
        drop(held);
        held = house.slot(&mut waits.remove(0));
        waits.push(house.acquire("a", three(&house)).unwrap());
    }
    assert!(house.subject("a").may_come(Priority::Normal, 3, house.clock.now()).is_ok());
    house.manual.advance(Duration::from_secs(1));
    let refused = house.subject("a").may_come(Priority::Normal, 3, house.clock.now()).unwrap_err();
    assert_eq!((refused.kind(), refused.subject()), (ErrorKind::Overloaded, Some("max_queue")));
    // Nobody else is turned away for it, nor a class that has room.
    assert!(house.subject("b").may_come(Priority::Normal, 3, house.clock.now()).is_ok());
    assert!(house.subject("a").may_come(Priority::High, 3, house.clock.now()).is_ok());
    drop(held);
    let ends: Vec<_> = waits.iter_mut().map(|wait| house.poll(wait)).collect();
    let [Poll::Ready(Err(first)), Poll::Ready(Err(_)), Poll::Ready(Ok(_))] = &ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!((first.kind(), first.subject()), (ErrorKind::Overloaded, Some("max_queue")));
}

#[test]
fn who_is_shed_leaves_a_freed_slot_to_who_can_use_it() {
    let reserved = TenantLimitsConfig { reserved_concurrency: 1, ..none() };
    let global = ScopeLimitsConfig { max_concurrency: Some(2), ..ScopeLimitsConfig::default() };
    let scopes = ScopesConfig { global, ..ScopesConfig::default() };
    let house = House::new(&[("a", &reserved), ("b", &none()), ("c", &none())], 2, &scopes);
    let _held = house.subject("b").slot().unwrap();
    let mut waits: Vec<_> = ["b", "c"].iter().map(|name| house.acquire(name, ticket()).unwrap()).collect();
    let own = house.slot(&mut house.acquire("a", ticket()).unwrap());
    house.manual.advance(Duration::from_secs(11));
    let mut last = house.acquire("a", ticket()).unwrap();
    waits.push(house.acquire("c", ticket()).unwrap());
    // It frees one under the cap of all. B cannot use it, nor can C, whose oldest is shed at the look.
    drop(own);
    drop(house.slot(&mut last));
    assert!(house.waits(&mut waits[0]) && house.waits(&mut waits[2]));
    assert!(
        matches!(house.poll(&mut waits[1]), Poll::Ready(Err(error)) if error.subject() == Some("max_queue"))
    );
}

#[test]
fn raised_limits_are_handed_out() {
    let house = House::new(&[("a", &none())], 1, &ScopesConfig::default());
    let _held = house.subject("a").slot().unwrap();
    let mut wait = house.acquire("a", ticket()).unwrap();
    assert!(house.waits(&mut wait));
    house.limits.reconfigure(config(&[("a", &none())], 2), START).unwrap();
    assert_eq!(house.woken(), 1);
    drop(house.slot(&mut wait));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(usize, usize),
    Poll(usize),
    Cancel(usize),
    Release(usize),
    Forward(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..12;
    prop_oneof![
        5 => (0_usize..3, 0_usize..3).prop_map(|(tenant, class)| Step::Join(tenant, class)),
        3 => which.clone().prop_map(Step::Poll),
        2 => which.clone().prop_map(Step::Cancel),
        4 => which.prop_map(Step::Release),
        1 => (0_u64..20).prop_map(Step::Forward),
    ]
}

const NAMES: [&str; 3] = ["a", "b", "c"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn i16_no_slot_stays_free_while_someone_could_use_it(
        caps in vec(proptest::option::of(1_u32..3), 4), reserved in 0_u32..2, slots in 1_u32..4, steps in vec(step(), 1..40)
    ) {
        let tenant = |at: usize, reserved: u32| TenantLimitsConfig { max_concurrency: caps[at], reserved_concurrency: reserved, ..none() };
        let tenants = [tenant(0, reserved), tenant(1, 0), tenant(2, 0)];
        let named: Vec<_> = NAMES.iter().copied().zip(&tenants).collect();
        let global = ScopeLimitsConfig { max_concurrency: caps[3], ..ScopeLimitsConfig::default() };
        let house = House::new(&named, slots + reserved, &ScopesConfig { global, ..ScopesConfig::default() });
        let (mut waits, mut held) = (Vec::<(usize, Waiting)>::new(), Vec::<(usize, Slot)>::new());
        for step in steps {
            match step {
                Step::Join(tenant, class) => {
                    let ticket = Ticket { priority: Priority::ALL[class], ..ticket() };
                    waits.extend(house.acquire(NAMES[tenant], ticket).ok().map(|wait| (tenant, wait)));
                }
                Step::Poll(at) if at < waits.len() => {
                    let (tenant, mut wait) = waits.swap_remove(at);
                    match house.poll(&mut wait) {
                        Poll::Ready(Ok(slot)) => held.push((tenant, slot)),
                        Poll::Ready(Err(error)) => prop_assert_eq!(error.kind(), ErrorKind::DeadlineExceeded),
                        Poll::Pending => waits.push((tenant, wait)),
                    }
                }
                Step::Cancel(at) if at < waits.len() => drop(waits.swap_remove(at)),
                Step::Release(at) if at < held.len() => drop(held.swap_remove(at)),
                Step::Poll(_) | Step::Cancel(_) | Step::Release(_) => {}
                Step::Forward(seconds) => house.manual.advance(Duration::from_secs(seconds)),
            }
            // Whoever still waits, waits for a reason: its slot is in nobody's reach.
            let ready: Vec<_> = waits.iter_mut().map(|(tenant, wait)| (*tenant, house.poll(wait))).collect();
            let (done, still): (Vec<_>, Vec<_>) =
                waits.into_iter().zip(ready).partition(|(_, (_, polled))| polled.is_ready());
            waits = still.into_iter().map(|(wait, _)| wait).collect();
            held.extend(done.into_iter().filter_map(|(_, (tenant, polled))| match polled {
                Poll::Ready(Ok(slot)) => Some((tenant, slot)),
                Poll::Ready(Err(_)) | Poll::Pending => None,
            }));
            for (tenant, _) in &waits {
                prop_assert!(house.subject(NAMES[*tenant]).slot().is_err(), "a slot is free and {tenant} waits");
            }
            let in_use: usize = NAMES.iter().map(|name| house.subject(name).snapshot(START, UTC)[0].concurrency.in_use as usize).sum();
            prop_assert_eq!(in_use, held.len());
            prop_assert!(in_use <= (slots + reserved) as usize);
        }
        drop((waits, held));
        prop_assert_eq!(house.manual.sleepers(), 0);
        for name in NAMES {
            prop_assert_eq!(house.subject(name).snapshot(START, UTC)[0].concurrency.in_use, 0);
        }
    }
}
