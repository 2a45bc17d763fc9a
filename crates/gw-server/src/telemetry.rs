//! Traces and metrics as OpenTelemetry takes them: OTLP over HTTP, in its JSON form.
//!
//! Everything is computed from the records, after the answer has gone out: no request waits for a collector, and what no
//! record holds, such as a prompt or an answer, cannot be in a span. Names are those of the GenAI conventions where these
//! have one, and begin with `gw.` where they have none.

mod json;
mod metrics;
mod page;
mod spans;

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use gw_config::{ProvidersByConvention, TelemetrySettings};
use gw_types::{AccountingRecord, Clock, FetchRequest, HttpFetch, Secret, UtcTime};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::{
    sync::{
        Notify,
        mpsc::{Receiver, Sender, channel},
        oneshot,
    },
    task::JoinHandle,
};

use self::{json::Speaker, metrics::GenAi};
use crate::{Metrics, app::App};

/// Requests whose spans wait for the collector; what does not fit is left out and counted.
const WAITING_MAX: usize = 4_096;
/// Requests in one message at most; so many that wait are told at once.
const BATCH_MAX: usize = 512;
/// How long one message may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of the process waits for what there is still to tell.
const LAST_WORD: Duration = Duration::from_secs(5);
/// The largest answer of a collector that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Takes records on their way to the ledger, and tells a collector of them.
#[derive(Debug)]
pub struct Telemetry {
    settings: TelemetrySettings,
    providers: RwLock<ProvidersByConvention>,
    to_tell: Sender<Box<AccountingRecord>>,
    waiting: Mutex<Option<Receiver<Box<AccountingRecord>>>>,
    /// Called when a message is full.
    is_full: Notify,
    gen_ai: Mutex<GenAi>,
    metrics: Arc<Metrics>,
    /// Whose gauges are told; gone once the server has ended.
    app: OnceLock<Weak<App>>,
    /// Whether the last message was not taken.
    is_lost: AtomicBool,
}

/// The task that tells the collector.
#[derive(Debug)]
pub struct Telling {
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What the task needs to speak.
struct Voice {
    fetch: Arc<dyn HttpFetch>,
    clock: Arc<dyn Clock>,
    speaker: Speaker,
    started: UtcTime,
}

impl Telemetry {
    /// Takes records from now on; [`Self::start`] tells of them. What is left out is counted by `metrics`.
    pub fn new(settings: TelemetrySettings, metrics: Arc<Metrics>) -> Arc<Self> {
        let (to_tell, waiting) = channel(WAITING_MAX);
        Arc::new(Self {
            providers: RwLock::new(settings.providers.clone()),
            settings,
            to_tell,
            waiting: Mutex::new(Some(waiting)),
            is_full: Notify::new(),
            gen_ai: Mutex::default(),
            metrics,
            app: OnceLock::new(),
            is_lost: AtomicBool::new(false),
        })
    }

    /// Learns the providers of another configuration.
    pub(crate) fn learn(&self, providers: ProvidersByConvention) {
        *self.providers.write() = providers;
    }

    /// Tells of the gauges of a server, too.
    pub(crate) fn tell_of(&self, app: &Arc<App>) {
        // Whoever comes second changes nothing: there is one server.
        drop(self.app.set(Arc::downgrade(app)));
    }

    /// Takes a record. Never waits: where the collector is behind, the record is left out.
    pub(crate) fn observe(&self, record: &AccountingRecord) {
        if self.settings.metrics {
            self.gen_ai.lock().observe(record);
        }
        if !self.settings.traces || !spans::are_wanted(record) {
            return;
        }
        match self.to_tell.try_reserve() {
            Ok(place) => place.send(Box::new(record.clone())),
            Err(_) => self.metrics.untold(1),
        }
        if WAITING_MAX - self.to_tell.capacity() >= BATCH_MAX {
            self.is_full.notify_one();
        }
    }

    /// Begins to tell the collector. `instance` tells this process from others of the same service.
    pub fn start(
        self: &Arc<Self>,
        fetch: Arc<dyn HttpFetch>,
        clock: Arc<dyn Clock>,
        instance: u128,
    ) -> Telling {
        let (over, ends) = oneshot::channel();
        let speaker = Speaker { service: self.settings.service_name.clone(), instance };
        let voice = Voice { fetch, started: clock.utc(), clock, speaker };
        let telemetry = Arc::clone(self);
        Telling { over, task: tokio::spawn(async move { telemetry.run(voice, ends).await }) }
    }

    async fn run(&self, voice: Voice, mut ends: oneshot::Receiver<()>) {
        let Some(mut waiting) = self.waiting.lock().take() else { return };
        loop {
            let next = voice.clock.now().saturating_add(self.settings.interval);
            let mut is_next = voice.clock.sleep_until(next);
            loop {
                tokio::select! {
                    _ = &mut ends => return self.last_word(&voice, &mut waiting).await,
                    () = &mut is_next => break,
                    // A collector that takes nothing is asked again at the next turn, and not before.
                    () = self.is_full.notified() => if !self.is_lost.load(Ordering::Relaxed) {
                        self.tell_spans(&voice, &mut waiting).await;
                    }
                }
            }
            self.tell(&voice, &mut waiting).await;
        }
    }

    async fn last_word(&self, voice: &Voice, waiting: &mut Receiver<Box<AccountingRecord>>) {
        let until = voice.clock.now().saturating_add(LAST_WORD);
        tokio::select! {
            () = self.tell(voice, waiting) => {}
            () = voice.clock.sleep_until(until) => {
                tracing::warn!("the telemetry collector did not take the last messages in time");
            }
        }
    }

    async fn tell(&self, voice: &Voice, waiting: &mut Receiver<Box<AccountingRecord>>) {
        self.tell_spans(voice, waiting).await;
        if self.settings.metrics {
            let times = (json::nanos(voice.started, 0), json::nanos(voice.clock.utc(), 0));
            let app = self.app.get().and_then(Weak::upgrade);
            let mut told = page::read(&self.metrics.page(app.as_deref()), app.is_some(), &times);
            let gen_ai = self.gen_ai.lock().clone();
            told.extend(gen_ai.told(&self.providers.read(), &times));
            let message = metrics::message(&voice.speaker, &told);
            self.send(voice, "/v1/metrics", message).await;
        }
    }

    /// Tells of all that wait, as long as the collector takes it.
    async fn tell_spans(&self, voice: &Voice, waiting: &mut Receiver<Box<AccountingRecord>>) {
        loop {
            let mut batch = Vec::new();
            while batch.len() < BATCH_MAX
                && let Ok(record) = waiting.try_recv()
            {
                batch.push(record);
            }
            if batch.is_empty() {
                return;
            }
            let message = spans::message(&voice.speaker, &batch, &self.providers.read());
            if !self.send(voice, "/v1/traces", message).await {
                return self.metrics.untold(u64::try_from(batch.len()).unwrap_or(u64::MAX));
            }
        }
    }

    /// Sends a message; returns whether it was taken. One that is not is not sent again: it would stand in the way of the
    /// next.
    async fn send(&self, voice: &Voice, path: &'static str, message: Value) -> bool {
        let form = Secret::new("application/json").map(|form| ("content-type", form));
        let credential = self.settings.authorization.clone().map(|value| ("authorization", value));
        let request = FetchRequest {
            method: "POST",
            url: format!("{}{path}", self.settings.endpoint),
            headers: form.into_iter().chain(credential).collect(),
            body: Bytes::from(message.to_string()),
            timeout: TIMEOUT,
            body_bytes_max: ANSWER_BYTES_MAX,
        };
        let lost = match voice.fetch.fetch(request).await {
            Ok(answer) if (200..300).contains(&answer.status) => None,
            Ok(answer) => Some(answer.status.to_string()),
            Err(error) => Some(error.kind().as_str().to_owned()),
        };
        let was_lost = self.is_lost.swap(lost.is_some(), Ordering::Relaxed);
        match &lost {
            Some(answer) => {
                self.metrics.message_lost();
                if !was_lost {
                    tracing::warn!(
                        path,
                        answer,
                        "the telemetry collector takes nothing; said once until it does"
                    );
                }
            }
            None if was_lost => tracing::info!("the telemetry collector takes messages again"),
            None => {}
        }
        lost.is_none()
    }
}

impl Telling {
    /// Tells a last time, within 5 s, and ends.
    pub async fn finish(self) {
        drop(self.over);
        // A panic of the task was told by the runtime; there is nothing left to be done about it.
        drop(self.task.await);
    }
}
