//! The bounded queue between the thread that reads and the batch that asks.
//!
//! A full queue lets the reader go on only when half of it is gone: to wake a thread for every item costs more than an
//! item.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_util::Stream;
use parking_lot::{Condvar, Mutex};

/// Items that are read before a worker is free for them.
const ITEMS_MAX: usize = 256;

/// Bytes of the items that are read before a worker is free for them; a larger item is read alone.
const BYTES_MAX: usize = 64 << 20;

/// Returns the two ends.
pub(super) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared { state: Mutex::default(), room: Condvar::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// Notified when the reader may go on.
    room: Condvar,
}

struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// Whether the reader waits for room.
    is_full: bool,
    /// Whether an end is gone.
    ended: bool,
    /// Of the batch, where it waits for an item.
    waker: Option<Waker>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), bytes: 0, is_full: false, ended: false, waker: None }
    }
}

impl<T> State<T> {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.items.is_empty() || self.items.len() < ITEMS_MAX && self.bytes.saturating_add(bytes) <= BYTES_MAX
    }
}

/// The reader's end; gone, the items end.
pub(super) struct Sender<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Hands an item of so many bytes on, and blocks while there is no room; returns whether more are wanted.
    pub(super) fn send(&self, item: T, bytes: usize) -> bool {
        let mut state = self.0.state.lock();
        while !state.ended && !state.has_room_for(bytes) {
            state.is_full = true;
            self.0.room.wait(&mut state);
        }
        if state.ended {
            return false;
        }
        state.bytes = state.bytes.saturating_add(bytes);
        state.items.push_back((item, bytes));
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.state.lock();
            state.ended = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The batch's end; gone, the reader stops.
pub(super) struct Receiver<T>(Arc<Shared<T>>);

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.state.lock();
        let Some((item, bytes)) = state.items.pop_front() else {
            if state.ended {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        state.bytes -= bytes;
        if state.is_full && state.items.len() <= ITEMS_MAX / 2 && state.bytes <= BYTES_MAX / 2 {
            state.is_full = false;
            self.0.room.notify_one();
        }
        Poll::Ready(Some(item))
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::{FutureExt, StreamExt};

    use super::{BYTES_MAX, ITEMS_MAX, queue};

    #[test]
    fn items_keep_their_order_and_end_with_the_reader() {
        let (sender, receiver) = queue();
        let reader = thread::spawn(move || (0..10_000).all(|item| sender.send(item, 1)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let items: Vec<i32> = runtime.block_on(receiver.collect());
        assert!(reader.join().unwrap());
        assert_eq!(items, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_read_can_be_taken_at_once() {
        let (sender, mut receiver) = queue();
        assert!(receiver.next().now_or_never().is_none());
        assert!(sender.send("one", 1));
        assert_eq!(receiver.next().now_or_never(), Some(Some("one")));
        assert!(receiver.next().now_or_never().is_none());
    }

    #[test]
    fn a_full_queue_holds_the_reader_until_half_of_it_is_gone() {
        let (sender, mut receiver) = queue();
        (0..ITEMS_MAX).for_each(|item| assert!(sender.send(item, 1)));
        let shared = sender.0.clone();
        let reader = thread::spawn(move || sender.send(ITEMS_MAX, 1));
        while !shared.state.lock().is_full {
            thread::yield_now();
        }
        for item in 0..ITEMS_MAX / 2 {
            assert!(shared.state.lock().is_full, "{item}");
            assert_eq!(receiver.next().now_or_never(), Some(Some(item)));
        }
        assert!(!shared.state.lock().is_full);
        assert!(reader.join().unwrap());
    }

    #[test]
    fn an_item_above_the_bound_is_read_alone() {
        let (sender, mut receiver) = queue();
        assert!(sender.send("large", BYTES_MAX + 1));
        assert!(!sender.0.state.lock().has_room_for(1));
        assert_eq!(receiver.next().now_or_never(), Some(Some("large")));
        assert!(sender.send("small", 1));
        assert!(!sender.0.state.lock().has_room_for(BYTES_MAX));
    }

    #[test]
    fn a_batch_that_is_gone_frees_the_reader() {
        let (sender, receiver) = queue();
        (0..ITEMS_MAX).for_each(|item| assert!(sender.send(item, 1)));
        let shared = sender.0.clone();
        let reader = thread::spawn(move || sender.send(0, 1));
        while !shared.state.lock().is_full {
            thread::yield_now();
        }
        drop(receiver);
        assert!(!reader.join().unwrap());
    }
}
