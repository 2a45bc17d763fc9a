//! The load of `cargo xtask bench --limits` in short: whatever clients and provider do, the books agree.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use gw_testkit::FakeProvider;

use self::books::Books;
use crate::support::{Gw, Toml, eventually};

#[path = "../../benches/limits/books.rs"]
mod books;
#[path = "../../benches/limits/traffic.rs"]
mod traffic;

const CLIENTS: usize = 40;
const REQUESTS: u64 = 200;
/// About two thirds of what all answers together cost, in micro-USD.
const LIMIT: u64 = 24_000;

fn toml(provider: &FakeProvider) -> Toml {
    let url = provider.base_url();
    let lines = |price: &str| {
        format!("price = {{ {price} }}\nattempt_timeout_ms = 250\nmax_concurrency = 24\nmin_attempt_ms = 1")
    };
    let budget = |limit: u64| format!("budget = {{ limit_micros = {limit}, window = \"month\" }}");
    // Odd prices: a cost that is rounded anywhere shows.
    Toml::new()
        .upstream_with("first", &url, "", &lines("input = 1_234_567, output = 7_654_321"))
        .upstream_with("second", &url, "", &lines("input = 2_000_003, output = 9_999_991"))
        .route_with("load", &["first", "second"], "default_max_output_tokens = 16")
        .part(&format!("[organisations.house]\n{}", budget(LIMIT * 2)))
        .tenant(
            "load",
            &format!("organisation = \"house\"\nmax_concurrency = 30\nmax_queue = 40\n{}", budget(LIMIT)),
        )
        .sqlite()
}

/// Asks until all requests are asked; some clients do not wait for their answer.
async fn client(gw: Arc<Gw>, next: Arc<AtomicU64>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= REQUESTS {
            return;
        }
        let answer = gw.chat("load", &traffic::body(number)).try_send();
        match traffic::leaves_after(number) {
            Some(stays) => drop(tokio::time::timeout(stays, answer).await),
            None => drop(answer.await),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hard_budget_holds_under_load_and_the_records_add_up_to_it() {
    let provider = FakeProvider::start_with(traffic::answer).await.unwrap();
    let gw = Arc::new(Gw::start(&toml(&provider)).await);
    let next = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(client(Arc::clone(&gw), Arc::clone(&next)))).collect();
    for client in clients {
        client.await.unwrap();
    }
    let mut books = eventually("settlement", || async {
        let deployments = gw.admin("/admin/v1/deployments").send().await.json();
        let books = Books::held(&gw.tenant("load").await, &deployments);
        books.is_settled().then_some(books)
    })
    .await;
    let folder = Arc::into_inner(gw).unwrap().stop().await;
    super::ledger::records(folder.path()).iter().for_each(|record| books.enter(record));
    let calls = provider.calls().last().map_or(0, |call| call.number);
    assert!(books.broken(calls).is_empty(), "{:?}\n{books}", books.broken(calls));
    for outcome in ["ok", "refused", "capped"] {
        assert!(books.count(outcome) > 0, "none {outcome}:\n{books}");
    }
    assert!(books.overrun() > 0, "{books}");
    // One pico-USD more in the records would not go unseen: in both budgets, and as more than was reserved.
    books.enter(&serde_json::json!({"outcome": "ok", "cost": 1}));
    assert_eq!(books.broken(calls).len(), 3, "{:?}", books.broken(calls));
}
