//! How long admission takes, in one scope and in three, alone and with two threads on one tenant.
//!
//! The allocation counts show that nothing is allocated where a request is let through.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use gw_limits::{
    BudgetConfig, Limits, LimitsConfig, OrganisationConfig, QuotaConfig, ScopeLimitsConfig, ScopesConfig,
    Subject, SubjectIds, TenantLimits, TenantLimitsConfig, TenantScopeConfig, Window,
};
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

/// Tenant, organisation and the whole, each with requests, tokens, money and calls at once.
fn three_scopes() -> (Limits, Subject) {
    let id = |name| TenantId::new(name).expect("a name");
    let budget = BudgetConfig { limit: Money::from_micros(u64::MAX), window: Window::Day };
    let limits = ScopeLimitsConfig {
        requests_per_minute: Some(60_000_000_000),
        tokens_per_minute: Some(PLENTY),
        max_concurrency: Some(1_000),
        budgets: vec![QuotaConfig::from(budget)],
    };
    let scopes = ScopesConfig {
        tenants: vec![(id("bench"), TenantScopeConfig { parent: Some(id("group")), budgets: vec![] })],
        organisations: vec![(id("group"), OrganisationConfig { parent: None, limits: limits.clone() })],
        global: limits,
        ..ScopesConfig::default()
    };
    let tenant = TenantLimitsConfig {
        requests_per_minute: Some(60_000_000_000),
        tokens_per_minute: Some(PLENTY),
        max_concurrency: Some(1_000),
        reserved_concurrency: 10,
        budget: Some(budget),
    };
    let config =
        LimitsConfig { tenants: vec![(id("bench"), tenant)], deployments: vec![], pool_capacity: 10_000 };
    let limits = Limits::with_scopes(config, &scopes, MonoTime::ZERO).expect("sound limits");
    let ids = SubjectIds { key: None, tenant: "bench", model: None };
    let subject = limits.subject(&ids).expect("the tenant of the configuration");
    (limits, subject)
}

/// Six rates (requests and tokens in three scopes), admitted; the drop gives back and is measured with it.
#[divan::bench(threads = [1, 2], sample_size = 1_000)]
fn admit_six_rates_in_three_scopes(bencher: Bencher<'_, '_>) {
    let ((_limits, subject), clock) = (three_scopes(), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        subject.admit(TokenCount::new(divan::black_box(500)), now).is_ok()
    });
}

/// The same without the drop: what the decision itself takes.
#[divan::bench(sample_size = 1_000)]
fn admit_alone_in_three_scopes(bencher: Bencher<'_, '_>) {
    let ((_limits, subject), clock) = (three_scopes(), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        subject.admit(TokenCount::new(divan::black_box(500)), now)
    });
}

/// What was admitted is settled.
#[divan::bench(sample_size = 1_000)]
fn settle_in_three_scopes(bencher: Bencher<'_, '_>) {
    let (_limits, subject) = three_scopes();
    let admitted = || subject.admit(TokenCount::new(500), MonoTime::ZERO).expect("plenty is left");
    let settle = |admission: gw_limits::Admission| admission.settle(TokenCount::new(400), MonoTime::ZERO);
    bencher.counter(ItemsCount::new(1_u32)).with_inputs(admitted).bench_values(settle);
}

/// Twelve limits: rates, slot and money in three scopes, taken and settled.
#[divan::bench(threads = [1, 2], sample_size = 1_000)]
fn whole_request_in_three_scopes(bencher: Bencher<'_, '_>) {
    let ((_limits, subject), clock) = (three_scopes(), AtomicU64::new(0));
    bencher.counter(ItemsCount::new(1_u32)).bench(|| {
        let now = MonoTime::from_nanos(clock.fetch_add(TICK_NS, Ordering::Relaxed));
        let admission = subject.admit(TokenCount::new(divan::black_box(500)), now);
        let (slot, reservation) = (subject.slot(), subject.reserve(Money::from_micros(400), UTC));
        let settled = admission.map(|admission| admission.settle(TokenCount::new(400), now)).is_ok();
        let spent = reservation.map(|reservation| reservation.commit(Money::from_micros(300))).is_ok();
        assert!(slot.is_ok() && settled && spent);
    });
}

/// The scopes of a request, found by name.
#[divan::bench(sample_size = 1_000)]
fn resolve(bencher: Bencher<'_, '_>) {
    let (limits, _) = three_scopes();
    let ids = SubjectIds { key: Some("k"), tenant: "bench", model: Some("m") };
    bencher.counter(ItemsCount::new(1_u32)).bench(|| limits.subject(divan::black_box(&ids)).is_some());
}

/// A hundred thousand tenants with four limits each; `max alloc` over their number is what one takes.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn resident_100_000_tenants(bencher: Bencher<'_, '_>) {
    let tenant = |n: u32| {
        let limits = TenantLimitsConfig {
            requests_per_minute: Some(600),
            tokens_per_minute: Some(400_000),
            max_concurrency: Some(10),
            reserved_concurrency: 0,
            budget: Some(BudgetConfig { limit: Money::from_micros(u64::MAX), window: Window::Day }),
        };
        (TenantId::new(&format!("tenant-{n}")).expect("a name"), limits)
    };
    let config = || LimitsConfig {
        tenants: (0..100_000).map(tenant).collect(),
        deployments: vec![],
        pool_capacity: 10_000,
    };
    bencher.with_inputs(config).bench_values(|config| Limits::new(config, MonoTime::ZERO));
}
