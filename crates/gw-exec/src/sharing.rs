//! Step 6: equal requests in flight share one provider call.
//!
//! Who comes first leads: its flight goes into the call, with everything that is reserved, and its record has the
//! call's attempts, usage and cost. Whoever follows has a record of its own without any of them, as after a hit.
//!
//! The call is driven by its leader, without a task, until somebody follows; from then on a task drives it, so that a
//! leader who reads slowly or goes away holds nobody up. A leader who goes away alone cancels the call at once.

mod call;
mod follower;
mod leader;

use std::sync::Arc;

use bytes::Bytes;
use gw_cache::{
    CacheKey,
    flight::{Flights, Joined, Participant, Upstream},
};
use gw_types::{
    BoundedText, CacheState, DeploymentName, ErrorKind, GatewayError, Loss, NormalizedRequest, TokenCount,
};

pub(crate) use self::{call::Call, follower::Follower, leader::Leader};
use crate::{
    flight::Flight,
    pipeline::{Hit, Outgoing, finish, note_hit},
    relay::Relay,
    reply::{Body, Failure, Reply, ReplyHead, StreamBody},
};

/// The calls that are shared.
pub(crate) type SharedCalls = Flights<Part, Failure>;
type PartUpstream = Upstream<Part, Failure>;
type PartReader = Participant<Part, Failure>;

/// What a shared answer is made of.
#[derive(Clone)]
pub(crate) enum Part {
    /// What its leader and those who follow share; always first.
    Call(Arc<Call>),
    /// The whole answer.
    Whole(Arc<Origin>, Bytes),
    /// A stream has begun.
    Opened(Arc<Origin>),
    /// The provider names the model that answers.
    Served(BoundedText),
    /// The translation of the answer has lost more.
    Lost(Arc<Loss>),
    /// Complete events of a stream.
    Bytes(Bytes),
    /// The stream was ended at its cap; nothing but the end follows.
    Capped(TokenCount),
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Call(_) => "Part::Call",
            Self::Whole(..) => "Part::Whole([redacted])",
            Self::Opened(_) => "Part::Opened",
            Self::Served(_) => "Part::Served",
            Self::Lost(_) => "Part::Lost",
            Self::Bytes(_) => "Part::Bytes([redacted])",
            Self::Capped(_) => "Part::Capped",
        })
    }
}

/// Who answers a shared call.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The leader's evidence.
    head: ReplyHead,
    serving: Option<DeploymentName>,
    model_version: Option<BoundedText>,
    served_model: Option<BoundedText>,
    loss: Loss,
}

impl Origin {
    /// Reads the flight; the evidence comes when it has ended.
    fn of(flight: &mut Flight) -> impl FnOnce(ReplyHead) -> Self + use<> {
        let loss = flight.lost().clone();
        let record = flight.record();
        let (serving, model_version) = (record.serving.clone(), record.model_version.clone());
        let served_model = record.served_model.clone();
        move |head| Self { head, serving, model_version, served_model, loss }
    }

    /// Puts into a follower's record who answers.
    fn note(&self, flight: &mut Flight) {
        flight.lose(&self.loss);
        let record = flight.record();
        record.origin = Some(self.head.id.clone());
        record.serving.clone_from(&self.serving);
        record.model_version.clone_from(&self.model_version);
        record.served_model.clone_from(&self.served_model);
    }
}

/// A request whose call may be shared.
pub(crate) struct Sharing {
    pub(crate) flight: Box<Flight>,
    pub(crate) request: Arc<NormalizedRequest>,
    pub(crate) outgoing: Box<Outgoing>,
    pub(crate) key: CacheKey,
}

/// What a request does about its answer.
enum Turn {
    Hit(Hit),
    Lead(PartUpstream, PartReader),
    Follow(PartReader),
}

impl Sharing {
    /// Answers whole, by a call of its own or an equal request's.
    ///
    /// The loop ends: each round either leads, or waits for a call of somebody else to end, and the deadline bounds
    /// them all.
    pub(crate) async fn whole(mut self) -> Result<Reply<Body>, Failure> {
        loop {
            match self.join() {
                Turn::Hit(hit) => return hit.whole(self.flight).await,
                Turn::Lead(upstream, reader) => {
                    return Leader::begin(self, upstream, reader, leader::whole).whole().await;
                }
                Turn::Follow(reader) => {
                    let followed = Follower::new(reader, self.flight.deadline(), &self.flight.state);
                    match self.follow(followed).await {
                        Ok(Some((Part::Whole(origin, raw), _))) => {
                            origin.note(&mut self.flight);
                            self.flight.spans.first_byte = Some(self.flight.now());
                            return Ok(Reply { head: finish(self.flight).await?, body: Body::Raw(raw) });
                        }
                        Ok(Some(_)) => return Err(self.flight.fail(wrong_form(), false).await),
                        Ok(None) => {}
                        Err(error) => return Err(self.flight.fail(error, false).await),
                    }
                }
            }
        }
    }

    /// Answers as a stream; as [`Sharing::whole`].
    pub(crate) async fn stream(mut self) -> Result<Reply<StreamBody>, Failure> {
        loop {
            match self.join() {
                Turn::Hit(hit) => return hit.stream(self.flight).await,
                Turn::Lead(upstream, reader) => {
                    return Leader::begin(self, upstream, reader, leader::stream).stream().await;
                }
                Turn::Follow(reader) => {
                    let followed = Follower::new(reader, self.flight.deadline(), &self.flight.state);
                    match self.follow(followed).await {
                        Ok(Some((Part::Opened(origin), mut follower))) => {
                            origin.note(&mut self.flight);
                            self.flight.spans.first_byte = Some(self.flight.now());
                            // The status line goes out with what is returned here: there is no way back.
                            follower.commit();
                            let mut head = self.flight.head(gw_types::Outcome::Ok);
                            head.refresh(&self.flight);
                            let relay = Relay::following(follower, self.flight);
                            return Ok(Reply { head, body: StreamBody::Relay(Box::new(relay)) });
                        }
                        Ok(Some(_)) => return Err(self.flight.fail(wrong_form(), false).await),
                        Ok(None) => {}
                        Err(error) => return Err(self.flight.fail(error, false).await),
                    }
                }
            }
        }
    }

    fn join(&mut self) -> Turn {
        let joined = self.flight.state.shared.join(&self.key);
        let again = match &joined {
            // An answer is stored before its call leaves the map: who has missed both comes here.
            Joined::Lead(..) => {
                let (outgoing, flight) = (&self.outgoing, &mut self.flight);
                outgoing.write.as_ref().and_then(|write| write.look_again(flight, &self.request))
            }
            Joined::Follow(_) => None,
        };
        match (again, joined) {
            (Some(hit), _) => {
                note_hit(&mut self.flight, &hit);
                Turn::Hit(hit)
            }
            (None, Joined::Lead(upstream, reader)) => Turn::Lead(upstream, reader),
            (None, Joined::Follow(reader)) => Turn::Follow(reader),
        }
    }

    /// Waits for what says that the answer is here; `None`: join again.
    async fn follow(&mut self, mut follower: Follower) -> Result<Option<(Part, Follower)>, GatewayError> {
        let now = self.flight.now();
        self.flight.record().cache = CacheState::Coalesced;
        self.flight.spans.first_call.get_or_insert(now);
        match follower.first().await {
            Ok(Some(part)) => Ok(Some((part, follower))),
            Ok(None) => {
                self.flight.record().cache = CacheState::Miss;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn wrong_form() -> GatewayError {
    GatewayError::new(ErrorKind::Internal, "the shared answer has another form than the request asked for")
}
