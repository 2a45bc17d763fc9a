//! I16: a free reserved slot is had at once, whatever the others hold, also after the shares were changed.

use gw_limits::{Limits, LimitsConfig, Slot, TenantLimitsConfig};
use gw_types::{ErrorKind, TenantId};
use proptest::{collection::vec, prelude::*};

use super::{STEPS_MAX, config};
use crate::{
    fixture::{START, id, none},
    model::{PoolModel, SlotVerdict, TenantModel},
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Reserved slots and, above them, the room up to the tenant's cap.
type Shape = ([(u32, Option<u32>); 3], u32);

fn shape() -> impl Strategy<Value = Shape> {
    let one = || (0_u32..4, proptest::option::of(0_u32..4));
    ([one(), one(), one()], 1_u32..4)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(usize),
    Back(usize),
    /// Takes until refused.
    Saturate(usize),
    Change(Shape),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..3).prop_map(Step::Take),
        3 => (0_usize..12).prop_map(Step::Back),
        2 => (0_usize..3).prop_map(Step::Saturate),
        1 => shape().prop_map(Step::Change),
    ]
}

fn pool((tenants, shared): Shape) -> PoolModel {
    let tenant = |(reserved, room): (u32, Option<u32>)| {
        let max = room.map(|room| (reserved + room).max(1));
        TenantModel { reserved, max, in_use: 0 }
    };
    PoolModel { tenants: tenants.map(tenant).to_vec(), shared }
}

fn as_config(pool: &PoolModel, ids: &[TenantId]) -> LimitsConfig {
    let tenant = |tenant: &TenantModel| TenantLimitsConfig {
        max_concurrency: tenant.max,
        reserved_concurrency: tenant.reserved,
        ..none()
    };
    let tenants = ids.iter().cloned().zip(pool.tenants.iter().map(tenant)).collect();
    LimitsConfig { tenants, deployments: vec![], pool_capacity: pool.capacity() }
}

fn take(limits: &Limits, model: &mut PoolModel, ids: &[TenantId], at: usize) -> Option<Slot> {
    let before = model.tenants[at];
    let expected = model.take(at);
    let slot = limits.tenant(&ids[at]).unwrap().slot();
    let verdict = match slot.as_ref().map_err(|error| error.kind()) {
        Ok(_) => SlotVerdict::Taken,
        Err(ErrorKind::RateLimited) => SlotVerdict::Cap,
        Err(kind) => {
            assert_eq!(kind, ErrorKind::Overloaded);
            SlotVerdict::Full
        }
    };
    assert_eq!(verdict, expected);
    assert!(
        verdict == SlotVerdict::Taken || before.in_use >= before.reserved,
        "a free reserved slot was refused"
    );
    slot.ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i16_a_free_reserved_slot_is_had_at_once(first in shape(), steps in vec(step(), 1..STEPS_MAX)) {
        let ids = NAMES.map(id);
        let mut model = pool(first);
        let limits = Limits::new(as_config(&model, &ids), START).unwrap();
        let (mut slots, mut changed) = (Vec::<(usize, Slot)>::new(), false);
        for step in steps {
            match step {
                Step::Take(at) => slots.extend(take(&limits, &mut model, &ids, at).map(|slot| (at, slot))),
                Step::Saturate(at) => {
                    while let Some(slot) = take(&limits, &mut model, &ids, at) {
                        slots.push((at, slot));
                    }
                }
                Step::Back(which) if which < slots.len() => {
                    let (at, slot) = slots.swap_remove(which);
                    drop(slot);
                    model.tenants[at].in_use -= 1;
                }
                Step::Back(_) => {}
                Step::Change(shape) => {
                    let mut next = pool(shape);
                    for (new, old) in next.tenants.iter_mut().zip(&model.tenants) {
                        new.in_use = old.in_use;
                    }
                    model = next;
                    limits.reconfigure(as_config(&model, &ids), START).unwrap();
                    changed = true;
                }
            }
            prop_assert!(changed || model.in_use() <= model.capacity());
            for (tenant, id) in model.tenants.iter().zip(&ids) {
                let read = limits.tenant(id).unwrap().snapshot(START, crate::fixture::UTC).concurrency;
                prop_assert_eq!((read.in_use, read.reserved, read.limit), (tenant.in_use, tenant.reserved, tenant.max));
            }
        }
        // Once everything is back, the whole pool is to be had again, and not a slot more.
        slots.clear();
        model.tenants.iter_mut().for_each(|tenant| tenant.in_use = 0);
        for at in 0..NAMES.len() {
            while let Some(slot) = take(&limits, &mut model, &ids, at) {
                slots.push((at, slot));
            }
        }
        prop_assert!(model.in_use() <= model.capacity());
    }
}
