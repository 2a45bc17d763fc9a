//! `cargo xtask test --clients`: programs that nobody here wrote, driven against the real binary.
//!
//! The suite lies beside the repository. It brings the clients and a deterministic provider; this module puts a `gw`
//! between them.

mod gateway;
mod settings;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use self::{gateway::Gateway, settings::Settings};
use crate::{Failure, host, workspace};

/// Where the suite lies, seen from the workspace root.
const SUITE: &str = "../shared/clients";
/// The parts of the suite that are installed: environments of Python, and one of Node.
const PARTS: [&str; 5] = ["core", "fw", "aider", "llm", "node"];
/// The groups of clients that a run without arguments drives: all that write a format which gw takes. The group `gemini`
/// drives Google's own library, whose format is one of deployments only.
const CLIENTS: [&str; 5] = ["wire", "core", "frameworks", "evals", "cli"];
/// The page that such a run writes its matrix to.
const MATRIX: &str = "docs/compatibility.md";

/// Installs the clients, starts `gw` before the suite's provider, runs the suite and passes its exit code on.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let suite = root.join(SUITE);
    if !suite.is_dir() {
        return absent(&suite);
    }
    let home = clients_home()?;
    host::run(Command::new("bash").arg(suite.join("setup.sh")).args(PARTS).env("CLIENTS_HOME", &home))?;
    host::run(&mut host::cargo(root, ["build", "--locked", "-p", "gw-cli"]))?;
    let target = workspace::metadata(root).map_err(Failure::Work)?.target_directory;

    let [upstream_port, port, admin_port] = free_ports()?;
    let mock = suite.join("mock_upstream.py");
    let mock = std::fs::read_to_string(&mock)
        .map_err(|error| Failure::Work(format!("cannot read `{}`: {error}", mock.display())))?;
    let models = settings::model_names(&mock)
        .ok_or_else(|| Failure::Work("no list `NAMES = [...]` in mock_upstream.py".to_owned()))?;
    let settings = Settings { upstream_port, port, admin_port, models: &models };

    let _gateway = Gateway::start(&target.join("debug").join("gw"), &settings)?;
    let mut suite_run = Command::new("python3");
    suite_run
        .arg(suite.join("run.py"))
        .args(["--spawn-mock", &upstream_port.to_string()])
        .args(["--base-url", &format!("http://127.0.0.1:{port}")])
        .args(["--key", settings::CLIENT_KEY])
        .args(arguments)
        .env("CLIENTS_HOME", &home);
    // Part of the clients make no page about all of them.
    let written = target.join("compatibility-matrix.md");
    if arguments.is_empty() {
        suite_run.args(CLIENTS.iter().flat_map(|client| ["--only", client])).arg("--matrix").arg(&written);
    }
    let status = host::status(&mut suite_run)?;
    if arguments.is_empty() {
        publish(&written, &root.join(MATRIX))?;
    }
    match status.code().map(u8::try_from) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => Err(Failure::Code(code)),
        _ => Err(Failure::Work(format!("the suite ended with {status}"))),
    }
}

/// Writes the page: what it is, and the suite's table.
fn publish(written: &Path, page: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Work(format!("cannot write `{}`: {error}", page.display()));
    let table = std::fs::read_to_string(written).map_err(failed)?;
    let head = "# Compatibility\n\nProgrammes that nobody here wrote, driven through `gw` in front of a deterministic \
                provider: `P` passed, `F` failed, `s` skipped because the client is not installed, empty where a client \
                has no such behaviour. `google-genai` is not among them: callers of gw write OpenAI's and Anthropic's formats, \
                and Gemini's is one of deployments only. Written by `cargo xtask test --clients`; do not edit.\n\n";
    std::fs::write(page, format!("{head}{table}")).map_err(failed)
}

/// Without the suite there is nothing to run; where the suite must run, that is a failure.
fn absent(suite: &Path) -> Result<(), Failure> {
    let message = format!("client suite skipped: no folder `{}`", suite.display());
    if host::variable("CI").as_deref() == Some("true") {
        return Err(Failure::Work(message));
    }
    println!("{message}");
    Ok(())
}

fn clients_home() -> Result<PathBuf, Failure> {
    let under = |name: &str, rest: &str| host::variable(name).map(|folder| Path::new(&folder).join(rest));
    under("CLIENTS_HOME", "")
        .or_else(|| under("XDG_CACHE_HOME", "gw-clients"))
        .or_else(|| under("HOME", ".cache/gw-clients"))
        .ok_or_else(|| Failure::Work("set CLIENTS_HOME to a folder outside the repository".to_owned()))
}

/// Returns ports that were free a moment ago. They are held together, so they differ.
fn free_ports() -> Result<[u16; 3], Failure> {
    let no_port = |error| Failure::Work(format!("no free port: {error}"));
    let listen = || TcpListener::bind(("127.0.0.1", 0)).map_err(no_port);
    let listeners = [listen()?, listen()?, listen()?];
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).map_err(no_port);
    Ok([port(&listeners[0])?, port(&listeners[1])?, port(&listeners[2])?])
}
