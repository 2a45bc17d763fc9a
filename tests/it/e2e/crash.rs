//! The program, killed in the middle of its work again and again, and what its ledger says afterwards.
//!
//! The short form runs with every test. `cargo xtask crash --kills N` runs it N times over.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use gw_stores::{Expected, LedgerFile};
use gw_testkit::{FakeProvider, FaultScript, ok};
use gw_types::{Random, SeededRandom};

use super::ledger::records;
use crate::support::{Gw, Toml, chat, key_of};

const KILLS: u32 = 5;
const CLIENTS: usize = 6;
/// What the small budget holds, in micro-USD; a request costs 3 and reserves 5.
const LIMIT: u64 = 200;

/// Returns how often to kill.
#[expect(clippy::disallowed_methods, reason = "the long form is asked for by the environment")]
fn kills() -> u32 {
    std::env::var("GW_CRASH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new()
        .upstream_with("up", &provider.base_url(), "", "price = { input = 0, output = 1_000_000 }")
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 1_000_000_000, window = \"month\" }")
        .tenant("b", &format!("budget = {{ limit_micros = {LIMIT}, window = \"month\" }}"))
        .sqlite()
}

/// Requests whose answers came whole.
type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Asks until nobody answers any more.
async fn client(gw: Arc<Gw>, number: usize, answered: Answered) {
    for turn in 0_usize.. {
        let tenant = if number == 0 { "b" } else { "a" };
        let mut body = chat("m", "hello");
        body["max_tokens"] = 5.into();
        let streams = (number + turn).is_multiple_of(2);
        body["stream"] = streams.into();
        let call = gw.call(http::Method::POST, "/v1/chat/completions").key(&key_of(tenant)).json(&body);
        let Some(answer) = call.try_send().await else { return };
        let whole = !streams || answer.text().ends_with("data: [DONE]\n\n");
        if answer.status == 200 && whole {
            let is_new = answered.lock().unwrap().insert(answer.header("x-request-id").to_owned());
            assert!(is_new, "an id was given twice");
        } else if answer.status != 200 {
            assert_eq!(answer.status, 429, "{}", answer.text());
        }
    }
}

/// Checks the file against what clients have seen; returns what each tenant has spent, in pico-USD.
fn audit(folder: &Path, answered: &Answered) -> BTreeMap<String, u64> {
    let ledger = LedgerFile::open(&folder.join("gw.db")).unwrap();
    let verified = ledger.verify(&Expected::default()).unwrap();
    assert!(verified.fault.is_none(), "{:?}", verified.fault);
    let mut ids = BTreeSet::new();
    let mut spent = BTreeMap::new();
    for record in records(folder) {
        assert!(ids.insert(record["id"].as_str().unwrap().to_owned()), "two records of one request");
        let side: u64 = record["side_costs"]
            .as_array()
            .map_or(0, |costs| costs.iter().map(|side| side["cost"].as_u64().unwrap()).sum());
        *spent.entry(record["tenant"].as_str().unwrap().to_owned()).or_default() +=
            record["cost"].as_u64().unwrap() + side;
    }
    let lost: Vec<_> = answered.lock().unwrap().difference(&ids).cloned().collect();
    assert_eq!(lost, Vec::<String>::new(), "answered, and no record");
    spent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_it_loses_no_record_and_charges_nothing_twice() {
    let provider = FakeProvider::start(FaultScript::of(ok("one two three").usage(0, 3))).await.unwrap();
    let toml = toml(&provider);
    let random = SeededRandom::new(8);
    let answered = Answered::default();
    let mut gw = Arc::new(Gw::start(&toml).await);
    for kill in 0..kills() {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| tokio::spawn(client(Arc::clone(&gw), number, Arc::clone(&answered))))
            .collect();
        tokio::time::sleep(Duration::from_millis(20 + random.next_u64() % 200)).await;
        gw.kill_now().await;
        for client in clients {
            client.await.unwrap();
        }
        let folder = Arc::into_inner(gw).unwrap().kill().await;
        gw = Arc::new(Gw::start_again(folder, &toml).await);
        // What was restored is what the records say, or the budget would drift with every crash.
        let spent = audit(&gw.folder(), &answered);
        for tenant in ["a", "b"] {
            let restored = gw.tenant(tenant).await["budget"]["spent_pico"].as_u64().unwrap();
            assert_eq!(restored, spent.get(tenant).copied().unwrap_or(0), "{tenant} after kill {kill}");
        }
        assert!(spent.get("b").copied().unwrap_or(0) <= LIMIT * 1_000_000, "the budget holds: {spent:?}");
    }
    let answered = answered.lock().unwrap().len();
    assert!(answered > 0, "nothing was under way");
    println!("{answered} answered, {} calls, {} kills", provider.calls().len(), kills());
}
