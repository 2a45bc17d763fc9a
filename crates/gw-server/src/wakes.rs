//! The waker of one future inside of a task: it tells a wake while the future is polled from one that comes later.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// The future waits, and nobody polls it.
const IDLE: u8 = 0;
/// The future is being polled.
const POLLED: u8 = 1;
/// The future is to be polled: by the one who polls it, or by the task, which was woken.
const WOKEN: u8 = 2;

/// Who wakes the future and whom that wakes. A new one counts as woken: the first poll is due.
pub(crate) struct Wakes {
    own: Arc<Own>,
    waker: Waker,
}

#[derive(Debug)]
struct Own {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A swap and not a store, so that who polls next sees what the waker of this saw.
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

impl Wakes {
    pub(crate) fn new() -> Self {
        let own = Arc::new(Own { state: AtomicU8::new(WOKEN), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&own));
        Self { own, waker }
    }

    /// Has later wakes wake this task. Comes before the look at the state, so that a wake between the two is not lost.
    pub(crate) fn listen(&self, cx: &Context<'_>) {
        self.own.task.register(cx.waker());
    }

    /// Begins a poll if the future was woken; returns whether it was.
    pub(crate) fn begin_if_woken(&self) -> bool {
        self.own.state.compare_exchange(WOKEN, POLLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Begins a poll in any case.
    pub(crate) fn begin(&self) {
        self.own.state.swap(POLLED, Ordering::AcqRel);
    }

    /// Returns what the future is polled with.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Ends a poll; returns whether the future waits, or else was woken meanwhile.
    pub(crate) fn end(&self) -> bool {
        self.own.state.compare_exchange(POLLED, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Counts the future as woken, for a task that has its turn already.
    pub(crate) fn set_woken(&self) {
        self.own.state.swap(WOKEN, Ordering::AcqRel);
    }
}

impl std::fmt::Debug for Wakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wakes").field("own", &self.own).finish_non_exhaustive()
    }
}
