//! From a text to a gateway that answers.

use std::sync::Arc;

use bytes::Bytes;
use gw_dialects::openai::read_chat;
use gw_exec::{Body, Failure, Reply};
use gw_limits::SubjectIds;
use gw_types::{
    ErrorKind, KeyIdentity, KeyName, ManualClock, NormalizedRequest, Operation, RequestContext, Secret,
    SeededRandom, SequentialIds, TenantId, UtcTime,
};

use super::{Composition, Seams};
use crate::{Config, FixedEnvironment, config::tests::SOUND, parts::tests::analysis::THREE_MISTAKES};

fn seams() -> Seams {
    Seams {
        clock: Arc::new(ManualClock::new(UtcTime::from_micros(1_893_456_000_000_000))),
        random: Arc::new(SeededRandom::new(1)),
        ids: Arc::new(SequentialIds::default()),
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

async fn build(config: &Config) -> Composition {
    Composition::build(config, seams(), |ledger| ledger).await.unwrap()
}

/// Returns a file in which two tenants have a budget of 3 micro-USD a day over a scripted provider.
fn budgeted(store: &str) -> String {
    format!(
        "version = 1\n[providers.p]\nkind = \"scripted\"\nbehaviour = \"echo\"\n\
         [deployments.d]\nprovider = \"p\"\nmodel = \"m\"\nprice = {{ input = 1_000_000, output = 1_000_000 }}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ models = [\"m\"] }}\ndeployments = [\"d\"]\ndefault_max_output_tokens = 9\n\
         [tenants.a]\nbudget = {{ limit_micros = 40, window = \"day\" }}\n\
         keys = [{{ name = \"k\", secret = {{ env = \"A_KEY\" }} }}]\n\
         [tenants.b]\nbudget = {{ limit_micros = 40, window = \"hour\" }}\n[ledger]\nstore = \"{store}\"\n"
    )
}

fn parse(text: &str, name: &str) -> Config {
    Config::parse(text, name, &FixedEnvironment::new().with_var("A_KEY", "a key")).unwrap()
}

fn identity(tenant: &str) -> KeyIdentity {
    KeyIdentity { tenant: TenantId::new(tenant).unwrap(), key: KeyName::new("k").unwrap() }
}

async fn ask(composition: &Composition, identity: &KeyIdentity, model: &str) -> Result<Reply<Body>, Failure> {
    let body = format!(r#"{{"model": "{model}", "messages": [{{"role": "user", "content": "hello"}}]}}"#);
    let body = Bytes::from(body);
    let facts = read_chat(&body).unwrap();
    let request =
        NormalizedRequest { operation: Operation::Chat, body, facts, context: RequestContext::default() };
    composition.gateway.complete(composition.gateway.admit(identity).unwrap(), request).await
}

fn built_in() -> Config {
    Config::built_in(&FixedEnvironment::new()).unwrap().config
}

#[test]
fn the_configuration_without_a_file_answers_anyone() {
    run(async {
        let composition = build(&built_in()).await;
        let caller = composition.key_store.anonymous().unwrap();
        assert_eq!(caller.tenant.as_str(), "local");
        assert!(composition.server.listen.ip().is_loopback() && composition.server.admin_keys.is_empty());
        let echo = ask(&composition, &caller, "demo-echo").await.unwrap();
        let Body::Raw(raw) = &echo.body else { panic!("a provider's own bytes are expected") };
        assert!(String::from_utf8_lossy(raw).contains("hello"));
        assert_eq!(echo.head.attempts, 1);
        assert_eq!(echo.head.config, composition.digest);
        let unknown = ask(&composition, &caller, "demo-ehco").await.unwrap_err();
        assert_eq!(unknown.error.kind(), ErrorKind::UnknownModel);
    });
}

#[test]
fn demo_flaky_falls_over_every_time() {
    run(async {
        let composition = build(&built_in()).await;
        let caller = composition.key_store.anonymous().unwrap();
        for _ in 0..3 {
            let reply = ask(&composition, &caller, "demo-flaky").await.unwrap();
            assert_eq!(reply.head.attempts, 2);
            assert_eq!(reply.head.deployment.unwrap().as_str(), "demo-echo");
        }
    });
}

#[test]
fn a_file_admits_its_keys_and_nobody_else() {
    run(async {
        let composition = build(&parse(&budgeted("none"), "gw.toml")).await;
        assert_eq!(composition.key_store.identify(&Secret::new("a key").unwrap()), Some(identity("a")));
        assert_eq!(composition.key_store.identify(&Secret::new("b key").unwrap()), None);
        assert_eq!(composition.key_store.anonymous(), None);
        assert_eq!(composition.tenants(), [identity("a").tenant, identity("b").tenant]);
        let deployments = composition.deployments();
        assert_eq!(deployments.len(), 1);
        assert_eq!((deployments[0].in_use, deployments[0].transport), (0, None));
    });
}

#[test]
fn any_model_is_passed_on_by_the_name_that_was_asked_for() {
    run(async {
        let text = budgeted("none")
            .replace("model = \"m\"", "model = \"*\"")
            .replace("models = [\"m\"]", "models = [\"x-*\"]");
        let composition = build(&parse(&text, "gw.toml")).await;
        let reply = ask(&composition, &identity("a"), "x-1").await.unwrap();
        let Body::Raw(raw) = &reply.body else { panic!("a provider's own bytes are expected") };
        let answer: serde_json::Value = serde_json::from_slice(raw).unwrap();
        assert_eq!(answer["model"], "x-1");
    });
}

#[test]
fn spend_is_restored_from_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("gw.toml");
    let config = parse(&budgeted("sqlite:gw.db"), name.to_str().unwrap());
    let spent = run(async {
        let composition = build(&config).await;
        let cost = ask(&composition, &identity("a"), "m").await.unwrap().head.cost;
        assert!(!cost.is_zero());
        composition.ledger.flush().await;
        cost
    });
    assert!(folder.path().join("gw.db").exists());
    run(async {
        let composition = build(&config).await;
        let budget = |tenant: &str| {
            composition.gateway.tenant_snapshot(&identity(tenant).tenant).unwrap().budget.unwrap()
        };
        assert_eq!(budget("a").spent, spent);
        assert!(budget("b").spent.is_zero());
    });
}

/// A file in which every scope has a budget, in windows of several kinds.
fn budgeted_everywhere(store: &str) -> String {
    let day = "budget = { limit_micros = 1_000, window = \"day\" }";
    format!(
        "version = 1\n[providers.p]\nkind = \"scripted\"\nbehaviour = \"echo\"\n\
         [deployments.d]\nprovider = \"p\"\nmodel = \"m\"\nprice = {{ input = 1_000_000, output = 1_000_000 }}\n{day}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ models = [\"m\", \"n\"] }}\ndeployments = [\"d\"]\ndefault_max_output_tokens = 9\n\
         [models.m]\ntime_zone = \"Asia/Tokyo\"\n{day}\n[models.n]\n{day}\n\
         [limits]\nbudget = {{ limit_micros = 1_000, window = {{ rolling_s = 3_600 }} }}\n\
         [organisations.o]\nparent = \"top\"\n{day}\n[organisations.top]\n{day}\n\
         [tenants.a]\norganisation = \"o\"\ntime_zone = \"Europe/London\"\n\
         budget = [{{ limit_micros = 1_000, window = \"month\" }}, {{ limit_micros = 1_000, window = \"hour\" }}]\n\
         keys = [{{ name = \"k\", secret = {{ env = \"A_KEY\" }}, {day} }}]\n\
         [tenants.b]\norganisation = \"o\"\n{day}\n[ledger]\nstore = \"{store}\"\n"
    )
}

#[test]
fn every_budget_of_every_scope_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("gw.toml");
    let config = parse(&budgeted_everywhere("sqlite:gw.db"), name.to_str().unwrap());
    let cost = run(async {
        let composition = build(&config).await;
        let cost = ask(&composition, &identity("a"), "m").await.unwrap().head.cost;
        composition.ledger.flush().await;
        cost
    });
    run(async {
        let composition = build(&config).await;
        let (clock, limits) = (composition.gateway.clock(), composition.gateway.limits());
        let deployment = limits.deployment(&"d".parse().unwrap()).unwrap();
        let spent = |tenant, model| {
            let ids = SubjectIds { key: Some("k"), tenant, model: Some(model) };
            let subject = limits.subject(&ids).unwrap().at(&deployment);
            let scopes = subject.snapshot(clock.now(), clock.utc());
            let budgets = scopes.iter().flat_map(|scope| {
                scope.budgets.iter().map(|budget| (scope.scope.to_string(), budget.spent == cost))
            });
            budgets.collect::<Vec<_>>()
        };
        let all = |scopes: &[(&str, bool)]| -> Vec<(String, bool)> {
            scopes.iter().map(|(scope, spent)| ((*scope).to_owned(), *spent)).collect()
        };
        let expected = [
            ("key:a/k", true),
            ("tenant:a", true),
            ("tenant:a", true),
            ("organisation:o", true),
            ("organisation:top", true),
            ("model:m", true),
            ("global", true),
            ("deployment:d", true),
        ];
        assert_eq!(spent("a", "m"), all(&expected));
        let of_others = [
            ("tenant:b", false),
            ("organisation:o", true),
            ("organisation:top", true),
            ("model:n", false),
            ("global", true),
            ("deployment:d", true),
        ];
        assert_eq!(spent("b", "n"), all(&of_others));
    });
}

#[test]
fn a_ledger_that_cannot_be_opened_is_a_fault_of_its_setting() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("gw.toml");
    let config = parse(&budgeted("sqlite:missing/gw.db"), name.to_str().unwrap());
    let faults = run(Composition::build(&config, seams(), |ledger| ledger)).unwrap_err();
    let fault = faults.iter().next().unwrap();
    assert_eq!((fault.path(), fault.line(), fault.column()), ("ledger.store", Some(20), Some(9)));
    assert!(fault.message().starts_with("cannot open the ledger"), "{fault}");
    assert!(fault.expected().contains("must exist and be writable"), "{fault}");
}

#[test]
fn the_ledger_passes_through_the_observer() {
    run(async {
        let config = parse(&budgeted("none"), "gw.toml");
        let mut seen = false;
        let build = Composition::build(&config, seams(), |ledger| {
            seen = true;
            ledger
        });
        assert!(build.await.is_ok() && seen);
    });
}

#[test]
fn what_check_accepts_is_built() {
    let environment = FixedEnvironment::new().with_var("UP_KEY", "canary-up").with_var("T_KEY", "canary-t");
    let checked = crate::check(SOUND, "gw.toml", &environment).unwrap();
    let composition = run(build(&checked.config));
    assert_eq!(composition.digest, checked.config.digest());
    assert!(composition.deployments()[0].transport.is_some());
    assert!(!format!("{composition:?}").contains("canary"));
}

#[test]
fn what_check_refuses_refuses_the_start() {
    let environment = FixedEnvironment::new().with_var("T_KEY", "canary-t");
    let text = format!("{THREE_MISTAKES}\n[ledger]\nstore = \"none\"\n");
    let config = Config::parse(&text, "gw.toml", &environment).unwrap();
    let said = run(Composition::build(&config, seams(), |ledger| ledger)).unwrap_err();
    let refused = crate::Checked::of(config).unwrap_err();
    assert_eq!(refused.iter().len(), 3);
    assert_eq!(refused, said);
}

#[test]
fn a_weighted_route_takes_turns() {
    run(async {
        let text = budgeted("none")
            .replace(
                "[[routes]]",
                "[deployments.e]\nprovider = \"p\"\nmodel = \"m\"\nprice = \"free\"\n[[routes]]",
            )
            .replace("[\"d\"]", "[\"d\", \"e\"]\nstrategy = \"weighted\"\nweights = { d = 0 }");
        let composition = build(&parse(&text, "gw.toml")).await;
        let reply = ask(&composition, &identity("a"), "m").await.unwrap();
        assert_eq!(reply.head.deployment.unwrap().as_str(), "e");
    });
}
