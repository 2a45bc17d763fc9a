//! Turns: the bound of the virtual token counter, the floor of each class, parking.

use std::{collections::HashMap, num::NonZeroU32};

use gw_types::TenantId;
use proptest::{collection::vec, prelude::*};

use super::flows::{FlowId, Flows};
use crate::{Priority, Scope};

fn flow(priority: Priority, name: &str) -> FlowId {
    (priority, TenantId::new(name).unwrap())
}

fn normal(name: &str) -> FlowId {
    flow(Priority::Normal, name)
}

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// Serves the next turn and returns whose it was.
fn serve(flows: &mut Flows, tokens: u64) -> Option<(FlowId, u64)> {
    let turn = flows.next()?;
    flows.served(&turn, tokens, ONE);
    Some((turn.flow, turn.waiter))
}

#[test]
fn within_a_flow_the_oldest_is_first_and_ties_go_by_name() {
    let mut flows = Flows::default();
    for (name, waiter) in [("b", 1), ("a", 2), ("a", 3), ("b", 4)] {
        flows.push(&normal(name), waiter);
    }
    let order: Vec<_> = std::iter::from_fn(|| serve(&mut flows, 5)).map(|(_, waiter)| waiter).collect();
    assert_eq!(order, [2, 1, 3, 4]);
}

#[test]
fn idling_earns_no_credit() {
    let mut flows = Flows::default();
    let (busy, idle) = (normal("busy"), normal("idle"));
    for waiter in 0..10 {
        flows.push(&busy, waiter);
    }
    for _ in 0..8 {
        serve(&mut flows, 100);
    }
    for waiter in 10..20 {
        flows.push(&idle, waiter);
    }
    assert_eq!(flows.counter(&idle), flows.counter(&busy));
    // One after the other from here on, not eight for who was away.
    let order: Vec<_> = (0..4).filter_map(|_| serve(&mut flows, 100)).map(|(flow, _)| flow).collect();
    assert_eq!(order, [busy.clone(), idle.clone(), busy, idle]);
}

#[test]
fn each_class_gets_a_turn_in_twenty() {
    let mut flows = Flows::default();
    for waiter in 0..1_000 {
        for priority in Priority::ALL {
            flows.push(&flow(priority, "a"), waiter * 3 + priority as u64);
        }
    }
    let mut since = HashMap::from(Priority::ALL.map(|priority| (priority, 0)));
    let mut turns = HashMap::from(Priority::ALL.map(|priority| (priority, 0)));
    for _ in 0..1_000 {
        let ((served, _), _) = serve(&mut flows, 1).unwrap();
        *turns.get_mut(&served).unwrap() += 1;
        for (priority, since) in &mut since {
            *since = if *priority == served { 0 } else { *since + 1 };
            assert!(*since < 20, "{priority:?} waited through {since} turns");
        }
    }
    assert!(turns[&Priority::High] >= 880, "{turns:?}");
}

#[test]
fn who_is_parked_holds_nobody_up_and_comes_back_one_by_one() {
    let mut flows = Flows::default();
    let (a, b, c) = (normal("a"), normal("b"), normal("c"));
    for (waiter, id) in [&a, &b, &c].into_iter().enumerate() {
        flows.push(id, waiter as u64);
    }
    flows.park(&a, &Scope::Global);
    flows.park(&b, &Scope::Global);
    assert_eq!(flows.next().unwrap().flow, c);
    assert!(flows.freed(&Scope::Global));
    assert_eq!(flows.next().unwrap().flow, a);
    // It cannot use the freed slot for another reason: the slot is for the next one there.
    flows.park(&a, &Scope::Tenant(a.1.clone()));
    assert_eq!(flows.next().unwrap().flow, b);
    // The same if it leaves.
    flows.park(&b, &Scope::Global);
    flows.unpark_all();
    flows.park(&a, &Scope::Global);
    flows.park(&b, &Scope::Global);
    assert!(flows.freed(&Scope::Global) && flows.leave(&a, 0));
    assert_eq!(flows.next().unwrap().flow, b);
    assert_eq!(flows.waiting(), 2);
}

#[test]
fn what_lies_ahead_is_counted_by_rounds() {
    let mut flows = Flows::default();
    for waiter in 0..50 {
        flows.push(&normal("many"), waiter);
    }
    flows.push(&flow(Priority::High, "urgent"), 50);
    assert_eq!(flows.ahead(&normal("few")), 1 + 1);
    assert_eq!(flows.ahead(&normal("many")), 1 + 50);
    assert_eq!(flows.ahead(&flow(Priority::High, "x")), 1);
    assert_eq!(flows.ahead(&flow(Priority::Low, "x")), 51);
}

/// Tokens of one turn, at most.
const TOKENS_MAX: u64 = 50;

proptest! {
    #[test]
    fn tenants_that_wait_all_the_time_differ_by_two_charges(
        steps in vec((0_usize..4, 1_u64..=TOKENS_MAX, any::<bool>()), 1..400), weights in vec(1_u32..4, 2)
    ) {
        let weight = |at: usize| NonZeroU32::new(weights[at]).unwrap();
        let mut flows = Flows::default();
        let names = ["a", "b", "c", "d"].map(normal);
        // The first two never run empty; the others come and go.
        let mut waiter = 0;
        for id in &names[..2] {
            for _ in 0..steps.len() + 1 {
                waiter += 1;
                flows.push(id, waiter);
            }
        }
        let mut service = [0_u64; 2];
        for (who, tokens, comes) in steps {
            if comes && who >= 2 {
                waiter += 1;
                flows.push(&names[who], waiter);
            }
            let turn = flows.next().unwrap();
            let at = names.iter().position(|name| *name == turn.flow).unwrap();
            flows.served(&turn, tokens, if at < 2 { weight(at) } else { ONE });
            if at < 2 {
                service[at] += tokens * 12 / u64::from(weights[at]);
            }
            prop_assert!(service[0].abs_diff(service[1]) <= 2 * 12 * TOKENS_MAX);
        }
    }
}
