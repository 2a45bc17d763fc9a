//! What the tests share: a tenant's requests, answers, and a future that is ready at once.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use gw_cache::{
    CacheKey, CachePolicy, CachedAnswer, HashingEmbedder, KeyParts, Partition, SemanticCache, SemanticConfig,
    SemanticPolicy, Storable, WordEmbedder, WriteRule, storable,
};
use gw_types::{
    AnswerFacts, CacheControl, Choice, Classification, Completion, DeploymentName, FinishReason, MonoTime,
    Operation, Question, RequestId, RouteName, Temperature, TenantId,
};

pub(crate) const TTL: Duration = Duration::from_secs(60);

/// The names in a key, owned.
#[derive(Clone)]
pub(crate) struct Names {
    pub(crate) tenant: TenantId,
    pub(crate) route: RouteName,
    pub(crate) primary: DeploymentName,
}

impl Names {
    pub(crate) fn of(tenant: &str) -> Self {
        Self::new(tenant, "chat", "ptu")
    }

    pub(crate) fn new(tenant: &str, route: &str, primary: &str) -> Self {
        Self {
            tenant: TenantId::new(tenant).unwrap(),
            route: RouteName::new(route).unwrap(),
            primary: DeploymentName::new(primary).unwrap(),
        }
    }

    pub(crate) fn parts(&self) -> KeyParts<'_> {
        KeyParts {
            tenant: &self.tenant,
            route: &self.route,
            primary: &self.primary,
            model_version: Some("1"),
            operation: Operation::Chat,
            policy_digest: "d",
        }
    }

    pub(crate) fn key(&self, body: &str) -> CacheKey {
        CacheKey::new(&self.parts(), body.as_bytes()).unwrap()
    }

    pub(crate) fn partition(&self) -> Partition {
        Partition::new(&self.parts())
    }
}

pub(crate) fn policy() -> CachePolicy {
    CachePolicy { exact: true, ttl: TTL, semantic: Some(SemanticPolicy::default()), ..CachePolicy::default() }
}

pub(crate) fn rule(policy: &CachePolicy) -> WriteRule<'_> {
    WriteRule {
        policy,
        cache_control: CacheControl::Default,
        side_effecting: false,
        classification: Classification::Internal,
        temperature: Temperature::Zero,
        complete: true,
    }
}

/// A complete answer, told apart by its number.
pub(crate) fn answer(number: u128) -> CachedAnswer {
    sized_answer(number, 16)
}

pub(crate) fn sized_answer(number: u128, bytes: usize) -> CachedAnswer {
    CachedAnswer {
        raw: Some(vec![b'x'; bytes].into()),
        completion: None,
        facts: AnswerFacts { finish: Some(FinishReason::Stop), content_bytes: 1, ..AnswerFacts::default() },
        serving: DeploymentName::new("eu").unwrap(),
        model_version: None,
        origin: RequestId::from_bits(number),
    }
}

pub(crate) fn completion(text: &str) -> Completion {
    let choice = Choice {
        text: text.to_owned(),
        reasoning: String::new(),
        refusal: None,
        tool_calls: Vec::new(),
        finish: FinishReason::Stop,
    };
    Completion { choices: vec![choice], served_model: None, usage: None }
}

pub(crate) fn stored(number: u128) -> Storable {
    storable(&rule(&policy()), answer(number)).unwrap()
}

pub(crate) fn at(seconds: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
}

pub(crate) fn question(text: &str) -> Question {
    Question { text: text.to_owned(), context: b"system: be brief".to_vec() }
}

/// A semantic cache with the shipped embedder, in which calls are plain functions.
pub(crate) struct Semantic(pub(crate) SemanticCache);

impl Semantic {
    pub(crate) fn new(config: SemanticConfig) -> Self {
        Self(SemanticCache::new(config, Arc::new(HashingEmbedder::default())))
    }

    /// Compares by words alone, so that scores can be told from the words.
    pub(crate) fn of_words() -> Self {
        Self(SemanticCache::new(SemanticConfig::default(), Arc::new(WordEmbedder::default())))
    }

    pub(crate) fn put(&self, names: &Names, question: &Question, number: u128, now: MonoTime) {
        ready(self.0.put(&names.partition(), question, stored(number), now)).unwrap();
    }

    /// Returns the number of the answer and the score.
    pub(crate) fn get_at(
        &self,
        names: &Names,
        question: &Question,
        threshold_milli: u32,
        now: MonoTime,
    ) -> Option<(RequestId, u32)> {
        let policy = SemanticPolicy { threshold_milli };
        let hit = ready(self.0.get(&names.partition(), question, &policy, now)).unwrap()?;
        Some((hit.answer.origin.clone(), hit.score_milli))
    }

    pub(crate) fn get(&self, names: &Names, question: &Question, now: MonoTime) -> Option<RequestId> {
        let threshold = SemanticPolicy::DEFAULT_THRESHOLD_MILLI;
        self.get_at(names, question, threshold, now).map(|(origin, _)| origin)
    }
}

/// Runs a future that never waits.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Where the whole test run must be complete, an absent folder is a failure.
#[expect(
    clippy::disallowed_methods,
    reason = "a test may not skip itself in CI, and only the environment says so"
)]
pub(crate) fn must_run() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn report_skip(what: &str) {
    println!("skipped: {what} are absent");
}
