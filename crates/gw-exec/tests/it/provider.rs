//! A provider that answers every request alike, as slowly as it is told, and counts as providers do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use gw_exec::Target;
use gw_types::{
    Adapter, Answer, AnswerFacts, AttemptPlan, CompleteAnswer, Deployment, FinishReason, GatewayError,
    NormalizedRequest, Prepared, StreamAnswer, StreamItem, TokenCount, Usage,
};
use parking_lot::Mutex;

use crate::support::{content, prepared, stop, terminal, used};

/// What the provider does with each call.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) usage: Usage,
    /// Before a whole answer, and before each piece of a stream.
    pub(crate) after: Duration,
    /// One token each.
    pub(crate) pieces: Vec<&'static str>,
    /// Whether a stream ends with the usage, as most do.
    pub(crate) reports: bool,
    pub(crate) calls: AtomicUsize,
    /// Pieces that were sent, over all streams.
    pub(crate) sent: Arc<AtomicUsize>,
    /// The bounds that were sent to it.
    pub(crate) bounds: Mutex<Vec<Option<TokenCount>>>,
}

impl Provider {
    /// Counts so many tokens in and one out a piece.
    pub(crate) fn new(input: u64, pieces: &[&'static str]) -> Self {
        let output = TokenCount::new(pieces.len() as u64);
        Self {
            usage: Usage { input: TokenCount::new(input), output, ..Usage::default() },
            after: Duration::from_millis(100),
            pieces: pieces.to_vec(),
            reports: true,
            calls: AtomicUsize::new(0),
            sent: Arc::default(),
            bounds: Mutex::default(),
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn at(self: &Arc<Self>, deployment: Deployment) -> Target {
        Target::new(Arc::new(deployment), Arc::<Self>::clone(self))
    }

    fn stream(&self) -> Answer {
        let (after, sent) = (self.after, Arc::clone(&self.sent));
        let pieces = futures_util::stream::iter(self.pieces.clone()).then(move |piece| {
            let sent = Arc::clone(&sent);
            async move {
                tokio::time::sleep(after).await;
                sent.fetch_add(1, Ordering::Relaxed);
                content(piece)
            }
        });
        let end: Vec<StreamItem> = [Some(stop()), self.reports.then(|| used(self.usage)), Some(terminal())]
            .into_iter()
            .flatten()
            .collect();
        let items = pieces.chain(futures_util::stream::iter(end)).map(Ok);
        Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None })
    }
}

#[async_trait]
impl Adapter for Provider {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        self.bounds.lock().push(plan.output_bound);
        Ok(prepared(request))
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if prepared.stream {
            return Ok(self.stream());
        }
        tokio::time::sleep(self.after).await;
        Ok(Answer::Complete(CompleteAnswer {
            raw: Bytes::from_static(b"{}"),
            facts: AnswerFacts {
                usage: self.reports.then_some(self.usage),
                finish: Some(FinishReason::Stop),
                content_bytes: self.pieces.iter().map(|piece| piece.len() as u64).sum(),
                ..AnswerFacts::default()
            },
            upstream_request_id: None,
        }))
    }
}
