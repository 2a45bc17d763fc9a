//! Checks and automation of the workspace, reached as `cargo xtask`.
//!
//! Nothing here is shipped. Every command works on the workspace that holds the current folder, found at run time, so
//! one built binary can also judge a copy of the repository.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a command line; printing is its output"
)]

mod bench;
mod ci;
mod clients;
mod failure;
mod finding;
mod fuzz;
mod host;
mod layers;
mod schemas;
mod sim;
mod soak;
mod tidy;
mod workspace;

use std::{path::Path, process::ExitCode};

use self::{failure::Failure, finding::Finding};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check-layers           who may name whom: members, edges, outside crates, manifests
  tidy                   layout, file sizes, title pages, forbidden phrases
  ci [--features-none]   everything that must pass, in order; stops at the first failure
  bench [ARGS...]        the hop benchmark against the release build of `gw`
  bench --limits [--seconds N] [--clients N]
                         whether limits hold under load; exits with 1 if not
  bench --faults         what failures of providers cost, held to their figures
  soak [--seconds N]     the real program under a mixed load, for 600 s if nothing else is said: what it holds stays flat
  sim [--seeds N] [--from S]
                         the whole gateway in virtual time, 2,000 seeds from 0 if nothing else is said
  crash [--kills N]      the real `gw` under load, killed N times (50 without), and its ledger checked after each
  fuzz TARGET [--seconds N]
                         mutated bytes for sse, event-stream, chat-stream, json-facts, keys, presented-keys or intake,
                         for 60 s if nothing else is said
  schemas [--check]      writes docs/schemas, or says where it is not what the crates print
  test --clients [ARGS...]
                         the official client libraries against the real `gw`";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = std::env::current_dir()
        .map_err(|error| Failure::Work(format!("cannot tell the current folder: {error}")))
        .and_then(|folder| dispatch(&arguments, &folder));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("xtask: {message}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn dispatch(arguments: &[String], folder: &Path) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = || workspace::find_root(folder);
    match words.as_slice() {
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        ["check-layers"] => check_layers(&root()?),
        ["tidy"] => tidy(&root()?),
        ["ci"] => ci::run(&root()?, ci::Features::Default),
        ["ci", "--features-none"] => ci::run(&root()?, ci::Features::None),
        ["schemas", "--check"] => schemas_check(&root()?),
        ["schemas"] => schemas::write(&root()?).map(|done| println!("schemas: {done}")),
        ["bench", rest @ ..] => bench::run(&root()?, rest),
        ["sim", rest @ ..] => sim::run(&root()?, rest),
        ["soak", rest @ ..] => soak::run(&root()?, rest),
        ["crash"] => crash(&root()?, "50"),
        ["crash", "--kills", kills] if kills.parse::<u32>().is_ok() => crash(&root()?, kills),
        ["fuzz", rest @ ..] => fuzz::run(&root()?, rest),
        ["test", "--clients", rest @ ..] => clients::run(&root()?, rest),
        [] => Err(Failure::Usage(format!("no command\n\n{USAGE}"))),
        other => Err(Failure::Usage(format!("unknown command `{}`\n\n{USAGE}", other.join(" ")))),
    }
}

/// Runs the long form of the crash test.
fn crash(root: &Path, kills: &str) -> Result<(), Failure> {
    let words = ["test", "--locked", "-p", "gw-tests", "--test", "it", "crash::", "--", "--nocapture"];
    host::run(host::cargo(root, words).env("GW_CRASH_KILLS", kills))
}

fn check_layers(root: &Path) -> Result<(), Failure> {
    let report = layers::check(root);
    conclude("check-layers", &report.findings, &report.summary)
}

fn schemas_check(root: &Path) -> Result<(), Failure> {
    let report = schemas::check(root)?;
    conclude("schemas", &report.findings, &report.summary)
}

fn tidy(root: &Path) -> Result<(), Failure> {
    let report = tidy::check(root)?;
    conclude("tidy", &report.findings, &report.summary)
}

/// Prints every finding, or the one summary line when there is none.
fn conclude(command: &str, findings: &[Finding], summary: &str) -> Result<(), Failure> {
    if findings.is_empty() {
        println!("{command}: {summary}");
        return Ok(());
    }
    for finding in findings {
        eprintln!("{finding}\n");
    }
    Err(Failure::Work(format!("{command}: broken rules: {}", findings.len())))
}
