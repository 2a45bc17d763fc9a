//! The one file that touches what differs from machine to machine: environment, clock, other programs.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use crate::Failure;

/// Returns the value of an environment variable, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "automation is configured by its caller's environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the instant from which the caller measures.
#[expect(clippy::disallowed_methods, reason = "the time of a step is real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits between two looks at a program that is starting.
#[expect(clippy::disallowed_methods, reason = "the started program lives in real time")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Says whether a program of this name lies on the search path.
pub(crate) fn has_program(name: &str) -> bool {
    variable("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder: PathBuf| folder.join(name).is_file()))
}

/// Says whether a command can be run and succeeds, without showing what it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns a `cargo` command that works in the given folder.
pub(crate) fn cargo<I: IntoIterator<Item = A>, A: AsRef<std::ffi::OsStr>>(
    root: &Path,
    arguments: I,
) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root);
    command
}

/// Runs a command to its end with the caller's own output streams.
///
/// # Errors
///
/// When the program cannot be started or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Work(format!("{} ended with {status}", describe(command))))
}

/// Runs a command as [`run`] does and returns how it ended, for callers that pass its exit code on.
///
/// # Errors
///
/// When the program cannot be started.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, Failure> {
    command.status().map_err(|error| cannot_start(command, &error))
}

/// Returns the failure of a program that could not be started.
pub(crate) fn cannot_start(command: &Command, error: &io::Error) -> Failure {
    Failure::Work(format!("cannot start {}: {error}", describe(command)))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
