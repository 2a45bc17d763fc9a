//! Steps 9 to 11: what is charged, remembered and recorded.

use std::sync::Arc;

use gw_exec::Target;
use gw_limits::{BudgetConfig, TenantLimitsConfig, Window};
use gw_types::{ErrorKind as K, GatewayError, Money, Outcome};

use crate::support::{Hanging, Plan, answer, answers, caller, deployment, fails, provider, request};

fn with_budget(targets: Vec<(gw_types::Deployment, crate::support::MockProvider)>) -> Plan {
    let mut plan = Plan::new(targets);
    plan.limits = TenantLimitsConfig {
        tokens_per_minute: Some(10_000),
        budget: Some(BudgetConfig { limit: Money::from_micros(1_000), window: Window::Day }),
        ..TenantLimitsConfig::default()
    };
    plan
}

fn spent(house: &crate::support::House) -> Money {
    house.gateway.tenant_snapshot(&caller().tenant).unwrap().budget.unwrap().spent
}

#[tokio::test(start_paused = true)]
async fn i15_the_sum_of_the_records_equals_what_is_spent() {
    let timeout = GatewayError::new(K::ProviderTimeout, "scripted").ambiguous();
    let unavailable = GatewayError::new(K::ProviderUnavailable, "scripted");
    let first = std::sync::atomic::AtomicUsize::new(0);
    let up1 = provider(3, move || match first.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => Err(timeout.clone()),
        1 => Err(unavailable.clone()),
        _ => Ok(answer()),
    });
    let house =
        with_budget(vec![(deployment("up1"), up1), (deployment("up2"), provider(2, || Ok(answer())))])
            .build();
    for _ in 0..3 {
        house.ask(request()).await.unwrap();
    }
    let records = house.records();
    let sums: Money = records
        .iter()
        .map(|record| {
            record.side_costs.iter().map(|side| side.cost).sum::<Money>().saturating_add(record.cost)
        })
        .sum();
    assert_eq!(spent(&house), sums);
    // What timed out may be billed: its worst case by the estimate is kept aside. What answered 503 is not.
    assert_eq!((records[0].side_costs.len(), records[1].side_costs.len()), (1, 0));
    house.holds_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_in_flight_is_charged_what_it_may_have_cost() {
    let plan = with_budget(vec![(deployment("up1"), crate::support::never())]);
    let adapter = Arc::new(Hanging::default());
    let house = plan.build_with(vec![Target::new(Arc::new(deployment("up1")), adapter)]);
    let asked = tokio::time::timeout(std::time::Duration::from_millis(10), house.ask(request())).await;
    assert!(asked.is_err());
    let record = house.only_record();
    assert!(record.usage.estimated);
    // 17 tokens of prompt by the estimate and the whole bound of 100.
    assert_eq!((record.outcome, record.cost), (Outcome::Cancelled, Money::from_micros(17 + 200)));
    assert_eq!(spent(&house), record.cost);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_costs_nothing_and_gives_the_tokens_back() {
    let refused = fails(1, GatewayError::new(K::ProviderRateLimited, "scripted"));
    let house = with_budget(vec![(deployment("up1"), refused)]).build();
    let failure = house.ask(request()).await.unwrap_err();
    assert_eq!(failure.head.tokens.unwrap().remaining, 10_000);
    assert_eq!((spent(&house), house.only_record().cost), (Money::ZERO, Money::ZERO));
}

#[tokio::test(start_paused = true)]
async fn token_windows_are_charged_what_was_really_used() {
    let house = with_budget(vec![(deployment("up1"), answers())]).build();
    let head = house.ask(request()).await.unwrap().head;
    assert_eq!(head.tokens.unwrap().remaining, 10_000 - 54);
}

#[tokio::test(start_paused = true)]
async fn i13_two_gateways_built_alike_leave_identical_records() {
    let run = async || {
        let unavailable = GatewayError::new(K::ProviderUnavailable, "scripted");
        let plan = with_budget(vec![
            (deployment("up1"), fails(2, unavailable)),
            (deployment("up2"), provider(2, || Ok(answer()))),
        ]);
        let house = plan.build();
        for _ in 0..2 {
            house.ask(request()).await.unwrap();
        }
        house.records()
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_gws_own_leaves_one_record_and_holds_nothing() {
    let faulty = provider(1, || panic!("a fault of gw's own"));
    let house = with_budget(vec![(deployment("up"), faulty)]).build();
    let mut asking = std::pin::pin!(house.ask(request()));
    let unwound = std::future::poll_fn(|cx| {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| asking.as_mut().poll(cx)));
        std::task::Poll::Ready(polled.is_err())
    });
    assert!(unwound.await, "the fault comes through");
    let record = house.only_record();
    assert_eq!((record.outcome, record.error), (Outcome::Failed, Some(K::Internal)));
    assert_eq!((record.attempts.len(), record.attempts[0].error), (1, Some(K::Internal)));
}
