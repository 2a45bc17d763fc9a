//! The real binary on a tenant with a hard budget: started, asked, given more, stopped, and its ledger read.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gw_stores::{ExportFormat, LedgerFile, Period};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::books::Books;

pub(crate) const KEY: &str = "bench-key-of-the-limits";

/// How long anything of the gateway's may take that is not the load itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running gateway; killed on drop.
pub(crate) struct Gateway {
    child: Child,
    folder: TempDir,
    provider: String,
    pub(crate) address: String,
    admin: String,
}

impl Gateway {
    /// Starts the binary beside the profile that this bench was built into, and waits until it is ready.
    pub(crate) async fn start(provider: &str, limit_micros: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (address, admin) = (free_address(), free_address());
        let text = config(&address, &admin, provider, limit_micros);
        fs::write(folder.path().join("gw.toml"), text).unwrap();
        let child = Command::new(binary())
            .arg("serve")
            .current_dir(folder.path())
            .env("GW_BENCH_KEY", KEY)
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let gateway = Self { child, folder, provider: provider.to_owned(), address, admin };
        let began = Instant::now();
        while gateway.ask("GET", "/readyz").await.is_none_or(|(status, _)| status != 200) {
            assert!(began.elapsed() < PATIENCE, "gw is not ready: {}", gateway.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gateway
    }

    /// Sets another limit while the load runs: what is spent stays.
    pub(crate) async fn set_limit(&self, limit_micros: u64) {
        // Renamed into its place, so that nobody reads half of it.
        let (new, file) = (self.folder.path().join("new.toml"), self.folder.path().join("gw.toml"));
        fs::write(&new, config(&self.address, &self.admin, &self.provider, limit_micros)).unwrap();
        fs::rename(new, file).unwrap();
        let answer = self.ask("POST", "/admin/v1/reload").await;
        assert!(answer.is_some_and(|(status, _)| status == 200), "no reload: {}", self.log());
    }

    /// Waits until nothing is in flight and nothing is held, but not for ever; returns what the limits say.
    pub(crate) async fn settled(&self) -> Books {
        let began = Instant::now();
        loop {
            let (tenants, deployments) =
                (self.page("/admin/v1/tenants").await, self.page("/admin/v1/deployments").await);
            let books = Books::held(&tenants["tenants"][0], &deployments);
            if books.is_settled() || began.elapsed() > PATIENCE {
                return books;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops it properly and enters every record of its ledger.
    pub(crate) fn stop(mut self, books: &mut Books) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "gw ended with {status}: {}", self.log());
        let ledger = LedgerFile::open(&self.folder.path().join("gw.db")).unwrap();
        let lines = self.folder.path().join("records");
        let mut to = fs::File::create(&lines).unwrap();
        ledger.export(ExportFormat::JsonLines, Period::default(), None, &mut to).unwrap();
        for line in BufReader::new(fs::File::open(lines).unwrap()).lines() {
            books.enter(&serde_json::from_str::<Value>(&line.unwrap()).unwrap()["record"]);
        }
    }

    async fn page(&self, path: &str) -> Value {
        let answer = self.ask("GET", path).await;
        let (_, body) = answer.unwrap_or_else(|| panic!("no answer from {path}: {}", self.log()));
        serde_json::from_slice(&body).unwrap()
    }

    /// Asks the admin plane; returns status and body.
    async fn ask(&self, method: &str, path: &str) -> Option<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(&self.admin).await.ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        let status = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        Some((status, answer.split_off(head + 4)))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Two deployments, so that a call that failed is made again elsewhere; odd prices, so that rounding anywhere shows.
fn config(address: &str, admin: &str, provider: &str, limit_micros: u64) -> String {
    let deployment = |name: &str, input: &str, output: &str| {
        format!(
            r#"[deployments.{name}]
provider = "up"
model = "{name}-model"
family = "one"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming"]
price = {{ input = {input}, output = {output} }}
expected_latency_ms = 10
min_attempt_ms = 1
attempt_timeout_ms = 500
max_concurrency = 96
"#
        )
    };
    format!(
        r#"version = 1

[server]
listen = "{address}"
admin_listen = "{admin}"
drain_grace_ms = 0

[providers.up]
kind = "openai-compatible"
base_url = "{provider}"
max_connections = 256

{first}
{second}
[[routes]]
name = "load"
match = {{ models = ["load"] }}
deployments = ["first", "second"]
default_max_output_tokens = 16

[limits]
requests_per_minute = 1_000_000_000
budget = {{ limit_micros = 1_000_000_000_000, window = "month" }}

[organisations.house]
budget = {{ limit_micros = 1_000_000_000_000, window = "month" }}

[tenants.load]
organisation = "house"
tokens_per_minute = 1_000_000_000
max_concurrency = 160
max_queue = 200
budget = {{ limit_micros = {limit_micros}, window = "month" }}
keys = [{{ name = "load", secret = {{ env = "GW_BENCH_KEY" }} }}]

[ledger]
store = "sqlite:gw.db"
"#,
        first = deployment("first", "1_234_567", "7_654_321"),
        second = deployment("second", "2_000_003", "9_999_991"),
    )
}

/// The binary beside the profile that this bench was built into.
fn binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("gw")
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
