//! Reloads of a real file, with requests before and after.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use gw_dialects::openai::read_chat;
use gw_exec::{Body, Failure, Reply};
use gw_types::{
    ErrorKind, KeyIdentity, ManualClock, NormalizedRequest, Operation, RequestContext, Secret, SeededRandom,
    SequentialIds, UtcTime,
};

use super::{Reloaded, Reloader};
use crate::{Composition, Config, Diagnostics, Seams, SystemEnvironment};

/// A configuration with two scripted providers and a tenant with a residency floor.
const TEXT: &str = r#"version = 1
[residency]
onshore = ["uk-south"]
[providers.one]
kind = "scripted"
behaviour = "echo"
[providers.two]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
api_key = { file = "up-key" }
[deployments.d]
provider = "one"
model = "m"
region = "uk-south"
price = { input = 1_000_000, output = 1_000_000 }
[deployments.e]
provider = "two"
model = "m"
region = "us-east"
price = "free"
expected_latency_ms = 100
[[routes]]
name = "m"
match = { models = ["m"] }
deployments = ["d"]
default_max_output_tokens = 9
[[routes]]
name = "n"
match = { models = ["n"], tenants = ["u"] }
deployments = ["e"]
[tenants.t]
residency = "onshore"
requests_per_minute = 10
keys = [{ name = "k", secret = { file = "key" } }]
[tenants.u]
[ledger]
store = "none"
"#;

/// A gateway over a file in a folder of its own.
struct Setup {
    folder: tempfile::TempDir,
    composition: Composition,
    reloader: Reloader,
}

impl Setup {
    async fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("gw.toml", text);
        write("key", "the first key");
        write("up-key", "canary-up");
        let config = Config::load(&folder.path().join("gw.toml"), &SystemEnvironment).unwrap();
        let seams = Seams {
            clock: Arc::new(ManualClock::new(UtcTime::from_micros(1_893_456_000_000_000))),
            random: Arc::new(SeededRandom::new(1)),
            ids: Arc::new(SequentialIds::default()),
        };
        let composition = Composition::build(&config, seams, |ledger| ledger).await.unwrap();
        let reloader = composition.reloader(Arc::new(SystemEnvironment)).unwrap();
        Self { folder, composition, reloader }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and reloads.
    async fn reload(&self, name: &str, text: &str) -> Result<Reloaded, Diagnostics> {
        std::fs::write(self.path(name), text).unwrap();
        self.reloader.apply(self.reloader.compile()?).await
    }

    /// Writes another configuration, which must be refused; returns the faults without the file's name.
    async fn refused(&self, text: &str) -> Vec<String> {
        let digest = self.composition.gateway.policy().digest().clone();
        let faults = self.reload("gw.toml", text).await.unwrap_err();
        assert_eq!(*self.composition.gateway.policy().digest(), digest, "the old one is in force");
        let name = self.path("gw.toml").display().to_string();
        faults.iter().map(|fault| fault.to_string().replace(&format!("{name}:"), "")).collect()
    }

    fn who(&self, key: &str) -> Option<KeyIdentity> {
        self.composition.key_store.identify(&Secret::new(key).unwrap())
    }

    async fn ask(&self) -> Result<Reply<Body>, Failure> {
        let body = Bytes::from(r#"{"model": "m", "messages": [{"role": "user", "content": "hello"}]}"#);
        let facts = read_chat(&body).unwrap();
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Chat, body, facts, context };
        let identity = KeyIdentity { tenant: "t".parse().unwrap(), key: "k".parse().unwrap() };
        self.composition.gateway.complete(self.composition.gateway.admit(&identity).unwrap(), request).await
    }

    async fn refusal(&self) -> ErrorKind {
        self.ask().await.unwrap_err().error.kind()
    }

    fn remaining(&self) -> u64 {
        let snapshot = self.composition.gateway.tenant_snapshot(&"t".parse().unwrap()).unwrap();
        snapshot.requests.unwrap().remaining
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn digest(reloaded: &Reloaded) -> String {
    match reloaded {
        Reloaded::Unchanged { digest } | Reloaded::Changed { digest, .. } => digest.to_string(),
    }
}

#[test]
fn the_same_text_changes_nothing() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let same = setup.reload("gw.toml", &format!("# a comment\n{TEXT}")).await.unwrap();
        assert!(matches!(same, Reloaded::Unchanged { .. }));
        assert_eq!(digest(&same), setup.composition.digest.to_string());
    });
}

#[test]
fn reload_and_drain_leave_streams_and_counters_alone() {
    run(async {
        let setup = Setup::new(TEXT).await;
        for _ in 0..7 {
            setup.ask().await.unwrap();
        }
        // V1: another route; what was used is used.
        let moved =
            setup.reload("gw.toml", &TEXT.replace("name = \"m\"\n", "name = \"moved\"\n")).await.unwrap();
        assert_eq!(setup.remaining(), 3);
        let reply = setup.ask().await.unwrap();
        assert_eq!(reply.head.route.unwrap().as_str(), "moved");
        assert_eq!(reply.head.config.to_string(), digest(&moved));
        // V2: a file with an error; nothing fails.
        let faults = setup.refused(&TEXT.replace("requests_per_minute", "requests_per_minut")).await;
        assert_eq!(faults.len(), 1);
        assert!(setup.ask().await.is_ok());
        // V3: a lower limit; one request is left of eight, since ten less nine were.
        setup
            .reload("gw.toml", &TEXT.replace("requests_per_minute = 10", "requests_per_minute = 8"))
            .await
            .unwrap();
        assert!(setup.remaining() <= 1);
        assert_eq!(setup.refusal_after_rest().await, ErrorKind::RateLimited);
    });
}

impl Setup {
    /// Uses what is left of the rate.
    async fn refusal_after_rest(&self) -> ErrorKind {
        while self.remaining() > 0 {
            self.ask().await.unwrap();
        }
        self.refusal().await
    }
}

#[test]
fn a_reload_that_breaks_residency_is_refused_and_the_old_one_goes_on() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let one = |region: &str| format!("provider = \"one\"\nmodel = \"m\"\nregion = \"{region}\"");
        let elsewhere = TEXT
            .replace("region = \"us-east\"", "region = \"uk-south\"")
            .replace(&one("uk-south"), &one("us-east"));
        let faults = setup.refused(&elsewhere).await;
        assert!(faults.iter().any(|fault| fault.contains("residency")), "{faults:?}");
        assert_eq!(setup.ask().await.unwrap().head.deployment.unwrap().as_str(), "d");
    });
}

#[test]
fn keys_change_with_their_file() {
    run(async {
        let setup = Setup::new(TEXT).await;
        assert!(setup.who("the first key").is_some() && setup.who("the second key").is_none());
        let changed = setup.reload("key", "the second key").await.unwrap();
        assert!(matches!(changed, Reloaded::Changed { .. }));
        assert!(setup.who("the first key").is_none() && setup.who("the second key").is_some());
    });
}

#[test]
fn only_a_restart_changes_sockets_and_the_ledger() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let server = "[server]\nlisten = \"127.0.0.1:9999\"\nmax_concurrency = 9\ndefault_deadline_ms = 5_000\n[ledger]";
        let faults =
            setup.refused(&TEXT.replace("[ledger]", server).replace("\"none\"", "\"sqlite:x.db\"")).await;
        let remedy = "restart to change it, or write what it was";
        assert_eq!(
            faults,
            [
                format!("37:1: `server.listen` cannot change while the gateway runs; {remedy}"),
                format!("41:1: `ledger.store` cannot change while the gateway runs; {remedy}"),
            ]
        );
        let live = server.replace("listen = \"127.0.0.1:9999\"\n", "");
        assert!(setup.reload("gw.toml", &TEXT.replace("[ledger]", &live)).await.is_ok());
    });
}

#[test]
fn providers_that_did_not_change_keep_their_connections() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let two = |setup: &Setup| {
            let in_force = setup.reloader.live.in_force.load();
            in_force.built.providers.values().next().unwrap().clone()
        };
        let first = two(&setup);
        setup.reload("gw.toml", &TEXT.replace("= 10\n", "= 11\n")).await.unwrap();
        assert!(first.is_same(&two(&setup)));
        setup.reload("up-key", "canary-up-2").await.unwrap();
        assert!(!first.is_same(&two(&setup)), "its key has changed");
    });
}

#[test]
fn a_new_budget_knows_what_was_spent_before_it() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let cost = setup.ask().await.unwrap().head.cost;
        assert!(!cost.is_zero());
        let budget = "requests_per_minute = 10\nbudget = { limit_micros = 1_000, window = \"day\" }";
        let text = TEXT.replace("requests_per_minute = 10", budget);
        setup.reload("gw.toml", &text).await.unwrap();
        let spent = |setup: &Setup| {
            let snapshot = setup.composition.gateway.tenant_snapshot(&"t".parse().unwrap()).unwrap();
            snapshot.budget.unwrap().spent
        };
        assert_eq!(spent(&setup), cost);
        // A limit that changes keeps its fill level.
        setup.ask().await.unwrap();
        let twice = spent(&setup);
        setup.reload("gw.toml", &text.replace("1_000, window", "500, window")).await.unwrap();
        assert_eq!((spent(&setup), twice > cost), (twice, true));
    });
}

#[test]
fn the_configuration_without_a_file_does_not_change() {
    run(async {
        let config = Config::built_in(&crate::FixedEnvironment::new()).unwrap().config;
        let seams = Seams::system().unwrap();
        let composition = Composition::build(&config, seams, |ledger| ledger).await.unwrap();
        assert!(composition.reloader(Arc::new(SystemEnvironment)).is_none());
    });
}

#[test]
fn the_watch_sees_the_file_and_what_it_names() {
    run(async {
        let setup = Setup::new(TEXT).await;
        let first = setup.reloader.fingerprint();
        assert_eq!(setup.reloader.fingerprint(), first);
        std::fs::write(setup.path("key"), "another key").unwrap();
        assert_ne!(setup.reloader.fingerprint(), first);
        // A mounted ConfigMap: the file is a link into a folder that is swapped for another.
        std::fs::write(setup.path("key"), "the first key").unwrap();
        std::fs::write(setup.path("next.toml"), TEXT.replace("= 10\n", "= 11\n")).unwrap();
        std::fs::remove_file(setup.path("gw.toml")).unwrap();
        std::os::unix::fs::symlink(setup.path("next.toml"), setup.path("gw.toml")).unwrap();
        assert_ne!(setup.reloader.fingerprint(), first);
    });
}
