//! Idempotency keys: a request that names one is answered once, and whoever names it again gets that answer.
//!
//! A key is known for 24 hours. The ledger learns of it before a provider is called, so that after a restart a key whose
//! call had no known end is refused as ambiguous and never called for again.

mod table;

use std::{future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use gw_types::{
    BoundedText, Completion, DeploymentName, ErrorKind, GatewayError, KeyNote, KeyState, Loss, MonoTime,
    NormalizedRequest, RequestId, SealHash, TenantId, TokenCount,
};

pub(crate) use self::table::KeyTable;
use self::table::{Found, Place};
use crate::{
    reply::KeptEvents,
    state::State,
    storing::{Storing, Unstored},
};

/// How long a key is known.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// An answer that may be given again. Holds content, so it is not printed.
#[derive(Clone)]
pub(crate) struct KeptAnswer {
    pub(crate) content: KeptContent,
    pub(crate) serving: Option<DeploymentName>,
    pub(crate) model_version: Option<BoundedText>,
    pub(crate) served_model: Option<BoundedText>,
    /// What translations lost of the request and of the answer.
    pub(crate) loss: Loss,
}

/// What of an answer is given again, in the caller's wire format.
#[derive(Clone, Debug)]
pub(crate) enum KeptContent {
    /// A whole answer.
    Whole(KeptBody),
    /// The events of a stream; `capped` where it was ended at its output bound.
    Events(KeptEvents),
    /// A remembered answer, which is written in the caller's format each time.
    Completion(Arc<Completion>),
}

/// The bytes of a whole answer.
#[derive(Clone)]
pub(crate) struct KeptBody(pub(crate) Bytes);

impl std::fmt::Debug for KeptBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptBody([{} bytes redacted])", self.0.len())
    }
}

impl KeptAnswer {
    /// Returns what it weighs against the bounds, in bytes.
    fn bytes(&self) -> usize {
        const BESIDE: usize = 256;
        BESIDE
            + match &self.content {
                KeptContent::Whole(KeptBody(raw)) => raw.len(),
                KeptContent::Events(KeptEvents { events, .. }) => events.len(),
                KeptContent::Completion(completion) => completion.bytes(),
            }
    }
}

impl std::fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptAnswer([{} bytes redacted])", self.bytes())
    }
}

/// A key that a request has claimed. Dropped without a word, it may be used again if nobody was called for it.
#[derive(Debug)]
pub(crate) struct Claim {
    state: Arc<State>,
    place: Place,
    note: KeyNote,
    dispatched: bool,
    /// Events of a stream so far; `None`: a whole answer, or more than is kept.
    events: Option<Vec<u8>>,
    settled: bool,
}

/// What a key says about a request.
pub(crate) enum Claimed {
    /// The key is new.
    New(Box<Claim>),
    /// The request was answered before.
    Answered { of: RequestId, answer: Arc<KeptAnswer> },
}

/// Looks a request's key up, and claims it if it is new.
///
/// # Errors
/// `IdempotencyConflict`: 409 in flight, 409 and ambiguous without a known result, 409 where the answer is not kept any
/// more, 422 for another body; `RateLimited` where the tenant has as many keys as are kept.
pub(crate) fn claim(
    state: &Arc<State>,
    tenant: &TenantId,
    id: &RequestId,
    request: &NormalizedRequest,
) -> Option<Result<Claimed, GatewayError>> {
    let key = request.context.idempotency_key.as_ref()?.digest(tenant);
    let fingerprint = SealHash::of_parts(&[request.operation.as_str().as_bytes(), &request.body]);
    let note = KeyNote {
        tenant: tenant.clone(),
        key,
        fingerprint,
        request: id.clone(),
        state: KeyState::Dispatched,
        since: state.clock.utc(),
    };
    Some(match state.keys.claim(&note, state.clock.now()) {
        Ok(place) => Ok(Claimed::New(Box::new(Claim {
            state: Arc::clone(state),
            place,
            note,
            dispatched: false,
            events: request.facts.stream.then(Vec::new),
            settled: false,
        }))),
        Err(Found::Answered { of, answer: Some(answer) }) => Ok(Claimed::Answered { of, answer }),
        Err(found) => Err(refusal(&found)),
    })
}

fn refusal(found: &Found) -> GatewayError {
    let conflict = |message| {
        let error = GatewayError::new(ErrorKind::IdempotencyConflict, message);
        error.with_param("idempotency-key")
    };
    match found {
        Found::OtherBody => {
            conflict("the idempotency key was used before, with another body").with_status(422)
        }
        Found::InFlight => {
            conflict("a request with this idempotency key is in flight").with_retry_after(IN_FLIGHT_RETRY)
        }
        Found::Ambiguous { of } => conflict(
            "a call was made for this idempotency key, and its result is not known; it is not made again",
        )
        .ambiguous()
        .with_attempt(&attempt_id(of, 1)),
        Found::Answered { .. } => conflict(
            "the request with this idempotency key was answered, and its answer is not kept any more",
        ),
        Found::Full { until } => {
            let message = "the tenant has used as many idempotency keys in 24 hours as are kept";
            GatewayError::new(ErrorKind::RateLimited, message).with_retry_after(*until)
        }
    }
}

/// When to ask again for what is in flight: a guess, as nobody knows.
const IN_FLIGHT_RETRY: Duration = Duration::from_secs(1);

/// Returns the id of a request's attempt, the first being 1: what an error body names where the result is not known.
pub(crate) fn attempt_id(request: &RequestId, attempt: u32) -> String {
    format!("{request}.{attempt}")
}

impl Claim {
    /// Lets the ledger know, before the first call, that one is about to be made.
    ///
    /// # Errors
    /// `Overloaded` if the ledger cannot store that, or not before the deadline.
    pub(crate) async fn dispatch(&mut self, deadline: MonoTime) -> Result<(), GatewayError> {
        if self.dispatched {
            return Ok(());
        }
        let receipt = self.state.ledger.note_key(self.note.clone());
        // What is not known to be stored may be stored all the same: it is taken back if nothing comes of the request.
        self.dispatched = true;
        let mut storing = Storing::new(receipt, Arc::clone(&self.state), deadline);
        poll_fn(|cx| storing.poll(cx)).await.map_err(|unstored| match unstored {
            Unstored::Unconfirmed(error) => error,
            Unstored::Late => GatewayError::new(
                ErrorKind::Overloaded,
                "the ledger did not store the key before the deadline",
            ),
        })
    }

    /// Keeps events of a stream that is being relayed, as long as they are not too long to be kept.
    pub(crate) fn relayed(&mut self, events: &[u8]) {
        let Some(kept) = &mut self.events else { return };
        if kept.len() + events.len() > table::ANSWER_BYTES_MAX {
            self.events = None;
        } else {
            kept.extend_from_slice(events);
        }
    }

    /// Returns the events of a stream that has ended well; `None`: there were more than are kept.
    pub(crate) fn take_events(&mut self, capped: Option<TokenCount>) -> Option<KeptContent> {
        self.events.take().map(|events| KeptContent::Events(KeptEvents { events: events.into(), capped }))
    }

    /// Ends it with an answer; `None`: one that is too long to be kept.
    pub(crate) fn answered(mut self, answer: Option<KeptAnswer>) {
        self.settled = true;
        self.place.answered(answer.map(Arc::new), &self.state.keys);
        self.tell(KeyState::Answered);
    }

    /// Ends it without an answer. `is_unknown`: a call may have taken effect.
    pub(crate) fn failed(mut self, is_unknown: bool) {
        self.settled = true;
        if is_unknown && self.dispatched {
            // The ledger says so already.
            return self.place.ambiguous(&self.state.keys);
        }
        self.release();
    }

    fn release(&mut self) {
        self.place.release(&self.state.keys);
        if self.dispatched {
            self.tell(KeyState::Released);
        }
    }

    /// Nobody waits for this: what the ledger knows until then refuses more than it must, and calls nobody twice.
    fn tell(&self, state: KeyState) {
        drop(self.state.ledger.note_key(KeyNote { state, ..self.note.clone() }));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.settled {
            self.release();
        }
    }
}

/// Brings back what the ledger knows, at the start.
pub(crate) fn restore(state: &State, notes: Vec<KeyNote>) {
    let (now, utc) = (state.clock.now(), state.clock.utc());
    for note in notes {
        let micros = u64::try_from(utc.micros().saturating_sub(note.since.micros())).unwrap_or_default();
        let used = Duration::from_micros(micros).min(KEPT);
        state.keys.restore(&note, now.saturating_add(KEPT.saturating_sub(used)));
    }
}
