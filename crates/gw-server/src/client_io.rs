//! A client's socket with the times of the ingress built in.
//!
//! The HTTP library times heads only once it knows the protocol, closes idle connections by the same limit, and does
//! not time writes at all. Here every wait of a connection ends: a head, a body, an idle connection, an answer that
//! nobody takes. The library's own refusals (431, a head that is no HTTP) get the body that every answer of gw has.

mod head;
mod linger;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use gw_types::MonoTime;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use self::{
    head::{Expiry, HeadWatch, PREFACE_BYTES},
    linger::Linger,
};
use crate::{answer, app::WRITE_STALL, line::Line, refusal::Refusal, socket::Socket, timer::Timer};

/// A client's socket.
#[derive(Debug)]
pub(crate) struct ClientIo {
    inner: TokioIo<Socket>,
    line: Arc<Line>,
    head: HeadWatch,
    reading: Timer,
    writing: Timer,
    blocked_since: Option<MonoTime>,
    /// Whether nothing was written since the last request's answer was flushed, and how many requests had begun then.
    quiet_since: Option<u32>,
    /// gw's own refusal in the place of the library's; what is left of it to be written.
    refusal: Option<Bytes>,
    linger: Linger,
}

impl ClientIo {
    /// Wraps a socket.
    pub(crate) fn new(stream: Socket, line: Arc<Line>) -> Self {
        Self {
            inner: TokioIo::new(stream),
            head: HeadWatch::new(line.app.clock.now()),
            line,
            reading: Timer::default(),
            writing: Timer::default(),
            blocked_since: None,
            quiet_since: Some(0),
            refusal: None,
            linger: Linger::default(),
        }
    }

    /// Nothing to read now: decides how long the client may leave it so.
    fn wait_for_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let app = &self.line.app;
        let Some((deadline, expiry)) = self.head.deadline(&self.line) else { return Poll::Pending };
        ready!(self.reading.poll(&*app.clock, deadline, cx));
        match expiry {
            Expiry::Body => {
                self.line.expire_body();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Expiry::Head { begun } => {
                let refusal = Refusal::head_timeout();
                app.metrics.refused(refusal.reason);
                if begun {
                    // The library writes nothing for a head that breaks off. The answer fits into an empty socket
                    // buffer; where it does not, there is nobody to read it.
                    let bytes = answer::raw_refusal("408 Request Timeout", &refusal.error);
                    let socket = self.inner.inner_mut();
                    let _ = Pin::new(&mut *socket).poll_write(cx, &bytes);
                    let _ = Pin::new(socket).poll_flush(cx);
                }
                // No byte and no error: to the library the client has closed.
                Poll::Ready(Ok(()))
            }
            Expiry::Idle => Poll::Ready(Ok(())),
        }
    }

    /// Returns whether these bytes are a refusal that the library writes by itself: an error in HTTP/1 while no request
    /// is being answered.
    fn is_library_refusal(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"HTTP/1.1 4")
            && self.quiet_since == Some(self.line.calls())
            && !self.line.is_active()
    }

    fn replace_refusal(&mut self, bytes: &[u8]) {
        let (status, refusal) = match bytes.get(9..12) {
            Some(b"431") => ("431 Request Header Fields Too Large", Refusal::head_too_large()),
            Some(b"414") => ("414 URI Too Long", Refusal::head_unreadable()),
            Some(_) | None => ("400 Bad Request", Refusal::head_unreadable()),
        };
        self.line.app.metrics.refused(refusal.reason);
        self.line.set_unread(true);
        self.refusal = Some(answer::raw_refusal(status, &refusal.error));
    }

    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = &mut self.refusal {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, rest))?;
            rest.advance(written);
            if rest.is_empty() || written == 0 {
                self.refusal = None;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Lets a client take its time as long as it takes anything.
    fn watch_write(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.blocked_since = None;
            return written;
        }
        let clock = &*self.line.app.clock;
        let since = *self.blocked_since.get_or_insert_with(|| clock.now());
        ready!(self.writing.poll(clock, since.saturating_add(WRITE_STALL), cx));
        tracing::debug!("a client takes no byte of its answer");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads the first bytes, which tell the protocol.
    fn poll_preface(&mut self, cx: &mut Context<'_>, buf: &mut ReadBufCursor<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [0; PREFACE_BYTES];
        let room = buf.remaining().min(PREFACE_BYTES);
        let mut read = tokio::io::ReadBuf::new(&mut bytes[..room]);
        ready!(Pin::new(self.inner.inner_mut()).poll_read(cx, &mut read))?;
        self.head.sniff(read.filled());
        buf.put_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }
}

impl Read for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let read = if this.head.knows_protocol() {
            Pin::new(&mut this.inner).poll_read(cx, buf)
        } else {
            this.poll_preface(cx, &mut buf).map_ok(|_| ())
        };
        match read {
            Poll::Ready(result) => {
                this.head.has_read(&this.line);
                Poll::Ready(result)
            }
            Poll::Pending => this.wait_for_client(cx),
        }
    }
}

impl Write for ClientIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.is_library_refusal(buf) {
            this.replace_refusal(buf);
            return Poll::Ready(Ok(buf.len()));
        }
        let written = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.watch_write(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Some(first) = bufs.first().filter(|first| this.is_library_refusal(first)) {
            this.replace_refusal(first);
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.watch_write(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.poll_refusal(cx))?;
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        this.quiet_since = (!this.line.is_active()).then(|| this.line.calls());
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.poll_refusal(cx))?;
        if !this.linger.has_begun() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
        }
        if this.line.has_unread() {
            ready!(this.linger.poll(this.inner.inner_mut(), &*this.line.app.clock, cx));
        }
        Poll::Ready(Ok(()))
    }
}
