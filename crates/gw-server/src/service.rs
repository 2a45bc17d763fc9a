//! One request from its head to its answer, whatever happens on the way.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::{
    admin,
    answer::{self, Answer},
    cors, data,
    gate::Gate,
    lifecycle::Phase,
    line::{InFlight, Line},
    paths::DataPath,
    refusal::Refusal,
};

/// Which of the two listeners a connection came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// What applications call.
    Data,
    /// What operators call.
    Admin,
}

/// Answers a request; the answer keeps it in flight until its body is written.
///
/// A fault of gw's own ends the request and not the connection. At the end of a drain the handler is dropped, which
/// cancels and settles what it did, and the client gets an answer that says why.
pub(crate) async fn answer(line: Arc<Line>, plane: Plane, request: Box<Request<Incoming>>) -> Answer {
    let in_flight = match plane {
        Plane::Data => InFlight::data(line),
        Plane::Admin => InFlight::admin(line),
    };
    let line = in_flight.line();
    let closes = request.version() != Version::HTTP_2;
    if closes && !request.body().is_end_stream() {
        line.set_unread(true);
    }
    let dialect = DataPath::of(request.uri().path()).dialect();
    let origin = match plane {
        Plane::Data => cors::allowed(&line.app.settings.cors_origins, request.headers()),
        Plane::Admin => None,
    };
    let mut answer = {
        let mut handler = pin!(handle(line, plane, request));
        let gate = Gate::new();
        poll_fn(|cx| {
            if line.app.lifecycle.phase() == Phase::Closing {
                return Poll::Ready(ended(data::refuse(&line.app, &Refusal::draining(), dialect), closes));
            }
            let poll = |cx: &mut Context<'_>| handler.as_mut().poll(cx);
            catch_unwind(AssertUnwindSafe(|| gate.poll(cx, poll))).unwrap_or_else(|_| {
                tracing::error!("a request met a fault of gw's own");
                Poll::Ready(ended(data::refuse(&line.app, &Refusal::fault(), dialect), closes))
            })
        })
        .await
    };
    if let Some(origin) = origin {
        cors::write(origin, &mut answer);
    }
    // The connection ends behind a body that was not read: said, so that the client does not send its next request into it.
    if closes && line.has_unread() {
        answer::close(&mut answer);
    }
    answer.body_mut().keep(in_flight);
    answer
}

async fn handle(line: &Line, plane: Plane, request: Box<Request<Incoming>>) -> Answer {
    match plane {
        Plane::Data => data::answer(line, request).await,
        // In a box of its own: a reload's work is larger than a request's, which would carry the room for it.
        Plane::Admin => Box::pin(admin::answer(line, &request)).await,
    }
}

fn ended(mut answer: Answer, closes: bool) -> Answer {
    if closes {
        answer::close(&mut answer);
    }
    answer
}
