//! One HTTP/2 connection, shared by many calls. Here hyper's connection needs a task of its own.

use std::{
    error::Error,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2, rt::Executor};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use super::{
    fault::SendFault,
    io::Wire,
    outgoing::{Outgoing, Taken},
    timer::LazyTimer,
};

/// Calls on one connection at once; then another connection is opened, rather than to queue behind the provider's own
/// limit (commonly 100 or more).
pub(super) const STREAMS_MAX: usize = 100;

/// Between two pings, also while idle, so that a dead connection is found before a call needs it.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// The longest wait for a ping's answer.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes that a provider may send ahead on one stream and on one connection.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

/// One connection that carries many calls.
pub(super) struct H2 {
    sender: http2::SendRequest<Outgoing>,
    streams: AtomicUsize,
    /// Heads of answers that have come.
    answers: AtomicU64,
    /// Whether nothing was heard of the other side for too long: it takes no more calls, and ends with those it has.
    is_silent: AtomicBool,
}

/// A place on a shared connection, given back on drop.
pub(super) struct H2Place {
    connection: Arc<H2>,
    /// Whether the connection was opened for this call.
    pub(super) is_first: bool,
}

impl H2 {
    /// Opens the connection and returns its first place.
    pub(super) async fn open(wire: Box<dyn Wire>) -> Result<H2Place, hyper::Error> {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(wire)
            .await?;
        // The task ends when the last sender is dropped: by the sweep, by the pool's own end, or with the runtime.
        TokioExecutor::new().execute(async move {
            if driver.await.is_err() {
                tracing::debug!("an HTTP/2 connection to a provider ended with an error");
            }
        });
        let connection = Arc::new(Self {
            sender,
            streams: AtomicUsize::new(1),
            answers: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
        });
        Ok(H2Place { connection, is_first: true })
    }

    /// Returns whether it takes no more calls.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.is_silent.load(Ordering::Relaxed)
    }

    /// Returns how many answers have begun.
    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Gives the connection up for new calls, unless an answer has come since there were so many.
    pub(super) fn suspect(&self, answers: u64) {
        if self.answers() == answers {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Returns a place, if there is one. Called under the pool's lock, so the bound holds.
    pub(super) fn place(self: &Arc<Self>) -> Option<H2Place> {
        if self.is_closed() || self.streams.load(Ordering::Acquire) >= STREAMS_MAX {
            return None;
        }
        self.streams.fetch_add(1, Ordering::AcqRel);
        Some(H2Place { connection: Arc::clone(self), is_first: false })
    }
}

impl H2Place {
    pub(super) fn connection(&self) -> &Arc<H2> {
        &self.connection
    }

    /// Sends a request and waits for the response head. Dropping the future resets the stream.
    pub(super) async fn send(
        &self,
        request: Request<Outgoing>,
        taken: &Taken,
        write_timeout: Duration,
        head_timeout: Duration,
    ) -> Result<Response<Incoming>, SendFault> {
        let mut timer = LazyTimer::new(write_timeout);
        let mut written = false;
        let mut answer = pin!(self.connection.sender.clone().try_send_request(request));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                self.connection.answers.fetch_add(u64::from(answer.is_ok()), Ordering::Relaxed);
                return Poll::Ready(answer.map_err(|mut error| match error.take_message() {
                    Some(_) => SendFault::NotSent,
                    None => fault(error.error()),
                }));
            }
            if !written && taken.poll(cx) {
                written = true;
                timer.set(head_timeout);
            }
            match (timer.poll_passed(cx), written) {
                (false, _) => Poll::Pending,
                (true, false) => Poll::Ready(Err(SendFault::WriteTimeout)),
                (true, true) => Poll::Ready(Err(SendFault::HeadTimeout)),
            }
        })
        .await
    }
}

/// Says what a failed call tells of its fate. A connection that is closed in order names the last call that was processed
/// (RFC 9113, 6.8), and a refused stream was not processed (8.7); after everything else the provider may have acted.
fn fault(error: &hyper::Error) -> SendFault {
    let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>()) else {
        return SendFault::Broken { began: true };
    };
    if cause.is_remote() && cause.is_go_away() {
        SendFault::LeftBehind
    } else if cause.is_remote() && cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM) {
        SendFault::Declined
    } else {
        SendFault::Broken { began: true }
    }
}

impl Drop for H2Place {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A shared connection in the pool's list.
pub(super) struct Listed {
    pub(super) connection: Arc<H2>,
    /// When the sweep first saw it unused.
    pub(super) unused_since: Option<Instant>,
}
