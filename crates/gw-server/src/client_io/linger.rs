//! The end of a connection whose client may still be sending.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use gw_types::{Clock, MonoTime};
use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    app::{LINGER, LINGER_BYTES_MAX},
    socket::Socket,
    timer::Timer,
};

/// How much is thrown away at once, in bytes.
const STEP: usize = 8 * 1_024;

/// Throws away what a client still sends behind its refusal.
///
/// Closing a socket with unread bytes resets the connection, and a reset may overtake the answer: the client would see
/// a broken connection in the place of its 413. So the sending side is closed first, and the rest is read for a while.
#[derive(Debug, Default)]
pub(super) struct Linger {
    until: Option<MonoTime>,
    thrown_away: usize,
    timer: Timer,
}

impl Linger {
    pub(super) fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// Is ready once the client has ended, or has had its time.
    pub(super) fn poll(&mut self, stream: &mut Socket, clock: &dyn Clock, cx: &mut Context<'_>) -> Poll<()> {
        let until = *self.until.get_or_insert_with(|| clock.now().saturating_add(LINGER));
        let mut scratch = [0; STEP];
        while self.thrown_away < LINGER_BYTES_MAX {
            let mut read = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *stream).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => self.thrown_away += read.filled().len(),
                Poll::Ready(Ok(()) | Err(_)) => return Poll::Ready(()),
                Poll::Pending => return self.timer.poll(clock, until, cx),
            }
        }
        Poll::Ready(())
    }
}
