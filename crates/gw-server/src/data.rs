//! The data plane: what applications call.

mod models;
mod operation;

use gw_types::{Dialect, KeyIdentity};
use http::{
    HeaderValue, Request, StatusCode, Version,
    header::{ALLOW, HeaderMap},
};
use hyper::body::Incoming;

use crate::{
    answer::{self, Answer},
    app::App,
    body, cors, credentials,
    lifecycle::Phase,
    line::Line,
    paths::DataPath,
    refusal::Refusal,
};

/// Answers a request of the data plane.
///
/// The order is a decision: who asks is settled first, on every path, before anything of the body is read. Then the
/// path is looked up, byte for byte as it was authenticated.
pub(crate) async fn answer(line: &Line, request: Box<Request<Incoming>>) -> Answer {
    let app = &*line.app;
    let path = DataPath::of(request.uri().path());
    if app.lifecycle.phase() >= Phase::Refusing {
        let mut answer = refuse(app, &Refusal::draining(), path.dialect());
        if request.version() != Version::HTTP_2 {
            answer::close(&mut answer);
        }
        return answer;
    }
    if path == DataPath::Root && path.takes(request.method()) {
        return answer::empty(StatusCode::OK);
    }
    // A browser asks without the key that it is going to send.
    let origins = &app.settings.cors_origins;
    if !origins.is_empty()
        && cors::allowed(origins, request.headers()).is_some()
        && let Some(answer) = cors::preflight(request.method(), request.headers())
    {
        return answer;
    }
    let identity = match identify(line, request.headers()).await {
        Ok(identity) => identity,
        Err(refusal) => {
            let answer = refuse(app, &refusal, path.dialect());
            body::pass_over(request.into_body(), line).await;
            return answer;
        }
    };
    if !path.takes(request.method()) {
        let answer = not_taken(app, &path);
        body::pass_over(request.into_body(), line).await;
        return answer;
    }
    match path {
        DataPath::Operation(operation) => operation::answer(line, &identity, operation, request).await,
        DataPath::Models => models::list(app, &identity, models::dialect(request.headers())),
        DataPath::Model(id) => models::one(app, &identity, &id, models::dialect(request.headers())),
        DataPath::Root | DataPath::Unknown => not_taken(app, &DataPath::Unknown),
    }
}

/// Returns who asks.
///
/// Where callers without a key are let in, a key that nobody knows is no reason to turn one away: clients insist on
/// sending something.
async fn identify(line: &Line, headers: &HeaderMap) -> Result<KeyIdentity, Refusal> {
    let app = &line.app;
    if let Some(presented) = credentials::presented(headers)? {
        if let Some(identity) = app.keys.identify_at(&presented, line.peer, app.clock.utc()) {
            return Ok(identity);
        }
        if let Some(tokens) = app.tokens.get()
            && let Some(identifying) = tokens.identify(&presented, line.peer)
        {
            return identifying.await.map_err(Refusal::from);
        }
    }
    app.keys.anonymous().ok_or_else(Refusal::unauthenticated)
}

/// Answers a path that does not exist, or not by this method.
fn not_taken(app: &App, path: &DataPath<'_>) -> Answer {
    let Some(allow) = path.allow() else { return refuse(app, &Refusal::unknown_path(), path.dialect()) };
    let mut answer = refuse(app, &Refusal::method(), path.dialect());
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

/// Turns a request away that never got a record: a metric and a line in the log.
pub(crate) fn refuse(app: &App, refusal: &Refusal, dialect: Dialect) -> Answer {
    app.metrics.refused(refusal.reason);
    tracing::info!(reason = refusal.reason.as_str(), "a request was turned away");
    answer::refusal(dialect, refusal)
}
