//! A gateway in this process, with the seams of time, chance and ids filled by the test.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use gw_config::{Composition, Config, FixedEnvironment, Seams};
use gw_dialects::openai::{self, AnswerStamp};
use gw_exec::{Admitted, Body, Failure, Relay, RelayItem, Reply, ReplyHead, StreamBody, TenantSnapshot};
use gw_types::{
    AccountingRecord, Clock, Completion, KeyIdentity, Money, MonoTime, RecordQuery, SeededRandom,
    SequentialIds, Sleep, TenantId, UtcTime,
};

use super::{Ask, Toml};

/// Midnight of 1 January 2030, UTC: where the clocks of the houses begin, in microseconds.
const MIDNIGHT: i64 = 1_893_456_000_000_000;

/// Tokio's paused clock behind the seam: time jumps to the next timer when nothing else can run.
#[derive(Debug)]
struct PausedClock(tokio::time::Instant);

impl PausedClock {
    /// Returns a clock at zero. Needs a runtime whose clock is paused.
    fn start() -> Arc<dyn Clock> {
        Arc::new(Self(tokio::time::Instant::now()))
    }
}

impl Clock for PausedClock {
    fn now(&self) -> MonoTime {
        MonoTime::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }

    fn utc(&self) -> UtcTime {
        UtcTime::from_micros(MIDNIGHT).saturating_add(self.0.elapsed())
    }

    fn sleep_until(&self, at: MonoTime) -> Sleep {
        Box::pin(tokio::time::sleep_until(self.0 + Duration::from_nanos(at.nanos())))
    }
}

/// A gateway built from the text of a configuration.
pub(crate) struct House {
    pub(crate) composition: Composition,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) head: ReplyHead,
    pub(crate) body: Bytes,
}

/// A streamed answer, as the server would write it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) head: ReplyHead,
    pub(crate) body: String,
}

impl House {
    /// Builds a house in virtual time: a runtime with a paused clock must be there.
    pub(crate) async fn new(toml: &Toml) -> Self {
        Self::with_clock(toml, PausedClock::start()).await
    }

    /// Builds a house with another clock.
    pub(crate) async fn with_clock(toml: &Toml, clock: Arc<dyn Clock>) -> Self {
        let environment = toml
            .environment()
            .iter()
            .fold(FixedEnvironment::new(), |environment, (name, value)| environment.with_var(name, value));
        let config = match Config::parse(&toml.text(), "gw.toml", &environment) {
            Ok(config) => config,
            Err(faults) => panic!("{faults}\n{}", toml.text()),
        };
        let seams =
            Seams { clock, random: Arc::new(SeededRandom::new(1)), ids: Arc::new(SequentialIds::default()) };
        match Composition::build(&config, seams, |ledger| ledger).await {
            Ok(composition) => Self { composition },
            Err(faults) => panic!("{faults}\n{}", toml.text()),
        }
    }

    /// Lets a tenant in.
    pub(crate) fn admit(&self, tenant: &str) -> Admitted {
        let identity = KeyIdentity { tenant: tenant.parse().unwrap(), key: "dev".parse().unwrap() };
        self.composition.gateway.admit(&identity).unwrap()
    }

    /// Asks for a whole answer.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Given, Failure> {
        let Reply { head, body } =
            self.composition.gateway.complete(self.admit(ask.tenant), ask.request()).await?;
        let body = match body {
            Body::Raw(raw) => raw,
            Body::Completion(completion) => {
                let id = head.id.to_string();
                openai::completion_body(&completion, &stamp(&id, &head, &completion, ask))
            }
        };
        Ok(Given { head, body })
    }

    /// Asks for a stream and reads it to its end.
    pub(crate) async fn tell(&self, ask: &Ask) -> Result<Told, Failure> {
        let ask = ask.clone().streaming();
        let Reply { head, body } = self.open(&ask).await?;
        let body = match body {
            StreamBody::Relay(relay) => read(relay).await,
            StreamBody::Kept(kept) => [&kept.events[..], &openai::done_event()[..]].concat(),
            StreamBody::Completion(completion) => {
                let id = head.id.to_string();
                let stamp = stamp(&id, &head, &completion, &ask);
                let events = openai::completion_events(&completion, &stamp, false);
                events.iter().chain([&openai::done_event()]).flat_map(|event| event.iter().copied()).collect()
            }
        };
        Ok(Told { head, body: String::from_utf8(body).unwrap() })
    }

    /// Asks for a stream and leaves the reading to the caller.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<Reply<StreamBody>, Failure> {
        self.composition.gateway.stream(self.admit(ask.tenant), ask.clone().streaming().request()).await
    }

    /// Returns the records so far, oldest first.
    pub(crate) async fn records(&self) -> Vec<AccountingRecord> {
        self.composition.ledger.flush().await;
        let query = RecordQuery { tenant: None, node: None, before: None, limit: 1_000 };
        let stored = self.composition.ledger.records(query).await.unwrap();
        stored.into_iter().rev().map(|stored| stored.record).collect()
    }

    /// Returns the newest record.
    pub(crate) async fn last_record(&self) -> AccountingRecord {
        self.records().await.pop().unwrap()
    }

    /// Returns a tenant's limits and how far they are used.
    pub(crate) fn snapshot(&self, tenant: &str) -> TenantSnapshot {
        self.composition.gateway.tenant_snapshot(&TenantId::new(tenant).unwrap()).unwrap()
    }

    /// Checks that the tenant holds nothing any more.
    pub(crate) fn holds_nothing(&self, tenant: &str) {
        let snapshot = self.snapshot(tenant);
        assert_eq!(snapshot.concurrency.in_use, 0, "slots of {tenant}");
        assert!(snapshot.budget.is_none_or(|budget| budget.reserved.is_zero()), "reservations of {tenant}");
    }
}

fn stamp<'a>(id: &'a str, head: &ReplyHead, completion: &'a Completion, ask: &'a Ask) -> AnswerStamp<'a> {
    let model = completion.served_model.as_ref().map_or(ask.model(), |model| model.as_str());
    AnswerStamp { id, created: head.started.seconds(), model }
}

/// Reads a relayed stream, writing its end as the server does.
async fn read(mut relay: Box<Relay>) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(item) = std::future::poll_fn(|cx| Pin::new(&mut relay).poll_next(cx)).await {
        match item {
            RelayItem::Bytes(bytes) => body.extend_from_slice(&bytes),
            RelayItem::Done => body.extend_from_slice(&openai::done_event()),
            RelayItem::Capped { .. } => body.extend_from_slice(b"capped"),
            RelayItem::Failed(error) => body.extend_from_slice(&openai::error_event(&error)),
        }
    }
    body
}

/// Returns what each group of records cost, sorted by the group's name: the report that evidence is for.
pub(crate) fn cost_by(
    records: &[AccountingRecord],
    group: impl Fn(&AccountingRecord) -> String,
) -> Vec<(String, Money)> {
    let mut sums: BTreeMap<String, Money> = BTreeMap::new();
    for record in records {
        let sum = sums.entry(group(record)).or_default();
        *sum = sum.saturating_add(record.cost);
    }
    sums.into_iter().collect()
}
