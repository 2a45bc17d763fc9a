//! Three ways to submit the same items: one after the other, a task for each, bounded workers.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use gw_exec::{GenerationResult, GenerationStatus};
use gw_testkit::{Fault, ok};
use gw_types::Clock;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::task::JoinSet;

use super::{
    finding::{Finding, Measured, micros, percentile},
    scene::{Scene, Setup, item, items},
};

/// The name of the check.
pub(super) const NAME: &str = "comparison";

/// What is true if it passes.
pub(super) const CLAIM: &str =
    "bounded workers answer everything, faster than one after the other, within their bound";

/// Items of each way.
const ITEMS: usize = 160;

/// Workers of the bounded way.
const WORKERS: usize = 16;

/// The time of one answer of the fault server.
const ANSWER_MS: u64 = 10;

/// The most calls at once, as the server saw them: a measure, since nothing holds tasks back but what else the machine
/// does.
pub(super) const PEAK_CALLS: &str = "peak_calls_at_once";

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// One way and what it came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Way {
    pub(super) way: &'static str,
    pub(super) items: usize,
    pub(super) answered: usize,
    pub(super) measured: Measured,
}

/// An item's times: in the queue until it began, and from there to its end.
struct Timed {
    queued: Duration,
    admitted: Duration,
    answered: bool,
}

/// Looks at the resident memory until it is dropped.
struct Memory {
    most: Arc<Mutex<u64>>,
    task: tokio::task::JoinHandle<()>,
}

impl Memory {
    fn watch(clock: Arc<dyn Clock>) -> Self {
        let most = Arc::new(Mutex::new(resident().unwrap_or_default()));
        let kept = Arc::clone(&most);
        let task = tokio::spawn(async move {
            loop {
                clock.sleep_until(clock.now().saturating_add(LOOK)).await;
                let now = resident().unwrap_or_default();
                let mut kept = kept.lock();
                *kept = now.max(*kept);
            }
        });
        Self { most, task }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the resident memory of this process in KiB, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Plays all three.
pub(super) async fn play() -> Result<(Vec<Way>, Finding), String> {
    let ways = vec![
        play_one("sequential", Submission::Workers(1)).await?,
        play_one("bounded_workers", Submission::Workers(WORKERS)).await?,
        play_one("task_per_item", Submission::TaskEach).await?,
    ];
    let rate = |at: usize| ways.get(at).and_then(|way| way.measured.get("items_per_second_milli")).copied();
    let faster = rate(1) > rate(0);
    let all = ways.iter().all(|way| way.answered == ITEMS);
    let peak = |at: usize| ways.get(at).and_then(|way| way.measured.get(PEAK_CALLS)).copied();
    let expected = [1, WORKERS].map(|workers| u64::try_from(workers).ok());
    let passed = all && faster && [peak(0), peak(1)] == expected;
    let finding = Finding::default()
        .observe("every_item_answered", all)
        .observe("bounded_workers_beat_sequential", faster)
        .observe("peak_calls_sequential", peak(0))
        .observe("peak_calls_bounded_workers", peak(1))
        .passed_if(passed);
    Ok((ways, finding))
}

#[derive(Clone, Copy)]
enum Submission {
    Workers(usize),
    TaskEach,
}

async fn play_one(way: &'static str, submission: Submission) -> Result<Way, String> {
    let answer = || Fault::SlowHead { delay_ms: ANSWER_MS, then: Box::new(ok("fine").into()) };
    let scene = Arc::new(Scene::start(Setup::default(), move |_, _| answer()).await?);
    let memory = Memory::watch(Arc::clone(&scene.clock));
    let begin = scene.elapsed();
    let timed = match submission {
        Submission::Workers(workers) => by_workers(&scene, workers, begin).await?,
        Submission::TaskEach => by_tasks(&scene, begin).await?,
    };
    let took = scene.elapsed().saturating_sub(begin);
    let resident_kib = *memory.most.lock();
    let of = |time: fn(&Timed) -> Duration, percent| {
        percentile(&mut timed.iter().map(|timed| micros(time(timed))).collect::<Vec<_>>(), percent)
    };
    let count = u64::try_from(timed.len()).unwrap_or(u64::MAX);
    let peak_calls = scene.arrivals().iter().map(|arrival| arrival.calls).max().unwrap_or_default();
    let measured = Measured::from([
        ("items_per_second_milli", count.saturating_mul(1_000_000_000) / micros(took).max(1)),
        ("admitted_p50_us", of(|timed| timed.admitted, 50)),
        ("admitted_p95_us", of(|timed| timed.admitted, 95)),
        ("queued_p50_us", of(|timed| timed.queued, 50)),
        ("queued_p95_us", of(|timed| timed.queued, 95)),
        ("resident_peak_kib", resident_kib),
        (PEAK_CALLS, u64::try_from(peak_calls).unwrap_or(u64::MAX)),
    ]);
    Ok(Way {
        way,
        items: timed.len(),
        answered: timed.iter().filter(|timed| timed.answered).count(),
        measured,
    })
}

/// What ended now has waited since the beginning, but for the time that it took itself.
fn timed(scene: &Scene, begin: Duration, result: &GenerationResult) -> Timed {
    let since = scene.elapsed().saturating_sub(begin);
    Timed {
        queued: since.saturating_sub(result.latency),
        admitted: result.latency,
        answered: result.status == GenerationStatus::Ok,
    }
}

async fn by_workers(scene: &Scene, workers: usize, begin: Duration) -> Result<Vec<Timed>, String> {
    let batch = scene.batch(items(ITEMS, 64)?, workers, None)?;
    Ok(batch.map(|result| timed(scene, begin, &result)).collect().await)
}

async fn by_tasks(scene: &Arc<Scene>, begin: Duration) -> Result<Vec<Timed>, String> {
    let mut tasks = JoinSet::new();
    for number in 0..ITEMS {
        let (scene, request) = (Arc::clone(scene), item(&format!("item-{number:03}"), 64)?);
        tasks.spawn(async move {
            let results: Vec<_> = scene.batch(vec![request], 1, None)?.collect().await;
            let result = results.first().ok_or("an item has no result")?;
            Ok::<_, String>(timed(&scene, begin, result))
        });
    }
    let mut timed = Vec::with_capacity(ITEMS);
    while let Some(ended) = tasks.join_next().await {
        timed.push(ended.map_err(|error| error.to_string())??);
    }
    Ok(timed)
}
