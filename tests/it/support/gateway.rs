//! The real program, serving.

use std::{
    collections::BTreeSet,
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{Answer, Call, Program, Toml, client::client, eventually, key_of, within};

/// A running gateway on ports of its own. Killed on drop.
pub(crate) struct Gw {
    child: Child,
    folder: Arc<TempDir>,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Gw {
    /// Starts `gw serve` with the configuration and waits until it is ready.
    pub(crate) async fn start(toml: &Toml) -> Self {
        Self::start_with(toml, &[], &[]).await
    }

    /// The same, with more arguments and variables of the environment.
    pub(crate) async fn start_with(toml: &Toml, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("gw.toml"), toml.text()).unwrap();
        let own = toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let variables: Vec<_> = own.chain(variables.iter().copied()).collect();
        Self::launch(Arc::new(folder), arguments, &variables).await
    }

    /// Starts `gw serve` without a file, its state in a folder of its own.
    pub(crate) async fn start_without_a_file() -> Self {
        let folder = TempDir::new().unwrap();
        let state = folder.path().to_str().unwrap().to_owned();
        let arguments = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        Self::launch(Arc::new(folder), &arguments, &[("XDG_STATE_HOME", &state)]).await
    }

    /// Starts again in the same folder, with the same configuration and ledger.
    pub(crate) async fn start_again(folder: Arc<TempDir>, toml: &Toml) -> Self {
        let variables: Vec<_> =
            toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self::launch(folder, &[], &variables).await
    }

    async fn launch(folder: Arc<TempDir>, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        let mut child = Command::new(Program::path())
            .arg("serve")
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (data, admin) = eventually("the addresses of gw", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "gw ended: {}", read(folder.path(), "stderr"));
            let found = addresses(&read(folder.path(), "stdout"));
            async move { found }
        })
        .await;
        let gw = Self { child, folder, client: client(), data, admin };
        eventually("readiness", || async {
            let answer = gw.admin("/readyz").try_send().await?;
            (answer.status == 200).then_some(())
        })
        .await;
        gw
    }

    /// Begins any request to the data plane.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(&self.client, self.data, method, path)
    }

    /// Begins a chat request of a tenant.
    pub(crate) fn chat(&self, tenant: &str, body: &Value) -> Call {
        self.call(Method::POST, "/v1/chat/completions").key(&key_of(tenant)).json(body)
    }

    /// Begins a request to the admin plane.
    pub(crate) fn admin(&self, path: &str) -> Call {
        Call::new(&self.client, self.admin, Method::GET, path)
    }

    /// Begins a request to the admin plane that changes something.
    pub(crate) fn admin_post(&self, path: &str) -> Call {
        Call::new(&self.client, self.admin, Method::POST, path)
    }

    /// Returns the records, oldest first, once there are so many.
    pub(crate) async fn records(&self, count: usize) -> Vec<Value> {
        eventually("the records", || async {
            let page = self.admin("/admin/v1/records?limit=1000").send().await.json();
            let mut records = page["records"].as_array().unwrap().clone();
            assert!(records.len() <= count, "{} records instead of {count}", records.len());
            records.reverse();
            (records.len() == count).then_some(records)
        })
        .await
    }

    /// Returns a tenant's line of `/admin/v1/tenants`.
    pub(crate) async fn tenant(&self, id: &str) -> Value {
        let page = self.admin("/admin/v1/tenants").send().await.json();
        page["tenants"].as_array().unwrap().iter().find(|tenant| tenant["id"] == id).unwrap().clone()
    }

    /// Waits until a tenant has no call in flight and holds no money.
    pub(crate) async fn settled(&self, id: &str) -> Value {
        eventually("settlement", || async {
            let tenant = self.tenant(id).await;
            let reserved = tenant["budget"]["reserved_micros"].as_u64().unwrap_or(0);
            (tenant["concurrency"]["in_use"] == 0 && reserved == 0).then_some(tenant)
        })
        .await
    }

    /// Returns the program's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Returns the page of metrics.
    pub(crate) async fn metrics(&self) -> String {
        let answer = self.admin("/metrics").send().await;
        assert_eq!(answer.status, 200);
        answer.text()
    }

    /// Returns what the program has printed so far.
    pub(crate) fn stdout(&self) -> String {
        read(self.folder.path(), "stdout")
    }

    /// Returns what the program has logged so far.
    pub(crate) fn stderr(&self) -> String {
        read(self.folder.path(), "stderr")
    }

    /// Returns the folder that it runs in.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Writes another configuration, and asks for nothing.
    pub(crate) fn write_config(&self, toml: &Toml) {
        std::fs::write(self.folder.path().join("gw.toml"), toml.text()).unwrap();
    }

    /// Asks the admin plane for a reload.
    pub(crate) async fn reload(&self) -> Answer {
        Call::new(&self.client, self.admin, Method::POST, "/admin/v1/reload").send().await
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        self.signal("TERM").await;
    }

    /// Sends SIGHUP.
    pub(crate) async fn hang_up(&self) {
        self.signal("HUP").await;
    }

    async fn signal(&self, name: &str) {
        let pid = self.pid();
        // `kill` is built into every shell.
        let sent =
            Command::new("/bin/sh").args(["-c", &format!("kill -{name} {pid}")]).status().await.unwrap();
        assert!(sent.success());
    }

    /// Kills the program, which gets no chance to say anything; who still asks it sees the connection break.
    pub(crate) async fn kill_now(&self) {
        self.signal("KILL").await;
    }

    /// Kills the program, which gets no chance to say anything.
    pub(crate) async fn kill(mut self) -> Arc<TempDir> {
        self.signal("KILL").await;
        self.ended().await;
        Arc::clone(&self.folder)
    }

    /// Waits until the program has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        within("the end of gw", self.child.wait()).await.unwrap()
    }

    /// Stops it as a supervisor does, and returns its folder.
    pub(crate) async fn stop(mut self) -> Arc<TempDir> {
        self.terminate().await;
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.stderr());
        Arc::clone(&self.folder)
    }
}

fn read(folder: &Path, name: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(folder.join(name)).unwrap_or_default()).into_owned()
}

/// Finds the addresses in the line that the program prints once it listens.
fn addresses(stdout: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (line, _) = stdout.split_once('\n')?;
    let rest = line.strip_prefix("gw serves on http://")?;
    let (data, rest) = rest.split_once(", admin and metrics on http://")?;
    let admin = rest.split([',', ' ']).next()?;
    Some((data.parse().ok()?, admin.parse().ok()?))
}

/// Returns a metric's value; `series` is its name and labels, as the page writes them.
pub(crate) fn metric(page: &str, series: &str) -> u64 {
    let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

/// Returns every series of the page, after checking that each line can be read.
pub(crate) fn series(page: &str) -> BTreeSet<String> {
    assert!(page.ends_with("# EOF\n"), "the page is cut");
    let mut series = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        assert!(value.parse::<f64>().is_ok(), "no number: {line}");
        assert!(name.starts_with("gw_") && name.is_ascii(), "no name of gw's: {line}");
        series.insert(name.to_owned());
    }
    series
}
