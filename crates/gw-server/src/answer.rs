//! What goes back to a client: a response whose body is one piece or a stream of events.

use std::{
    convert::Infallible,
    fmt::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use gw_types::{Dialect, GatewayError};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE},
};
use http_body::{Body, Frame, SizeHint};

use crate::{
    events::Events,
    line::InFlight,
    refusal::Refusal,
    retry,
    stream_task::{self, WaitsFor},
    wire,
};

/// A response of gw.
pub(crate) type Answer = Response<AnswerBody>;

static JSON: HeaderValue = HeaderValue::from_static("application/json");
static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
static CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Header fields that a response has room for without growing: those of gw, and the few that the HTTP library adds.
const FIELDS: usize = 24;

/// The body of a response. Owns the place of its request among those in flight.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    kind: Kind,
    in_flight: Option<InFlight>,
}

#[derive(Debug)]
enum Kind {
    Whole(Bytes),
    Events(Events),
}

impl AnswerBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes), in_flight: None }
    }

    pub(crate) fn events(events: Events) -> Self {
        Self { kind: Kind::Events(events), in_flight: None }
    }

    /// Keeps the request in flight until the body is written or dropped.
    pub(crate) fn keep(&mut self, in_flight: InFlight) {
        self.in_flight = Some(in_flight);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.kind {
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(bytes))
            }
            Kind::Events(events) => events.poll_next(cx),
        };
        stream_task::note(if next.is_ready() { WaitsFor::Client } else { WaitsFor::Provider });
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Events(events) => events.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// Returns a JSON answer.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = empty(status);
    answer.headers_mut().insert(CONTENT_TYPE, JSON.clone());
    *answer.body_mut() = AnswerBody::whole(body);
    answer
}

/// Returns an answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(AnswerBody::whole(Bytes::new()));
    *answer.status_mut() = status;
    answer.headers_mut().reserve(FIELDS);
    answer.headers_mut().insert(CACHE_CONTROL, NO_STORE.clone());
    answer
}

/// Returns the answer to an error in the dialect, with what a client needs to know about trying again. `attempts` is the
/// number of provider calls that were made; `request_id` stands in the bodies of dialects that have it there.
pub(crate) fn error(
    dialect: Dialect,
    error: &GatewayError,
    attempts: u32,
    request_id: Option<&str>,
) -> Answer {
    let status =
        StatusCode::from_u16(error.http_status(dialect)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = json(status, wire::error_body(dialect, error, request_id));
    retry::write(dialect, error, attempts, answer.headers_mut());
    answer
}

/// Returns the answer to a request that is turned away.
pub(crate) fn refusal(dialect: Dialect, refusal: &Refusal) -> Answer {
    error(dialect, &refusal.error, 0, None)
}

/// Ends the connection behind the answer. Not for HTTP/2, where one request does not speak for the others.
pub(crate) fn close(answer: &mut Answer) {
    answer.headers_mut().insert(CONNECTION, CLOSE.clone());
}

/// Returns a whole HTTP/1.1 response as bytes, for a connection whose request never became one.
pub(crate) fn raw_refusal(status: &str, error: &GatewayError) -> Bytes {
    // The path was never read, so the more common dialect has to do.
    let body = wire::error_body(Dialect::OpenAi, error, None);
    let mut head = String::with_capacity(160 + body.len());
    // Writing into a string cannot fail.
    let _ = write!(
        head,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    bytes.into()
}
