//! The vocabulary of the gw model gateway: the nouns that its crates say to each other, and the seams between them.
//!
//! Names are validated once and carried as types; money, tokens and time are integers; what must not be printed
//! prints as redacted. The crate decides nothing and does no I/O: it has no runtime, no socket and no clock of its own.
//!
//! ```
//! use gw_types::{Money, Price, TokenCount, Usage};
//!
//! // Prices are micro-USD per million tokens, which is pico-USD per token: a cost is exact.
//! let price = Price::new(2_000_000, 8_000_000);
//! let usage = Usage { input: TokenCount::new(1_000), output: TokenCount::new(100), ..Usage::default() };
//! assert_eq!(price.cost(&usage).unwrap().money, Money::from_micros(2_800));
//! ```

#![forbid(unsafe_code)]

mod adapter;
mod answer;
mod capability;
mod classification;
mod clock;
mod codec;
mod deployment;
mod fetch;
mod finish;
mod frame;
mod idempotency;
mod ids;
mod json;
mod keys;
mod ledger;
mod metadata;
mod money;
mod price;
mod random;
mod record;
mod redacted;
mod request;
mod seal;
mod text;
mod text_classes;
mod trace;
mod usage;

pub use gw_errors::{
    AttemptEnd, Billing, Dialect, ErrorKind, FallOver, GatewayError, Health, Outcome, Retry, UpstreamDetail,
};

pub use self::{
    adapter::{Adapter, AttemptPlan, Loss, LossItem, LossKind, Prepared},
    answer::{Answer, AnswerFacts, AnswerStream, CompleteAnswer, StreamAnswer},
    capability::{Capability, CapabilitySet, UnknownCapability},
    classification::{Classification, UnknownClassification},
    clock::{Clock, ManualClock, MonoTime, Sleep, UtcTime},
    codec::{Choice, Completion, DialectCodec, Question, StreamCollector, ToolCall},
    deployment::{Deployment, DeploymentTiming},
    fetch::{FetchRequest, FetchResponse, HttpFetch},
    finish::FinishReason,
    frame::{FrameFacts, StreamItem},
    idempotency::{IdempotencyKey, KeyNote, KeyState},
    ids::{
        CredentialName, DeploymentName, InvalidName, IssuerName, KeyName, ModelName, ProviderName, Region,
        RequestId, Residency, RouteName, TaskClass, TenantId,
    },
    keys::{KeyIdentity, KeyStore, Network, NotANetwork},
    ledger::{Ledger, LedgerPlace, LedgerQueue, Receipt, RecordQuery, SpendDetail, SpendRow, StoredRecord},
    metadata::Metadata,
    money::Money,
    price::{Cost, MissingPrice, Price, PriceTier, Pricing, TierScope},
    random::{IdSource, Random, SeededRandom, SequentialIds},
    record::{
        AccountingRecord, AnswerSchema, AttemptRecord, CacheState, DecisionRecord, ExclusionRecord,
        FactsRecord, LatencySplit, LimiterVerdict, SideCost, TagRecord,
    },
    redacted::Secret,
    request::{
        BodySpan, CacheControl, NormalizedRequest, Operation, OutputField, PassedHeader, RequestContext,
        RequestFacts, RequestedOutput, Temperature,
    },
    seal::{NotAHash, SealHash, SealedRecord},
    text::BoundedText,
    text_classes::{TextClasses, TextCounter},
    trace::TraceContext,
    usage::{TokenCount, Usage},
};
