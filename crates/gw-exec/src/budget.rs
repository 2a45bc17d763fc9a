//! Retry budgets: why an outage is not made worse by retries.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use foldhash::fast::FixedState;
use gw_types::DeploymentName;
use parking_lot::Mutex;

/// A bucket of retry tokens in thousandths, so that the rule is exact.
///
/// The arithmetic of gRPC proposal A6: a failure takes one token, a success gives a tenth back, and a retry is allowed
/// only while more than half are left.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    milli: AtomicI64,
}

impl RetryBudget {
    const FULL: i64 = 10_000;
    const FAILURE: i64 = 1_000;
    const SUCCESS: i64 = 100;

    fn new() -> Self {
        Self { milli: AtomicI64::new(Self::FULL) }
    }

    pub(crate) fn failed(&self) {
        self.change(-Self::FAILURE);
    }

    pub(crate) fn succeeded(&self) {
        self.change(Self::SUCCESS);
    }

    pub(crate) fn allows_retry(&self) -> bool {
        self.milli.load(Ordering::Relaxed) > Self::FULL / 2
    }

    fn change(&self, by: i64) {
        let next = |milli: i64| Some((milli + by).clamp(0, Self::FULL));
        // A full bucket stays full: most successes write nothing that others read.
        if by > 0 && self.milli.load(Ordering::Relaxed) == Self::FULL {
            return;
        }
        let _unchanged = self.milli.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

/// The process-wide bound: retries are at most a fifth of the requests, beyond a burst of 100.
#[derive(Debug)]
pub(crate) struct RetryRatio {
    milli: AtomicI64,
}

impl RetryRatio {
    const BURST: i64 = 100_000;
    const PER_REQUEST: i64 = 200;
    const RETRY: i64 = 1_000;

    fn new() -> Self {
        Self { milli: AtomicI64::new(Self::BURST) }
    }

    pub(crate) fn request(&self) {
        if self.milli.load(Ordering::Relaxed) < Self::BURST {
            self.milli.fetch_add(Self::PER_REQUEST, Ordering::Relaxed);
        }
    }

    /// Takes a retry out of the bound; returns whether there was one.
    pub(crate) fn take(&self) -> bool {
        let next = |milli: i64| (milli >= Self::RETRY).then_some(milli - Self::RETRY);
        self.milli.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// Every retry budget. They outlive a reload: the key is the deployment's name.
#[derive(Debug)]
pub(crate) struct RetryBudgets {
    ratio: RetryRatio,
    deployments: Mutex<HashMap<DeploymentName, Arc<RetryBudget>, FixedState>>,
}

impl Default for RetryBudgets {
    fn default() -> Self {
        Self { ratio: RetryRatio::new(), deployments: Mutex::default() }
    }
}

impl RetryBudgets {
    pub(crate) fn ratio(&self) -> &RetryRatio {
        &self.ratio
    }

    /// Returns the deployment's budget; names come from the configuration, so the map is bounded by it.
    pub(crate) fn deployment(&self, name: &DeploymentName) -> Arc<RetryBudget> {
        let mut deployments = self.deployments.lock();
        if let Some(budget) = deployments.get(name) {
            return Arc::clone(budget);
        }
        let budget = Arc::new(RetryBudget::new());
        deployments.insert(name.clone(), Arc::clone(&budget));
        budget
    }
}

#[cfg(test)]
mod tests {
    use super::{RetryBudget, RetryRatio};

    #[test]
    fn five_failures_close_the_budget_and_successes_reopen_it() {
        let budget = RetryBudget::new();
        (0..4).for_each(|_| budget.failed());
        assert!(budget.allows_retry());
        budget.failed();
        assert!(!budget.allows_retry());
        budget.succeeded();
        assert!(budget.allows_retry());
    }

    #[test]
    fn i17_retries_stay_below_a_fifth_of_the_requests_beyond_the_burst() {
        let ratio = RetryRatio::new();
        let retries = (0..1_000).filter(|_| {
            ratio.request();
            ratio.take()
        });
        assert!(retries.count() <= 100 + 1_000 / 5);
    }
}
