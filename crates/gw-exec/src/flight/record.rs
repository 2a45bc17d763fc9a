//! A record before anything has happened, and what failures say about the bill.

use gw_types::{
    AccountingRecord, AttemptRecord, Billing, BoundedText, CacheState, DecisionRecord, GatewayError,
    KeyIdentity, LatencySplit, Money, Outcome, Prepared, RequestId, TraceContext, Usage, UtcTime,
};

use super::Flight;

impl Flight {
    /// Tells the provider the place of its call in the trace, where spans are told of.
    pub(crate) fn tell_place(&mut self, call: &AttemptRecord, prepared: &mut Prepared) {
        if self.state.spans {
            let record = self.record();
            let place = TraceContext::of_attempt(record.traceparent.as_ref(), &record.id, call);
            prepared.traceparent = Some(BoundedText::new(&place.to_string()));
        }
    }
}

/// Returns the record of a request that goes away at once.
pub(super) fn blank_record(
    id: RequestId,
    identity: &KeyIdentity,
    started: UtcTime,
    config: &BoundedText,
) -> AccountingRecord {
    AccountingRecord {
        id,
        tenant: identity.tenant.clone(),
        key: identity.key.clone(),
        started,
        config: config.clone(),
        client_request_id: None,
        traceparent: None,
        prompt_version: None,
        schema_version: None,
        facts: None,
        route: None,
        primary: None,
        serving: None,
        model_version: None,
        served_model: None,
        replay_of: None,
        origin: None,
        decision: DecisionRecord::default(),
        attempts: Vec::new(),
        cache: CacheState::Bypass,
        usage: Usage::default(),
        cost: Money::ZERO,
        saved: Money::ZERO,
        priced_by_fallback: false,
        reserved: Money::ZERO,
        overrun: Money::ZERO,
        side_costs: Vec::new(),
        loss: Vec::new(),
        answer_schema: None,
        outcome: Outcome::Cancelled,
        error: None,
        latency: LatencySplit::default(),
    }
}

/// Says whether a provider may bill a call that failed so, by kind and occurrence.
pub(super) fn may_be_billed(error: &GatewayError) -> bool {
    match error.kind().billing() {
        Billing::Never => false,
        Billing::IfAmbiguous => error.is_ambiguous(),
        Billing::Likely => true,
    }
}
