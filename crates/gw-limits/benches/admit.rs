//! How long a tenant's admission takes in two dimensions, alone and with two threads on one tenant.
//!
//! The allocation counts show that nothing is allocated where a request is let through.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use gw_limits::{BudgetConfig, Limits, LimitsConfig, TenantLimits, TenantLimitsConfig, Window};
use gw_types::{Money, MonoTime, TenantId, TokenCount, UtcTime};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const TICK_NS: u64 = 1_000;
const UTC: UtcTime = UtcTime::from_micros(1_893_456_000_000_000);

fn tenant(tokens_per_minute: u64) -> Arc<TenantLimits> {
    let id = TenantId::new("bench").expect("a name");
    let limits = TenantLimitsConfig {
        requests_per_minute: Some(60_000_000_000),
        tokens_per_minute: Some(tokens_per_minute),
        max_concurrency: Some(1_000),
        reserved_concurrency: 10,
        budget: Some(BudgetConfig { limit: Money::from_micros(u64::MAX), window: Window::Day }),
    };
    let config =
        LimitsConfig { tenants: vec![(id.clone(), limits)], deployments: vec![], pool_capacity: 10_000 };
    let limits = Limits::new(config, MonoTime::ZERO).expect("sound limits");
    limits.tenant(&id).expect("the tenant of the configuration")
}

const PLENTY: u64 = 60_000_000_000_000;

/// One request and its tokens, admitted and settled.
#[divan::bench(threads = [1, 2], sample_size = 1_000)]
fn admit_and_settle(bencher: Bencher<'_, '_>) {
    let (tenant, clock) = (tenant(PLENTY), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        let admission = tenant.admit(TokenCount::new(divan::black_box(500)), now);
        admission.map(|admission| admission.settle(TokenCount::new(400), now)).is_ok()
    });
}

/// Refused by tokens: the error is made, nothing is taken.
#[divan::bench(sample_size = 1_000)]
fn refuse(bencher: Bencher<'_, '_>) {
    let (tenant, clock) = (tenant(10), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        tenant.admit(TokenCount::new(divan::black_box(11)), now).is_err()
    });
}

/// Everything a request takes: quota check, rates, slot, money; then everything settled.
#[divan::bench(threads = [1, 2], sample_size = 1_000)]
fn whole_request(bencher: Bencher<'_, '_>) {
    let (tenant, clock) = (tenant(PLENTY), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        let admitted = tenant.check_quota(UTC).is_ok() && {
            let admission = tenant.admit(TokenCount::new(divan::black_box(500)), now);
            let (slot, reservation) = (tenant.slot(), tenant.reserve(Money::from_micros(400), UTC));
            let settled = admission.map(|admission| admission.settle(TokenCount::new(400), now)).is_ok();
            let spent = reservation.map(|reservation| reservation.commit(Money::from_micros(300))).is_ok();
            slot.is_ok() && settled && spent
        };
        assert!(admitted);
    });
}
