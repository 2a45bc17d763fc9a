//! The most that a batch may cost: held before an item begins, settled when it has ended.

use gw_routing::{AllAvailable, Live, RouteQuery};
use gw_types::{Classification, KeyIdentity, Money, NormalizedRequest};

use crate::{Gateway, admission::OUTPUT_BOUND, estimate};

/// Spent + held <= limit, as long as providers honour the bounds that they are sent.
#[derive(Debug)]
pub(super) struct Purse {
    limit: Money,
    spent: Money,
    held: Money,
}

impl Purse {
    pub(super) const fn new(limit: Money) -> Self {
        Self { limit, spent: Money::ZERO, held: Money::ZERO }
    }

    /// Holds an amount; returns whether it fits.
    pub(super) fn hold(&mut self, amount: Money) -> bool {
        let held = self.held.saturating_add(amount);
        let fits = self.spent.saturating_add(held) <= self.limit;
        if fits {
            self.held = held;
        }
        fits
    }

    /// Replaces what was held by what was spent.
    pub(super) fn settle(&mut self, held: Money, spent: Money) {
        self.held = self.held.saturating_sub(held);
        self.spent = self.spent.saturating_add(spent);
    }
}

/// Returns the most that a request can cost: the dearest deployment that may answer it, as often as it may be called.
///
/// Nothing where nobody may answer: such an item is refused without a call.
pub(super) fn most(gateway: &Gateway, caller: &KeyIdentity, request: &NormalizedRequest) -> Money {
    let policy = gateway.policy();
    let facts = &request.facts;
    let tenant = policy.tenant(&caller.tenant);
    let classification = request.context.classification;
    let classification = classification
        .or(tenant.map(|tenant| tenant.default_classification))
        .unwrap_or(Classification::Restricted);
    let query = RouteQuery {
        needs: facts.needs,
        input_tokens_at_least: estimate::input_at_least(facts),
        output_tokens: facts.output.map(|output| output.tokens),
        audio: facts.audio,
        images: facts.images > 0,
        ..RouteQuery::new(&facts.model, &caller.tenant, classification)
    };
    let state = gateway.state();
    let pinned = gateway.pinned();
    let live = Live {
        now: state.clock.now(),
        availability: &AllAvailable,
        in_flight: &|_| 0,
        worst_case: &|_| Money::ZERO,
        random: state.random.as_ref(),
        strategies: pinned.strategies(),
    };
    let selection = policy.router().select(&query, &live);
    let Some(route) = selection.route else { return Money::ZERO };
    let named = facts.output.map(|output| output.tokens);
    let bound = named.unwrap_or(policy.unnamed_output().max(OUTPUT_BOUND));
    let once = selection.chain.iter().map(|index| {
        let deployment = &policy.target(*index).deployment;
        estimate::worst_case(facts, &policy.deployment_policy(*index).tokens, bound, deployment)
    });
    let once = once.max().unwrap_or(Money::ZERO);
    let attempts =
        selection.chain.iter().map(|index| policy.target(*index).deployment.max_attempts.get()).sum::<u32>();
    let attempts = attempts.min(policy.route(route).1.max_attempts.get());
    Money::from_pico(once.pico().saturating_mul(u128::from(attempts)))
}

#[cfg(test)]
mod tests {
    use gw_types::Money;

    use super::Purse;

    #[test]
    fn what_is_held_and_spent_never_passes_the_limit() {
        let micros = Money::from_micros;
        let mut purse = Purse::new(micros(10));
        assert!(purse.hold(micros(6)));
        assert!(!purse.hold(micros(5)));
        assert!(purse.hold(micros(4)));
        purse.settle(micros(6), micros(1));
        assert!(purse.hold(micros(5)));
        assert!(!purse.hold(micros(1)));
    }
}
