//! A running server, and a client that writes and reads bytes.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gw_config::{Composition, Config, FixedEnvironment, Seams, ServerSettings};
use gw_server::{Listeners, Metrics, MetricsLedger, Server, ServerParts};
use gw_testkit::{FakeProvider, Fault, FaultScript, Step};
use gw_types::{Ledger, ManualClock, SeededRandom, SequentialIds, UtcTime};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// 2030-01-01T00:00:00Z.
const START: i64 = 1_893_456_000_000_000;

/// One tenant with a key and scripted deployments.
pub(crate) const CONFIG: &str = r#"
version = 1

[providers.echo]
kind = "scripted"
behaviour = "echo"

[providers.busy]
kind = "scripted"
script = ["429 retry-after=7"]

[providers.slow]
kind = "scripted"
behaviour = "slow"

[deployments.echo]
provider = "echo"
model = "demo-echo"
capabilities = ["chat", "streaming", "tools"]
price = { input = 2_000_000, output = 8_000_000 }

[deployments.busy]
provider = "busy"
model = "demo-flaky"
family = "demo-echo"
price = "free"

[deployments.busy-too]
provider = "busy"
model = "demo-flaky"
family = "demo-echo"
price = "free"

[deployments.slow]
provider = "slow"
model = "demo-slow"
price = "free"
max_concurrency = 3

[[routes]]
name = "echo"
match = { models = ["echo", "team/echo"] }
deployments = ["echo"]

[[routes]]
name = "cached"
match = { models = ["cached"] }
deployments = ["echo"]
cache = { exact = true, ttl_s = 300 }

[[routes]]
name = "flaky"
match = { models = ["flaky"] }
deployments = ["busy", "echo"]

[[routes]]
name = "down"
match = { models = ["down"] }
deployments = ["busy", "busy-too"]

[[routes]]
name = "slow"
match = { models = ["slow"] }
deployments = ["slow"]

[tenants.acme]
requests_per_minute = 600
max_concurrency = 40
reserved_concurrency = 4
budget = { limit_micros = 50_000_000, window = "day" }
keys = [{ name = "dev", secret = { env = "ACME_KEY" } }]

[ledger]
store = "none"
"#;

pub(crate) const KEY: &str = "sk-acme-1";
pub(crate) const ADMIN_KEY: &str = "admin-1";

/// A running server.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) clock: ManualClock,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Starts a server with the configuration.
pub(crate) async fn start(config: &str) -> Running {
    start_with(config, |_| {}).await
}

/// Starts a server with the configuration and changed settings.
pub(crate) async fn start_with(config: &str, change: impl FnOnce(&mut ServerSettings)) -> Running {
    start_of(config, |parts| change(&mut parts.settings)).await
}

/// Starts a server with the configuration and changed parts.
pub(crate) async fn start_of(config: &str, change: impl FnOnce(&mut ServerParts)) -> Running {
    start_over(config, |ledger| ledger, change).await
}

/// Starts a server with the configuration, its ledger wrapped into another, and changed parts.
pub(crate) async fn start_over(
    config: &str,
    wrap: impl FnOnce(Arc<dyn Ledger>) -> Arc<dyn Ledger>,
    change: impl FnOnce(&mut ServerParts),
) -> Running {
    let environment = FixedEnvironment::new().with_var("ACME_KEY", KEY).with_var("ADMIN_KEY", ADMIN_KEY);
    let config = Config::parse(config, "gw.toml", &environment).unwrap();
    let clock = ManualClock::new(UtcTime::from_micros(START));
    let seams = Seams {
        clock: Arc::new(clock.clone()),
        random: Arc::new(SeededRandom::new(1)),
        ids: Arc::new(SequentialIds::default()),
    };
    let metrics = Arc::new(Metrics::new());
    let counted = Arc::clone(&metrics);
    let composition =
        Composition::build(&config, seams, |ledger| Arc::new(MetricsLedger::new(wrap(ledger), counted)));
    let composition = composition.await.unwrap();
    let data = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (data_addr, admin_addr) = (data.local_addr().unwrap(), admin.local_addr().unwrap());
    let mut parts = ServerParts {
        gateway: Arc::clone(&composition.gateway),
        keys: Arc::clone(&composition.key_store),
        ledger: Arc::clone(&composition.ledger),
        metrics,
        settings: composition.server.clone(),
    };
    change(&mut parts);
    let server = Server::new(parts);
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let shutdown = async { drop(stopped.await) };
        server.run(Listeners { data, admin: Some(admin) }, shutdown).await;
        drop(composition);
    });
    Running { data: data_addr, admin: admin_addr, clock, stop: Some(stop), task }
}

impl Running {
    /// Begins the shutdown.
    pub(crate) async fn shut_down(&mut self) {
        drop(self.stop.take());
        settle().await;
    }

    /// Waits for the end of the server.
    pub(crate) async fn ended(self) {
        self.task.await.unwrap();
    }

    /// Sends a chat request with the key and returns the answer.
    pub(crate) async fn chat(&self, body: &str) -> Reply {
        self.chat_with("", body).await
    }

    /// Sends a chat request with the key and more headers.
    pub(crate) async fn chat_with(&self, headers: &str, body: &str) -> Reply {
        exchange(self.data, &chat_request(headers, body)).await
    }

    /// Sends a GET with the key.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        exchange(
            self.data,
            &format!("GET {path} HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {KEY}\r\n\r\n"),
        )
        .await
    }

    /// Returns how the newest request ended, if it has.
    pub(crate) async fn newest_outcome(&self) -> Option<String> {
        let page = self.admin("/admin/v1/records?limit=1").await.json();
        page["records"][0]["outcome"].as_str().map(str::to_owned)
    }

    /// Sends a GET to the admin plane, without a key.
    pub(crate) async fn admin(&self, path: &str) -> Reply {
        exchange(self.admin, &format!("GET {path} HTTP/1.1\r\nhost: gw\r\n\r\n")).await
    }
}

/// Starts a server whose model `held` is answered by a provider that waits for its gate.
pub(crate) async fn start_held(faults: Fault) -> (Running, FakeProvider) {
    let provider = FakeProvider::start(FaultScript::of(faults)).await.unwrap();
    let config = format!(
        "{CONFIG}\n[providers.fake]\nkind = \"openai-compatible\"\nbase_url = \"{}\"\n\n\
         [deployments.held]\nprovider = \"fake\"\nmodel = \"m\"\nprice = \"free\"\n\n\
         [[routes]]\nname = \"held\"\nmatch = {{ models = [\"held\"] }}\ndeployments = [\"held\"]\n",
        provider.base_url()
    );
    let running = start_with(&config, |settings| {
        settings.drain_grace = Duration::from_secs(5);
        settings.drain_timeout = Duration::from_secs(20);
    })
    .await;
    (running, provider)
}

/// Returns a step that streams a piece of text.
pub(crate) fn chunk(content: &str) -> Step {
    Step::event(&format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":null}}]}}"#
    ))
}

/// Returns a chat request as bytes.
pub(crate) fn chat_request(headers: &str, body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a chat body that asks a model.
pub(crate) fn ask(model: &str) -> String {
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hello there"}}]}}"#)
}

/// Returns a chat body that asks a model for a stream.
pub(crate) fn ask_stream(model: &str) -> String {
    format!(r#"{{"model":"{model}","stream":true,"messages":[{{"role":"user","content":"hello there"}}]}}"#)
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { unchunk(body) } else { body.to_owned() };
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {:?}", self.body))
    }

    /// Returns the error's type; every error body has one.
    pub(crate) fn error_type(&self) -> String {
        let json = self.json();
        assert!(json["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{json}");
        json["error"]["type"].as_str().unwrap().to_owned()
    }
}

/// Returns the content of chunks; what is cut off is left out.
fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    body
}

/// Sends bytes on a connection of its own and reads one answer, by asking the server to close behind it.
pub(crate) async fn exchange(addr: SocketAddr, request: &str) -> Reply {
    let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mut client = connect(addr).await;
    client.write_all(request.as_bytes()).await.unwrap();
    read_reply(&mut client).await
}

pub(crate) async fn connect(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).await.unwrap()
}

/// Reads until the server closes.
pub(crate) async fn read_reply(client: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).await.unwrap();
    Reply::parse(&bytes)
}

/// Reads until the text has come, and returns all that has.
pub(crate) async fn read_until(client: &mut TcpStream, text: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut piece = [0; 4_096];
        let read = client.read(&mut piece).await.unwrap();
        assert!(read > 0, "closed before {text:?}; got {:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// Lets every other task of the test run until all of them wait.
///
/// Loopback delivers at once, and the runtime looks at its sockets every few dozen turns: a thousand turns are enough
/// whatever the machine's speed.
pub(crate) async fn settle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}
