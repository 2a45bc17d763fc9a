//! `cargo xtask fuzz`: mutated bytes for one parser, for longer than the tests take.

use std::path::Path;

use crate::{Failure, host};

const USAGE: &str = "usage: cargo xtask fuzz TARGET [--seconds N]";

/// The targets, and the tests that are them.
const TARGETS: [(&str, &str); 9] = [
    ("sse", "fuzz::sse"),
    ("event-stream", "fuzz::event_stream"),
    ("chat-stream", "fuzz::chat_stream"),
    ("json-facts", "fuzz::json_facts"),
    ("keys", "fuzz::keys"),
    ("presented-keys", "fuzz::presented_keys"),
    ("token-claims", "fuzz::tokens::token_claims"),
    ("presented-tokens", "fuzz::tokens::presented_tokens"),
    ("intake", "fuzz::intake::intake"),
];

/// Feeds one target; an input that breaks it is a panic that says what did not hold.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let (target, seconds) = match arguments {
        [target] => (*target, "60"),
        [target, "--seconds", seconds] => (*target, *seconds),
        _ => return Err(Failure::Usage(USAGE.to_owned())),
    };
    let Some((_, test)) = TARGETS.iter().find(|(name, _)| *name == target) else {
        let known = TARGETS.map(|(name, _)| name).join(", ");
        return Err(Failure::Usage(format!("unknown target `{target}`; known: {known}\n\n{USAGE}")));
    };
    if seconds.parse::<u64>().is_err() {
        return Err(Failure::Usage(format!("`--seconds` takes a number, not `{seconds}`\n\n{USAGE}")));
    }
    let fixed = ["test", "--locked", "-p", "gw-tests", "--profile", "sim", "--test", "it", "--"];
    let mut command = host::cargo(root, fixed.into_iter().chain(["--exact", test, "--nocapture"]));
    command.env("GW_FUZZ_TARGET", target).env("GW_FUZZ_SECONDS", seconds);
    host::run(&mut command)
}
