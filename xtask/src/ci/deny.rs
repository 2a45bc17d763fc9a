//! The step that judges the dependencies: licences, banned crates, sources, and known faults where their list is at hand.

use std::path::{Path, PathBuf};

use crate::{Failure, host};

/// The version that is installed where there is none. Its debug build is quick enough and takes a third of the time.
const INSTALL: [&str; 6] = ["install", "--quiet", "--locked", "--debug", "--version", "0.20.2"];

/// Runs `cargo deny` over `.deny.toml`.
///
/// Where `CI` is set a missing program is installed, which takes a minute or two once. Elsewhere, and where that fails for
/// want of a network, the step says that it was not taken: dependencies are judged again wherever they are changed.
pub(super) fn run(root: &Path) -> Result<(), Failure> {
    let is_there = || host::succeeds(&mut host::cargo(root, ["deny", "--version"]));
    if !is_there() && host::variable("CI").is_some() {
        println!("installing cargo-deny");
        // Whether that has worked is looked at, not believed.
        let _ = host::run(&mut host::cargo(root, INSTALL.into_iter().chain(["cargo-deny"])));
    }
    if !is_there() {
        println!("not taken: `cargo install --locked cargo-deny` first");
        return Ok(());
    }
    let fixed = ["deny", "--offline", "--log-level", "error", "--config", ".deny.toml", "check"];
    let checks = ["bans", "licenses", "sources"];
    let known_faults = advisories().then_some("advisories");
    if known_faults.is_none() {
        println!("no list of known faults at hand; without it");
    }
    host::run(&mut host::cargo(root, fixed.into_iter().chain(checks).chain(known_faults)))
}

/// Says whether the RustSec database lies where `cargo deny fetch` puts it.
fn advisories() -> bool {
    let home = host::variable("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| host::variable("HOME").map(|home| Path::new(&home).join(".cargo")));
    home.is_some_and(|home| {
        ["advisory-dbs", "advisory-db"].iter().any(|folder| {
            std::fs::read_dir(home.join(folder)).is_ok_and(|mut entries| entries.next().is_some())
        })
    })
}
