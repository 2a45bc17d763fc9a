//! Single-flight: equal requests in flight share one upstream call.
//!
//! Who comes first leads: it gets the `Upstream` of a flight, to drive the call with, and a `Participant`. Who comes
//! with an equal key gets a `Participant` alone. What the upstream pushes is kept in a bounded buffer, which each
//! participant reads with a cursor of its own, from the beginning.
//!
//! - The call belongs to the flight and not to the leader: the leader may leave, and the others go on. When the last
//!   participant has left, the upstream is told to stop; who joins before it has stopped takes it over.
//! - The upstream waits for the fastest participant and never for a slow one: who falls behind by more than the buffer
//!   holds is dropped with `Next::TooSlow`.
//! - A failed call is an answer to its leader, and to those that have sent content of it. All others are told
//!   `Next::Again` and join anew; one of them leads the next call.
//! - There is never more than one upstream for a key. A flight whose buffer no longer holds the beginning cannot be
//!   followed: who comes then waits for its end, and is told `Next::Again`.
//!
//! Admission, deadlines and money are the callers' own: a participant is a future that may be dropped at any point.
//! No runtime is needed: whoever polls is woken.

mod participant;
mod state;
mod upstream;

#[cfg(test)]
pub(crate) mod tests;

use std::{collections::HashMap, sync::Arc};

use self::state::{Shared, State};
use crate::{CacheKey, key::DigestState, sync::Mutex};

pub use self::{
    participant::{Next, Participant},
    upstream::{Abandoned, Upstream},
};

/// The bounds of a flight's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightConfig {
    /// The most items that are held. Default 8,192; at least 1 is.
    pub items_max: usize,
    /// The most that they may weigh together, in bytes. Default 1 MiB. A heavier item is held alone.
    pub bytes_max: usize,
    /// Items that the upstream may be ahead of the fastest participant. Default 2; at least 1. The upstream is read as
    /// fast as somebody takes what it says, and not from one item to the next by turns.
    pub ahead_max: usize,
}

impl Default for FlightConfig {
    fn default() -> Self {
        Self { items_max: 8_192, bytes_max: 1 << 20, ahead_max: 2 }
    }
}

/// The calls in flight, by key. `T` is what an answer is made of, `E` why one failed.
///
/// A flight is in the map from its first participant to its end, so the map is as large as the number of requests that
/// callers admit. One lock guards the map, held for a lookup; each flight has its own.
#[derive(Debug)]
pub struct Flights<T, E> {
    config: FlightConfig,
    map: Arc<Map<T, E>>,
}

type Map<T, E> = Mutex<HashMap<CacheKey, Arc<Shared<T, E>>, DigestState>>;

/// What joining gives.
#[derive(Debug)]
pub enum Joined<T, E> {
    /// Nobody has asked for this: drive the call with the upstream, in a task that the participant's end does not end.
    Lead(Upstream<T, E>, Participant<T, E>),
    /// Somebody has: read.
    Follow(Participant<T, E>),
}

impl<T, E> Flights<T, E> {
    /// Returns no flights.
    pub fn new(config: FlightConfig) -> Self {
        Self { config, map: Arc::default() }
    }

    /// Joins the flight of the key, or begins one.
    pub fn join(&self, key: &CacheKey) -> Joined<T, E> {
        let mut map = self.map.lock();
        if let Some(shared) = map.get(key)
            && let Some(participant) = Participant::follow(shared)
        {
            return Joined::Follow(participant);
        }
        let shared = Arc::new(Shared::new(State::new(self.config)));
        map.insert(key.clone(), Arc::clone(&shared));
        let participant = Participant::lead(&shared);
        Joined::Lead(Upstream::new(shared, Arc::clone(&self.map), key.clone()), participant)
    }

    /// Returns how many calls are in flight.
    pub fn len(&self) -> usize {
        self.map.lock().len()
    }

    /// Returns whether no call is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
