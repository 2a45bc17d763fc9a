//! What the pipeline itself costs: a request through a scripted provider, with keys, limits, budget and ledger on.

#[path = "shared/house.rs"]
mod house;

use bytes::Bytes;
use gw_dialects::openai::read_chat;
use gw_types::{NormalizedRequest, Operation, RequestContext};

use self::house::House;

fn main() {
    divan::main();
}

const TEXT: &str = r#"version = 1
[providers.p]
kind = "scripted"
script = ["ok text=four words of answer"]
[deployments.d]
provider = "p"
model = "m"
price = { input = 1, output = 1 }
[[routes]]
name = "plain"
match = { models = ["plain"] }
deployments = ["d"]
default_max_output_tokens = 64
[[routes]]
name = "cached"
match = { models = ["cached"] }
deployments = ["d"]
default_max_output_tokens = 64
cache = { exact = true, ttl_s = 3_600 }
[tenants.t]
requests_per_minute = 1_000_000_000_000
tokens_per_minute = 1_000_000_000_000
max_concurrency = 64
budget = { limit_micros = 1_000_000_000_000_000, window = "day" }
keys = [{ name = "k", secret = { env = "K" } }]
[ledger]
store = "none"
"#;

fn request(model: &str) -> NormalizedRequest {
    let prompt = "one two three four ".repeat(50);
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    let body = Bytes::from(body);
    let facts = read_chat(&body).expect("the body is a chat request");
    NormalizedRequest { operation: Operation::Chat, body, facts, context: RequestContext::default() }
}

fn complete(bencher: divan::Bencher<'_, '_>, model: &str) {
    let house = House::of(TEXT);
    let request = request(model);
    let ask = || {
        let admitted = house.built.gateway.admit(&house.caller).expect("the ledger has room");
        house.runtime.block_on(house.built.gateway.complete(admitted, request.clone())).expect("an answer")
    };
    // The first request fills the cache where there is one.
    drop(ask());
    bencher.counter(divan::counter::ItemsCount::new(1_usize)).bench(ask);
}

#[divan::bench]
fn complete_through_a_scripted_provider(bencher: divan::Bencher<'_, '_>) {
    complete(bencher, "plain");
}

#[divan::bench]
fn complete_from_the_exact_cache(bencher: divan::Bencher<'_, '_>) {
    complete(bencher, "cached");
}
