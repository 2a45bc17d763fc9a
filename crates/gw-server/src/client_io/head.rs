//! How long a client may be silent, by what it is expected to say.

use gw_types::MonoTime;

use crate::{app::KEEP_ALIVE, line::Line};

/// What HTTP/2 with prior knowledge begins with is this long; fewer bytes tell it from HTTP/1.
pub(super) const PREFACE_BYTES: usize = 24;

/// HTTP/2 begins so, and no method of HTTP/1 does.
const HTTP2_START: &[u8] = b"PRI";

/// What did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// The head of a request; whether any byte of it came.
    Head { begun: bool },
    /// The body of a request.
    Body,
    /// Another request.
    Idle,
}

/// Watches what a client is expected to say next.
#[derive(Debug)]
pub(super) struct HeadWatch {
    start: Start,
    /// Requests that had begun when the connection was last seen without one in flight.
    seen: u32,
    idle_since: MonoTime,
    begun: Option<MonoTime>,
}

/// What the first bytes say about the protocol.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// So many bytes of what HTTP/2 begins with.
    Unknown {
        matching: usize,
    },
    Http1,
    Http2,
}

impl HeadWatch {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { start: Start::Unknown { matching: 0 }, seen: 0, idle_since: now, begun: None }
    }

    pub(super) fn knows_protocol(&self) -> bool {
        !matches!(self.start, Start::Unknown { .. })
    }

    /// Looks at the first bytes.
    pub(super) fn sniff(&mut self, bytes: &[u8]) {
        let Start::Unknown { matching } = self.start else { return };
        let expected = &HTTP2_START[matching..];
        let common = bytes.len().min(expected.len());
        self.start = if bytes[..common] != expected[..common] {
            Start::Http1
        } else if common == expected.len() {
            Start::Http2
        } else {
            Start::Unknown { matching: matching + common }
        };
    }

    /// Notes that bytes came.
    pub(super) fn has_read(&mut self, line: &Line) {
        if !line.is_active() {
            self.settle(line);
            self.begun.get_or_insert_with(|| line.app.clock.now());
        }
    }

    /// Returns until when the client may be silent, and what is missing then; `None`: as long as it likes, because it
    /// waits for an answer.
    pub(super) fn deadline(&mut self, line: &Line) -> Option<(MonoTime, Expiry)> {
        if line.is_active() {
            return line.body_deadline().map(|at| (at, Expiry::Body));
        }
        self.settle(line);
        let limit = line.app.settings.header_timeout;
        Some(match (self.start, self.begun) {
            // Frames between two requests are no head: pings and settings come and go.
            (Start::Http2, _) => (self.idle_since.saturating_add(KEEP_ALIVE), Expiry::Idle),
            (Start::Http1 | Start::Unknown { .. }, Some(begun)) => {
                (begun.saturating_add(limit), Expiry::Head { begun: true })
            }
            (Start::Unknown { .. }, None) => {
                (self.idle_since.saturating_add(limit), Expiry::Head { begun: false })
            }
            (Start::Http1, None) => (self.idle_since.saturating_add(KEEP_ALIVE), Expiry::Idle),
        })
    }

    /// Begins a new wait where a request has come and gone since the last look.
    fn settle(&mut self, line: &Line) {
        if self.seen != line.calls() {
            self.seen = line.calls();
            self.idle_since = line.app.clock.now();
            self.begun = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use gw_types::MonoTime;

    use super::{HeadWatch, Start};

    fn check(parts: &[&[u8]], expected: &str) {
        let mut watch = HeadWatch::new(MonoTime::ZERO);
        parts.iter().for_each(|part| watch.sniff(part));
        let start = match watch.start {
            Start::Unknown { .. } => "unknown",
            Start::Http1 => "http1",
            Start::Http2 => "http2",
        };
        assert_eq!(start, expected, "{parts:?}");
    }

    #[test]
    fn the_first_bytes_tell_the_protocol() {
        check(&[b"GET / HTTP/1.1"], "http1");
        check(&[b"POST /v1"], "http1");
        check(&[b"P", b"O"], "http1");
        check(&[b"P", b"R", b"O"], "http1");
        check(&[b"P", b"R"], "unknown");
        check(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], "http2");
        check(&[b"P", b"RI", b" * "], "http2");
        check(&[], "unknown");
    }
}
