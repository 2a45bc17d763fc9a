//! A watchdog of the runtime: a heartbeat whose lateness shows what blocks it.

use std::{sync::Arc, time::Duration};

use gw_exec::GenerationStatus;
use gw_testkit::{Fault, ok};
use gw_types::Clock;
use parking_lot::Mutex;

use super::{
    finding::{Finding, micros},
    scene::{Scene, Setup, item},
};

/// The time between two beats.
const BEAT: Duration = Duration::from_millis(10);

/// The lateness at which the runtime counts as blocked.
pub(super) const LAG_MAX: Duration = Duration::from_millis(100);

/// The time of the slow answer, and of the block.
const LONG: Duration = Duration::from_millis(120);

/// Beats until it is dropped, and keeps how late a beat was at most and how many there were.
struct Watchdog {
    seen: Arc<Mutex<(Duration, u64)>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watchdog {
    fn start(clock: Arc<dyn Clock>) -> Self {
        let seen = Arc::new(Mutex::new((Duration::ZERO, 0)));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let due = clock.now().saturating_add(BEAT);
                clock.sleep_until(due).await;
                let late = clock.now().saturating_since(due);
                let mut kept = kept.lock();
                *kept = (kept.0.max(late), kept.1 + 1);
            }
        });
        Self { seen, task }
    }

    fn lag(&self) -> Duration {
        self.seen.lock().0
    }

    fn beats(&self) -> u64 {
        self.seen.lock().1
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// While a slow answer is pending, a fast request and the heartbeat go on.
pub(super) async fn undisturbed() -> Result<Finding, String> {
    let scene = Scene::start(Setup::default(), |item, _| match item {
        "slow" => Fault::SlowHead {
            delay_ms: u64::try_from(LONG.as_millis()).unwrap_or(u64::MAX),
            then: Box::new(ok("fine").into()),
        },
        _ => ok("fine").into(),
    })
    .await?;
    let watchdog = Watchdog::start(Arc::clone(&scene.clock));
    let slow = scene.run(vec![item("slow", 64)?], 1);
    let fast = async {
        scene.provider.wait_for_calls(1).await;
        let results = scene.run(vec![item("fast", 64)?], 1).await?;
        Ok::<_, String>((results, scene.elapsed()))
    };
    let (slow, fast) = tokio::join!(slow, fast);
    let (slow, slow_end) = (slow?, scene.elapsed());
    let (fast, fast_end) = fast?;
    let (lag, beats) = (watchdog.lag(), watchdog.beats());
    let answered = slow.iter().chain(&fast).all(|result| result.status == GenerationStatus::Ok);
    let overtakes = fast_end < slow_end;
    let results: Vec<_> = fast.into_iter().chain(slow).collect();
    Ok(Finding::new("watchdog_undisturbed", &scene.arrivals(), &results)
        .observe("answered", answered)
        .observe("fast_ends_before_slow", overtakes)
        .observe("lag_below_100_ms", lag < LAG_MAX)
        .measure("lag_us", micros(lag))
        .measure("beats", beats)
        .measure("fast_end_us", micros(fast_end))
        .measure("slow_end_us", micros(slow_end))
        .passed_if(answered && overtakes && lag < LAG_MAX && beats > 0))
}

/// A block of the runtime is seen by the same watchdog.
pub(super) async fn blocked() -> Result<Finding, String> {
    let scene = Scene::start(Setup::default(), |_, _| ok("fine").into()).await?;
    let watchdog = Watchdog::start(Arc::clone(&scene.clock));
    // One beat, so that the next one is due within the block.
    scene.clock.sleep_until(scene.clock.now().saturating_add(2 * BEAT)).await;
    let end = scene.clock.now().saturating_add(LONG);
    while scene.clock.now() < end {
        std::hint::spin_loop();
    }
    scene.clock.sleep_until(scene.clock.now().saturating_add(2 * BEAT)).await;
    let lag = watchdog.lag();
    Ok(Finding::default()
        .observe("detected", lag >= LAG_MAX)
        .measure("lag_us", micros(lag))
        .passed_if(lag >= LAG_MAX))
}
