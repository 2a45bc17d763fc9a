//! Processes under measurement: started, asked for their address, accounted for, and killed at the end.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

/// A child process that listens on an address; killed on drop.
pub(crate) struct Child {
    child: std::process::Child,
    pub(crate) address: String,
}

impl Child {
    /// Starts this program again in another role; it prints its address first.
    pub(crate) async fn role(arguments: &[&str]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// Starts a program that will listen on an address that is known beforehand.
    pub(crate) fn listening(mut command: Command, address: String) -> Self {
        Self { child: command.spawn().unwrap(), address }
    }

    /// Returns user and system time of the process and its children so far.
    pub(crate) fn cpu(&self) -> Duration {
        // SC_CLK_TCK is 100 on every Linux that Rust supports.
        let ticks: u64 =
            self.pids().iter().filter_map(|pid| stat(*pid)).map(|fields| fields.0 + fields.1).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Returns the resident memory of the process and its children, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let resident = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            status
                .lines()
                .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok())
        };
        self.pids().iter().filter_map(resident).sum()
    }

    fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        std::iter::once(own).chain(children.split_whitespace().filter_map(|pid| pid.parse().ok())).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        for pid in self.pids() {
            drop(Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status());
        }
        drop(self.child.wait());
    }
}

/// Returns user and system ticks.
fn stat(pid: u32) -> Option<(u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
