//! A soak: the real program under a mixed load with failures and clients that leave; what it holds must stay flat.
//!
//! `cargo xtask soak [--seconds N]` runs it for long; the tests run it for a moment, where descriptors and requests are
//! judged and memory only against a leak that shows at once.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use gw_testkit::{FakeProvider, Fault, FaultScript, error_event_first, ok, status, stream_cut_after};
use serde_json::Value;

use crate::support::{Gw, Raw, Toml, chat, metric, raw_chat};

/// Clients at once.
const CLIENTS: usize = 16;
/// Seconds where nobody says how many.
const SECONDS: u64 = 2;
/// Seconds from which memory is held to a twentieth.
const EXACT_FROM: u64 = 60;
/// Readings of memory and descriptors.
const READINGS: usize = 40;

#[expect(clippy::disallowed_methods, reason = "the automation says how long, and the time is real")]
fn plan() -> (u64, Instant) {
    let seconds = std::env::var("GW_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    (seconds.unwrap_or(SECONDS), Instant::now())
}

/// What the process holds at one instant.
#[derive(Clone, Copy, Debug)]
struct Held {
    kib: u64,
    descriptors: usize,
}

fn held(pid: u32) -> Held {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = line.trim().trim_end_matches(" kB").parse().unwrap();
    Held { kib, descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() }
}

/// One client's next request.
async fn one(gw: &Gw, turn: u64) {
    let model = ["well", "fails", "errs", "cut"][usize::try_from(turn % 4).unwrap()];
    let mut body = chat(model, &format!("question {turn}"));
    body["stream"] = turn.is_multiple_of(3).into();
    match turn % 7 {
        0 => {
            // Leaves behind its first piece.
            body["stream"] = true.into();
            drop(gw.chat("a", &body).stream().await);
        }
        1 => {
            // Leaves at once, on a connection of its own.
            let mut client = Raw::connect(gw.data).await;
            client.send(raw_chat("a", b"", body.to_string().as_bytes())).await;
        }
        _ if body["stream"] == Value::Bool(true) => drop(gw.chat("a", &body).stream().await.rest().await),
        _ => drop(gw.chat("a", &body).send().await),
    }
}

/// Returns the mean of a field over some readings.
fn mean(readings: &[Held], of: impl Fn(&Held) -> u64) -> u64 {
    readings.iter().map(of).sum::<u64>() / readings.len().max(1) as u64
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_descriptors_stay_flat() {
    let (seconds, began) = plan();
    let start = |fault: Fault| FakeProvider::start(FaultScript::of(fault));
    let well = start(ok("one two three four").into()).await.unwrap();
    let fails = start(status(503).into()).await.unwrap();
    let errs = start(error_event_first().into()).await.unwrap();
    let cut = start(stream_cut_after(2).into()).await.unwrap();
    let toml = Toml::new()
        .sqlite()
        .upstream("well", &well)
        .upstream("fails", &fails)
        .upstream("errs", &errs)
        .upstream("cut", &cut)
        .route("well", &["well"])
        .route("fails", &["fails", "well"])
        .route("errs", &["errs", "well"])
        .route("cut", &["cut", "well"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    let (turn, length) = (AtomicU64::new(0), Duration::from_secs(seconds));
    let clients = (0..CLIENTS).map(|_| async {
        while began.elapsed() < length {
            one(&gw, turn.fetch_add(1, Ordering::Relaxed)).await;
        }
    });
    let readings = async {
        let mut readings = Vec::new();
        for at in 1..=READINGS {
            let next = length * u32::try_from(at).unwrap() / u32::try_from(READINGS).unwrap();
            tokio::time::sleep(next.saturating_sub(began.elapsed())).await;
            readings.push(held(gw.pid()));
        }
        readings
    };
    let (readings, _) = tokio::join!(readings, futures_util::future::join_all(clients));
    let requests = turn.load(Ordering::Relaxed);
    // After a quarter everything that fills up to a bound has done so in a long run.
    let (early, late) = (&readings[READINGS / 4..READINGS / 2], &readings[READINGS * 3 / 4..]);
    let kib = |of: &[Held]| mean(of, |held| held.kib);
    let descriptors = |of: &[Held]| mean(of, |held| held.descriptors as u64);
    println!(
        "soak: {seconds} s, {requests} requests, resident {} KiB then {} KiB, descriptors {} then {}",
        kib(early),
        kib(late),
        descriptors(early),
        descriptors(late)
    );
    // Whoever left has left: nothing is in flight, no task and no connection of its own is left behind.
    gw.settled("a").await;
    let page = gw.metrics().await;
    assert_eq!(metric(&page, "gw_requests_in_flight"), 0);
    assert_eq!(metric(&page, "gw_queue_waiting"), 0);
    let slack = u64::try_from(CLIENTS).unwrap() * 2;
    assert!(descriptors(late) <= descriptors(early) + slack, "{readings:?}");
    let most = if seconds >= EXACT_FROM { kib(early) / 20 } else { 64 * 1_024 };
    assert!(kib(late) <= kib(early) + most, "{readings:?}");
}
