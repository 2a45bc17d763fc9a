//! `cargo xtask bench`: the hop benchmark, or the load on the limits, against the release build of `gw`.

use std::path::Path;

use crate::{Failure, host};

/// What picks the load on the limits.
const LIMITS: &str = "--limits";

/// Builds what is measured, then runs the benchmark with the given arguments.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let (bench, arguments) = match arguments {
        [LIMITS, rest @ ..] => ("limits", rest),
        all => ("hop", all),
    };
    host::run(&mut host::cargo(root, ["build", "--release", "--locked", "-p", "gw-cli"]))?;
    // The profile of the binary, so that what both need is built once.
    let fixed = ["bench", "--locked", "-p", "gw-tests", "--bench", bench, "--profile", "release", "--"];
    host::run(&mut host::cargo(root, fixed.iter().chain(arguments)))
}
