//! The first step: what a bare Debian machine lacks.
//!
//! Nothing is touched where everything is there already. A linker must exist before this code can be built at all, so
//! `cc` is listed for completeness: a machine can have one without the rest.

use std::{path::Path, process::Command};

use crate::{Failure, host};

/// What a step needs, and the Debian package that brings it.
const NEEDS: [(Need, &str); 8] = [
    (Need::Program("cc"), "gcc"),
    (Need::Program("c++"), "g++"),
    (Need::Program("make"), "make"),
    (Need::Program("git"), "git"),
    (Need::Program("python3"), "python3"),
    (Need::Program("redis-server"), "redis-server"),
    (Need::Program("pg_ctlcluster"), "postgresql"),
    (Need::File("/etc/ssl/certs/ca-certificates.crt"), "ca-certificates"),
];

const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

#[derive(Clone, Copy)]
enum Need {
    Program(&'static str),
    File(&'static str),
}

/// Installs what is missing, or says exactly what to install.
pub(super) fn run(root: &Path) -> Result<(), Failure> {
    install_packages()?;
    install_components(root)
}

fn install_packages() -> Result<(), Failure> {
    let missing: Vec<&str> =
        NEEDS.iter().filter(|(need, _)| !need.is_met()).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        println!("nothing to install");
        return Ok(());
    }
    let words = missing.join(" ");
    if !(is_root() && host::has_program("apt-get")) {
        return Err(Failure::Work(format!("install first, as root: apt-get install -y {words}")));
    }
    println!("installing {words}");
    host::run(apt_get().arg("update"))?;
    host::run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(&missing))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn install_components(root: &Path) -> Result<(), Failure> {
    let is_there = |command: &str| host::succeeds(&mut host::cargo(root, [command, "--version"]));
    let missing =
        || COMPONENTS.iter().filter(|(command, _)| !is_there(command)).map(|(_, component)| *component);
    let wanted: Vec<&str> = missing().collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let words = wanted.join(" ");
    println!("installing {words}");
    let added = host::run(Command::new("rustup").args(["component", "add"]).args(&wanted).current_dir(root));
    if added.is_ok() && missing().next().is_none() {
        return Ok(());
    }
    Err(Failure::Work(format!("install first: rustup component add {words}")))
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Self::Program(name) => host::has_program(name),
            Self::File(path) => Path::new(path).is_file(),
        }
    }
}
