//! `POST /v1/chat/completions`.

use std::sync::Arc;

use bytes::Bytes;
use gw_dialects::openai;
use gw_exec::{Admitted, Body, Failure, Reply, StreamBody};
use gw_types::{GatewayError, KeyIdentity, MonoTime, NormalizedRequest, Operation, RequestContext};
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
};

static EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
static NO_TRANSFORM: HeaderValue = HeaderValue::from_static("no-store, no-transform");
static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
static NO: HeaderValue = HeaderValue::from_static("no");

/// Answers a chat request, plain or as a stream.
pub(super) async fn answer(line: &Line, identity: &KeyIdentity, request: Request<Incoming>) -> Answer {
    let app = &line.app;
    let admitted = match app.gateway.admit(identity) {
        Ok(admitted) => admitted,
        Err(error) => return refuse(app, &Refusal::new(Reason::NotAdmitted, error)),
    };
    // From here on the request has a record, so every way out goes through `admitted`.
    let arrived = app.clock.now();
    let closes = request.version() != Version::HTTP_2;
    let (parts, body) = request.into_parts();
    match read(line, &parts.headers, body, arrived, closes).await {
        Ok(request) if request.facts.stream => stream(app, admitted, request).await,
        Ok(request) => complete(app, admitted, request).await,
        Err(Unread::Refused(refusal)) => {
            app.metrics.refused(refusal.reason);
            let mut answer = failure(&admitted.refuse(refusal.error).await);
            if closes
                && matches!(
                    refusal.reason,
                    Reason::BodyTooLarge | Reason::BodyTimeout | Reason::BodyUnreadable
                )
            {
                answer::close(&mut answer);
            }
            answer
        }
        Err(Unread::Invalid(error)) => failure(&admitted.refuse(error).await),
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

/// Reads a request: what the headers say first, since that needs no byte of the body.
async fn read(
    line: &Line,
    headers: &HeaderMap,
    body: Incoming,
    arrived: MonoTime,
    closes: bool,
) -> Result<NormalizedRequest, Unread> {
    check_form(headers)?;
    let context = context::read(headers).map_err(|error| Refusal::new(Reason::Header, error))?;
    let body = if closes {
        let body = body::read(body, line, arrived).await?;
        line.set_unread(false);
        body
    } else {
        body::read_timed(body, line, arrived).await?
    };
    normalize(body, context).map_err(Unread::Invalid)
}

fn normalize(body: Bytes, context: RequestContext) -> Result<NormalizedRequest, GatewayError> {
    let facts = openai::read_chat(&body)?;
    Ok(NormalizedRequest { operation: Operation::Chat, body, facts, context })
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

async fn complete(app: &App, admitted: Admitted, request: NormalizedRequest) -> Answer {
    let model = Arc::clone(&request.facts.model);
    match app.gateway.complete(admitted, request).await {
        Ok(Reply { head, body }) => {
            let body = match body {
                Body::Raw(raw) => raw,
                Body::Completion(completion) => {
                    let stamp = Stamp::new(&head, &model).served(&completion);
                    openai::completion_body(&completion, &stamp.as_answer_stamp())
                }
            };
            let mut answer = answer::json(StatusCode::OK, body);
            evidence::write(&head, Form::Whole, answer.headers_mut());
            answer
        }
        Err(failed) => failure(&failed),
    }
}

async fn stream(app: &Arc<App>, admitted: Admitted, request: NormalizedRequest) -> Answer {
    let model = Arc::clone(&request.facts.model);
    let include_usage = request.facts.include_usage;
    match app.gateway.stream(admitted, request).await {
        Ok(Reply { head, body: StreamBody::Relay(relay) }) => {
            let events = Events::new(relay, Stamp::new(&head, &model), Arc::clone(app));
            let mut answer = event_stream(AnswerBody::events(events));
            evidence::write(&head, Form::Stream, answer.headers_mut());
            answer
        }
        Ok(Reply { head, body: StreamBody::Completion(completion) }) => {
            let stamp = Stamp::new(&head, &model).served(&completion);
            let mut events = openai::completion_events(&completion, &stamp.as_answer_stamp(), include_usage);
            events.push(openai::done_event());
            let mut answer = event_stream(AnswerBody::whole(events.concat().into()));
            evidence::write(&head, Form::Stream, answer.headers_mut());
            answer
        }
        Err(failed) => failure(&failed),
    }
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
fn failure(failure: &Failure) -> Response<AnswerBody> {
    let mut answer = answer::error(&failure.error, failure.head.attempts);
    evidence::write(&failure.head, Form::Whole, answer.headers_mut());
    answer
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
