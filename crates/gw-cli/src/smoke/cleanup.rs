//! Whoever goes away leaves nothing behind: cancelled batches, items whose time is up.

use std::time::Duration;

use futures_util::StreamExt;
use gw_exec::GenerationStatus;
use gw_testkit::{CallOutcome, Fault, ok};
use gw_types::ErrorKind;

use super::{
    finding::{Finding, micros, told},
    scene::{Scene, Setup, item, items},
};

/// How long the fault server may take to notice that a client has gone.
const NOTICE: Duration = Duration::from_secs(2);

/// Waits until the fault server has seen so many clients go.
async fn clients_gone(scene: &Scene, count: usize) -> usize {
    drop(tokio::time::timeout(NOTICE, scene.provider.wait_for_client_gone(count)).await);
    let gone = |call: &gw_testkit::SeenCall| call.outcome == CallOutcome::ClientGone;
    scene.provider.calls().iter().filter(|call| gone(call)).count()
}

/// Says nothing to any call but those for the item `after`.
fn silent_but_after(item: &str) -> Fault {
    if item == "after" { ok("fine").into() } else { Fault::HangBeforeHead }
}

/// Asks for one more item; returns whether it is answered.
async fn still_usable(scene: &Scene) -> Result<bool, String> {
    let results = scene.run(vec![item("after", 64)?], 1).await?;
    Ok(results.first().is_some_and(|result| result.status == GenerationStatus::Ok))
}

/// Dropping a batch in the middle of its calls ends them and gives everything back before the drop returns.
pub(super) async fn cancellation() -> Result<Finding, String> {
    const WORKERS: usize = 4;
    let setup = Setup { in_flight_tokens: Some(1_000), ..Setup::default() };
    let scene = Scene::start(setup, |item, _| silent_but_after(item)).await?;
    let mut batch = scene.batch(items(8, 64)?, WORKERS, None)?;
    tokio::select! {
        _ = batch.next() => return Err("an item ended that nobody has answered".to_owned()),
        _ = scene.provider.wait_for_calls(WORKERS) => {}
    }
    let held_before = !scene.holds_nothing();
    let begin = scene.clock.now();
    drop(batch);
    let held_after = !scene.holds_nothing();
    let took = scene.clock.now().saturating_since(begin);
    let gone = clients_gone(&scene, WORKERS).await;
    let usable = still_usable(&scene).await?;
    Ok(Finding::new("cancellation", &scene.arrivals(), &[])
        .observe("calls_in_flight", WORKERS)
        .observe("held_before", held_before)
        .observe("held_after", held_after)
        .observe("clients_gone_at_the_server", gone)
        .observe("usable_afterwards", usable)
        .measure("drop_us", micros(took))
        .passed_if(held_before && !held_after && gone == WORKERS && usable))
}

/// An item whose time is up is failed as such, its call ended, and nothing of it held.
pub(super) async fn deadline() -> Result<Finding, String> {
    const TIME: Duration = Duration::from_millis(150);
    let scene = Scene::start(Setup::default(), |item, _| silent_but_after(item)).await?;
    let results: Vec<_> = scene.batch(items(1, 64)?, 1, Some(TIME))?.collect().await;
    let took = scene.elapsed();
    let held = !scene.holds_nothing();
    let gone = clients_gone(&scene, 1).await;
    let usable = still_usable(&scene).await?;
    let result = results.first().ok_or("the item has no result")?;
    let by_time = matches!(
        result.error_class,
        Some(ErrorKind::ProviderTimeout | ErrorKind::DeadlineExceeded | ErrorKind::BudgetExhausted)
    );
    Ok(Finding::new("deadline", &scene.arrivals(), &results)
        .observe("result", told(result))
        .observe("held_after", held)
        .observe("clients_gone_at_the_server", gone)
        .observe("usable_afterwards", usable)
        .measure("lasted_us", micros(took))
        .passed_if(by_time && !held && gone == 1 && usable))
}
