//! The health of several credentials of one deployment: a key that is refused or limited is left alone, and another is
//! used in its place.
//!
//! Kept for each deployment by itself, because providers limit and permit by model: a key that has spent its rate at one
//! model may have all of it at another.

use std::{sync::Arc, time::Duration};

use gw_types::{CredentialName, GatewayError, Health, MonoTime, Random};

use super::{Access, Bar, Breaker, Ticket};

/// How long a credential rests after a 429 that does not say for how long: the first delay of AWS's rules of 2026 for
/// throttling.
const REST: Duration = Duration::from_secs(1);

/// The credentials of one deployment, in configured order. Empty where its provider has one alone: then whatever
/// concerns it concerns the deployment.
#[derive(Debug, Default)]
pub(crate) struct Credentials(Vec<(CredentialName, Arc<Breaker>)>);

/// Which credentials of a deployment a request has been refused with, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried(u32);

/// A credential that a call is made with.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// Its place among the deployment's.
    pub(crate) index: usize,
    ticket: Ticket,
}

impl Tried {
    pub(crate) fn add(&mut self, index: usize) {
        self.0 |= 1_u32.checked_shl(u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0);
    }

    fn has(self, index: usize) -> bool {
        index < 32 && self.0 & (1 << index) != 0
    }
}

impl Credentials {
    pub(crate) fn new(credentials: Vec<(CredentialName, Arc<Breaker>)>) -> Self {
        Self(credentials)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(CredentialName, Arc<Breaker>)> {
        self.0.iter()
    }

    /// Returns what a request finds: one credential that may be used is enough.
    pub(crate) fn look(&self, now: MonoTime) -> Access {
        let mut barred: Option<(MonoTime, Bar)> = None;
        for (_, breaker) in &self.0 {
            match breaker.look(now) {
                Access::Free | Access::Share(_) | Access::Probe => return Access::Free,
                Access::Barred { until, why } => {
                    barred = Some(barred.filter(|(first, _)| *first <= until).unwrap_or((until, why)));
                }
            }
        }
        barred.map_or(Access::Free, |(until, why)| Access::Barred { until, why })
    }

    /// Returns whether another one than those that were tried may be used now.
    pub(crate) fn has_other(&self, tried: Tried, now: MonoTime) -> bool {
        let may = |(index, (_, breaker)): (usize, &(CredentialName, Arc<Breaker>))| {
            !tried.has(index) && !matches!(breaker.look(now), Access::Barred { .. })
        };
        self.0.iter().enumerate().any(may)
    }

    /// Takes the first credential that may be used and was not tried. Where none may and `is_only` says that nobody else
    /// can be asked, the one that recovers first.
    ///
    /// # Errors
    /// What bars the one that recovers first, and until when.
    pub(crate) fn choose(
        &self,
        tried: Tried,
        is_only: bool,
        now: MonoTime,
        random: &dyn Random,
    ) -> Result<Option<Chosen>, (Bar, MonoTime)> {
        let mut first: Option<(usize, Bar, MonoTime)> = None;
        for (index, (_, breaker)) in self.0.iter().enumerate().filter(|(index, _)| !tried.has(*index)) {
            match breaker.enter(false, now, random) {
                Ok(ticket) => return Ok(Some(Chosen { index, ticket })),
                Err((why, until)) => {
                    first = Some(first.filter(|(.., least)| *least <= until).unwrap_or((index, why, until)));
                }
            }
        }
        let Some((index, why, until)) = first else { return Ok(None) };
        if !is_only {
            return Err((why, until));
        }
        let ticket = self.0[index].1.enter(true, now, random)?;
        Ok(Some(Chosen { index, ticket }))
    }
}

impl Chosen {
    /// Notes that a stream has said something that counts.
    pub(crate) fn opened(&mut self, now: MonoTime, random: &dyn Random) {
        self.ticket.opened(now, random);
    }

    /// Says what became of the call. What is not about the credential is no evidence for or against it.
    pub(crate) fn judge(self, result: Result<(), &GatewayError>, now: MonoTime, random: &dyn Random) {
        let Err(error) = result else { return self.ticket.judge(Ok(()), now, random) };
        match error.kind().harms_health() {
            // Refused is refused: a second opinion costs a request, and the other credentials are at hand.
            Health::Credential => self.ticket.refused(now, random),
            // A 429 that says "never" means that nothing is left on the account.
            Health::Cooldown if error.retry_after().is_none() && !error.may_retry() => {
                self.ticket.refused(now, random);
            }
            Health::Cooldown => self.ticket.rest(error.retry_after().unwrap_or(REST), now),
            Health::Harmless | Health::Deployment | Health::DeploymentIfFullTime => {}
        }
    }
}

/// Returns whether an error is about the credential and not about the deployment, where there are several.
pub(crate) fn concerns_credential(error: &GatewayError) -> bool {
    match error.kind().harms_health() {
        Health::Credential | Health::Cooldown => true,
        Health::Harmless | Health::Deployment | Health::DeploymentIfFullTime => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use gw_types::{ErrorKind, GatewayError, MonoTime, SeededRandom};

    use super::{Access, Credentials, Tried};

    fn two() -> Credentials {
        Credentials::new(vec![("a".parse().unwrap(), Arc::default()), ("b".parse().unwrap(), Arc::default())])
    }

    fn at(millis: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(millis))
    }

    /// Judges a call of the first credential, and returns which one is used so much later.
    fn check(error: Option<&GatewayError>, later_ms: u64, expected: usize) {
        let (credentials, random) = (two(), SeededRandom::new(1));
        let chosen = credentials.choose(Tried::default(), false, at(0), &random).unwrap().unwrap();
        assert_eq!(chosen.index, 0);
        chosen.judge(error.map_or(Ok(()), Err), at(0), &random);
        let next = credentials.choose(Tried::default(), false, at(later_ms), &random).unwrap().unwrap();
        assert_eq!(next.index, expected, "{error:?} {later_ms}");
    }

    #[test]
    fn one_that_is_refused_or_limited_rests() {
        let error = |kind| GatewayError::new(kind, "x");
        check(None, 1, 0);
        check(Some(&error(ErrorKind::ProviderAuth)), 1, 1);
        check(Some(&error(ErrorKind::ProviderAuth)), 20_000, 1);
        check(Some(&error(ErrorKind::ProviderAuth)), 30_000, 0);
        let limited = || error(ErrorKind::ProviderRateLimited);
        check(Some(&limited()), 999, 1);
        check(Some(&limited()), 1_000, 0);
        check(Some(&limited().with_retry_after(Duration::from_secs(60))), 59_999, 1);
        check(Some(&limited().with_retry_after(Duration::from_secs(60))), 60_000, 0);
        check(Some(&limited().without_retry()), 20_000, 1);
        check(Some(&error(ErrorKind::ProviderUnavailable)), 1, 0);
        check(Some(&error(ErrorKind::ContentFiltered)), 1, 0);
    }

    #[test]
    fn where_all_rest_the_deployment_waits_for_the_first() {
        let (credentials, random) = (two(), SeededRandom::new(1));
        for seconds in [60, 20] {
            let chosen = credentials.choose(Tried::default(), false, at(0), &random).unwrap().unwrap();
            let error = GatewayError::new(ErrorKind::ProviderRateLimited, "x");
            let error = error.with_retry_after(Duration::from_secs(seconds));
            chosen.judge(Err(&error), at(0), &random);
        }
        assert!(matches!(credentials.look(at(0)), Access::Barred { until, .. } if until == at(20_000)));
        assert!(credentials.choose(Tried::default(), false, at(0), &random).is_err());
        let last = credentials.choose(Tried::default(), true, at(0), &random).unwrap().unwrap();
        assert_eq!(last.index, 1);
        assert_eq!(credentials.look(at(20_000)), Access::Free);
    }

    #[test]
    fn none_is_tried_twice() {
        let (credentials, random) = (two(), SeededRandom::new(1));
        let mut tried = Tried::default();
        tried.add(0);
        assert!(credentials.has_other(tried, at(0)));
        assert_eq!(credentials.choose(tried, true, at(0), &random).unwrap().unwrap().index, 1);
        tried.add(1);
        assert!(!credentials.has_other(tried, at(0)));
        assert!(credentials.choose(tried, true, at(0), &random).unwrap().is_none());
    }
}
