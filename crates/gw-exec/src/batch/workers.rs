//! The items in work: each in a place of its own, looked at when something has happened to it.
//!
//! What begins is polled at once, so that its call is on its way before anything else that is ready is looked at. Where
//! many answers come together, each is followed by its successor's call, and not all of them by all.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// Items that may have woken themselves before the runtime gets its turn.
const WOKEN_AGAIN_MAX: u32 = 2;

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The items in work.
pub(super) struct Workers<T> {
    places: Vec<Place<T>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
}

struct Place<T> {
    running: Option<Running<T>>,
    mark: Arc<Mark>,
    waker: Waker,
}

/// The places to be looked at, each at most once, and whom to tell.
#[derive(Default)]
struct Woken {
    places: Mutex<VecDeque<usize>>,
    batch: AtomicWaker,
}

/// What wakes one place.
struct Mark {
    place: usize,
    /// Whether it stands among the woken ones.
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.woken.places.lock().push_back(self.place);
            self.woken.batch.wake();
        }
    }
}

impl<T> Default for Workers<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), woken: Arc::default() }
    }
}

impl<T> Workers<T> {
    /// Returns how many items are in work.
    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns whether none is.
    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        for (at, place) in self.places.iter_mut().enumerate() {
            if place.running.take().is_some() {
                self.free.push(at);
            }
        }
    }

    /// Begins an item; returns what it came to if it has ended already.
    pub(super) fn begin(&mut self, running: Running<T>) -> Option<T> {
        let at = self.free.pop().unwrap_or_else(|| {
            let place = self.places.len();
            let mark = Mark { place, is_woken: AtomicBool::new(false), woken: Arc::clone(&self.woken) };
            let mark = Arc::new(mark);
            let waker = Waker::from(Arc::clone(&mark));
            self.places.push(Place { running: None, mark, waker });
            place
        });
        self.places[at].running = Some(running);
        match self.poll(at) {
            Poll::Ready(ended) => Some(ended),
            Poll::Pending => None,
        }
    }

    /// Looks at what was woken; returns what the first item that has ended came to.
    pub(super) fn poll_ended(&mut self, cx: &Context<'_>) -> Poll<T> {
        self.woken.batch.register(cx.waker());
        let mut woken_again = 0;
        for _ in 0..=self.len() {
            let Some(at) = self.woken.places.lock().pop_front() else { return Poll::Pending };
            self.places[at].mark.is_woken.store(false, Ordering::Release);
            if let Poll::Ready(ended) = self.poll(at) {
                return Poll::Ready(ended);
            }
            // Who has woken itself waits for nothing: the runtime wants its turn, and gives nobody more before.
            woken_again += u32::from(self.places[at].mark.is_woken.load(Ordering::Relaxed));
            if woken_again == WOKEN_AGAIN_MAX {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Looks at one place, which may be empty by now.
    fn poll(&mut self, at: usize) -> Poll<T> {
        let Place { running, waker, .. } = &mut self.places[at];
        let Some(future) = running else { return Poll::Pending };
        let polled = future.as_mut().poll(&mut Context::from_waker(waker));
        if polled.is_ready() {
            *running = None;
            self.free.push(at);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::Workers;

    async fn ended(workers: &mut Workers<u32>) -> u32 {
        poll_fn(|cx| workers.poll_ended(cx)).await
    }

    #[test]
    fn what_ends_at_once_is_said_at_once() {
        let mut workers = Workers::default();
        assert_eq!(workers.begin(Box::pin(async { 7 })), Some(7));
        assert!(workers.is_empty());
    }

    #[test]
    fn what_is_woken_is_looked_at_and_nothing_else() {
        let mut workers = Workers::default();
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let (sender, receiver) = oneshot::channel();
                assert_eq!(workers.begin(Box::pin(async { receiver.await.unwrap() })), None);
                sender
            })
            .collect();
        assert_eq!((workers.len(), ended(&mut workers).now_or_never()), (3, None));
        for (number, sender) in senders.into_iter().enumerate().rev() {
            sender.send(number.try_into().unwrap()).unwrap();
        }
        let all = [(); 3].map(|()| ended(&mut workers).now_or_never());
        assert_eq!((all, workers.len()), ([Some(2), Some(1), Some(0)], 0));
    }

    #[test]
    fn a_place_is_used_again_and_an_old_wake_up_harms_nobody() {
        let mut workers = Workers::default();
        let (sender, receiver) = oneshot::channel::<u32>();
        workers.begin(Box::pin(async { receiver.await.unwrap_or_default() }));
        drop(sender);
        workers.clear();
        assert!(workers.is_empty());
        let (sender, receiver) = oneshot::channel();
        workers.begin(Box::pin(async { receiver.await.unwrap() }));
        assert_eq!((workers.places.len(), ended(&mut workers).now_or_never()), (1, None));
        sender.send(5).unwrap();
        assert_eq!(ended(&mut workers).now_or_never(), Some(5));
    }

    #[test]
    fn one_that_wakes_itself_does_not_keep_the_batch() {
        let mut workers = Workers::<u32>::default();
        workers.begin(Box::pin(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        assert_eq!(ended(&mut workers).now_or_never(), None);
        assert_eq!(workers.len(), 1);
    }
}
