//! What one call takes at its deployment before it is made: a slot, its share of the deployment's own limits, tokens in
//! flight, and its instant in the pace. In this order, so that who waits holds nothing that it is not about to use.

use std::sync::Arc;

use gw_limits::Worth;
use gw_types::{Deployment, GatewayError, MonoTime, TokenCount, UtcTime};

use crate::{flight::Flight, held::CallHeld, pinned::TargetState};

/// Why a deployment is passed over without a call; nothing of it is held.
#[derive(Debug)]
pub(crate) struct Unavailable {
    /// For the record.
    pub(crate) reason: &'static str,
    /// For the caller, if nobody else can be asked.
    pub(crate) error: GatewayError,
}

/// What a call is going to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Tokens that the deployment's own windows count.
    pub(crate) tokens: TokenCount,
    /// Tokens in flight: the input and all of the output bound.
    pub(crate) in_flight: TokenCount,
    pub(crate) worth: Worth,
}

/// Takes everything, waiting where there is a line.
pub(crate) async fn take(
    flight: &mut Flight,
    index: usize,
    deployment: &Deployment,
    wanted: Wanted,
) -> Result<(), Unavailable> {
    let policy = Arc::clone(&flight.policy);
    let state = policy.target_state(index);
    let taken = match take_at_once(flight, state, wanted) {
        Ok(()) if state.lane.is_open() => return Ok(()),
        Ok(()) => {
            let began = flight.now();
            flight.spans.wait(began);
            let waited = wait_in_lane(flight, state, deployment, wanted.in_flight, began).await;
            flight.spans.waited(flight.state.clock.now());
            waited
        }
        Err(unavailable) => Err(unavailable),
    };
    taken.inspect_err(|_| flight.held.call.release())
}

fn take_at_once(flight: &mut Flight, state: &TargetState, wanted: Wanted) -> Result<(), Unavailable> {
    let (now, utc) = (flight.now(), flight.state.clock.utc());
    flight.held.call = at_once(state, wanted, now, utc)?;
    Ok(())
}

/// Takes everything for a second call, if it is there without waiting. Where there is a line, nothing is.
pub(crate) fn take_spare(
    state: &TargetState,
    wanted: Wanted,
    now: MonoTime,
    utc: UtcTime,
) -> Option<CallHeld> {
    if !state.lane.is_open() {
        return None;
    }
    at_once(state, wanted, now, utc).ok()
}

/// Takes what is never waited for; what was taken before a part refuses goes back at once.
fn at_once(
    state: &TargetState,
    wanted: Wanted,
    now: MonoTime,
    utc: UtcTime,
) -> Result<CallHeld, Unavailable> {
    let mut held = CallHeld::default();
    if let Some(slots) = &state.slots {
        let slot = slots.try_acquire();
        held.slot = Some(slot.map_err(|error| Unavailable { reason: "concurrency", error })?);
    }
    let Some(limits) = &state.limits else { return Ok(held) };
    let admission = limits.admit(wanted.tokens, now);
    held.admission = Some(admission.map_err(|refusal| Unavailable { reason: "rate", error: refusal.error })?);
    let reservation = limits.reserve(wanted.worth, utc);
    held.reservation =
        Some(reservation.map_err(|refusal| Unavailable { reason: "budget", error: refusal.error })?);
    Ok(held)
}

/// Waits for tokens in flight and for the pace, as long as an attempt still fits into the deadline afterwards.
///
/// The pace comes last, because calls must be that far apart when they are made.
async fn wait_in_lane(
    flight: &mut Flight,
    state: &TargetState,
    deployment: &Deployment,
    in_flight: TokenCount,
    now: MonoTime,
) -> Result<(), Unavailable> {
    let clock = Arc::clone(&flight.state.clock);
    let latest = now.saturating_add(flight.remaining(now).saturating_sub(deployment.timing.min_attempt));
    if let Some(budget) = &state.lane.tokens {
        let no = |error| Unavailable { reason: "in_flight_tokens", error };
        let waiting = budget.join(in_flight, &clock, latest).map_err(no)?;
        flight.held.call.tokens = Some(waiting.await.map_err(no)?);
    }
    if let Some(pacer) = &state.lane.pacer {
        let no = |error| Unavailable { reason: "requests_per_second", error };
        pacer.join(&clock, latest).map_err(no)?.await;
    }
    Ok(())
}
