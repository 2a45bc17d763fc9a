//! What the hop through gw costs: CPU time a request, beside a bare pass-through proxy and nginx in one interleaved run.
//!
//! `cargo xtask bench [--rounds N] [--requests N] [--streams N]`. CPU time is user and system time of all processes of
//! the target, from the operating system's accounts; the load generator and the upstream run in processes of their own.
//! Absolute figures drift with the machine; the ratios within one run are what to compare.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench measures and prints"
)]

mod bare;
mod load;
mod process;
mod report;
mod targets;
#[path = "../shared/upstream.rs"]
mod upstream;

use std::{env, time::Duration};

use self::{
    load::{Kind, Load},
    report::{Figures, Row},
    targets::Target,
};

/// Connections that are kept busy.
const CONNECTIONS: usize = 64;

struct Plan {
    rounds: usize,
    requests: usize,
    streams: usize,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["role-upstream"] => runtime.block_on(upstream::serve(Duration::ZERO)),
        ["role-bare", upstream] => runtime.block_on(bare::serve(upstream)),
        options => runtime.block_on(measure(&plan(options))),
    }
}

fn plan(options: &[&str]) -> Plan {
    let value = |name: &str, default| {
        let at = options.iter().position(|option| *option == name);
        at.and_then(|at| options.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    Plan {
        rounds: value("--rounds", 3),
        requests: value("--requests", 30_000),
        streams: value("--streams", 3_000),
    }
}

async fn measure(plan: &Plan) {
    let upstream = process::Child::role(&["role-upstream"]).await;
    let targets = targets::start_all(&upstream.address).await;
    let mut rows: Vec<Row> = targets.iter().map(|target| Row::new(target.name)).collect();
    for target in &targets {
        run(target, Kind::Plain, plan.requests / 10).await;
    }
    for round in 1..=plan.rounds {
        for (target, row) in targets.iter().zip(&mut rows) {
            row.plain.push(run(target, Kind::Plain, plan.requests).await);
            row.stream.push(run(target, Kind::Stream, plan.streams).await);
        }
        println!("round {round} of {} done", plan.rounds);
    }
    for (target, row) in targets.iter().zip(&mut rows) {
        row.idle_kib = target.idle_kib;
        row.load_kib = target.process.resident_kib();
        row.first_answer = target.first_answer;
        row.paced = load::paced(target, 1_000, Duration::from_secs(5)).await;
    }
    report::print(&rows);
}

/// Drives one burst and returns CPU microseconds a request.
async fn run(target: &Target, kind: Kind, requests: usize) -> Figures {
    let before = target.process.cpu();
    let load = Load { connections: CONNECTIONS, requests, kind };
    let wall = load.run(target).await;
    let cpu = target.process.cpu().saturating_sub(before);
    Figures {
        cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64,
        per_second: requests as f64 / wall.as_secs_f64(),
    }
}
