//! The tasks of HTTP/2: one for each request, owned by its connection.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use gw_types::MonoTime;
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    app::{App, WRITE_STALL},
    timer::Timer,
};

/// What the body that was polled last waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// Bytes were handed over, and the client has to take them before more are asked for.
    Client,
    /// Nothing to hand over yet.
    Provider,
}

thread_local! {
    /// Set by a body, read by the task that polls it, within one and the same poll. The HTTP library stands between the
    /// two and lets neither see the other.
    static BODY: Cell<Option<WaitsFor>> = const { Cell::new(None) };
}

/// Notes what a body waits for, to whoever polls its request.
pub(crate) fn note(waits_for: WaitsFor) {
    BODY.set(Some(waits_for));
}

/// Runs the requests of one HTTP/2 connection, and ends them with it.
#[derive(Clone, Debug)]
pub(crate) struct StreamTasks {
    app: Arc<App>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl StreamTasks {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app, tasks: Arc::default() }
    }
}

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let app = Arc::clone(&self.app);
        let mut tasks = self.tasks.lock();
        // Ended ones are forgotten here; there are never more than one connection may have streams at once.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(run(app, stream));
    }
}

/// Runs a request until it ends, or until its client has taken nothing for too long.
async fn run(app: Arc<App>, stream: impl Future<Output = ()>) {
    let mut stream = pin!(stream);
    let mut closing = pin!(app.lifecycle.closing());
    let mut registered = false;
    let mut watch = StallWatch::default();
    poll_fn(|cx| {
        // Only a wake-up: the request itself looks at the phase.
        if !registered {
            registered = true;
            let _ = closing.as_mut().poll(cx);
        }
        BODY.set(None);
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        watch.poll(&app, BODY.take(), cx)
    })
    .await;
}

/// Watches for a client that opens no window for what it asked for: the socket itself may be as lively as ever.
#[derive(Debug, Default)]
struct StallWatch {
    since: Option<MonoTime>,
    timer: Timer,
}

impl StallWatch {
    fn poll(&mut self, app: &App, polled: Option<WaitsFor>, cx: &mut Context<'_>) -> Poll<()> {
        match polled {
            Some(WaitsFor::Client) => self.since = Some(app.clock.now()),
            Some(WaitsFor::Provider) => self.since = None,
            None => {}
        }
        match self.since {
            Some(since) => self.timer.poll(&*app.clock, since.saturating_add(WRITE_STALL), cx),
            None => Poll::Pending,
        }
    }
}
