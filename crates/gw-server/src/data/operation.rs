//! The operations: a body in, an answer or a stream out, in the wire format of the path.

use std::sync::Arc;

use gw_dialects::metadata;
use gw_exec::{Admitted, Body, Failure, Reply, ReplyHead, StreamBody};
use gw_types::{
    Dialect, ErrorKind, GatewayError, KeyIdentity, MonoTime, NormalizedRequest, Operation, RequestId,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE},
};
use hyper::body::Incoming;

use super::refuse;
use crate::{
    answer::{self, Answer, AnswerBody},
    app::App,
    body, context,
    events::Events,
    evidence::{self, Form},
    line::Line,
    refusal::{Reason, Refusal},
    stamp::Stamp,
    wire::{self, StreamEnding},
};

static EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
static NO_TRANSFORM: HeaderValue = HeaderValue::from_static("no-store, no-transform");
static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
static NO: HeaderValue = HeaderValue::from_static("no");

static REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Answers a request of the operation, plain or as a stream.
pub(super) async fn answer(
    line: &Line,
    identity: &KeyIdentity,
    operation: Operation,
    request: Box<Request<Incoming>>,
) -> Answer {
    let app = &line.app;
    let dialect = operation.dialect();
    let admitted = match app.gateway.admit(identity) {
        Ok(admitted) => admitted,
        Err(error) => {
            let answer = refuse(app, &Refusal::new(Reason::NotAdmitted, error), dialect);
            body::pass_over(request.into_body(), line).await;
            return answer;
        }
    };
    // From here on the request has a record, so every way out goes through `admitted`.
    let arrived = app.clock.now();
    let closes = request.version() != Version::HTTP_2;
    let (parts, body) = request.into_parts();
    let reads_metadata = admitted.reads_metadata();
    let asked = Asked { operation, id: admitted.id().clone(), arrived, closes, reads_metadata };
    match read(line, &parts.headers, body, asked).await {
        Ok(request) if request.facts.stream => stream(app, admitted, request).await,
        Ok(request) => complete(app, admitted, request).await,
        Err(Unread::Refused(refusal)) => {
            app.metrics.refused(refusal.reason);
            failure(dialect, &admitted.refuse(refusal.error).await)
        }
        Err(Unread::Invalid(error)) => failure(dialect, &admitted.refuse(error).await),
    }
}

/// Why there is no request.
enum Unread {
    /// Turned away for its form.
    Refused(Refusal),
    /// Read, and no request.
    Invalid(GatewayError),
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What is known of a request before its headers and body are read.
struct Asked {
    operation: Operation,
    id: RequestId,
    arrived: MonoTime,
    closes: bool,
    /// Whether the policy goes by metadata; else it is not looked for.
    reads_metadata: bool,
}

/// Reads a request: what the headers say first, since that needs no byte of the body.
async fn read(
    line: &Line,
    headers: &HeaderMap,
    body: Incoming,
    asked: Asked,
) -> Result<Arc<NormalizedRequest>, Unread> {
    check_form(headers)?;
    let mut context = context::read(headers).map_err(|error| Refusal::new(Reason::Header, error))?;
    context.id = Some(asked.id);
    let body = if asked.closes {
        body::read(body, line, asked.arrived).await?
    } else {
        body::read_timed(body, line, asked.arrived).await?
    };
    if asked.reads_metadata {
        context.metadata = metadata::read(&body);
    }
    wire::read(asked.operation, body, context).map(Arc::new).map_err(Unread::Invalid)
}

/// Refuses bodies that are not plain JSON by their own statement. No statement is taken for JSON.
fn check_form(headers: &HeaderMap) -> Result<(), Refusal> {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return Err(Refusal::encoding());
    }
    if !headers.get_all(CONTENT_TYPE).iter().all(is_json) {
        return Err(Refusal::media_type());
    }
    Ok(())
}

fn is_json(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.len() > "+json".len()
            && essence.is_char_boundary(essence.len() - "+json".len())
            && essence[essence.len() - "+json".len()..].eq_ignore_ascii_case("+json")
}

async fn complete(app: &App, admitted: Admitted, request: Arc<NormalizedRequest>) -> Answer {
    let (operation, model) = (request.operation, Arc::clone(&request.facts.model));
    match app.gateway.complete(admitted, request).await {
        Ok(Reply { head, body }) => {
            let body = match body {
                Body::Raw(raw) => Some(raw),
                Body::Completion(completion) => {
                    let stamp = Stamp::new(operation, &head, &model).served(&completion);
                    wire::completion_body(operation, &completion, &stamp)
                }
            };
            let Some(body) = body else { return without_form(operation, &head) };
            let mut answer = answer::json(StatusCode::OK, body);
            evidence(operation.dialect(), &head, Form::Whole, &mut answer);
            answer
        }
        Err(failed) => failure(operation.dialect(), &failed),
    }
}

async fn stream(app: &Arc<App>, admitted: Admitted, request: Arc<NormalizedRequest>) -> Answer {
    let (operation, model) = (request.operation, Arc::clone(&request.facts.model));
    let include_usage = request.facts.include_usage;
    match app.gateway.stream(admitted, request).await {
        Ok(Reply { head, body }) => {
            let stamp = Stamp::new(operation, &head, &model);
            let body = match body {
                StreamBody::Relay(relay) => StreamEnding::new(operation, stamp, &head.id)
                    .map(|ending| AnswerBody::events(Events::new(relay, ending, Arc::clone(app)))),
                StreamBody::Kept(kept) => StreamEnding::new(operation, stamp, &head.id)
                    .map(|ending| AnswerBody::whole(wire::kept_events(&kept, ending))),
                StreamBody::Completion(completion) => {
                    let stamp = stamp.served(&completion);
                    wire::completion_events(operation, &completion, &stamp, include_usage)
                        .map(AnswerBody::whole)
                }
            };
            let Some(body) = body else { return without_form(operation, &head) };
            let mut answer = event_stream(body);
            evidence(operation.dialect(), &head, Form::Stream, &mut answer);
            answer
        }
        Err(failed) => failure(operation.dialect(), &failed),
    }
}

/// Answers a request whose operation has no such answer: a fault of gw's own, since nothing asks for one.
fn without_form(operation: Operation, head: &ReplyHead) -> Answer {
    let error = GatewayError::new(ErrorKind::Internal, "the operation has no answer of this form");
    answer::error(operation.dialect(), &error, head.attempts, Some(head.id.as_str()))
}

fn event_stream(body: AnswerBody) -> Answer {
    let mut answer = answer::empty(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM.clone());
    headers.insert(CACHE_CONTROL, NO_TRANSFORM.clone());
    // Proxies of nginx's kind hold a stream back unless told not to.
    headers.insert(ACCEL_BUFFERING.clone(), NO.clone());
    *answer.body_mut() = body;
    answer
}

/// Returns the answer to a request that failed, with the evidence of what was tried.
fn failure(dialect: Dialect, failure: &Failure) -> Response<AnswerBody> {
    let Failure { head, error } = failure;
    let mut answer = answer::error(dialect, error, head.attempts, Some(head.id.as_str()));
    evidence(dialect, head, Form::Whole, &mut answer);
    answer
}

/// Writes the evidence; clients of Anthropic's look for the id under a name of their own.
fn evidence(dialect: Dialect, head: &ReplyHead, form: Form, answer: &mut Answer) {
    evidence::write(head, form, answer.headers_mut());
    match dialect {
        Dialect::OpenAi => {}
        Dialect::Anthropic => {
            if let Ok(id) = HeaderValue::from_str(head.id.as_str()) {
                answer.headers_mut().insert(REQUEST_ID.clone(), id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{CONTENT_ENCODING, CONTENT_TYPE},
    };

    fn check(name: &HeaderName, values: &[&'static str], expected: Option<u16>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_static(value));
        }
        let status = super::check_form(&headers).err().and_then(|refusal| refusal.error.status());
        assert_eq!(status, expected, "{name}: {values:?}");
    }

    #[test]
    fn json_is_taken() {
        check(&CONTENT_TYPE, &[], None);
        check(&CONTENT_TYPE, &["application/json"], None);
        check(&CONTENT_TYPE, &["Application/JSON; charset=utf-8"], None);
        check(&CONTENT_TYPE, &["application/vnd.api+json"], None);
        check(&CONTENT_TYPE, &["text/plain"], Some(415));
        check(&CONTENT_TYPE, &["application/x-www-form-urlencoded"], Some(415));
        check(&CONTENT_TYPE, &["multipart/form-data; boundary=x"], Some(415));
        check(&CONTENT_TYPE, &[""], Some(415));
        check(&CONTENT_TYPE, &["+json"], Some(415));
        check(&CONTENT_TYPE, &["application/json", "text/plain"], Some(415));
    }

    #[test]
    fn request_intake_is_bounded_before_it_is_trusted_compressed_bodies() {
        check(&CONTENT_ENCODING, &[], None);
        check(&CONTENT_ENCODING, &["identity"], None);
        for value in ["gzip", "zstd", "br", "deflate", "gzip, gzip", "identity, gzip", ""] {
            check(&CONTENT_ENCODING, &[value], Some(415));
        }
    }
}
