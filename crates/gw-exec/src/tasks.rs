//! The work that goes on without the request that began it: shared calls, judgements, vectors of answers to keep.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinSet};

/// The tasks of a gateway; dropping it ends them.
///
/// A task is a call that somebody waits for, so there are no more of them than requests that were let in, or one of the
/// background work that whoever spawns it bounds.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Returns whether there is a runtime to run a task on.
    pub(crate) fn can_spawn(&self) -> bool {
        Handle::try_current().is_ok()
    }

    /// Runs a future to its end. Needs a runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock();
        // Ended ones are forgotten here.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Returns how many tasks have not ended.
    pub(crate) fn len(&self) -> usize {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }

    /// Waits until every task has ended, those included that are begun meanwhile.
    pub(crate) async fn ended(&self) {
        while self.len() > 0 {
            let mut begun = std::mem::take(&mut *self.0.lock());
            while begun.join_next().await.is_some() {}
        }
    }
}

/// How much of one kind of work is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    /// Takes a place; `None` where as many as `max` are taken.
    pub(crate) fn take(&self, max: usize) -> Option<WorkPlace> {
        let place = WorkPlace(self.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < max).then_some(place)
    }
}

/// A place among the work under way, given back on drop.
#[derive(Debug)]
pub(crate) struct WorkPlace(UnderWay);

impl Drop for WorkPlace {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
