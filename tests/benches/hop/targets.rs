//! What is compared: the bare proxy, nginx where it is installed, and gw with everything on.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    load::{Client, Kind, NUMBER},
    process::Child,
};

const KEY: &str = "bench-key-of-the-hop";

/// A proxy under measurement.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) process: Child,
    pub(crate) idle_kib: u64,
    pub(crate) first_answer: Duration,
    _folder: Option<tempfile::TempDir>,
}

impl Target {
    /// Returns the bytes of one request.
    pub(crate) fn request(&self, kind: Kind) -> Vec<u8> {
        request(kind)
    }
}

/// Starts every target that can be had here.
pub(crate) async fn start_all(upstream: &str) -> Vec<Target> {
    let mut targets = vec![bare(upstream).await];
    match nginx(upstream).await {
        Some(nginx) => targets.push(nginx),
        None => println!("nginx is not installed; its column stays empty"),
    }
    targets.push(gw(upstream).await);
    targets
}

async fn bare(upstream: &str) -> Target {
    let began = Instant::now();
    ready("bare proxy", Child::role(&["role-bare", upstream]).await, began, None).await
}

async fn nginx(upstream: &str) -> Option<Target> {
    let binary = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())?;
    let folder = tempfile::tempdir().unwrap();
    let (root, address) = (folder.path().display().to_string(), free_address());
    let config = format!(
        "worker_processes 2;\ndaemon off;\npid {root}/pid;\nerror_log {root}/error;\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/f; \
         uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;\n upstream up {{ server {upstream}; keepalive 128; }}\n\
         server {{ listen {address}; keepalive_requests 1000000; location / {{ proxy_pass http://up; proxy_http_version 1.1; \
         proxy_set_header Connection \"\"; proxy_buffering off; }} }} }}\n"
    );
    let path = folder.path().join("nginx.conf");
    fs::write(&path, config).unwrap();
    let mut command = Command::new(binary);
    command.arg("-c").arg(&path).stderr(Stdio::null());
    let began = Instant::now();
    Some(ready("nginx", Child::listening(command, address), began, Some(folder)).await)
}

async fn gw(upstream: &str) -> Target {
    let folder = tempfile::tempdir().unwrap();
    let (address, admin) = (free_address(), free_address());
    let config = format!(
        r#"version = 1

[server]
listen = "{address}"
admin_listen = "{admin}"

[providers.up]
kind = "openai-compatible"
base_url = "http://{upstream}/v1"
max_connections = 128

[deployments.bench]
provider = "up"
model = "bench-model"
region = "local"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming", "tools", "json_schema"]
context_window = 128_000
max_output_tokens = 16_384
price = {{ input = 2_000_000, output = 8_000_000 }}
expected_latency_ms = 100
max_concurrency = 256

[[routes]]
name = "bench"
match = {{ models = ["bench"] }}
deployments = ["bench"]
cache = {{ exact = true, ttl_s = 300 }}
default_max_output_tokens = 1_024

[tenants.bench]
default_classification = "internal"
requests_per_minute = 1_000_000_000
tokens_per_minute = 1_000_000_000_000
max_concurrency = 512
budget = {{ limit_micros = 1_000_000_000_000, window = "day" }}
keys = [{{ name = "bench", secret = {{ env = "GW_BENCH_KEY" }} }}]

[ledger]
store = "sqlite:{ledger}"
"#,
        ledger = folder.path().join("gw.db").display()
    );
    let path = folder.path().join("gw.toml");
    fs::write(&path, config).unwrap();
    let mut command = Command::new(binary());
    // No line a request in the log, as nginx beside it writes none.
    command.args(["serve", "--log", "info,gw::request=off", "--config"]).arg(&path);
    command.env("GW_BENCH_KEY", KEY).stdout(Stdio::null());
    let began = Instant::now();
    ready("gw, everything on", Child::listening(command, address), began, Some(folder)).await
}

/// The release build of the binary, beside the profile that this bench was built into.
fn binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("gw")
}

/// Asks until the first answer comes, and notes how long the start took.
async fn ready(
    name: &'static str,
    process: Child,
    began: Instant,
    folder: Option<tempfile::TempDir>,
) -> Target {
    while tokio::net::TcpStream::connect(&process.address).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "{name} does not listen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let idle_kib = process.resident_kib();
    Client::connect(&process.address).await.ask(&request(Kind::Plain)).await;
    Target { name, process, idle_kib, first_answer: began.elapsed(), _folder: folder }
}

/// A request of 645 bytes of body, with a place for its number.
fn request(kind: Kind) -> Vec<u8> {
    let stream = match kind {
        Kind::Plain => "",
        Kind::Stream => r#""stream":true,"#,
    };
    let frame = |text: &str| {
        format!(
            r#"{{"model":"bench",{stream}"temperature":0.7,"max_tokens":256,"messages":[{{"role":"system","content":"You answer briefly."}},{{"role":"user","content":"{text}"}}],"user":"bench"}}"#
        )
    };
    let words = format!("{NUMBER}{}", "a question of many words ".repeat(24));
    let body = frame(&words[..645 - frame("").len()]);
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
