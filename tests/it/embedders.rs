//! Questions whose vectors a provider makes: asked as the tenant's own requests, inside the request's time, with records.

use gw_testkit::{FakeProvider, Fault, ok, status};
use gw_types::{CacheState, Money};
use serde_json::{Value, json};

use crate::support::{Ask, House, Toml};

const QUESTION: &str = "how high is the tallest mountain of South America";
const NEAR: &str = "how tall is the highest mountain in all South America";
const FAR: &str = "which bus goes from the station to the harbour at night";

/// A provider whose vectors say whether a question is about mountains.
async fn provider() -> FakeProvider {
    FakeProvider::start_with(|call| {
        let asked = call.json();
        let Some(input) = asked["input"].as_str() else { return ok("an answer").into() };
        let vector = if input.contains("mountain") { json!([0.6, 0.8, 0.0]) } else { json!([0.0, 0.0, 1.0]) };
        vectors(&json!([{"object": "embedding", "index": 0, "embedding": vector}]))
    })
    .await
    .unwrap()
}

fn vectors(data: &Value) -> Fault {
    let body = json!({"object": "list", "model": "e", "data": data,
        "usage": {"prompt_tokens": 10, "total_tokens": 10}});
    status(200).body(body.to_string()).into()
}

fn toml(provider: &FakeProvider, embedder: &str) -> Toml {
    let embedder = format!("capabilities = [\"embeddings\"]\n{embedder}");
    Toml::new()
        .upstream("up", provider)
        .upstream_with("vectors", &provider.base_url(), "", &embedder)
        .route_with(
            "m",
            &["up"],
            "cache = { exact = true, semantic = { threshold = 0.9, embedder = { deployment = \"vectors\" } } }",
        )
        .tenant("a", "")
}

async fn asked(house: &House, question: &str) -> CacheState {
    let state = house.ask(&Ask::of("a", "m", question)).await.unwrap().head.cache;
    house.composition.gateway.finish().await;
    state
}

fn embedded(provider: &FakeProvider) -> usize {
    provider.calls().iter().filter(|call| call.json()["input"].is_string()).count()
}

#[tokio::test]
async fn a_deployment_makes_the_vectors_and_its_calls_are_side_costs_of_the_tenant() {
    let provider = provider().await;
    let house = House::new(&toml(&provider, "")).await;
    for (step, question, cache, vectors) in [
        ("nothing to find: the vector waits for the answer", QUESTION, CacheState::Miss, 1),
        ("an equal question needs no vector", QUESTION, CacheState::Exact, 1),
        ("a near one is looked for", NEAR, CacheState::Semantic, 2),
        ("a far one is looked for, and kept with the same vector", FAR, CacheState::Miss, 3),
    ] {
        assert_eq!((asked(&house, question).await, embedded(&provider)), (cache, vectors), "{step}");
    }
    let records = house.records().await;
    let side: Vec<_> = records.iter().filter(|record| !record.side_costs.is_empty()).collect();
    assert_eq!((records.len(), side.len()), (7, 3), "each call has a record");
    for record in side {
        let cost = &record.side_costs[0];
        assert_eq!((cost.purpose.as_str(), cost.deployment.as_str()), ("embedding", "vectors"));
        assert_eq!((record.tenant.as_str(), record.cost), ("a", Money::ZERO));
        assert!(cost.cost > Money::ZERO);
    }
    house.holds_nothing("a");
}

#[tokio::test]
async fn an_embedder_that_fails_or_may_not_see_the_question_costs_a_hit_and_not_the_request() {
    for (what, answer, deployment, calls) in [
        ("an error", status(500).into(), "", 2),
        ("no vector", vectors(&json!([])), "", 2),
        ("not for this class", ok("x").into(), "classification_ceiling = \"public\"", 0),
    ] {
        let answer: Fault = answer;
        let provider = FakeProvider::start_with(move |call| match call.json()["input"].is_string() {
            true => answer.clone(),
            false => ok("an answer").into(),
        })
        .await
        .unwrap();
        let house = House::new(&toml(&provider, &format!("max_attempts = 1\n{deployment}"))).await;
        for question in [QUESTION, NEAR] {
            assert_eq!(asked(&house, question).await, CacheState::Miss, "{what}");
        }
        assert_eq!(embedded(&provider), calls, "{what}");
        house.holds_nothing("a");
    }
}

#[tokio::test(start_paused = true)]
async fn another_locale_is_another_partition_of_similar_questions() {
    let cache = "cache = { exact = true, semantic = { threshold = 0.8, embedder = \"words\" } }";
    let toml = Toml::new()
        .scripted("up", &["ok text=one", "ok text=two"])
        .route_with("m", &["up"], cache)
        .tenant("a", "");
    let house = House::new(&toml).await;
    let question = "how high is the tallest mountain of the continent of South America";
    let ask = |text: &str, locale: &str| {
        let locale = gw_types::BoundedText::new(locale);
        Ask::of("a", "m", text).context(|context| context.locale = Some(locale))
    };
    let [near, other] = ["please", "thanks"].map(|word| format!("{question} {word}"));
    for (text, locale, expected) in [
        (question, "pt-br", CacheState::Miss),
        (&other, "en", CacheState::Miss),
        (&near, "pt-br", CacheState::Semantic),
        (question, "en", CacheState::Exact),
    ] {
        assert_eq!(house.ask(&ask(text, locale)).await.unwrap().head.cache, expected, "{locale}: {text}");
    }
}
