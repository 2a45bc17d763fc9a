//! Bounds, as the fault server sees them: calls at once, tokens at once, calls a second, retries.

use std::{num::NonZeroU32, time::Duration};

use gw_exec::{GenerationResult, GenerationStatus};
use gw_testkit::{Fault, ok, status};
use gw_types::ErrorKind;

use super::{
    finding::{Finding, micros},
    scene::{Scene, Setup, items},
};

/// The time of one answer of the fault server.
const ANSWER_MS: u64 = 15;

fn soon() -> Fault {
    Fault::SlowHead { delay_ms: ANSWER_MS, then: Box::new(ok("fine").into()) }
}

fn answered(results: &[GenerationResult]) -> usize {
    results.iter().filter(|result| result.status == GenerationStatus::Ok).count()
}

/// At most so many calls at once, and no fewer where there is work.
pub(super) async fn concurrency() -> Result<Finding, String> {
    const ITEMS: usize = 24;
    const WORKERS: usize = 4;
    let scene = Scene::start(Setup::default(), |_, _| soon()).await?;
    let results = scene.run(items(ITEMS, 64)?, WORKERS).await?;
    let arrivals = scene.arrivals();
    let peak = arrivals.iter().map(|arrival| arrival.calls).max().unwrap_or_default();
    Ok(Finding::new("bounded_concurrency", &arrivals, &results)
        .observe("items", ITEMS)
        .observe("workers", WORKERS)
        .observe("answered", answered(&results))
        .observe("peak_calls_at_once", peak)
        .passed_if(peak == WORKERS && answered(&results) == ITEMS && scene.holds_nothing()))
}

/// The tokens of all calls at once stay under their bound, whatever the workers.
pub(super) async fn tokens() -> Result<Finding, String> {
    const ITEMS: usize = 12;
    const BOUND: u64 = 1_000;
    const EACH: u64 = 300;
    let setup = Setup { in_flight_tokens: Some(BOUND), ..Setup::default() };
    let scene = Scene::start(setup, |_, _| soon()).await?;
    let results = scene.run(items(ITEMS, EACH)?, ITEMS).await?;
    let arrivals = scene.arrivals();
    let peak = arrivals.iter().map(|arrival| arrival.tokens).max().unwrap_or_default();
    // Three items of 300 and their prompts fit in 1,000; a fourth does not.
    let passed = peak == BOUND / EACH * EACH && answered(&results) == ITEMS && scene.holds_nothing();
    Ok(Finding::new("bounded_tokens", &arrivals, &results)
        .observe("items", ITEMS)
        .observe("bound_tokens", BOUND)
        .observe("answered", answered(&results))
        .observe("peak_output_tokens_at_once", peak)
        .passed_if(passed))
}

/// An item that can never fit is refused before any call.
pub(super) async fn oversize() -> Result<Finding, String> {
    let setup = Setup { in_flight_tokens: Some(1_000), ..Setup::default() };
    let scene = Scene::start(setup, |_, _| soon()).await?;
    let results = scene.run(items(1, 2_000)?, 1).await?;
    let calls = scene.arrivals().len();
    let class = results.first().and_then(|result| result.error_class);
    Ok(Finding::new("oversize_item", &[], &results)
        .observe("calls", calls)
        .observe("error_class", class.map(ErrorKind::as_str))
        .passed_if(calls == 0 && class == Some(ErrorKind::RateLimited) && scene.holds_nothing()))
}

/// Calls come no faster than the pace, retries included.
pub(super) async fn pace() -> Result<Finding, String> {
    const ITEMS: usize = 5;
    const RETRIED: usize = 1;
    const PER_SECOND: u32 = 20;
    let setup = Setup { per_second_milli: NonZeroU32::new(PER_SECOND * 1_000), ..Setup::default() };
    let scene = Scene::start(setup, |item, nth| match (item, nth) {
        ("item-000", 1) => status(503).into(),
        _ => ok("fine").into(),
    })
    .await?;
    let results = scene.run(items(ITEMS, 64)?, ITEMS).await?;
    let arrivals = scene.arrivals();
    let times = || arrivals.iter().map(|arrival| arrival.at);
    let (first, last) = (times().min().unwrap_or_default(), times().max().unwrap_or_default());
    let span = last.saturating_sub(first);
    let gap = Duration::from_secs(1) / PER_SECOND;
    // A first call that came late makes the span shorter by as much; one gap is what that may be.
    let least = gap * u32::try_from(arrivals.len().saturating_sub(2)).unwrap_or_default();
    let counted = arrivals.len() == ITEMS + RETRIED && answered(&results) == ITEMS;
    Ok(Finding::new("pace", &arrivals, &results)
        .observe("calls", arrivals.len())
        .observe("calls_a_second_at_most", PER_SECOND)
        .measure("span_us", micros(span))
        .passed_if(counted && span >= least && scene.holds_nothing()))
}

/// Where one item in five fails once, calls are 1.2 an item: each failure is repeated once and nothing else is.
pub(super) async fn amplification() -> Result<Finding, String> {
    const ITEMS: usize = 30;
    const EVERY: usize = 5;
    let scene = Scene::start(Setup::default(), |item, nth| {
        let number = item.rsplit('-').next().and_then(|digits| digits.parse::<usize>().ok());
        let fails = nth == 1 && number.is_some_and(|number| number.is_multiple_of(EVERY));
        if fails { status(503).into() } else { ok("fine").into() }
    })
    .await?;
    let results = scene.run(items(ITEMS, 64)?, 4).await?;
    let arrivals = scene.arrivals();
    let calls = arrivals.len();
    Ok(Finding::new("retry_amplification", &arrivals, &results)
        .observe("items", ITEMS)
        .observe("answered", answered(&results))
        .observe("calls", calls)
        .observe("calls_an_item_milli", calls * 1_000 / ITEMS)
        .passed_if(answered(&results) == ITEMS && calls == ITEMS + ITEMS / EVERY))
}

/// Where every call fails, retries do not multiply the load: their budget is soon spent, and a breaker opens.
pub(super) async fn outage() -> Result<Finding, String> {
    const ITEMS: usize = 100;
    let scene = Scene::start(Setup::default(), |_, _| status(503).into()).await?;
    let results = scene.run(items(ITEMS, 64)?, 4).await?;
    let calls = scene.arrivals().len();
    let within = calls * 10 <= ITEMS * 12;
    let failed = results.len() - answered(&results);
    Ok(Finding { passed: within && failed == ITEMS && scene.holds_nothing(), ..Finding::default() }
        .observe("items", ITEMS)
        .observe("failed", failed)
        .observe("at_most_1_2_calls_an_item", within)
        .measure("calls", u64::try_from(calls).unwrap_or(u64::MAX)))
}
