//! `cargo xtask bench`: the hop, a batch, the load on the limits, or failures, against the release build of `gw`.

use std::path::Path;

use crate::{Failure, host};

/// What picks the batch.
const BATCH: &str = "--batch";
/// What picks the load on the limits.
const LIMITS: &str = "--limits";
/// What picks the figures of failures.
const FAULTS: &str = "--faults";

/// Builds what is measured, then runs the benchmark with the given arguments.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    host::run(&mut host::cargo(root, ["build", "--release", "--locked", "-p", "gw-cli"]))?;
    let (bench, arguments) = match arguments {
        [FAULTS] => return host::run(&mut faults(root)?),
        [BATCH, rest @ ..] => ("batch", rest),
        [LIMITS, rest @ ..] => ("limits", rest),
        all => ("hop", all),
    };
    // The profile of the binary, so that what both need is built once.
    let fixed = ["bench", "--locked", "-p", "gw-tests", "--bench", bench, "--profile", "release", "--"];
    host::run(&mut host::cargo(root, fixed.iter().chain(arguments)))
}

/// Returns what holds the release build to the figures of failures: the tests' own, without their room. The test itself
/// only sends and counts, so it is not built for speed.
fn faults(root: &Path) -> Result<std::process::Command, Failure> {
    const TEST: &str = "e2e::figures::what_failures_cost_stays_within_its_figures";
    let fixed = ["test", "--locked", "-p", "gw-tests", "--test", "it", "--"];
    let mut command = host::cargo(root, fixed.into_iter().chain(["--exact", TEST, "--nocapture"]));
    // This program lies beside it, in the folder of another profile.
    let own =
        std::env::current_exe().map_err(|error| Failure::Work(format!("cannot find myself: {error}")))?;
    let program = own.ancestors().nth(2).unwrap_or(root).join("release/gw");
    command.env("GW_FIGURES", "exact").env("GW_TEST_PROGRAM", program);
    Ok(command)
}
