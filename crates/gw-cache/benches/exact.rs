//! The exact cache on the path of a request: the key of a 645-byte chat body, the lookup, and both.

#![expect(clippy::unwrap_used, reason = "a bench on wrong input must not go on")]

use std::time::Duration;

use divan::{Bencher, black_box, counter::BytesCount};
use gw_cache::{CacheConfig, CacheKey, CachePolicy, CachedAnswer, ExactCache, KeyParts, WriteRule, storable};
use gw_types::{
    AnswerFacts, CacheControl, Classification, DeploymentName, FinishReason, MonoTime, Operation, RequestId,
    RouteName, Temperature, TenantId,
};

const BODY_BYTES: usize = 645;
const ENTRIES: u32 = 10_000;

fn main() {
    divan::main();
}

struct Names {
    tenant: TenantId,
    route: RouteName,
    primary: DeploymentName,
}

impl Names {
    fn new() -> Self {
        Self {
            tenant: TenantId::new("wholesale").unwrap(),
            route: RouteName::new("chat").unwrap(),
            primary: DeploymentName::new("gpt-ptu").unwrap(),
        }
    }

    fn key(&self, body: &[u8]) -> CacheKey {
        let parts = KeyParts {
            tenant: &self.tenant,
            route: &self.route,
            primary: &self.primary,
            model_version: Some("2025-04-14"),
            operation: Operation::Chat,
            policy_digest: "0123456789abcdef0123456789abcdef",
        };
        CacheKey::new(&parts, body).unwrap()
    }
}

/// A chat request of exactly the bytes of the reference hop, told apart by a number.
fn body(number: u32) -> Vec<u8> {
    let around = |filling: &str| {
        format!(
            r#"{{"model": "gpt-4.1", "messages": [{{"role": "system", "content": "You are a terse assistant for a bank.\nAnswer in one paragraph, cite the rule that applies."}}, {{"role": "user", "content": "Case {number:08}: {filling}"}}], "temperature": 0.2, "max_tokens": 256, "top_p": 1.0, "stop": ["END"], "user": "agent-17"}}"#
        )
    };
    let filling = "which limits hold for a transfer between two own accounts on a public holiday? ".repeat(8);
    let body = around(&filling[..BODY_BYTES - around("").len()]);
    assert_eq!(body.len(), BODY_BYTES);
    body.into_bytes()
}

fn filled(names: &Names) -> ExactCache {
    let policy = CachePolicy { exact: true, ttl: Duration::from_secs(60), ..CachePolicy::default() };
    let rule = WriteRule {
        policy: &policy,
        cache_control: CacheControl::Default,
        side_effecting: false,
        classification: Classification::Internal,
        temperature: Temperature::Above,
        complete: true,
    };
    let cache = ExactCache::new(CacheConfig::default());
    for number in 0..ENTRIES {
        let answer = CachedAnswer {
            raw: Some(vec![b'x'; 1_039].into()),
            completion: None,
            facts: AnswerFacts {
                finish: Some(FinishReason::Stop),
                content_bytes: 600,
                ..AnswerFacts::default()
            },
            serving: names.primary.clone(),
            model_version: None,
            origin: RequestId::from_bits(number.into()),
        };
        cache.put(names.key(&body(number)), storable(&rule, answer).unwrap(), MonoTime::ZERO);
    }
    cache
}

#[divan::bench]
fn key(bencher: Bencher) {
    let (names, body) = (Names::new(), body(7));
    bencher.counter(BytesCount::new(BODY_BYTES)).bench(|| names.key(black_box(&body)));
}

#[divan::bench]
fn key_of_100_kb(bencher: Bencher) {
    let turns: Vec<String> = (0..1_000)
        .map(|n| format!(r#"{{"role": "user", "content": "turn {n:04}: {}"}}"#, "words of a turn ".repeat(4)))
        .collect();
    let body = format!(r#"{{"model": "m", "messages": [{}], "temperature": 0.2}}"#, turns.join(", "));
    let names = Names::new();
    bencher.counter(BytesCount::new(body.len())).bench(|| names.key(black_box(body.as_bytes())));
}

#[divan::bench]
fn hit(bencher: Bencher) {
    let names = Names::new();
    let (cache, key) = (filled(&names), names.key(&body(7)));
    assert!(cache.get(&key, MonoTime::ZERO).is_some());
    bencher.bench(|| cache.get(black_box(&key), MonoTime::ZERO));
}

#[divan::bench]
fn miss(bencher: Bencher) {
    let names = Names::new();
    let (cache, key) = (filled(&names), names.key(&body(ENTRIES)));
    assert!(cache.get(&key, MonoTime::ZERO).is_none());
    bencher.bench(|| cache.get(black_box(&key), MonoTime::ZERO));
}

#[divan::bench]
fn key_and_hit(bencher: Bencher) {
    let names = Names::new();
    let (cache, body) = (filled(&names), body(7));
    bencher
        .counter(BytesCount::new(BODY_BYTES))
        .bench(|| cache.get(&names.key(black_box(&body)), MonoTime::ZERO));
}
