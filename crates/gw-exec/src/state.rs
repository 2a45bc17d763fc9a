//! What outlives a reload: limits, caches, budgets, the ledger and the seams.

use std::sync::{Arc, atomic::AtomicUsize};

use gw_cache::{Decisions, ExactCache, SemanticCache, SemanticConfig, flight::FlightConfig};
use gw_limits::{Estimator, Limits};
use gw_routing::StrategyState;
use gw_types::{Clock, DialectCodec, IdSource, Ledger, Operation, Random};

use crate::{
    budget::RetryBudgets, health::Breakers, judging::JudgeCodec, lanes::Lanes, sharing::SharedCalls,
    tasks::Tasks,
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
}

/// What outlives a reload; keyed by tenant, key or deployment name.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) exact: ExactCache,
    pub(crate) semantic: SemanticCache,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) retries: RetryBudgets,
    pub(crate) breakers: Breakers,
    pub(crate) lanes: Lanes,
    pub(crate) estimator: Estimator,
    pub(crate) strategies: StrategyState,
    /// Calls that equal requests share.
    pub(crate) shared: SharedCalls,
    pub(crate) tasks: Tasks,
    /// What was decided about similar requests.
    pub(crate) decisions: Decisions,
    pub(crate) judge: Option<Arc<dyn JudgeCodec>>,
    /// Judgements under way.
    pub(crate) judging: AtomicUsize,
    codecs: Vec<(Operation, Arc<dyn DialectCodec>)>,
}

impl State {
    pub(crate) fn new(config: StateConfig) -> Self {
        Self {
            limits: config.limits,
            exact: config.exact,
            semantic: config.semantic,
            ledger: config.ledger,
            clock: config.clock,
            random: config.random,
            ids: config.ids,
            retries: RetryBudgets::default(),
            breakers: Breakers::default(),
            lanes: Lanes::default(),
            estimator: Estimator::new(),
            strategies: StrategyState::default(),
            shared: SharedCalls::new(FlightConfig::default()),
            tasks: Tasks::default(),
            decisions: Decisions::new(SemanticConfig::default().partitions_max),
            judge: config.judge,
            judging: AtomicUsize::new(0),
            codecs: config.codecs,
        }
    }

    pub(crate) fn codec(&self, operation: Operation) -> Option<&Arc<dyn DialectCodec>> {
        self.codecs.iter().find(|(of, _)| *of == operation).map(|(_, codec)| codec)
    }
}
