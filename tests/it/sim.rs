//! The whole gateway in virtual time, with scripted clients and providers: every seed is another run, and after every
//! step of it every invariant that can be seen is looked at.
//!
//! `cargo xtask sim --seeds N [--from S]` plays more seeds than the tests here. A seed that fails is printed with a
//! short script that fails alike; such scripts are kept in `sim/kept.jsonl` and played by every test run.

mod checks;
mod client;
mod coverage;
mod draw;
mod house;
mod kin;
mod ledger;
mod provider;
mod run;
mod script;
mod shrink;
mod stage;
mod wire;

use std::{collections::BTreeMap, env, time::Instant};

use self::{
    run::{play, play_and_tell},
    script::Script,
};

/// Seeds of every test run without optimisation; `cargo xtask ci` plays 2,000 with it.
const SEEDS: u64 = 300;

/// Scripts that broke an invariant once, one a line.
const KEPT: &str = include_str!("sim/kept.jsonl");

/// Says what was found, so that it can be looked at again and kept.
fn report(seed: u64, script: &Script, fault: &str) -> String {
    let short = shrink::shrink(script, fault);
    let why = play(&short).fault.unwrap_or_default();
    let line = serde_json::to_string(&short).unwrap();
    format!("seed {seed} breaks an invariant: {fault}\nin short: {why}\n{line}\n")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the automation says how many seeds, and the rate is of real time"
)]
fn plan() -> (u64, u64, Instant) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    (number("GW_SIM_FROM").unwrap_or(0), number("GW_SIM_SEEDS").unwrap_or(SEEDS), Instant::now())
}

#[test]
fn no_seed_breaks_an_invariant() {
    let (from, count, began) = plan();
    let (mut asks, mut calls, mut steps) = (0, 0, 0);
    let mut seen = BTreeMap::new();
    for seed in from..from + count {
        let script = draw::script(seed);
        let outcome = play(&script);
        if let Some(fault) = outcome.fault {
            panic!("{}", report(seed, &script, &fault));
        }
        outcome.seen.into_iter().for_each(|(what, times)| *seen.entry(what).or_insert(0) += times);
        (asks, calls, steps) = (asks + outcome.asks, calls + outcome.calls, steps + outcome.steps);
        if (seed + 1 - from).is_multiple_of(500) {
            let (played, seconds) = (seed + 1 - from, began.elapsed().as_secs_f64());
            println!("{played} seeds, {:.0} a second", played as f64 / seconds);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    println!(
        "sim: {count} seeds from {from}, {asks} requests, {calls} calls, {steps} steps, {seconds:.1} s, {rate:.0} seeds a second"
    );
    println!("sim: {seen:?}");
    assert!(calls > 0 && steps > asks);
    let missing: Vec<_> = coverage::EVERYTHING.iter().filter(|what| !seen.contains_key(**what)).collect();
    assert!(count < SEEDS || missing.is_empty(), "{count} seeds have never shown {missing:?}");
}

#[test]
fn kept_scripts_break_nothing_any_more() {
    for (at, line) in KEPT.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let script: Script = serde_json::from_str(line).unwrap();
        assert_eq!(play(&script).fault, None, "line {}", at + 1);
    }
}

#[test]
fn i13_a_seed_replays_exactly() {
    for seed in 0..20 {
        let (one, other) = (play_and_tell(&draw::script(seed)), play_and_tell(&draw::script(seed)));
        assert_eq!(one.digest, other.digest, "seed {seed}");
        assert!(one.digest.len() > 100);
    }
}

#[test]
fn a_script_survives_being_kept() {
    for seed in 0..50 {
        let script = draw::script(seed);
        let kept = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&kept).unwrap(), script);
    }
}
