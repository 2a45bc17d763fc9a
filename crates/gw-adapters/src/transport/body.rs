//! The body of an answer, and the connection that it still holds.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use hyper::body::Incoming;

use super::{
    fault::BodyFault,
    h1::{H1, poll_data},
    h2::H2Place,
    pool::{Pool, Slot},
    timer::LazyTimer,
};

/// The most room made on the word of a `content-length`, in bytes.
const ROOM_AT_ONCE_MAX: usize = 1 << 20;

/// The body of an answer.
///
/// Whatever happens to it, its connection and its slot are given back: kept for the next call when the body has
/// ended, closed when it is dropped before. Over HTTP/2 a drop resets the stream.
pub(crate) struct UpstreamBody {
    source: Source,
    read_idle: Duration,
    /// Whether the timer runs: set at the first wait for a piece, cleared by each piece.
    waiting: bool,
}

enum Source {
    Own { body: Incoming, connection: Box<H1>, slot: Slot },
    Shared { body: Incoming, timer: LazyTimer, _place: H2Place, _slot: Slot },
    Ended,
}

impl UpstreamBody {
    pub(super) fn own(body: Incoming, connection: Box<H1>, slot: Slot, read_idle: Duration) -> Self {
        let mut this = Self { source: Source::Own { body, connection, slot }, read_idle, waiting: false };
        this.settle_if_ended();
        this
    }

    pub(super) fn shared(body: Incoming, place: H2Place, slot: Slot, read_idle: Duration) -> Self {
        let timer = LazyTimer::new(Duration::MAX);
        let source = Source::Shared { body, timer, _place: place, _slot: slot };
        let mut this = Self { source, read_idle, waiting: false };
        this.settle_if_ended();
        this
    }

    /// Reads the next piece; `None` is the end as the framing marks it. After an error the body has ended.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        let polled = match &mut self.source {
            Source::Own { body, connection, .. } => connection.poll_piece(body, cx),
            Source::Shared { body, .. } => poll_data(body, cx),
            Source::Ended => return Poll::Ready(None),
        };
        match polled {
            Poll::Ready(Some(Ok(piece))) => {
                self.waiting = false;
                self.settle_if_ended();
                Poll::Ready(Some(Ok(piece)))
            }
            Poll::Ready(Some(Err(_))) => self.fail(BodyFault::Broken),
            Poll::Ready(None) => {
                self.settle();
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_idle(cx),
        }
    }

    /// Reads the whole body. A body of one piece is returned without a copy.
    pub(crate) async fn collect(&mut self, bytes_max: usize) -> Result<Bytes, BodyFault> {
        let length = self.length();
        if length.is_some_and(|length| length > bytes_max as u64) {
            return Err(self.give_up());
        }
        let Some(first) = self.piece().await.transpose()? else { return Ok(Bytes::new()) };
        if first.len() <= bytes_max && self.is_ended() {
            return Ok(first);
        }
        let expected = usize::try_from(length.unwrap_or(0)).unwrap_or(0).min(ROOM_AT_ONCE_MAX);
        let mut whole = BytesMut::with_capacity(expected.max(first.len()));
        let mut next = Some(first);
        while let Some(piece) = next {
            if whole.len() + piece.len() > bytes_max {
                return Err(self.give_up());
            }
            whole.extend_from_slice(&piece);
            next = self.piece().await.transpose()?;
        }
        Ok(whole.freeze())
    }

    fn give_up(&mut self) -> BodyFault {
        self.close();
        BodyFault::TooLong
    }

    /// Reads what there is within the bounds, and gives the rest up: for error bodies, of which the beginning is as
    /// good as the whole.
    pub(crate) async fn beginning(mut self, bytes_max: usize, time: Duration) -> Bytes {
        let mut kept = BytesMut::new();
        let read = async {
            while let Some(Ok(piece)) = self.piece().await {
                let room = bytes_max - kept.len();
                kept.extend_from_slice(&piece[..piece.len().min(room)]);
                if kept.len() == bytes_max {
                    break;
                }
            }
        };
        // What was read before the time was up is enough; so the outcome does not matter.
        let _ = tokio::time::timeout(time, read).await;
        kept.freeze()
    }

    /// Says that the answer is complete although the body's end has not been seen: a stream's last event. The end is
    /// read in the background for a short time, so that the connection can be kept.
    pub(crate) fn release(&mut self, cx: &mut Context<'_>) {
        // The end has mostly come with the last event. What comes after it instead is nobody's.
        if self.poll_piece(cx).is_pending() {
            self.release_unread();
        }
        self.close();
    }

    /// Gives the body up: its connection is closed, or its stream reset.
    pub(crate) fn close(&mut self) {
        self.source = Source::Ended;
    }

    fn release_unread(&mut self) {
        match std::mem::replace(&mut self.source, Source::Ended) {
            Source::Own { body, connection, slot } => {
                let pool: Arc<Pool> = Arc::clone(slot.pool());
                pool.drain(connection, body, slot);
            }
            Source::Shared { .. } | Source::Ended => {}
        }
    }

    /// Returns whether the body has ended or was given up.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    async fn piece(&mut self) -> Option<Result<Bytes, BodyFault>> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Own { body, .. } | Source::Shared { body, .. } => body.size_hint().exact(),
            Source::Ended => Some(0),
        }
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        let timer = match &mut self.source {
            Source::Own { connection, .. } => &mut connection.timer,
            Source::Shared { timer, .. } => timer,
            Source::Ended => return Poll::Ready(None),
        };
        if !std::mem::replace(&mut self.waiting, true) {
            timer.set(self.read_idle);
        }
        if timer.poll_passed(cx) { self.fail(BodyFault::Idle) } else { Poll::Pending }
    }

    fn fail(&mut self, fault: BodyFault) -> Poll<Option<Result<Bytes, BodyFault>>> {
        self.source = Source::Ended;
        Poll::Ready(Some(Err(fault)))
    }

    fn settle_if_ended(&mut self) {
        let ended = match &self.source {
            Source::Own { body, .. } | Source::Shared { body, .. } => body.is_end_stream(),
            Source::Ended => false,
        };
        if ended {
            self.settle();
        }
    }

    /// Gives the connection back whole.
    fn settle(&mut self) {
        match std::mem::replace(&mut self.source, Source::Ended) {
            Source::Own { connection, slot, .. } => slot.pool().keep(connection),
            Source::Shared { .. } | Source::Ended => {}
        }
    }
}

impl std::fmt::Debug for UpstreamBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamBody").field("ended", &self.is_ended()).finish_non_exhaustive()
    }
}
