//! The body of a request: one piece of known length.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};

/// Carries the bytes of a request to the connection, and says when they were taken.
pub(crate) struct Outgoing {
    data: Bytes,
    taken: Option<Arc<Taken>>,
}

/// Says whether a connection has taken a request's bytes, and wakes who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    flag: AtomicBool,
    waiting: AtomicWaker,
}

impl Taken {
    /// Returns whether the bytes were taken; the task is woken when they are.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> bool {
        self.flag.load(Ordering::Acquire) || {
            self.waiting.register(cx.waker());
            self.flag.load(Ordering::Acquire)
        }
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Release);
        self.waiting.wake();
    }
}

impl Outgoing {
    pub(crate) fn new(data: Bytes) -> Self {
        Self { data, taken: None }
    }

    /// As [`Outgoing::new`], with a mark that is set once the connection took the bytes. Over HTTP/2 that is as near
    /// to "written" as can be seen from outside.
    pub(crate) fn watched(data: Bytes, taken: &Arc<Taken>) -> Self {
        if data.is_empty() {
            taken.set();
        }
        Self { data, taken: Some(Arc::clone(taken)) }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(taken) = &self.taken {
            taken.set();
        }
        let data = std::mem::take(&mut self.data);
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}
