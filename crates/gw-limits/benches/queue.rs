//! What a place in a queue costs, by how many wait: it must hardly grow.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use divan::{Bencher, counter::ItemsCount};
use gw_limits::{Limits, LimitsConfig, Priority, Slot, SubjectIds, TenantLimitsConfig, Ticket, Waiting};
use gw_types::{Clock, ManualClock, MonoTime, TenantId, TokenCount, UtcTime};

fn main() {
    divan::main();
}

const TENANTS: usize = 100;
const WAITERS: [usize; 3] = [100, 1_000, 9_990];

struct Full {
    limits: Limits,
    clock: Arc<dyn Clock>,
    held: Slot,
    waits: Vec<Waiting>,
}

fn join(limits: &Limits, clock: &Arc<dyn Clock>, tenant: usize) -> Waiting {
    let name = format!("tenant-{}", tenant % TENANTS);
    let subject = limits.subject(&SubjectIds { key: None, tenant: &name, model: None });
    let ticket = Ticket {
        priority: Priority::Normal,
        weight: NonZeroU32::MIN,
        input: TokenCount::new(100),
        max_queue: 10_000,
        deadline: MonoTime::from_nanos(u64::MAX),
        needs: Duration::ZERO,
    };
    subject.expect("a tenant").acquire(ticket, clock).expect("room in the queue")
}

/// One slot, in use, and so many who wait for it.
fn full(waiters: usize) -> Full {
    let tenants = (0..TENANTS)
        .map(|n| (TenantId::new(&format!("tenant-{n}")).expect("a name"), TenantLimitsConfig::default()))
        .collect();
    let config = LimitsConfig { tenants, deployments: vec![], pool_capacity: 1 };
    let limits = Limits::new(config, MonoTime::ZERO).expect("sound limits");
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(UtcTime::from_micros(0)));
    let held = limits.subject(&SubjectIds { key: None, tenant: "tenant-0", model: None });
    let held = held.expect("a tenant").slot().expect("the slot");
    let waits = (0..waiters).map(|n| join(&limits, &clock, n)).collect();
    Full { limits, clock, held, waits }
}

/// Joins behind all others and leaves again.
#[divan::bench(args = WAITERS)]
fn join_and_leave(bencher: Bencher<'_, '_>, waiters: usize) {
    let (house, mut tenant) = (full(waiters), 0);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        tenant += 1;
        drop(join(&house.limits, &house.clock, tenant));
    });
}

/// Hands the slot through the whole queue, one to the next as each leaves.
#[divan::bench(args = WAITERS, sample_count = 5, sample_size = 1)]
fn hand_over_to_all(bencher: Bencher<'_, '_>, waiters: usize) {
    bencher.counter(ItemsCount::new(waiters)).with_inputs(|| full(waiters)).bench_local_values(|house| {
        drop(house.held);
        // Equal tenants are served in the order in which they came, so each has the slot when it leaves.
        house.waits.into_iter().for_each(drop);
    });
}
