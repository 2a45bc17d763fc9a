//! Steps 2, 3 and 7: what the limits of the caller say, and what a request takes from them.

use std::{sync::Arc, time::Duration};

use gw_limits::{InputEstimate, ScopeRefusal, SubjectIds, Ticket, Worth};
use gw_types::{
    BoundedText, Deployment, GatewayError, LimiterVerdict, NormalizedRequest, RouteName, TokenCount,
};

use crate::{
    estimate,
    flight::Flight,
    policy::{QueuePolicy, RoutePolicy, TokenFacts},
};

/// Resolves everyone whom the request concerns, now that its model is known.
pub(crate) fn resolve_subject(flight: &mut Flight, model: &str) {
    if !flight.policy.has_narrow_scopes() {
        return;
    }
    let record = flight.record();
    let (tenant, key) = (record.tenant.clone(), record.key.clone());
    let ids = SubjectIds { key: Some(key.as_str()), tenant: tenant.as_str(), model: Some(model) };
    if let Some(subject) = flight.state.limits.subject(&ids) {
        flight.subject = subject;
    }
}

/// Step 2: refuses if a money window of anyone concerned is spent.
pub(crate) fn check_quota(flight: &mut Flight) -> Result<(), GatewayError> {
    let utc = flight.state.clock.utc();
    flight.subject.check_quota(utc).map_err(|refusal| refused(flight, refusal))
}

/// Step 3: takes the request and the tokens that it will use, as far as they can be known before its route is.
pub(crate) fn admit(flight: &mut Flight, request: &NormalizedRequest) -> Result<(), GatewayError> {
    let tokens =
        if flight.expected.has_token_limit { tokens_anywhere(flight, request) } else { TokenCount::ZERO };
    let now = flight.now();
    let admission = flight.subject.admit(tokens, now).map_err(|refusal| refused(flight, refusal))?;
    flight.held.admission = Some(admission);
    flight.record().decision.limiter = Some(LimiterVerdict::ADMITTED);
    Ok(())
}

fn tokens_anywhere(flight: &mut Flight, request: &NormalizedRequest) -> TokenCount {
    let facts = &request.facts;
    let tenant = flight.record().tenant.clone();
    let estimator = &flight.state.estimator;
    let bound = estimate::input_bound(facts, &TokenFacts::default());
    let input = estimator.input_estimate(None, &tenant, flight.expected.raw_anywhere, bound).likely;
    flight.expected.input = input;
    if !request.operation.generates() {
        return input;
    }
    let usual = estimator.reserve_quantile(&tenant, None, None);
    let unnamed = || usual.unwrap_or_else(|| flight.policy.unnamed_output());
    let output = match facts.output {
        Some(named) => usual.map_or(named.tokens, |usual| usual.min(named.tokens)),
        None => unnamed(),
    };
    input.saturating_add(estimate::times(output, facts.choices.max(1)))
}

/// What is expected of a request at one deployment: the likely input, and what it may cost there.
pub(crate) fn expect_at(flight: &mut Flight, request: &NormalizedRequest, target: usize) -> InputEstimate {
    if let Some((_, input)) = flight.expected.at.filter(|(at, _)| *at == target) {
        return input;
    }
    let policy = Arc::clone(&flight.policy);
    let (tokens, deployment) = (&policy.deployment_policy(target).tokens, &policy.target(target).deployment);
    let raw = estimate::raw_input(&request.facts, tokens);
    let bound = estimate::input_bound(&request.facts, tokens);
    let tenant = flight.record().tenant.clone();
    let input = flight.state.estimator.input_estimate(Some(&deployment.name), &tenant, raw, bound);
    (flight.expected.raw_input, flight.expected.input) = (raw, input.likely);
    flight.expected.at = Some((target, input));
    if let Some(facts) = &mut flight.record().facts {
        facts.calibrated_input = Some(input.likely).filter(|likely| *likely != facts.estimated_input);
    }
    input
}

/// Estimates how long each answer will be, now that the route is known: what nine of ten answers of its kind do not
/// pass; before there is evidence, what the caller named or the route's default; never more than the bound.
pub(crate) fn expect_output(
    flight: &mut Flight,
    request: &NormalizedRequest,
    (route, policy): (&RouteName, &RoutePolicy),
    bound: TokenCount,
) {
    let tenant = flight.record().tenant.clone();
    let usual =
        flight.state.estimator.reserve_quantile(&tenant, Some(route), request.context.task_class.as_ref());
    let named = request.facts.output.map(|output| output.tokens);
    let unnamed = || policy.default_max_output_tokens.unwrap_or_else(|| flight.policy.unnamed_output());
    let output = usual.unwrap_or_else(|| named.unwrap_or_else(unnamed)).min(bound);
    flight.expected.output = output;
    if let Some(facts) = &mut flight.record().facts {
        facts.estimated_output = Some(output);
    }
}

/// Step 7: takes other tokens in the place of those of step 3, now that route and deployment are known. Windows settle
/// exactly, so an answer that is longer than expected is debt and not a refusal.
pub(crate) fn adjust_tokens(flight: &mut Flight) -> Result<(), GatewayError> {
    let has_token_limit = flight.expected.has_token_limit;
    let Some(admission) = flight.held.admission.take_if(|_| has_token_limit) else { return Ok(()) };
    let tokens = flight.expected.tokens();
    let adjusted = admission.adjust(tokens, flight.now()).map_err(|refusal| refused(flight, refusal))?;
    flight.held.admission = Some(adjusted);
    Ok(())
}

/// Step 7: takes a slot, or waits for one in the queue. Before the money: who waits holds none of it.
pub(crate) async fn take_slot(flight: &mut Flight, needs: Duration) -> Result<(), GatewayError> {
    let QueuePolicy { max_queue, weight, priority } = flight.queue;
    let (input, deadline) = (flight.expected.input, flight.deadline());
    let ticket = Ticket { priority, weight, input, max_queue, deadline, needs };
    let clock = Arc::clone(&flight.state.clock);
    let waiting = flight.subject.acquire(ticket, &clock)?;
    let slot = if waiting.is_ready() {
        waiting.await
    } else {
        flight.spans.wait(clock.now());
        let slot = waiting.await;
        flight.spans.waited(clock.now());
        slot
    };
    flight.held.slot = Some(slot?);
    Ok(())
}

/// Step 7: holds what the request may cost, in every money window of its caller.
pub(crate) fn reserve(flight: &mut Flight, worth: Worth) -> Result<(), GatewayError> {
    let utc = flight.state.clock.utc();
    let reservation = flight.subject.reserve(worth, utc).map_err(|refusal| refused(flight, refusal))?;
    flight.held.reservation = Some(reservation);
    Ok(())
}

/// Returns the output bound to send where a limit applies, so that one request cannot take a whole budget. What the
/// caller named is kept, as far as the deployment can answer so long.
pub(crate) fn output_bound(
    request: &NormalizedRequest,
    route: &RoutePolicy,
    deployment: &Deployment,
) -> TokenCount {
    if !request.operation.generates() {
        return TokenCount::ZERO;
    }
    let named = request.facts.output.map(|output| output.tokens);
    let bound = named.or(route.default_max_output_tokens).unwrap_or(OUTPUT_BOUND);
    deployment.max_output_tokens.map_or(bound, |largest| bound.min(largest))
}

/// The output bound of a request that names none where neither its route nor its deployment says more, in tokens.
pub(crate) const OUTPUT_BOUND: TokenCount = TokenCount::new(4_096);

/// Puts every limit that refused into the record.
pub(crate) fn refused(flight: &mut Flight, refusal: ScopeRefusal) -> GatewayError {
    let refused_by = refusal.refused_by.iter().map(|limit| BoundedText::new(&limit.to_string())).collect();
    flight.record().decision.limiter = Some(LimiterVerdict::refused(refused_by));
    refusal.error
}

/// Puts what the pool or its queue said into the record; a deadline that passed there is no verdict of a limit.
pub(crate) fn turned_away(flight: &mut Flight, error: GatewayError) -> GatewayError {
    if let Some(subject) = error.subject() {
        let refused_by = subject.split(", ").map(BoundedText::new).collect();
        flight.record().decision.limiter = Some(LimiterVerdict::refused(refused_by));
    }
    error
}
