//! Failures that the next items would share: a wrong key fails ten times, not ten thousand times.

use gw_types::ErrorKind;

/// Failures in a row of a class that no item can escape, after which a batch stops.
const RUN: u32 = 3;

/// Failures in a row of a class that mostly means a wrong endpoint or model, as long as no item was ever answered.
const RUN_BEFORE_SUCCESS: u32 = 5;

/// What a class of failure says about the items that come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Nothing: it is about this item, or may pass by itself.
    Item,
    /// They will fail likewise, unless others were answered before.
    Setup,
    /// They will fail likewise.
    Everyone,
}

const fn reach(kind: ErrorKind) -> Reach {
    use ErrorKind as K;
    match kind {
        K::Unauthenticated | K::Forbidden | K::QuotaExceeded | K::ProviderAuth => Reach::Everyone,
        K::UnknownModel
        | K::DeploymentMissing
        | K::MalformedResponse
        | K::NoRouteAvailable
        | K::Transport => Reach::Setup,
        K::InvalidRequest
        | K::Intake
        | K::TranslationLoss
        | K::IdempotencyConflict
        | K::NotCached
        | K::ContextLengthExceeded
        | K::ContentFiltered
        | K::PolicyViolation
        | K::RateLimited
        | K::Overloaded
        | K::ProviderRateLimited
        | K::ProviderUnavailable
        | K::ProviderTimeout
        | K::StreamInterrupted
        | K::StatePinned
        | K::BudgetExhausted
        | K::DeadlineExceeded
        | K::Cancelled
        | K::Internal => Reach::Item,
    }
}

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    answered: bool,
    run: u32,
    /// The first failure of the run that was its own cause; later ones may only say that nobody is asked any more.
    cause: Option<ErrorKind>,
}

impl Circuit {
    /// Takes what an item came to; returns the class for which the batch must stop.
    pub(super) fn judge(&mut self, class: Option<ErrorKind>) -> Option<ErrorKind> {
        let Some(kind) = class else {
            *self = Self { answered: true, ..Self::default() };
            return None;
        };
        let needed = match reach(kind) {
            Reach::Everyone => RUN,
            Reach::Setup if !self.answered => RUN_BEFORE_SUCCESS,
            // A breaker that a wrong key has opened refuses what comes next; that is the same run.
            Reach::Setup if kind == ErrorKind::NoRouteAvailable && self.run > 0 => RUN,
            Reach::Setup | Reach::Item => {
                (self.run, self.cause) = (0, None);
                return None;
            }
        };
        self.run += 1;
        let cause = *self.cause.get_or_insert(kind);
        (self.run >= needed).then_some(cause)
    }
}

#[cfg(test)]
mod tests {
    use gw_types::ErrorKind as K;

    use super::Circuit;

    fn check(classes: &[Option<K>], expected: Option<K>) {
        let mut circuit = Circuit::default();
        let stop = classes.iter().map(|class| circuit.judge(*class)).fold(None, Option::or);
        assert_eq!(stop, expected, "{classes:?}");
    }

    #[test]
    fn a_class_that_reaches_everyone_stops_after_three_in_a_row() {
        check(&[Some(K::ProviderAuth); 2], None);
        check(&[Some(K::ProviderAuth); 3], Some(K::ProviderAuth));
        check(
            &[None, Some(K::QuotaExceeded), Some(K::QuotaExceeded), Some(K::QuotaExceeded)],
            Some(K::QuotaExceeded),
        );
        check(&[Some(K::ProviderAuth), Some(K::ProviderAuth), None, Some(K::ProviderAuth)], None);
    }

    #[test]
    fn a_wrong_setup_stops_only_as_long_as_nothing_was_answered() {
        check(&[Some(K::MalformedResponse); 5], Some(K::MalformedResponse));
        check(&[Some(K::Transport); 4], None);
        let mut later = vec![None];
        later.extend([Some(K::MalformedResponse); 50]);
        check(&later, None);
    }

    #[test]
    fn the_first_of_a_run_is_its_cause() {
        check(
            &[
                Some(K::ProviderAuth),
                Some(K::ProviderAuth),
                Some(K::NoRouteAvailable),
                Some(K::NoRouteAvailable),
                Some(K::NoRouteAvailable),
            ],
            Some(K::ProviderAuth),
        );
    }

    #[test]
    fn failures_of_single_items_never_stop() {
        check(&[Some(K::ProviderUnavailable); 100], None);
        check(&[Some(K::ContentFiltered); 100], None);
    }
}
