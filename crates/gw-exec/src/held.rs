//! What a request holds, and gives back when it closes.

use gw_limits::{Admission, DeploymentSlot, Reservation, Slot, TokensInFlight};
use gw_types::{Money, MonoTime, TokenCount};
use smallvec::SmallVec;

use crate::{
    health::{Chosen, Ticket},
    hedge::Rival,
    idempotency::Claim,
    shared_limits::SharedHeld,
};

/// What a request holds in the scopes of its caller.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) admission: Option<Admission>,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) slot: Option<Slot>,
    /// What its open call holds.
    pub(crate) call: CallHeld,
    /// What it holds of the limits that replicas share: the first, and what later deployments needed on top of it.
    pub(crate) shared_limits: SmallVec<[SharedHeld; 1]>,
    /// What its open call will say about the deployment's health.
    pub(crate) ticket: Option<Ticket>,
    /// The credential that its open call is made with, where there are several.
    pub(crate) credential: Option<Chosen>,
    /// Its second call, while two are open.
    pub(crate) rival: Option<Box<Rival>>,
    /// Its idempotency key.
    pub(crate) claim: Option<Box<Claim>>,
}

/// What one call holds at its deployment. Settled with every attempt: each deployment pays for its own calls.
#[derive(Debug, Default)]
pub(crate) struct CallHeld {
    pub(crate) slot: Option<DeploymentSlot>,
    pub(crate) admission: Option<Admission>,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) tokens: Option<TokensInFlight>,
}

impl Held {
    /// Drops what would say something about health, where no call is made.
    pub(crate) fn drop_tickets(&mut self) {
        (self.ticket, self.credential) = (None, None);
    }

    /// Marks that the provider may bill from now on.
    pub(crate) fn dispatched(&mut self) {
        for reservation in [&mut self.reservation, &mut self.call.reservation].into_iter().flatten() {
            reservation.dispatched();
        }
    }
}

impl CallHeld {
    /// Marks that the provider may bill from now on.
    pub(crate) fn dispatched(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.dispatched();
        }
    }

    /// Gives everything back after a call that has cost so much.
    pub(crate) fn settle(&mut self, money: Money, tokens: TokenCount, now: MonoTime) {
        let Self { slot, admission, reservation, tokens: in_flight } = std::mem::take(self);
        // The caller's reservation says what is overrun; a deployment's cap merely spends it.
        if let Some(reservation) = reservation {
            reservation.commit(money);
        }
        if let Some(admission) = admission {
            admission.settle(tokens, now);
        }
        drop((slot, in_flight));
    }

    /// Gives everything back where no call was made.
    pub(crate) fn release(&mut self) {
        drop(std::mem::take(self));
    }
}
