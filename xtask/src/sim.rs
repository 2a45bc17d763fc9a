//! `cargo xtask sim`: more seeds of the simulator than the tests play.

use std::path::Path;

use crate::{Failure, host};

const USAGE: &str = "usage: cargo xtask sim [--seeds N] [--from S]";

/// Seeds where nobody says how many: what every change must pass.
const SEEDS: u64 = 2_000;

/// Plays so many seeds; a failing one is printed with a short script that fails alike.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let (mut seeds, mut from) = (SEEDS, 0);
    let mut rest = arguments;
    while let [name, value, more @ ..] = rest {
        let wrong = |_| Failure::Usage(format!("`{name}` takes a number, not `{value}`\n\n{USAGE}"));
        let number = value.parse::<u64>().map_err(wrong)?;
        match *name {
            "--seeds" => seeds = number,
            "--from" => from = number,
            other => return Err(Failure::Usage(format!("unknown option `{other}`\n\n{USAGE}"))),
        }
        rest = more;
    }
    if let [lonely] = rest {
        return Err(Failure::Usage(format!("`{lonely}` is no option with a value\n\n{USAGE}")));
    }
    const OPTIMISED: [&str; 4] = ["-p", "gw-tests", "--profile", "sim"];
    host::run(&mut command(root, &OPTIMISED, seeds, from))
}

/// Returns what plays the seeds of a whole check, in the build that its tests have made: building another one takes
/// longer than it saves.
pub(crate) fn step(root: &Path) -> std::process::Command {
    command(root, &["--workspace"], SEEDS, 0)
}

fn command(root: &Path, build: &[&str], seeds: u64, from: u64) -> std::process::Command {
    const TEST: [&str; 6] =
        ["--test", "it", "--", "--exact", "sim::no_seed_breaks_an_invariant", "--nocapture"];
    let mut command = host::cargo(root, ["test", "--locked"].iter().chain(build).chain(&TEST));
    command.env("GW_SIM_SEEDS", seeds.to_string()).env("GW_SIM_FROM", from.to_string());
    command
}
