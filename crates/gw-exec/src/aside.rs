//! Calls that gw makes beside a request, such as a judge's: as requests of the tenant, each with a record of its own.

use std::sync::Arc;

use bytes::Bytes;
use gw_types::{KeyIdentity, LedgerPlace, NormalizedRequest};

use crate::{attempts::Served, flight::Flight, pinned::Pinned, pipeline, state::State};

/// On whose behalf, at which deployment, and for what.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    pub(crate) identity: KeyIdentity,
    pub(crate) policy: Arc<Pinned>,
    /// The route whose answers it is about.
    pub(crate) route: usize,
    pub(crate) target: usize,
    /// What its cost is called among the side costs.
    pub(crate) purpose: &'static str,
}

impl Aside {
    /// Asks; returns the whole answer's body, or nothing: what fails beside a request is no failure of it.
    pub(crate) async fn ask(&self, state: &Arc<State>, request: &NormalizedRequest) -> Option<Bytes> {
        let subject = self.policy.subject(&self.identity.tenant)?.clone();
        let place = LedgerPlace::take(Arc::clone(&state.ledger)).ok()?;
        let (policy, queue) = (Arc::clone(&self.policy), self.policy.queue(&self.identity));
        let mut flight = Flight::new(Arc::clone(state), policy, subject, queue, &self.identity, place);
        flight.side = Some(self.purpose);
        // Boxed: a request within a request would be a future of endless size.
        match Box::pin(pipeline::on_the_side(&mut flight, request, (self.route, self.target))).await {
            Ok(Served::Complete(answer)) => {
                pipeline::finish(flight).await.ok()?;
                Some(answer.raw)
            }
            Ok(Served::Stream(_)) => None,
            Err(error) => {
                tracing::warn!(
                    kind = error.kind().as_str(),
                    purpose = self.purpose,
                    "a call beside a request failed"
                );
                drop(flight.fail(error, false).await);
                None
            }
        }
    }
}
