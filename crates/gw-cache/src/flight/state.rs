//! The state of one flight, behind its lock.

use std::{
    collections::{BTreeMap, VecDeque},
    task::Waker,
};

use super::FlightConfig;
use crate::sync::Mutex;

/// A flight, as its participants and its upstream share it.
pub(super) type Shared<T, E> = Mutex<State<T, E>>;

/// The buffer, who reads it, and how the flight ended.
#[derive(Debug)]
pub(super) struct State<T, E> {
    config: FlightConfig,
    items: VecDeque<(T, usize)>,
    bytes: usize,
    /// The number of the first item that is held.
    first: u64,
    end: Option<End<E>>,
    readers: BTreeMap<u64, Reader>,
    next_reader: u64,
    upstream: Option<Waker>,
    /// Whether the upstream waits for room, and not only for the last to leave.
    wants_room: bool,
}

/// How a flight ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<E> {
    Complete,
    Failed(E),
    /// The upstream was dropped: nobody knows why.
    Lost,
}

#[derive(Debug)]
struct Reader {
    /// The number of the next item to read; `None` for one that came too late to read at all.
    cursor: Option<u64>,
    waker: Option<Waker>,
}

/// What a reader finds.
pub(super) enum Read<T, E> {
    Item(T),
    Nothing,
    End(End<E>),
    Behind,
}

impl<T, E> State<T, E> {
    pub(super) fn new(config: FlightConfig) -> Self {
        Self {
            config,
            items: VecDeque::new(),
            bytes: 0,
            first: 0,
            end: None,
            readers: BTreeMap::new(),
            next_reader: 0,
            upstream: None,
            wants_room: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.readers.is_empty()
    }

    /// Adds a reader at the beginning and returns its number.
    pub(super) fn enter(&mut self) -> u64 {
        let number = self.next_reader;
        self.next_reader += 1;
        let cursor = (self.first == 0).then_some(0);
        self.readers.insert(number, Reader { cursor, waker: None });
        number
    }

    /// Takes a reader out; returns the upstream's waker, which may now have nobody or somebody faster to wait for.
    pub(super) fn leave(&mut self, reader: u64) -> Option<Waker> {
        self.readers.remove(&reader);
        self.upstream.take()
    }

    /// Adds an item, drops the oldest ones above the bounds, and returns who waits.
    pub(super) fn push(&mut self, item: T, bytes: usize) -> Vec<Waker> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push_back((item, bytes));
        while self.items.len() > 1
            && (self.items.len() > self.config.items_max || self.bytes > self.config.bytes_max)
        {
            let Some((_, bytes)) = self.items.pop_front() else { break };
            self.bytes -= bytes;
            self.first += 1;
        }
        self.wakers()
    }

    /// Ends the flight, unless it has ended, and returns who waits.
    pub(super) fn finish(&mut self, end: End<E>) -> Vec<Waker> {
        if self.end.is_none() {
            self.end = Some(end);
        }
        // Who ends it hears of it here: those who leave after it must wake nobody.
        self.upstream = None;
        self.wakers()
    }

    /// Returns whether one more item drops none that the fastest reader has still to read, and is not too far ahead of it.
    pub(super) fn has_room(&self) -> bool {
        let fastest = self.readers.values().filter_map(|reader| reader.cursor).max();
        let is_full = self.items.len() >= self.config.items_max.max(1) || self.bytes >= self.config.bytes_max;
        let held = u64::try_from(self.items.len()).unwrap_or(u64::MAX);
        let ahead = u64::try_from(self.config.ahead_max.max(1)).unwrap_or(u64::MAX);
        // Nobody who reads: nothing to wait for.
        fastest.is_none_or(|cursor| {
            let unread = self.first.saturating_add(held).saturating_sub(cursor);
            unread < ahead && (!is_full || cursor > self.first)
        })
    }

    pub(super) fn wait_upstream(&mut self, waker: &Waker, wants_room: bool) {
        (self.upstream, self.wants_room) = (Some(waker.clone()), wants_room);
    }

    pub(super) fn wait_reader(&mut self, reader: u64, waker: &Waker) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            reader.waker = Some(waker.clone());
        }
    }

    pub(super) fn forget_waker(&mut self, reader: u64) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            reader.waker = None;
        }
    }

    fn wakers(&mut self) -> Vec<Waker> {
        self.readers.values_mut().filter_map(|reader| reader.waker.take()).collect()
    }
}

impl<T: Clone, E: Clone> State<T, E> {
    /// Reads the reader's next item; returns the upstream's waker beside it, which may now have room.
    pub(super) fn read(&mut self, reader: u64) -> (Read<T, E>, Option<Waker>) {
        let cursor = self.readers.get_mut(&reader).and_then(|reader| reader.cursor.as_mut());
        if let Some(cursor) = cursor {
            let Some(at) = cursor.checked_sub(self.first) else { return (Read::Behind, None) };
            if let Some((item, _)) = usize::try_from(at).ok().and_then(|at| self.items.get(at)) {
                *cursor += 1;
                let item = item.clone();
                let upstream = if self.wants_room && self.has_room() { self.upstream.take() } else { None };
                return (Read::Item(item), upstream);
            }
        }
        (self.end.clone().map_or(Read::Nothing, Read::End), None)
    }

    pub(super) fn end(&self) -> Option<End<E>> {
        self.end.clone()
    }

    /// Returns whether the reader came too late to read.
    pub(super) fn is_late(&self, reader: u64) -> bool {
        self.readers.get(&reader).is_some_and(|reader| reader.cursor.is_none())
    }
}
