//! A run as data: everything that happens in it, so that it can be replayed, shrunk and kept.

use serde::{Deserialize, Serialize};

/// One run. Times are milliseconds of virtual time from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// Where the order of ready tasks, jitter and shares come from.
    pub(crate) seed: u64,
    /// The configurations; the run begins with the first.
    pub(crate) worlds: Vec<World>,
    /// Whether equal requests in flight share a call, or ask each for an answer of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) shares: bool,
    /// Whether there is a runtime for work that goes on without who began it; else each client drives its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) tasks: bool,
    /// What happens, in the order of time.
    pub(crate) events: Vec<Event>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct World {
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) deployments: Vec<Deployment>,
    /// The order of the only route's chain, by index.
    pub(crate) chain: Vec<usize>,
    /// Provider calls for one request.
    pub(crate) attempts: u32,
    pub(crate) cache: bool,
    pub(crate) pool: u32,
    pub(crate) default_deadline_ms: u32,
    /// Whether streams that are slow to begin are asked for a second time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) hedge: bool,
}

/// The limits of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tenant {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slots: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) reserved_slots: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) queue: u32,
    /// In micro-USD; the window is a month, which no run leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<u64>,
}

/// One deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deployment {
    pub(crate) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slots: Option<u32>,
    pub(crate) expected_ms: u32,
    pub(crate) min_ms: u32,
    pub(crate) timeout_ms: u32,
    pub(crate) idle_ms: u32,
    /// Calls a second, one after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pace: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_in_flight: Option<u64>,
    /// Its credentials, if there are several.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) credentials: usize,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    pub(crate) at: u32,
    pub(crate) act: Act,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// A client asks.
    Ask(Ask),
    /// Another configuration comes into force, by its index.
    Reload(usize),
    /// The wall clock steps, back if negative.
    Step(i64),
    /// The ledger confirms nothing for so long.
    Stall(u32),
    /// The ledger's queue has so many places from now on.
    Places(u32),
    /// The gateway stops and starts again; what is in flight is cancelled and recorded.
    Restart,
    /// The same, without a chance to write down what was in flight.
    Crash,
}

impl Act {
    /// Returns what is noted of it; `None`: a client is noted by what becomes of it.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Ask(_) => None,
            Self::Reload(_) => Some("reload"),
            Self::Step(_) => Some("clock step"),
            Self::Stall(_) => Some("ledger stall"),
            Self::Places(_) => Some("ledger full"),
            Self::Restart => Some("restart"),
            Self::Crash => Some("crash"),
        }
    }
}

/// A client and its request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ask {
    pub(crate) tenant: usize,
    /// Which of a few texts; equal ones are answered from the cache.
    pub(crate) text: u8,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) stream: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) side_effecting: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) cache: Control,
    /// Which of a few idempotency keys it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<u8>,
    /// The client goes away after its request was polled so often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leaves_after_polls: Option<u32>,
    /// The client goes away after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leaves_after: Option<u32>,
    /// The pause before the client reads the next piece of a stream.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) reads_every: u32,
    /// What the provider does with the first, second, ... call for this request; the last one repeats.
    pub(crate) plays: Vec<Play>,
}

/// What a client says about the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Control {
    #[default]
    Default,
    NoStore,
    NoCache,
    OnlyIfCached,
}

/// What a provider does with one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Play {
    pub(crate) does: Does,
    /// The wait before anything is said.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) after: u32,
    /// The words of the answer, or before its end.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) words: u32,
    /// The wait before each piece of a stream.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) pause: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) usage: Told,
    /// Every frame of a stream comes twice.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) twice: bool,
    /// Frames come in pieces of so many bytes; 0: whole.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) pieces: usize,
}

/// How a call goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Does {
    /// A whole answer.
    #[default]
    Answers,
    /// A whole answer that ended at the output bound.
    RunsOut,
    /// A whole answer that a filter has ended.
    IsFiltered,
    /// Nobody listens.
    Refuses,
    /// The connection breaks before the request is written.
    ResetsBefore,
    /// The connection breaks after the request is written; of a stream, behind its words.
    ResetsAfter,
    /// 400.
    BadRequest,
    /// 400, a content filter.
    Filters,
    /// 400, the context is too long.
    TooLong,
    /// 401.
    BadKey,
    /// 404.
    Missing,
    /// 429, with `retry-after` in seconds.
    Limits(u32),
    /// 429 that says never.
    NoQuota,
    /// 500.
    Fails,
    /// 503, with `retry-after` in seconds.
    Overloaded(u32),
    /// Nothing is ever said.
    Hangs,
    /// Only comments are sent, for ever; a plain call hangs.
    KeepsAlive,
    /// A page of HTML with status 200.
    Page,
    /// The answer is cut.
    Cuts,
    /// A frame, or the body, is no JSON.
    Garbles,
    /// An error behind the words, with status 200.
    Errs,
    /// The stream says nothing more behind its words; a plain call hangs.
    Stalls,
}

/// What the provider says was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    #[default]
    Truth,
    Nothing,
    Zero,
    Huge,
    /// Ten times the output.
    TenTimes,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
