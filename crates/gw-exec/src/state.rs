//! What outlives a reload: limits, caches, budgets, the ledger and the seams.

use std::sync::{Arc, atomic::AtomicBool};

use gw_cache::{Decisions, ExactCache, SemanticCache, SemanticConfig, flight::FlightConfig};
use gw_limits::{Estimator, Limits};
use gw_routing::StrategyState;
use gw_types::{Clock, DialectCodec, IdSource, Ledger, Operation, Random};

use crate::{
    budget::RetryBudgets,
    embedding::EmbeddingCodec,
    health::Breakers,
    hedge::Hedges,
    idempotency::KeyTable,
    judging::JudgeCodec,
    lanes::Lanes,
    schema::Schemas,
    shared_limits::{SharedConfig, SharedStore},
    sharing::SharedCalls,
    tasks::{Tasks, UnderWay},
};

/// What a gateway's state is made of.
#[derive(Debug)]
pub struct StateConfig {
    /// Buckets, quotas and slots.
    pub limits: Limits,
    /// Answers by equal request.
    pub exact: ExactCache,
    /// Answers by similar request.
    pub semantic: SemanticCache,
    /// What replicas limit together; `None`: this process is alone.
    pub shared_limits: Option<SharedConfig>,
    /// Where the records go.
    pub ledger: Arc<dyn Ledger>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of chance.
    pub random: Arc<dyn Random>,
    /// The source of identifiers.
    pub ids: Arc<dyn IdSource>,
    /// Who reads neutral parts of which operation's answers.
    pub codecs: Vec<(Operation, Arc<dyn DialectCodec>)>,
    /// Who writes and reads the questions to a judge; `None`: nobody judges.
    pub judge: Option<Arc<dyn JudgeCodec>>,
    /// Who writes and reads the questions to a deployment that embeds; `None`: none is asked.
    pub embedding: Option<Arc<dyn EmbeddingCodec>>,
    /// Whether providers are told gw's own place in the caller's trace, or in one of its own: for gateways whose spans
    /// are told of. Otherwise the caller's place is passed on as it is.
    pub spans: bool,
}

/// What outlives a reload; keyed by tenant, key or deployment name.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) exact: ExactCache,
    pub(crate) semantic: SemanticCache,
    pub(crate) shared_limits: Option<Arc<SharedStore>>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) retries: RetryBudgets,
    pub(crate) breakers: Breakers,
    pub(crate) lanes: Lanes,
    pub(crate) hedges: Hedges,
    pub(crate) estimator: Estimator,
    pub(crate) strategies: StrategyState,
    pub(crate) schemas: Schemas,
    /// Calls that equal requests share.
    pub(crate) shared: SharedCalls,
    pub(crate) tasks: Tasks,
    pub(crate) keys: KeyTable,
    /// Whether spans of requests are told of, so that providers are told gw's own place in a trace.
    pub(crate) spans: bool,
    /// Set when the gateway ends what is still in flight.
    pub(crate) ends: AtomicBool,
    /// What was decided about similar requests.
    pub(crate) decisions: Decisions,
    pub(crate) judge: Option<Arc<dyn JudgeCodec>>,
    pub(crate) embedding: Option<Arc<dyn EmbeddingCodec>>,
    /// Judgements under way.
    pub(crate) judging: UnderWay,
    /// Vectors under way that no request waits for.
    pub(crate) embedding_late: UnderWay,
    codecs: Vec<(Operation, Arc<dyn DialectCodec>)>,
}

impl State {
    pub(crate) fn new(config: StateConfig) -> Self {
        Self {
            limits: config.limits,
            exact: config.exact,
            semantic: config.semantic,
            shared_limits: config.shared_limits.map(|shared| Arc::new(SharedStore::new(shared))),
            ledger: config.ledger,
            clock: config.clock,
            random: config.random,
            ids: config.ids,
            retries: RetryBudgets::default(),
            breakers: Breakers::default(),
            lanes: Lanes::default(),
            hedges: Hedges::default(),
            estimator: Estimator::new(),
            strategies: StrategyState::default(),
            schemas: Schemas::default(),
            shared: SharedCalls::new(FlightConfig::default()),
            tasks: Tasks::default(),
            keys: KeyTable::default(),
            spans: config.spans,
            ends: AtomicBool::new(false),
            decisions: Decisions::new(SemanticConfig::default().partitions_max),
            judge: config.judge,
            embedding: config.embedding,
            judging: UnderWay::default(),
            embedding_late: UnderWay::default(),
            codecs: config.codecs,
        }
    }

    pub(crate) fn codec(&self, operation: Operation) -> Option<&Arc<dyn DialectCodec>> {
        self.codecs.iter().find(|(of, _)| *of == operation).map(|(_, codec)| codec)
    }
}
