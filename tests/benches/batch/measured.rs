//! A program that runs to its end, and what it took.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// How often memory is looked at, which the system forgets when the program ends.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a program took.
pub(crate) struct Took {
    pub(crate) wall: Duration,
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

/// Runs the program, which must succeed.
pub(crate) fn run(mut command: Command) -> Took {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (pid, mut peak_kib) = (child.id(), 0);
    // A program that has ended keeps its accounts until it is waited for.
    while !has_ended(pid) {
        peak_kib = peak_kib.max(field(pid, "VmHWM:"));
        std::thread::sleep(LOOK_EVERY);
    }
    let (wall, cpu) = (began.elapsed(), cpu(pid));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{command:?} failed: {said}");
    Took { wall, cpu, peak_kib }
}

fn stat(pid: u32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect()
}

fn has_ended(pid: u32) -> bool {
    stat(pid)[0] == "Z"
}

fn cpu(pid: u32) -> Duration {
    let fields = stat(pid);
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    // A tick is a hundredth of a second on every Linux that Rust supports.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

fn field(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value =
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or_default()
}
