//! One client connection: which protocol, which bounds, and how it ends.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    net::IpAddr,
    pin::pin,
    sync::Arc,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::TokioTimer,
    server::conn::auto::{Builder, Connection},
};
use tokio::net::TcpStream;

use crate::{
    app::{App, BUFFER_BYTES_MAX},
    client_io::ClientIo,
    lifecycle::Phase,
    line::Line,
    refusal::Reason,
    self_wakes::SelfWakes,
    service::{self, Plane},
    socket::Socket,
    stream_task::StreamTasks,
};

/// Requests at once on one connection of HTTP/2.
const STREAMS_MAX: u32 = 256;

/// Serves a connection until the client leaves it, it breaks a bound, or the server closes.
///
/// A request of HTTP/1 runs inside this task. Requests of HTTP/2 have a task each, which this one owns: when it ends,
/// they end.
pub(crate) async fn serve(app: Arc<App>, plane: Plane, stream: TcpStream, peer: IpAddr) {
    // Events are small, and each one is worth a packet.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Some(stream) = open(&app, plane, stream).await else { return };
    let line = Arc::new(Line::new(Arc::clone(&app), peer));
    let io = ClientIo::new(stream, Arc::clone(&line));
    let builder = builder(StreamTasks::new(Arc::clone(&app)));
    // In a box of its own: the connection would keep room for the largest answer's work while it is idle.
    // So is the request, which every step hands to the next.
    let service = service_fn(move |request| {
        let (line, request) = (Arc::clone(&line), Box::new(request));
        Box::pin(async move { Ok::<_, Infallible>(service::answer(line, plane, request).await) })
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut closing = pin!(app.lifecycle.closing());
    let (mut registered, mut told, self_wakes) = (false, false, SelfWakes::new());
    let ended = poll_fn(|cx| {
        // Registers the task once: after that the phase itself is cheaper to ask than the signal.
        if !registered {
            registered = true;
            let _ = closing.as_mut().poll(cx);
        }
        if app.lifecycle.phase() == Phase::Closing && !told {
            told = true;
            Connection::graceful_shutdown(connection.as_mut());
        }
        self_wakes.poll(connection.as_mut(), cx)
    })
    .await;
    if ended.is_err() {
        tracing::debug!("a client connection broke off");
    }
}

/// Shakes hands where the listener speaks TLS, within the time that a head may take.
async fn open(app: &App, plane: Plane, stream: TcpStream) -> Option<Socket> {
    let tls = match plane {
        Plane::Data => app.settings.tls.get(),
        Plane::Admin => app.settings.admin_tls.get(),
    };
    let Some(tls) = tls else { return Some(Socket::Plain(stream)) };
    let until = app.clock.now().saturating_add(app.settings.header_timeout);
    let shaken = tokio::select! {
        shaken = tls.accept(stream) => shaken.ok(),
        () = app.clock.sleep_until(until) => None,
        () = app.lifecycle.closing() => return None,
    };
    if shaken.is_none() {
        app.metrics.refused(Reason::Tls);
        tracing::debug!("a client and the server did not agree on TLS");
    }
    shaken.map(|stream| Socket::Tls(Box::new(stream)))
}

fn builder(tasks: StreamTasks) -> Builder<StreamTasks> {
    let mut builder = Builder::new(tasks);
    // The times of the ingress are kept by `ClientIo`; the library's own would close idle connections as well.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(BUFFER_BYTES_MAX).unwrap_or(u32::MAX));
    builder
}
