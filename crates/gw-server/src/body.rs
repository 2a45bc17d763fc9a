//! The body of a request, read whole within its bounds.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Poll, ready},
};

use bytes::{Bytes, BytesMut};
use gw_types::{Clock, MonoTime, Sleep};
use http_body::{Body, Frame};
use hyper::body::Incoming;

use crate::{line::Line, refusal::Refusal};

/// A buffer never begins larger than this on a client's word, in bytes.
const RESERVED_BYTES_MAX: u64 = 256 * 1_024;

/// What is read of a body that nobody wants, in bytes: a prompt of some length.
const PASSED_OVER_BYTES_MAX: usize = 64 * 1_024;

/// How often it is looked for more of a body that nobody wants: the connection reads between two looks.
const LOOKS: usize = 4;

/// Reads over a body of HTTP/1 that nobody wants, as far as it is here, so that the next request may follow it on the same
/// connection. It does not wait for a client that is still sending.
pub(crate) async fn pass_over(mut body: Incoming, line: &Line) {
    if !line.has_unread() {
        return;
    }
    let (mut looks, mut bytes) = (0, 0_usize);
    let is_over = poll_fn(|cx| {
        loop {
            match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Ready(Some(Ok(frame))) => {
                    bytes = bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                    if body.is_end_stream() || bytes > PASSED_OVER_BYTES_MAX {
                        return Poll::Ready(body.is_end_stream());
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(false),
                Poll::Pending if looks == LOOKS => return Poll::Ready(false),
                Poll::Pending => {
                    looks += 1;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    })
    .await;
    line.set_unread(!is_over);
}

/// Reads a body of HTTP/1, whose connection knows by itself how long it may take: see [`Line::expect_body`].
///
/// # Errors
/// 413 as soon as the bound is passed, before the first byte where the length is stated; 408; a broken body.
pub(crate) async fn read(body: Incoming, line: &Line, arrived: MonoTime) -> Result<Bytes, Refusal> {
    line.expect_body(Some(arrived.saturating_add(line.app.settings.body_timeout)));
    let whole = collect(body, line.app.settings.max_body_bytes, None).await;
    line.expect_body(None);
    line.set_unread(whole.is_err());
    whole.map_err(|refusal| if line.body_expired() { Refusal::body_timeout() } else { refusal })
}

/// Reads a body of HTTP/2, which shares its connection with others and so is timed by itself.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_timed(body: Incoming, line: &Line, arrived: MonoTime) -> Result<Bytes, Refusal> {
    let until = arrived.saturating_add(line.app.settings.body_timeout);
    collect(body, line.app.settings.max_body_bytes, Some((&*line.app.clock, until))).await
}

async fn collect(
    mut body: Incoming,
    bytes_max: usize,
    until: Option<(&dyn Clock, MonoTime)>,
) -> Result<Bytes, Refusal> {
    let stated = body.size_hint().lower();
    if stated > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Err(Refusal::body_too_large());
    }
    let mut timer = until.map(|(clock, at)| clock.sleep_until(at));
    let mut first = Bytes::new();
    // Most bodies come in one piece, which is then handed on as it is.
    while let Some(piece) = next(&mut body, timer.as_mut()).await? {
        if piece.len() > bytes_max {
            return Err(Refusal::body_too_large());
        }
        if body.is_end_stream() {
            return Ok(piece);
        }
        if !piece.is_empty() {
            first = piece;
            break;
        }
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(stated.min(RESERVED_BYTES_MAX)).unwrap_or(0));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(piece) = next(&mut body, timer.as_mut()).await? {
        if whole.len().saturating_add(piece.len()) > bytes_max {
            return Err(Refusal::body_too_large());
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Returns the next piece; trailers are read over.
async fn next(body: &mut Incoming, mut timer: Option<&mut Sleep>) -> Result<Option<Bytes>, Refusal> {
    poll_fn(|cx| {
        loop {
            let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) else {
                if let Some(timer) = &mut timer {
                    ready!(timer.as_mut().poll(cx));
                    return Poll::Ready(Err(Refusal::body_timeout()));
                }
                return Poll::Pending;
            };
            match frame.transpose() {
                Ok(None) => return Poll::Ready(Ok(None)),
                Ok(Some(frame)) => {
                    if let Ok(piece) = Frame::into_data(frame) {
                        return Poll::Ready(Ok(Some(piece)));
                    }
                }
                Err(_) => return Poll::Ready(Err(Refusal::body_unreadable())),
            }
        }
    })
    .await
}
