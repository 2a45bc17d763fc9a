//! `cargo xtask bench`: the hop benchmark against the release build of `gw`.

use std::path::Path;

use crate::{Failure, host};

/// Builds what is measured, then runs the benchmark with the given arguments.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    host::run(&mut host::cargo(root, ["build", "--release", "--locked", "-p", "gw-cli"]))?;
    // The profile of the binary, so that what both need is built once.
    let fixed = ["bench", "--locked", "-p", "gw-tests", "--bench", "hop", "--profile", "release", "--"];
    host::run(&mut host::cargo(root, fixed.iter().chain(arguments)))
}
