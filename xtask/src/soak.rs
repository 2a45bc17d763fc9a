//! `cargo xtask soak`: the real program under a mixed load for a while; what it holds must stay flat.

use std::path::Path;

use crate::{Failure, host};

const USAGE: &str = "usage: cargo xtask soak [--seconds N]";

/// How long it takes where nobody says, in seconds.
const SECONDS: &str = "600";

/// Runs the soak against the build of the tests.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let seconds = match arguments {
        [] => SECONDS,
        ["--seconds", seconds] => *seconds,
        _ => return Err(Failure::Usage(USAGE.to_owned())),
    };
    if !seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0) {
        return Err(Failure::Usage(format!(
            "`--seconds` takes a number above 0, not `{seconds}`\n\n{USAGE}"
        )));
    }
    const TEST: &str = "e2e::soak::memory_and_descriptors_stay_flat";
    let fixed = ["test", "--locked", "-p", "gw-tests", "--test", "it", "--", "--exact", TEST, "--nocapture"];
    let mut command = host::cargo(root, fixed);
    command.env("GW_SOAK_SECONDS", seconds);
    host::run(&mut command)
}
