//! `cargo xtask ci`: everything that must pass, in order, each step with its time.

mod deny;
mod setup;

use std::{path::Path, process::Command};

use crate::{Failure, check_layers, host, schemas_check, sim, tidy};

/// Which optional parts of the crates the steps build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Features {
    /// The defaults, plus one step that lints without them.
    Default,
    /// No optional part anywhere.
    None,
}

struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    Here(fn(&Path) -> Result<(), Failure>),
    Program(Box<Command>),
}

/// Runs the steps and stops at the first that fails; the last line counts them.
pub(crate) fn run(root: &Path, features: Features) -> Result<(), Failure> {
    let begin = host::now();
    let steps = steps(root, features);
    let count = steps.len();
    let mut passed = 0_usize;
    let mut failed = None;
    for Step { name, work } in steps {
        println!("== {name}");
        let step_begin = host::now();
        let outcome = match work {
            Work::Here(check) => check(root),
            Work::Program(mut command) => host::run(&mut command),
        };
        let verdict = if outcome.is_ok() { "passed" } else { "failed" };
        println!("-- {name}: {verdict}, {:.1} s", step_begin.elapsed().as_secs_f64());
        if let Err(failure) = outcome {
            failed = Some((name, failure));
            break;
        }
        passed += 1;
    }
    if let Some((name, failure)) = &failed {
        println!("ci: stopped at step `{name}`: {}", failure.message().unwrap_or("it said why above"));
    }
    let failures = usize::from(failed.is_some());
    println!("ci: {count} steps, {passed} passed, {failures} failed, {:.1} s", begin.elapsed().as_secs_f64());
    if failed.is_some() { Err(Failure::Code(1)) } else { Ok(()) }
}

fn steps(root: &Path, features: Features) -> Vec<Step> {
    let none = ["--no-default-features"];
    let chosen: &[&str] = if features == Features::None { &none } else { &[] };
    let cargo = |name, parts: &[&[&str]]| Step {
        name,
        work: Work::Program(Box::new(host::cargo(root, parts.iter().copied().flatten()))),
    };
    let here = |name, check| Step { name, work: Work::Here(check) };
    let deny: &[&str] = &["--", "-D", "warnings"];

    let mut steps = vec![
        here("setup", setup::run as fn(&Path) -> Result<(), Failure>),
        cargo("format", &[&["fmt", "--all", "--check"]]),
        here("check-layers", check_layers),
        here("tidy", tidy),
        here("schemas", schemas_check),
        here("dependencies", deny::run),
        cargo("clippy", &[&["clippy", "--workspace", "--all-targets", "--locked"], chosen, deny]),
    ];
    if features == Features::Default {
        let bare: &[&str] = &["clippy", "--workspace", "--no-default-features", "--locked"];
        steps.push(cargo("clippy without default features", &[bare, deny]));
    }
    steps.push(documentation(root, chosen));
    // The tests of the whole gateway start the binary that lies beside them.
    steps.push(cargo("build gw", &[&["build", "-p", "gw-cli", "--locked"], chosen]));
    steps.push(cargo("tests", &[test_runner(root), chosen]));
    if features == Features::Default {
        let seeds = Box::new(sim::step(root));
        steps.push(Step { name: "simulator", work: Work::Program(seeds) });
    }
    steps.push(cargo("doctests", &[&["test", "--workspace", "--doc", "--locked"], chosen]));
    steps
}

fn documentation(root: &Path, chosen: &[&str]) -> Step {
    let fixed = ["doc", "--workspace", "--no-deps", "--locked"];
    let mut command = host::cargo(root, fixed.iter().chain(chosen));
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step { name: "documentation", work: Work::Program(Box::new(command)) }
}

/// Returns the quicker test runner where it is installed; both run every test before they fail.
fn test_runner(root: &Path) -> &'static [&'static str] {
    if host::succeeds(&mut host::cargo(root, ["nextest", "--version"])) {
        &["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]
    } else {
        &["test", "--workspace", "--tests", "--lib", "--bins", "--locked", "--no-fail-fast"]
    }
}
