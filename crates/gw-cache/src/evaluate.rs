//! Replays labelled questions through the real semantic cache, and counts.
//!
//! Two kinds of rows are read, one JSON object a line: pairs (`a` is cached, `b` is asked; `same_answer` says whether
//! one answer serves both) and steps of a stream (`text`, and a `class` that stands for the right answer). A question is
//! a string or a conversation, a list of `role` and `content`: then the last user turn is the question and everything
//! before it the context, as in the gateway.

mod figures;
mod rows;

use std::sync::Arc;

use gw_errors::GatewayError;
use gw_types::{
    AnswerFacts, CacheControl, Classification, DeploymentName, FinishReason, MonoTime, Operation, Question,
    Random, RequestId, RouteName, Temperature, TenantId,
};

pub use self::{
    figures::{Figures, KindFigures, Share},
    rows::{BadRow, Dataset, Pair, Step},
};
use crate::{
    CachePolicy, CachedAnswer, Embedder, KeyParts, NotStored, Partition, SemanticCache, SemanticConfig,
    SemanticMatch, SemanticPolicy, Storable, WriteRule, storable,
    verify::{EntryVerifier, Verdict, Verifier},
};

/// Says which would-be hits are served.
#[derive(Clone, Debug)]
pub enum Decider {
    /// Those at or above a threshold.
    Fixed(SemanticPolicy),
    /// Those that a verifier serves; its labels are the rows' own.
    Verified(Box<Verifier>),
    /// Those that the verifier of their entry serves.
    PerEntry(EntryVerifier),
}

impl Decider {
    /// The least similarity of a would-be hit that a verifier is asked about, in thousandths.
    pub const FLOOR_MILLI: u32 = 400;

    fn floor_milli(&self) -> u32 {
        match self {
            Self::Fixed(policy) => policy.threshold_milli,
            Self::Verified(_) | Self::PerEntry(_) => Self::FLOOR_MILLI,
        }
    }

    /// Decides, labels where a label is wanted, and returns whether the answer is served and whether it is kept where
    /// it is not.
    fn decide(&mut self, found: &SemanticMatch, right: bool, random: &dyn Random) -> Outcome {
        match self {
            Self::Fixed(_) => Outcome::Served,
            Self::Verified(verifier) => {
                let decision = verifier.decide(&found.features, random.next_u64());
                if let Some(sample) = decision.sample {
                    verifier.label(&sample, right);
                }
                if decision.verdict == Verdict::Serve { Outcome::Served } else { Outcome::Stored }
            }
            Self::PerEntry(verifier) => {
                match verifier.decide(found.entry, found.score_milli, random.next_u64()) {
                    Verdict::Serve => Outcome::Served,
                    Verdict::Explore | Verdict::Shadow | Verdict::Off => {
                        verifier.label(found.entry, found.score_milli, right);
                        if right { Outcome::Dropped } else { Outcome::Stored }
                    }
                }
            }
        }
    }

    fn miss(&mut self) {
        match self {
            Self::Verified(verifier) => verifier.miss(),
            Self::Fixed(_) | Self::PerEntry(_) => {}
        }
    }
}

/// What became of a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Served,
    Stored,
    Dropped,
}

/// Replays the rows: first the stream, in order, in one partition; then the pairs, each in a context of its own.
///
/// A verifier keeps what it has learnt from the stream when it comes to the pairs; give it pairs alone to see it begin.
/// Costs what the lookups cost; at a few thousand rows, seconds.
///
/// # Errors
/// What the embedder raises; the first error ends the replay.
pub async fn evaluate(
    data: &Dataset,
    embedder: Arc<dyn Embedder>,
    decider: &mut Decider,
    random: &dyn Random,
) -> Result<Figures, GatewayError> {
    let mut replay = Replay {
        cache: SemanticCache::new(SemanticConfig::default(), embedder),
        figures: Figures::default(),
        decider,
        random,
    };
    for step in &data.steps {
        replay.step(step).await?;
    }
    for (number, pair) in (0_u64..).zip(&data.pairs) {
        replay.pair(number, pair).await?;
    }
    let Replay { mut figures, decider, .. } = replay;
    if let Decider::Verified(verifier) = decider {
        figures.report = Some(verifier.report());
    }
    Ok(figures)
}

struct Replay<'a> {
    cache: SemanticCache,
    figures: Figures,
    decider: &'a mut Decider,
    random: &'a dyn Random,
}

impl Replay<'_> {
    async fn step(&mut self, step: &Step) -> Result<(), GatewayError> {
        let outcome = self.ask("stream", &step.question, &step.class).await?;
        self.figures.stored += u32::from(outcome.0 == Outcome::Stored);
        let served = outcome.0 == Outcome::Served;
        self.figures.hits.add(served);
        if served {
            self.figures.wrong.add(!outcome.1);
        }
        Ok(())
    }

    async fn pair(&mut self, number: u64, pair: &Pair) -> Result<(), GatewayError> {
        // Pairs do not meet each other: one's question is no answer to another's.
        let apart = |question: &Question| {
            let mut context = number.to_le_bytes().to_vec();
            context.extend_from_slice(&question.context);
            Question { text: question.text.clone(), context }
        };
        let (Some(partition), Some(answer)) = (partition("pairs"), stored("a")) else { return Ok(()) };
        self.cache.put(&partition, &apart(&pair.cached), answer, MonoTime::ZERO).await?;
        let right = if pair.same_answer { "a" } else { "b" };
        let outcome = self.ask("pairs", &apart(&pair.asked), right).await?;
        let served = outcome.0 == Outcome::Served;
        self.figures.kind(&pair.kind, pair.same_answer).served.add(served);
        if pair.ambiguous {
            return Ok(());
        }
        let share = if pair.same_answer { &mut self.figures.should_hit } else { &mut self.figures.traps };
        share.add(served);
        Ok(())
    }

    /// Asks a question whose right answer is known; returns what became of it, and whether the answer found was right.
    async fn ask(
        &mut self,
        name: &str,
        question: &Question,
        answer: &str,
    ) -> Result<(Outcome, bool), GatewayError> {
        let (Some(probe), Some(partition)) = (self.cache.probe(question).await?, partition(name)) else {
            return Ok((Outcome::Dropped, false));
        };
        let found = self.cache.nearest(&partition, &probe, self.decider.floor_milli(), MonoTime::ZERO);
        let (outcome, right) = match &found {
            Some(found) => {
                let right = found.answer.raw.as_deref() == Some(answer.as_bytes());
                (self.decider.decide(found, right, self.random), right)
            }
            None => {
                self.decider.miss();
                (Outcome::Stored, false)
            }
        };
        if outcome == Outcome::Stored
            && let Some(stored) = stored(answer)
        {
            self.cache.put_probe(&partition, &probe, stored, MonoTime::ZERO);
        }
        Ok((outcome, right))
    }
}

/// Returns a partition of the replay's own.
fn partition(name: &str) -> Option<Partition> {
    let parts = KeyParts {
        tenant: &TenantId::new("evaluate").ok()?,
        route: &RouteName::new(name).ok()?,
        primary: &DeploymentName::new("labels").ok()?,
        model_version: None,
        operation: Operation::Chat,
        policy_digest: "",
    };
    Some(Partition::new(&parts))
}

/// Returns an answer that says one thing and never expires, through the write rule as any other.
fn stored(says: &str) -> Option<Storable> {
    let answer = CachedAnswer {
        raw: Some(says.to_owned().into()),
        completion: None,
        facts: AnswerFacts { finish: Some(FinishReason::Stop), content_bytes: 1, ..AnswerFacts::default() },
        serving: DeploymentName::new("labels").ok()?,
        model_version: None,
        origin: RequestId::from_bits(0),
    };
    let policy =
        CachePolicy { exact: true, ttl: std::time::Duration::from_secs(1), ..CachePolicy::default() };
    let rule = WriteRule {
        policy: &policy,
        cache_control: CacheControl::Default,
        side_effecting: false,
        classification: Classification::Public,
        temperature: Temperature::Zero,
        complete: true,
    };
    storable(&rule, answer).map_err(|_: NotStored| ()).ok()
}
