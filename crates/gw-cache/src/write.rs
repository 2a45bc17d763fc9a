//! The write rule: the one place that decides what may be remembered (I10).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_types::{CacheControl, Choice, Classification, Completion, FinishReason, Money, Temperature};

use crate::{CachePolicy, CachedAnswer};

/// What the write rule looks at beside the answer.
#[derive(Clone, Copy, Debug)]
pub struct WriteRule<'a> {
    /// What the route says.
    pub policy: &'a CachePolicy,
    /// What the caller says.
    pub cache_control: CacheControl,
    /// Whether the caller says that the request changes something.
    pub side_effecting: bool,
    /// How sensitive the request's data is, the tenant's default included.
    pub classification: Classification,
    /// What the caller says about chance.
    pub temperature: Temperature,
    /// Whether gw itself read the answer to its end: the whole body, or a stream's terminal event.
    pub complete: bool,
}

/// Says why an answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotStored {
    /// The route has no cache.
    #[error("the route has no cache")]
    Off,
    /// The caller asked for it.
    #[error("the caller asked not to store")]
    NoStore,
    /// The request changes something: it must reach the provider each time.
    #[error("the request is side-effecting")]
    SideEffecting,
    /// The data is above the route's cache ceiling.
    #[error("the classification is above the cache ceiling")]
    Classification,
    /// The route caches temperature 0 only.
    #[error("the temperature is not 0")]
    Temperature,
    /// The end of the answer was not seen.
    #[error("the answer is not complete")]
    Incomplete,
    /// A choice ended for another reason than that the model was done.
    #[error("the finish reason is not stop")]
    NotStop,
    /// The answer calls tools: the next turn depends on what they return.
    #[error("the answer calls tools")]
    ToolCalls,
    /// There is no content to give again.
    #[error("the answer is empty")]
    Empty,
}

/// An answer that may be remembered. Only [`storable`] makes one; clones share the answer.
#[derive(Clone, Debug)]
pub struct Storable {
    pub(crate) answer: Arc<CachedAnswer>,
    pub(crate) ttl: Duration,
    /// What making the answer again would cost, in micro-USD.
    pub(crate) cost_micros: u64,
}

impl Storable {
    /// Returns the answer.
    pub fn answer(&self) -> &Arc<CachedAnswer> {
        &self.answer
    }

    /// Returns the answer with what making it again would cost: of entries that nobody asked for lately, the exact cache
    /// drops the one that costs least a byte. Without this the cost is 0.
    #[must_use]
    pub fn costing(mut self, cost: Money) -> Self {
        self.cost_micros = cost.micros_rounded_up();
        self
    }
}

/// Returns the answer as one that may be remembered: the write rule (I10).
///
/// The body is copied, so that an entry holds its own bytes alone and not the receive buffer that they came in.
///
/// # Errors
/// [`NotStored`] says which condition failed first; nothing is kept then.
pub fn storable(rule: &WriteRule<'_>, answer: CachedAnswer) -> Result<Storable, NotStored> {
    check_request(rule)?;
    check_answer(rule, &answer)?;
    let raw = answer.raw.as_deref().map(Bytes::copy_from_slice);
    Ok(Storable { answer: Arc::new(CachedAnswer { raw, ..answer }), ttl: rule.policy.ttl, cost_micros: 0 })
}

fn check_request(rule: &WriteRule<'_>) -> Result<(), NotStored> {
    if !rule.policy.is_on() {
        return Err(NotStored::Off);
    }
    match rule.cache_control {
        CacheControl::NoStore => return Err(NotStored::NoStore),
        CacheControl::Default | CacheControl::NoCache | CacheControl::OnlyIfCached => {}
    }
    if rule.side_effecting {
        return Err(NotStored::SideEffecting);
    }
    if rule.classification > rule.policy.cache_ceiling {
        return Err(NotStored::Classification);
    }
    if !rule.policy.allows_temperature(rule.temperature) {
        return Err(NotStored::Temperature);
    }
    Ok(())
}

fn check_answer(rule: &WriteRule<'_>, answer: &CachedAnswer) -> Result<(), NotStored> {
    if !rule.complete {
        return Err(NotStored::Incomplete);
    }
    let parts = answer.completion.as_deref();
    let pure_tools = rule.policy.pure_tools;
    let calls = answer.facts.tool_calls || parts.is_some_and(calls_tools);
    let is_done = |finish| finish == FinishReason::Stop || pure_tools && finish == FinishReason::ToolCalls;
    // A refusal may come with the finish reason stop; it is the model's mood at that moment and no answer to keep.
    let is_whole = |choice: &Choice| is_done(choice.finish) && choice.refusal.is_none();
    if !answer.facts.finish.is_some_and(is_done)
        || !parts.is_none_or(|parts| parts.choices.iter().all(is_whole))
    {
        return Err(NotStored::NotStop);
    }
    if calls && !pure_tools {
        return Err(NotStored::ToolCalls);
    }
    let nothing_to_give = answer.raw.is_none() && parts.is_none_or(|parts| parts.choices.is_empty());
    if nothing_to_give || answer.facts.content_bytes == 0 && !calls {
        return Err(NotStored::Empty);
    }
    Ok(())
}

fn calls_tools(completion: &Completion) -> bool {
    completion.choices.iter().any(|choice| !choice.tool_calls.is_empty())
}
