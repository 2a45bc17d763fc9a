//! Two calls of one request at once: the other one beside the one that the flight is about.

use std::sync::Arc;

use gw_types::{AttemptRecord, BoundedText, ErrorKind, GatewayError, Money, SideCost, TokenCount, Usage};

use super::{Flight, record::may_be_billed};
use crate::{
    estimate,
    hedge::Rival,
    progress::{Progress, micros},
};

impl Flight {
    /// Takes in a second call that was begun. Its entry in the record stands before that of the first: the last entry is
    /// that of the call which the flight is about.
    pub(crate) fn add_rival(&mut self, rival: Rival, entry: AttemptRecord) {
        let attempts = &mut self.record().attempts;
        let at = attempts.len().saturating_sub(1);
        attempts.insert(at, entry);
        self.held.rival = Some(Box::new(rival));
        if let Some(call) = &self.call {
            call.attempted();
        }
    }

    /// Turns the two calls round: the flight is about the other one now.
    pub(crate) fn turn_to_rival(&mut self) {
        let Some(rival) = self.held.rival.as_deref_mut() else { return };
        let Some(target) = self.progress.target() else { return };
        self.progress = Progress::Called { target: rival.target, stream: true };
        rival.target = target;
        if let Some(began) = &mut self.spans.attempt {
            std::mem::swap(began, &mut rival.began);
        }
        std::mem::swap(&mut self.expected, &mut rival.expected);
        std::mem::swap(&mut self.output_bound, &mut rival.output_bound);
        std::mem::swap(&mut self.held.call, &mut rival.held);
        std::mem::swap(&mut self.held.ticket, &mut rival.ticket);
        std::mem::swap(&mut self.held.credential, &mut rival.credential);
        let bound = self.output_bound;
        let record = self.record();
        let last = record.attempts.len();
        if last >= 2 {
            record.attempts.swap(last - 2, last - 1);
        }
        if let Some(facts) = &mut record.facts {
            facts.output_bound = bound;
        }
    }

    /// Takes the place of the call that has just failed, with the second call that is still open.
    pub(crate) fn rival_takes_over(&mut self) {
        let Some(rival) = self.held.rival.take() else { return };
        let Rival { target, began, expected, output_bound, held, ticket, credential, slot } = *rival;
        drop(slot);
        self.progress = Progress::Called { target, stream: true };
        self.spans.attempt = Some(began);
        (self.expected, self.output_bound) = (expected, output_bound);
        self.held.call = held;
        (self.held.ticket, self.held.credential) = (ticket, credential);
        let record = self.record();
        let last = record.attempts.len();
        if last >= 2 {
            record.attempts.swap(last - 2, last - 1);
        }
        if let Some(facts) = &mut record.facts {
            facts.output_bound = output_bound;
        }
    }

    /// Ends the second call: with its error, or cancelled because the other one was first. It is settled as a stream that
    /// was cut before its first word: what it has read is charged, and kept apart in the record.
    pub(crate) fn end_rival(&mut self, error: Option<&GatewayError>) {
        let Some(rival) = self.held.rival.take() else { return };
        let now = self.now();
        let Rival { target, began, expected, mut held, ticket, credential, .. } = *rival;
        let record = self.record();
        let at = record.attempts.len().saturating_sub(2);
        if let Some(attempt) = record.attempts.get_mut(at) {
            attempt.duration_us = micros(now.saturating_since(began));
            attempt.error = Some(error.map_or(ErrorKind::Cancelled, GatewayError::kind));
            attempt.status = error.and_then(GatewayError::status);
            attempt.unclassified = error.is_some_and(GatewayError::is_unclassified);
            if let Some(id) = error.and_then(GatewayError::upstream_request_id) {
                attempt.upstream_request_id = Some(BoundedText::new(id));
            }
        }
        // What gw itself has cancelled is no evidence.
        if let Some(error) = error {
            self.judge_with(ticket, credential, Err(error));
        }
        if error.is_some_and(|error| !may_be_billed(error)) {
            return held.settle(Money::ZERO, TokenCount::ZERO, now);
        }
        let usage: Usage = estimate::cut_usage(expected.input, TokenCount::ZERO);
        let policy = Arc::clone(&self.policy);
        let deployment = &policy.target(target).deployment;
        let money = deployment.pricing.cost(&usage).map_or(Money::ZERO, |cost| cost.money);
        held.settle(money, usage.total(), now);
        self.sunk.money = self.sunk.money.saturating_add(money);
        self.sunk.tokens = self.sunk.tokens.saturating_add(usage.total());
        if !money.is_zero() {
            let purpose = BoundedText::new("hedge");
            let deployment = deployment.name.clone();
            self.record().side_costs.push(SideCost { purpose, deployment, cost: money });
        }
    }
}
