//! One HTTP/1.1 connection, driven by whoever uses it.
//!
//! hyper's connection is a future that must be polled for bytes to move. The usual way is a task of its own, and then
//! each answer costs two or three task switches: socket to connection task, connection task to request task, and the
//! way back. Here the request's own task polls the connection: one wake-up, one read and one write a chunk, and
//! dropping the call closes the socket at once.
//!
//! The channels between hyper's halves are therefore only ever moved by the task that reads them, so their wakers are
//! no-ops: a real one would have the task wake itself for nothing.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use tokio::{task::coop::unconstrained, time::Instant};

use super::{
    fault::SendFault,
    io::{Io, Progress, Wire},
    outgoing::Outgoing,
    timer::LazyTimer,
};

/// One connection that carries one call at a time.
pub(super) struct H1 {
    sender: http1::SendRequest<Outgoing>,
    driver: http1::Connection<Io, Outgoing>,
    closed: bool,
    progress: Arc<Progress>,
    pub(super) timer: LazyTimer,
    /// When the connection was last given back; `None` before its first call has ended.
    pub(super) idle_since: Option<Instant>,
}

impl H1 {
    pub(super) async fn new(wire: Box<dyn Wire>) -> Result<Box<Self>, hyper::Error> {
        let (io, progress) = Io::new(wire);
        let (sender, driver) = http1::Builder::new().handshake(io).await?;
        Ok(Box::new(Self {
            sender,
            driver,
            closed: false,
            progress,
            timer: LazyTimer::new(Duration::MAX),
            idle_since: None,
        }))
    }

    /// Moves bytes in both directions as far as they go; the task is woken when more may go.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.closed && Pin::new(&mut self.driver).poll(cx).is_ready() {
            self.closed = true;
        }
    }

    /// Returns whether the connection can take a call: everything of the last one was written and read, and the
    /// provider has not closed it as far as the socket knows.
    pub(super) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        !self.closed && !self.sender.is_closed() && self.sender.is_ready()
    }

    /// Sends a request and waits for the response head. After an error the connection must be dropped.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
        write_timeout: Duration,
        head_timeout: Duration,
    ) -> Result<Response<Incoming>, SendFault> {
        let start = self.progress.start();
        self.timer.set(write_timeout);
        let (mut written, mut is_new) = (false, true);
        // Outside the runtime's budget: with it, an exhausted budget would wake the no-op waker and nobody else.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        std::future::poll_fn(|cx| {
            let mut noop = Context::from_waker(Waker::noop());
            // First without a waker: while bytes are there, none is needed. A call that has just begun waits in any case.
            for waker in &[Waker::noop(), cx.waker()][usize::from(std::mem::take(&mut is_new))..] {
                if !self.closed && Pin::new(&mut self.driver).poll(&mut Context::from_waker(waker)).is_ready()
                {
                    self.closed = true;
                }
                if let Poll::Ready(answer) = answer.as_mut().poll(&mut noop) {
                    return Poll::Ready(answer.map_err(|error| self.fault(error, start)));
                }
            }
            if self.closed {
                return Poll::Ready(Err(SendFault::Broken { began: self.progress.began(start) }));
            }
            if !written && self.progress.is_written(start) {
                written = true;
                self.timer.set(head_timeout);
            }
            match (self.timer.poll_passed(cx), written) {
                (false, _) => Poll::Pending,
                (true, false) => Poll::Ready(Err(SendFault::WriteTimeout)),
                (true, true) => Poll::Ready(Err(SendFault::HeadTimeout)),
            }
        })
        .await
    }

    fn fault(&self, mut error: TrySendError<Request<Outgoing>>, start: u64) -> SendFault {
        match error.take_message() {
            Some(_) => SendFault::NotSent,
            None if error.error().is_parse() => SendFault::Unreadable,
            None => SendFault::Broken { began: self.progress.began(start) },
        }
    }

    /// Reads the next piece of an answer's body. Trailers are passed over.
    ///
    /// `None` is the end as the framing marks it. The limit between pieces is the connection's timer.
    pub(super) fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        if let Poll::Ready(piece) = taken(body) {
            return Poll::Ready(piece);
        }
        for waker in [Waker::noop(), cx.waker()] {
            self.drive(&mut Context::from_waker(waker));
            if let Poll::Ready(piece) = taken(body) {
                return Poll::Ready(piece);
            }
        }
        Poll::Pending
    }
}

/// Takes what the connection has put into the body's channel.
fn taken(body: &mut Incoming) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    poll_data(body, &mut Context::from_waker(Waker::noop()))
}

/// The most frames without data passed over in one go; a body has at most one (its trailers).
const OTHER_FRAMES_MAX: usize = 4;

/// Reads the next piece of a body, passing over trailers.
pub(super) fn poll_data(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    for _ in 0..OTHER_FRAMES_MAX {
        match std::task::ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
    Poll::Ready(None)
}
