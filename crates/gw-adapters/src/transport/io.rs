//! The byte stream under a connection, with a mark of how far a request was written.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBufCursor, Write};

/// A byte stream to a provider, whatever lies between.
pub(crate) trait Wire: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Wire for T {}

/// A byte stream that notes what was written.
pub(crate) struct Io {
    inner: Box<dyn Wire>,
    progress: Arc<Progress>,
}

/// Says how far a connection's writes have come. Written by whoever drives the connection and read by the same task,
/// so relaxed order is enough.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    bytes: AtomicU64,
    flushed: AtomicBool,
}

impl Progress {
    /// Starts to watch one request; returns the bytes written before it.
    pub(crate) fn start(&self) -> u64 {
        self.flushed.store(false, Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether anything was written since `start`.
    pub(crate) fn began(&self, start: u64) -> bool {
        self.bytes.load(Ordering::Relaxed) > start
    }

    /// Returns whether everything that was to be written since `start` has been: hyper flushes only an empty buffer,
    /// and a request of one piece is buffered whole before the first flush.
    pub(crate) fn is_written(&self, start: u64) -> bool {
        self.flushed.load(Ordering::Relaxed) && self.began(start)
    }

    fn add(&self, count: usize) {
        self.flushed.store(false, Ordering::Relaxed);
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Io {
    pub(crate) fn new(inner: Box<dyn Wire>) -> (Self, Arc<Progress>) {
        let progress = Arc::new(Progress::default());
        (Self { inner, progress: Arc::clone(&progress) }, progress)
    }
}

impl Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl Write for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.progress.add(count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.progress.flushed.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs))?;
        self.progress.add(count);
        Poll::Ready(Ok(count))
    }
}
