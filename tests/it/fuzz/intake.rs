//! Bytes to a listener: a server in this process, and a client that says anything.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, mpsc},
    thread,
};

use gw_config::{Composition, Config, FixedEnvironment, Seams};
use gw_server::{Listeners, Metrics, MetricsLedger, Server, ServerParts, Tokens};
use tokio::sync::oneshot;

use super::{fuzz, shape};
use crate::support::{PATIENCE, Toml, chat, key_of, metric};

/// A server that runs in a thread of its own until it is dropped.
pub(super) struct Served {
    pub(super) data: SocketAddr,
    admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    /// Starts it on the configuration, and on the files that this names.
    pub(super) fn start(toml: &Toml, files: &[(&str, &[u8])]) -> Self {
        let variables = toml.environment().iter();
        let environment =
            variables.fold(FixedEnvironment::new(), |all, (name, value)| all.with_var(name, value));
        let environment = files.iter().fold(environment, |all, (name, bytes)| all.with_file(name, bytes));
        let config = Config::parse(&toml.text(), "gw.toml", &environment).unwrap();
        let (told, addresses) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let metrics = Arc::new(Metrics::new());
                let counted = Arc::clone(&metrics);
                let wrap =
                    |ledger| -> Arc<dyn gw_types::Ledger> { Arc::new(MetricsLedger::new(ledger, counted)) };
                let composition = Composition::build(&config, Seams::system().unwrap(), wrap).await.unwrap();
                let parts = ServerParts {
                    gateway: Arc::clone(&composition.gateway),
                    keys: Arc::clone(&composition.key_store),
                    ledger: Arc::clone(&composition.ledger),
                    metrics,
                    settings: composition.server.clone(),
                };
                let clock = Arc::clone(composition.gateway.clock());
                let tokens = Tokens::new(composition.issuers.clone(), Arc::clone(&composition.fetch), clock);
                let listeners = Listeners::bind(&parts.settings).await.unwrap();
                let admin = listeners.admin.as_ref().unwrap().local_addr().unwrap();
                told.send((listeners.data.local_addr().unwrap(), admin)).unwrap();
                Server::new(parts).with_tokens(tokens).run(listeners, async { drop(stopped.await) }).await;
                drop(composition);
            });
        });
        let (data, admin) = addresses.recv().unwrap();
        Self { data, admin, stop: Some(stop), thread: Some(thread) }
    }

    /// Checks that whatever was said led to no fault of gw's own.
    pub(super) fn has_no_fault(&self) {
        let page = String::from_utf8(ask(self.admin, b"GET /metrics HTTP/1.0\r\n\r\n")).unwrap();
        assert_eq!(metric(&page, "gw_refusals_total{reason=\"fault\"}"), 0, "{page}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Says bytes, and that nothing more comes; returns all that comes back. A client that has ended its side counts as gone, so
/// a request may stay without an answer.
fn say(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    talk(to, bytes, true)
}

/// Asks for something and leaves the end to the server; returns all that comes back.
pub(super) fn ask(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    talk(to, bytes, false)
}

fn talk(to: SocketAddr, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that has heard enough may close while more is said.
    drop(stream.write_all(bytes));
    if ends {
        drop(stream.shutdown(Shutdown::Write));
    }
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    let hung = ended.is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    });
    assert!(!hung, "the connection was neither answered nor closed: {:?}", String::from_utf8_lossy(bytes));
    answer
}

/// Checks the first answer of HTTP/1; returns its status.
pub(super) fn check(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    let status: u16 = status.unwrap_or_else(|| panic!("no status: {text}"));
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    if let Some(body) = length.filter(|length| *length > 0).and_then(|length| body.get(..length))
        && lower.contains("content-type: application/json")
    {
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok(), "no JSON: {text}");
    }
    status
}

fn seeds() -> Vec<Vec<u8>> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gw\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        key_of("a")
    );
    let body = chat("m", "hello").to_string();
    let mut streaming = chat("m", "hello");
    streaming["stream"] = true.into();
    let streaming = streaming.to_string();
    let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let chunked =
        format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{streaming}\r\n0\r\n\r\n", streaming.len());
    let list = format!("GET /v1/models HTTP/1.1\r\nhost: gw\r\nx-api-key: {}\r\n\r\n", key_of("a"));
    let two = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    [whole.clone(), chunked, format!("{list}{whole}{list}"), list, two.to_owned()]
        .into_iter()
        .map(String::into_bytes)
        .collect()
}

#[test]
fn intake() {
    let toml = Toml::new().scripted("s", &["ok text=hi"]).route("m", &["s"]).tenant("a", "");
    let served = Served::start(&toml, &[]);
    fuzz("intake", &seeds(), |input, _| {
        let answer = say(served.data, input);
        if answer.is_empty() {
            return 0;
        }
        if !answer.starts_with(b"HTTP/") {
            // Frames of HTTP/2, to whoever began in it.
            assert!(input.starts_with(b"PRI "), "{:?}", String::from_utf8_lossy(&answer));
            return 1;
        }
        let status = check(&answer);
        let answers = answer.windows(9).filter(|window| window == b"HTTP/1.1 ").count();
        shape((status, answers.min(4), answer.len().min(2_000) / 200))
    });
    // Whatever was said: no fault of gw's own, nothing is held, and the next one is served.
    served.has_no_fault();
    let tenants = String::from_utf8(ask(served.admin, b"GET /admin/v1/tenants HTTP/1.0\r\n\r\n")).unwrap();
    assert!(tenants.contains("\"in_use\":0"), "{tenants}");
    let whole = String::from_utf8(seeds().swap_remove(0)).unwrap();
    let last = whole.replacen("host: gw\r\n", "host: gw\r\nconnection: close\r\n", 1);
    assert_eq!(check(&ask(served.data, last.as_bytes())), 200);
}
