//! What a batch keeps in memory at most, and how long it takes, by the way its items are submitted.
//!
//! Look at the rows `max alloc` (blocks, bytes): a task an item keeps every item of the batch, workers keep their own.

#[path = "shared/house.rs"]
mod house;

use std::{num::NonZeroUsize, sync::Arc};

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use futures_util::{StreamExt, future, stream};
use gw_config::GenerationSpec;
use gw_exec::{BatchConfig, Gateway, GenerationRequest, GenerationStatus};
use gw_types::KeyIdentity;

use self::house::House;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const ITEMS: usize = 1_000;
const WORKERS: usize = 64;

const TEXT: &str = r#"version = 1
[providers.p]
kind = "scripted"
script = ["delay=1 ok text=four words of answer"]
[deployments.d]
provider = "p"
model = "m"
price = "free"
max_concurrency = 1_000
[[routes]]
name = "r"
deployments = ["d"]
default_max_output_tokens = 64
[tenants.t]
max_concurrency = 1_000
keys = [{ name = "k", secret = { env = "K" } }]
[ledger]
store = "none"
"#;

/// Made one after the other as a batch takes them, as from a file.
fn requests() -> impl Iterator<Item = GenerationRequest> {
    let prompt = "one two three four ".repeat(50);
    (0..ITEMS).map(move |number| {
        let spec = GenerationSpec::of_prompt(format!("item-{number}"), format!("{prompt}{number}"));
        spec.into_request(Some("m")).expect("the item is sound")
    })
}

async fn answered(
    gateway: &Arc<Gateway>,
    caller: &KeyIdentity,
    workers: usize,
    from: Vec<GenerationRequest>,
) -> usize {
    let workers = NonZeroUsize::new(workers).expect("at least one");
    let config = BatchConfig::new(caller.clone(), workers);
    let items: Box<dyn Iterator<Item = GenerationRequest> + Send> =
        if from.is_empty() { Box::new(requests()) } else { Box::new(from.into_iter()) };
    let results = gateway.generate_many(stream::iter(items), config);
    results.filter(|result| future::ready(result.status == GenerationStatus::Ok)).count().await
}

fn bounded(bencher: Bencher<'_, '_>, workers: usize) {
    let house = House::of(TEXT);
    bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| {
        let count =
            house.runtime.block_on(answered(&house.built.gateway, &house.caller, workers, Vec::new()));
        assert_eq!(count, ITEMS);
    });
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn sequential(bencher: Bencher<'_, '_>) {
    bounded(bencher, 1);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn bounded_workers(bencher: Bencher<'_, '_>) {
    bounded(bencher, WORKERS);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn task_per_item(bencher: Bencher<'_, '_>) {
    let house = House::of(TEXT);
    bencher.counter(ItemsCount::new(ITEMS)).bench_local(|| {
        let each = |item| {
            let (gateway, caller) = (Arc::clone(&house.built.gateway), house.caller.clone());
            house.runtime.spawn(async move { answered(&gateway, &caller, 1, vec![item]).await })
        };
        let tasks: Vec<_> = requests().map(each).collect();
        let counts = house.runtime.block_on(future::join_all(tasks));
        let count: usize = counts.into_iter().map(|count| count.expect("no task panics")).sum();
        assert_eq!(count, ITEMS);
    });
}
