//! The semantic cache: embedding, the scan at several sizes, a whole lookup with decision, and many partitions. The
//! first version's linear scan over vectors is the baseline.

#![expect(clippy::unwrap_used, reason = "a bench on wrong input must not go on")]

use std::{
    future::Future,
    num::NonZeroU16,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use divan::{Bencher, black_box, counter::BytesCount};
use gw_cache::{
    CachePolicy, CachedAnswer, Embedder, HashingEmbedder, KeyParts, Partition, Probe, SemanticCache,
    SemanticConfig, SemanticPolicy, Storable, WriteRule, storable,
    verify::{Verifier, VerifierConfig},
};
use gw_types::{
    AnswerFacts, CacheControl, Classification, DeploymentName, FinishReason, GatewayError, MonoTime,
    Operation, Question, Random, RequestId, RouteName, SeededRandom, Temperature, TenantId,
};

fn main() {
    divan::main();
}

/// Vectors that are as far from each other as chance makes them: the scan's worst case has no near ones to stop at.
#[derive(Debug)]
struct Noise(usize);

#[async_trait::async_trait]
impl Embedder for Noise {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError> {
        let seed = text.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let random = SeededRandom::new(seed);
        Ok((0..self.0).map(|_| random.below(2_001) as f32 / 1_000.0 - 1.0).collect())
    }
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the embedder never waits"),
    }
}

fn partition(number: usize) -> Partition {
    let parts = KeyParts {
        tenant: &TenantId::new(&format!("t{number}")).unwrap(),
        route: &RouteName::new("chat").unwrap(),
        primary: &DeploymentName::new("ptu").unwrap(),
        model_version: None,
        operation: Operation::Chat,
        policy_digest: "",
    };
    Partition::new(&parts)
}

fn stored() -> Storable {
    let policy = CachePolicy { exact: true, ttl: Duration::from_secs(60), ..CachePolicy::default() };
    let rule = WriteRule {
        policy: &policy,
        cache_control: CacheControl::Default,
        side_effecting: false,
        classification: Classification::Internal,
        temperature: Temperature::Zero,
        complete: true,
    };
    let answer = CachedAnswer {
        raw: Some("{}".into()),
        completion: None,
        facts: AnswerFacts { finish: Some(FinishReason::Stop), content_bytes: 2, ..AnswerFacts::default() },
        serving: DeploymentName::new("ptu").unwrap(),
        model_version: None,
        origin: RequestId::from_bits(1),
    };
    storable(&rule, answer).unwrap()
}

fn probe(cache: &SemanticCache, text: &str) -> Probe {
    ready(cache.probe(&Question { text: text.to_owned(), context: Vec::new() })).unwrap().unwrap()
}

/// A cache of so many entries in one partition; their words differ, so that the guards let all of them through.
fn filled(embedder: Arc<dyn Embedder>, entries: usize) -> SemanticCache {
    let config =
        SemanticConfig { partition_bytes_max: 1 << 30, bytes_max: 1 << 30, ..SemanticConfig::default() };
    let cache = SemanticCache::new(config, embedder);
    let (partition, answer) = (partition(0), stored());
    for n in 0..entries {
        cache.put_probe(&partition, &probe(&cache, &question(n)), answer.clone(), MonoTime::ZERO);
    }
    assert_eq!(cache.usage(&partition).entries, entries);
    cache
}

fn question(n: usize) -> String {
    let letters: String = format!("{n:06}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
    format!("how does the card {letters} behave when it rains")
}

#[divan::bench(args = [64, 256, 1_024])]
fn embed_hashing(bencher: Bencher, bytes: usize) {
    let text = "which limits hold for a transfer between two own accounts on a holiday? ".repeat(20);
    let embedder = HashingEmbedder::default();
    bencher.counter(BytesCount::new(bytes)).bench(|| embedder.vector(black_box(&text[..bytes])));
}

const SIZES: [(usize, usize); 3] = [(10_000, 64), (10_000, 384), (50_000, 384)];

/// A lookup among vectors of chance, without the embedding.
#[divan::bench(args = SIZES)]
fn nearest(bencher: Bencher, (entries, dimensions): (usize, usize)) {
    let cache = filled(Arc::new(Noise(dimensions)), entries);
    let (partition, asked) = (partition(0), probe(&cache, "how does the card behave when it rains"));
    bencher.bench(|| cache.nearest(&partition, black_box(&asked), 900, MonoTime::ZERO));
}

/// What the first version did: a product of vectors for every entry.
#[divan::bench(args = SIZES)]
fn baseline_scan_of_vectors(bencher: Bencher, (entries, dimensions): (usize, usize)) {
    let embed = |text: &str| ready(Noise(dimensions).embed(text)).unwrap();
    let vectors: Vec<Vec<f32>> = (0..entries).map(|n| embed(&question(n))).collect();
    let asked = embed("how does the card behave when it rains");
    bencher.bench(|| {
        let asked = black_box(&asked);
        vectors
            .iter()
            .map(|vector| vector.iter().zip(asked).map(|(a, b)| a * b).sum::<f32>())
            .fold(0.0, f32::max)
    });
}

/// A whole lookup with the shipped embedder: embedding, scan, guards, at a fixed threshold.
#[divan::bench(args = [1_000, 10_000])]
fn lookup(bencher: Bencher, entries: usize) {
    let cache = filled(Arc::new(HashingEmbedder::default()), entries);
    let (partition, policy) = (partition(0), SemanticPolicy::default());
    let asked = Question { text: question(77), context: Vec::new() };
    bencher.bench(|| ready(cache.get(&partition, black_box(&asked), &policy, MonoTime::ZERO)).unwrap());
}

/// One lookup in each of a thousand partitions of ten entries.
#[divan::bench]
fn thousand_partitions(bencher: Bencher) {
    let embedder = Arc::new(HashingEmbedder::new(NonZeroU16::new(384).unwrap()));
    let cache = SemanticCache::new(SemanticConfig::default(), embedder);
    let partitions: Vec<Partition> = (0..1_000).map(partition).collect();
    let probes: Vec<Probe> = (0..10).map(|n| probe(&cache, &question(n))).collect();
    for partition in &partitions {
        probes.iter().for_each(|probe| cache.put_probe(partition, probe, stored(), MonoTime::ZERO));
    }
    assert_eq!(cache.counts(), (1_000, 10_000));
    bencher.bench(|| {
        let found = partitions
            .iter()
            .filter_map(|partition| cache.nearest(partition, &probes[3], 900, MonoTime::ZERO));
        found.count()
    });
}

/// A decision, and the fit that every hundredth label costs.
#[divan::bench]
fn decide_and_label(bencher: Bencher) {
    let cache = filled(Arc::new(HashingEmbedder::default()), 100);
    let asked = probe(&cache, &question(5));
    let found = cache.nearest(&partition(0), &asked, 400, MonoTime::ZERO).unwrap();
    let random = SeededRandom::new(1);
    let mut verifier = Verifier::new(VerifierConfig::default());
    bencher.bench_local(|| {
        let decision = verifier.decide(&found.features, random.next_u64());
        if let Some(sample) = decision.sample {
            verifier.label(&sample, random.below(10) > 0);
        }
    });
}
