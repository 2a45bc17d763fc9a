//! What a fake provider saw.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

/// Calls kept; the oldest go first.
const CALLS_KEPT: usize = 10_000;

/// One request, and how it ended. Prints without headers and body.
#[derive(Clone, PartialEq, Eq)]
pub struct SeenCall {
    /// The call's number, from 1, in the order in which the calls came in.
    pub number: u64,
    /// The connection's number, from 1: equal numbers shared a connection.
    pub connection: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without transfer coding.
    pub body: Bytes,
    /// How the call ended, as far as it has.
    pub outcome: CallOutcome,
    /// The numbers of the calls that were being answered when this one came in.
    pub beside: Vec<u64>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOutcome {
    /// It has not.
    #[default]
    Pending,
    /// The answer was written to its end.
    Complete,
    /// The client closed or reset the connection first.
    ClientGone,
    /// The script broke the connection.
    Broken,
}

impl SeenCall {
    /// Returns the value of the first header with the name, which is lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, `Null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl std::fmt::Debug for SeenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeenCall")
            .field("number", &self.number)
            .field("connection", &self.connection)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("body", &format_args!("[{} bytes redacted]", self.body.len()))
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// The calls of a provider, and a way to wait for them.
#[derive(Debug)]
pub(super) struct Calls {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Kept {
    seen: u64,
    /// The numbers of the calls that are being answered.
    open: BTreeSet<u64>,
    calls: VecDeque<SeenCall>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), changed: watch::Sender::new(()) }
    }

    pub(super) fn all(&self) -> Vec<SeenCall> {
        self.kept.lock().calls.iter().cloned().collect()
    }

    /// Numbers the call and keeps it; returns it.
    pub(super) fn add(&self, mut call: SeenCall) -> SeenCall {
        {
            let mut kept = self.kept.lock();
            kept.seen += 1;
            call.number = kept.seen;
            call.beside = kept.open.iter().copied().collect();
            let number = call.number;
            kept.open.insert(number);
            if kept.calls.len() == CALLS_KEPT {
                kept.calls.pop_front();
            }
            kept.calls.push_back(call.clone());
        }
        self.changed.send_replace(());
        call
    }

    pub(super) fn end(&self, number: u64, outcome: CallOutcome) {
        {
            let mut kept = self.kept.lock();
            kept.open.remove(&number);
            if let Some(call) = kept.calls.iter_mut().rfind(|call| call.number == number) {
                call.outcome = outcome;
            }
        }
        self.changed.send_replace(());
    }

    /// Waits until the number of calls ever seen and the calls kept satisfy the condition.
    pub(super) async fn wait_until(
        &self,
        condition: impl Fn(usize, &[SeenCall]) -> bool + Send,
    ) -> Vec<SeenCall> {
        let mut changed = self.changed.subscribe();
        loop {
            // Marked before the calls are read, so that no change between the two is missed.
            changed.mark_unchanged();
            {
                let mut kept = self.kept.lock();
                let seen = usize::try_from(kept.seen).unwrap_or(usize::MAX);
                if condition(seen, kept.calls.make_contiguous()) {
                    return kept.calls.iter().cloned().collect();
                }
            }
            if changed.changed().await.is_err() {
                return self.all();
            }
        }
    }
}
