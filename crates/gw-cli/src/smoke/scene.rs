//! One scene: a fault server, a gateway in front of it, and what both saw.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use gw_config::{
    BatchLimits, Composition, Config, Endpoint, FixedEnvironment, GenerationSpec, Sampling, Seams,
};
use gw_exec::{Batch, BatchConfig, Gateway, GenerationRequest, GenerationResult};
use gw_testkit::{FakeProvider, Fault, SeenCall};
use gw_types::{Clock, KeyIdentity, KeyName, MonoTime, SeededRandom, SequentialIds, TenantId, TokenCount};
use parking_lot::Mutex;

/// What chance begins with: two runs draw the same numbers.
const SEED: u64 = 9;

/// The model that the fault server is asked for.
pub(super) const MODEL: &str = "fake";

/// The time of one call where a scene does not say.
const ATTEMPT_MS: u64 = 5_000;

/// How a scene is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) max_attempts: u32,
    pub(super) attempt_timeout_ms: u64,
    pub(super) in_flight_tokens: Option<u64>,
    pub(super) per_second_milli: Option<NonZeroU32>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            attempt_timeout_ms: ATTEMPT_MS,
            in_flight_tokens: None,
            per_second_milli: None,
        }
    }
}

/// A call as it came in at the fault server.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) item: String,
    /// The number of the call among those for the item, from 1.
    pub(super) nth: u32,
    /// Since the scene began.
    pub(super) at: Duration,
    /// Calls that were being answered then, this one with them.
    pub(super) calls: usize,
    /// Their output bounds together.
    pub(super) tokens: u64,
}

/// The server's side.
#[derive(Debug, Default)]
struct Seen {
    arrivals: Vec<Arrival>,
    /// The output bound of each call, by its number.
    bounds: BTreeMap<u64, u64>,
}

/// A fault server and a gateway.
pub(super) struct Scene {
    pub(super) provider: FakeProvider,
    pub(super) gateway: Arc<Gateway>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) began: MonoTime,
    seen: Arc<Mutex<Seen>>,
}

impl Scene {
    /// Starts a scene; `fault` says what becomes of the call of an item with this number.
    pub(super) async fn start(
        setup: Setup,
        fault: impl Fn(&str, u32) -> Fault + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let system = Seams::system().map_err(|error| error.to_string())?;
        let clock = Arc::clone(&system.clock);
        let began = clock.now();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let handler = {
            let (seen, clock) = (Arc::clone(&seen), Arc::clone(&clock));
            move |call: &SeenCall| {
                let at = clock.now().saturating_since(began);
                let (item, nth) = note(&mut seen.lock(), call, at);
                fault(&item, nth)
            }
        };
        let provider = FakeProvider::start_with(handler).await;
        let provider = provider.map_err(|error| format!("the fault server does not start: {error}"))?;
        let endpoint = Endpoint {
            max_attempts: setup.max_attempts,
            attempt_timeout_ms: setup.attempt_timeout_ms,
            price: Some((2_000_000, 8_000_000)),
            ..Endpoint::new(provider.base_url(), MODEL)
        };
        let limits = BatchLimits {
            requests_per_second_milli: setup.per_second_milli,
            in_flight_tokens: setup.in_flight_tokens.map(TokenCount::new),
        };
        let config = Config::of_endpoint(&endpoint, &FixedEnvironment::new());
        let config = config.map_err(|faults| faults.to_string())?.for_batch(limits);
        let seams = Seams {
            random: Arc::new(SeededRandom::new(SEED)),
            ids: Arc::new(SequentialIds::default()),
            ..system
        };
        let built = Composition::build(&config, seams, |ledger| ledger).await;
        let gateway = built.map_err(|faults| faults.to_string())?.gateway;
        Ok(Self { provider, gateway, clock, began, seen })
    }

    /// Returns a batch of the items.
    pub(super) fn batch(
        &self,
        requests: Vec<GenerationRequest>,
        workers: usize,
        deadline: Option<Duration>,
    ) -> Result<Batch<stream::Iter<std::vec::IntoIter<GenerationRequest>>>, String> {
        let workers = NonZeroUsize::new(workers).ok_or("a batch needs a worker")?;
        let config = BatchConfig { deadline, ..BatchConfig::new(caller()?, workers) };
        Ok(self.gateway.generate_many(stream::iter(requests), config))
    }

    /// Asks for the items and returns their results by id.
    pub(super) async fn run(
        &self,
        requests: Vec<GenerationRequest>,
        workers: usize,
    ) -> Result<Vec<GenerationResult>, String> {
        let mut results: Vec<_> = self.batch(requests, workers, None)?.collect().await;
        results.sort_by(|a, b| a.request_id.cmp(&b.request_id));
        Ok(results)
    }

    /// Returns every call that came in, by item.
    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = self.seen.lock().arrivals.clone();
        arrivals.sort_by(|a, b| (&a.item, a.nth).cmp(&(&b.item, b.nth)));
        arrivals
    }

    /// Returns whether no slot and no token is held.
    pub(super) fn holds_nothing(&self) -> bool {
        let snapshot = self.gateway.snapshot();
        let idle = |deployment: &gw_exec::DeploymentSnapshot| {
            deployment.in_use == 0
                && deployment.tokens_in_flight.is_none_or(|tokens| tokens == TokenCount::ZERO)
        };
        snapshot.pool.shared_in_use == 0
            && snapshot.pool.waiting == 0
            && snapshot.deployments.iter().all(idle)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.clock.now().saturating_since(self.began)
    }
}

/// Writes down a call; returns its item and its number among the item's calls.
fn note(seen: &mut Seen, call: &SeenCall, at: Duration) -> (String, u32) {
    let body = call.json();
    let item = body["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    let bound = body["max_tokens"].as_u64().unwrap_or_default();
    seen.bounds.insert(call.number, bound);
    let of = |number: &u64| seen.bounds.get(number).copied().unwrap_or_default();
    let tokens = bound + call.beside.iter().map(of).sum::<u64>();
    let before = seen.arrivals.iter().filter(|arrival| arrival.item == item).count();
    let nth = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
    let calls = call.beside.len() + 1;
    seen.arrivals.push(Arrival { item: item.clone(), nth, at, calls, tokens });
    (item, nth)
}

fn caller() -> Result<KeyIdentity, String> {
    let tenant = TenantId::new("local").map_err(|error| error.to_string())?;
    let key = KeyName::new("gw-smoke").map_err(|error| error.to_string())?;
    Ok(KeyIdentity { tenant, key })
}

/// Returns items `item-000`, `item-001` and so on; the prompt of each is its id.
pub(super) fn items(count: usize, max_tokens: u64) -> Result<Vec<GenerationRequest>, String> {
    (0..count).map(|number| item(&format!("item-{number:03}"), max_tokens)).collect()
}

/// Returns one item.
pub(super) fn item(id: &str, max_tokens: u64) -> Result<GenerationRequest, String> {
    let sampling = Sampling { max_tokens: Some(max_tokens), ..Sampling::default() };
    let spec = GenerationSpec { sampling, ..GenerationSpec::of_prompt(id, id) };
    spec.into_request(Some(MODEL)).map_err(|error| error.to_string())
}
