//! A client: asks, reads, and may go away at any moment.

use std::{
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use gw_dialects::openai::{self, AnswerStamp, read_chat};
use gw_exec::{Body, Failure, Gateway, Relay, RelayItem, Reply, StreamBody};
use gw_types::{
    BoundedText, CacheControl, Clock, Completion, ErrorKind, IdempotencyKey, KeyIdentity, NormalizedRequest,
    Operation, RequestContext,
};

use super::{
    house::{MODEL, tenant_name},
    provider::name_of,
    script::{Ask, Control},
    stage::{Stage, Told},
    wire::CANARY,
};

/// What a client has seen.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Refused at the door.
    Turned(ErrorKind),
    /// An error, as it would be logged.
    Failed { kind: ErrorKind, status: Option<u16>, ambiguous: bool, printed: String, attempts: u32 },
    /// A whole answer.
    Whole { text: String, hit: bool },
    /// A stream that has begun.
    Streamed { text: String, hit: bool, end: End },
    /// It went away.
    Left,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Capped,
    Failed(ErrorKind),
    /// With nothing.
    Silent,
}

impl Seen {
    /// Returns what it says of the end.
    pub(crate) fn told(&self) -> Told {
        match self {
            Self::Turned(_) | Self::Left | Self::Streamed { end: End::Silent, .. } => Told::Nothing,
            Self::Failed { kind, .. } | Self::Streamed { end: End::Failed(kind), .. } => Told::Failed(*kind),
            Self::Whole { .. } | Self::Streamed { end: End::Done, .. } => Told::Done,
            Self::Streamed { end: End::Capped, .. } => Told::Capped,
        }
    }
}

/// Asks, and goes away when its script says so: then the request is dropped between two polls.
pub(crate) async fn run(gateway: Rc<Gateway>, stage: Arc<Stage>, number: usize) -> Seen {
    let ask = stage.with(|log| log.asks[number].ask.clone());
    let leaves = ask.leaves_after.map(|after| {
        stage.clock.sleep_until(stage.clock.now().saturating_add(Duration::from_millis(after.into())))
    });
    let mut polls = 0;
    let seen = {
        let mut leaves = leaves;
        let mut asking = pin!(asks(&gateway, &stage, number, &ask));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(seen) = asking.as_mut().poll(cx) {
                return Poll::Ready(Some(seen));
            }
            polls += 1;
            let is_late = leaves.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
            if is_late || ask.leaves_after_polls.is_some_and(|most| polls >= most) {
                stage.with(|log| log.asks[number].gone = true);
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await
    };
    seen.unwrap_or(Seen::Left)
}

async fn asks(gateway: &Gateway, stage: &Arc<Stage>, number: usize, ask: &Ask) -> Seen {
    let identity = KeyIdentity { tenant: tenant_name(ask.tenant), key: "k".parse().unwrap() };
    let now = stage.clock.now();
    let admitted = match gateway.admit(&identity) {
        Ok(admitted) => admitted,
        Err(error) => return Seen::Turned(error.kind()),
    };
    stage.with(|log| {
        let world = &stage.script.worlds[log.asks[number].world];
        let millis = ask.deadline.unwrap_or(world.default_deadline_ms);
        let deadline = now.saturating_add(Duration::from_millis(millis.into()));
        log.enters(number, deadline, stage.clock.utc());
    });
    let request = request(ask, number);
    if ask.stream {
        match gateway.stream(admitted, request).await {
            Ok(reply) => streamed(reply, stage, ask).await,
            Err(failure) => failed(&failure),
        }
    } else {
        match gateway.complete(admitted, request).await {
            Ok(Reply { head, body }) => {
                let body = match &body {
                    Body::Raw(raw) => raw.clone(),
                    Body::Completion(completion) => openai::completion_body(completion, &stamp(completion)),
                };
                Seen::Whole { text: text_of(&body), hit: head.cache.is_hit() }
            }
            Err(failure) => failed(&failure),
        }
    }
}

fn failed(failure: &Failure) -> Seen {
    let printed = format!("{failure:?} {}", failure.error);
    let error = &failure.error;
    let (kind, status, ambiguous) = (error.kind(), error.status(), error.is_ambiguous());
    Seen::Failed { kind, status, ambiguous, printed, attempts: failure.head.attempts }
}

fn stamp(_completion: &Completion) -> AnswerStamp<'static> {
    AnswerStamp { id: "c", created: 1, model: "m-1" }
}

fn request(ask: &Ask, number: usize) -> NormalizedRequest {
    let bound = ask.max_tokens.map_or_else(String::new, |bound| format!(",\"max_tokens\":{bound}"));
    let stream = if ask.stream { ",\"stream\":true" } else { "" };
    let body = Bytes::from(format!(
        "{{\"model\":\"{MODEL}\",\"messages\":[{{\"role\":\"user\",\"content\":\"{CANARY} question {}\"}}]{stream}{bound}}}",
        ask.text
    ));
    let facts = read_chat(&body).unwrap();
    let context = RequestContext {
        deadline: ask.deadline.map(|millis| Duration::from_millis(millis.into())),
        side_effecting: ask.side_effecting,
        cache: match ask.cache {
            Control::Default => CacheControl::Default,
            Control::NoStore => CacheControl::NoStore,
            Control::NoCache => CacheControl::NoCache,
            Control::OnlyIfCached => CacheControl::OnlyIfCached,
        },
        idempotency_key: ask.key.and_then(|key| IdempotencyKey::new(&format!("k{key}"))),
        traceparent: Some(name(number)),
        ..RequestContext::default()
    };
    NormalizedRequest { operation: Operation::Chat, body, facts, context }
}

fn name(number: usize) -> BoundedText {
    name_of(number)
}

async fn streamed(reply: Reply<StreamBody>, stage: &Stage, ask: &Ask) -> Seen {
    let hit = reply.head.cache.is_hit();
    let mut relay = match reply.body {
        StreamBody::Relay(relay) => relay,
        StreamBody::Completion(completion) => {
            let text = text_of(&openai::completion_body(&completion, &stamp(&completion)));
            return Seen::Streamed { text, hit, end: End::Done };
        }
        StreamBody::Kept(kept) => {
            let end = if kept.capped.is_some() { End::Capped } else { End::Done };
            return Seen::Streamed { text: texts_of(&kept.events), hit, end };
        }
    };
    let mut text = String::new();
    let mut end = End::Silent;
    while let Some(item) = next(&mut relay).await {
        match item {
            RelayItem::Bytes(bytes) => text.push_str(&texts_of(&bytes)),
            RelayItem::Done => end = End::Done,
            RelayItem::Capped { .. } => end = End::Capped,
            RelayItem::Failed(error) => end = End::Failed(error.kind()),
        }
        if ask.reads_every > 0 {
            let pause = Duration::from_millis(ask.reads_every.into());
            stage.clock.sleep_until(stage.clock.now().saturating_add(pause)).await;
        }
    }
    Seen::Streamed { text, hit, end }
}

async fn next(relay: &mut Box<Relay>) -> Option<RelayItem> {
    std::future::poll_fn(|cx| Pin::new(&mut *relay).poll_next(cx)).await
}

/// Returns the first text of a JSON body, by the only field that holds one.
fn text_of(body: &[u8]) -> String {
    texts_of(body)
}

/// Returns every `content` of a piece of wire, joined. The texts of this simulator need no escapes.
fn texts_of(wire: &[u8]) -> String {
    const FIELD: &str = "\"content\":\"";
    let wire = String::from_utf8_lossy(wire);
    let texts = wire.split(FIELD).skip(1);
    texts.filter_map(|rest| rest.split('"').next()).collect()
}
