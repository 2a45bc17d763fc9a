//! Holds the events of blocks whose turn has not come.

use std::collections::VecDeque;

use crate::neutral::{At, Event};

/// The most bytes of text that are held, over all blocks.
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most events that are held, over all blocks.
const HELD_EVENTS_MAX: usize = 65_536;

/// Says that more came side by side than is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuchHeld;

/// The blocks that wait, in order of their start.
#[derive(Debug, Default)]
pub(super) struct Queue {
    blocks: VecDeque<(At, Vec<Event>)>,
    bytes: usize,
    events: usize,
}

impl Queue {
    /// Adds an event of a block that is not being written. What belongs to no block that waits is left out.
    pub(super) fn hold(&mut self, at: At, event: &Event) -> Result<(), TooMuchHeld> {
        if matches!(event, Event::BlockStart(..)) {
            self.blocks.push_back((at, Vec::new()));
        }
        let Some((_, events)) = self.blocks.iter_mut().find(|(waits, _)| *waits == at) else {
            return Ok(());
        };
        self.bytes += bytes(event);
        self.events += 1;
        if self.bytes > HELD_BYTES_MAX || self.events > HELD_EVENTS_MAX {
            return Err(TooMuchHeld);
        }
        events.push(event.clone());
        Ok(())
    }

    /// Takes the next block, with what came of it so far.
    pub(super) fn next(&mut self) -> Option<(At, Vec<Event>)> {
        let (at, events) = self.blocks.pop_front()?;
        self.bytes -= events.iter().map(bytes).sum::<usize>();
        self.events -= events.len();
        Some((at, events))
    }
}

fn bytes(event: &Event) -> usize {
    match event {
        Event::TextDelta(_, text)
        | Event::ThinkingDelta(_, text)
        | Event::ArgumentsDelta(_, text)
        | Event::RefusalDelta(_, text) => text.len(),
        Event::SignatureDelta(_, signature) => signature.data.len(),
        Event::Start { .. }
        | Event::BlockStart(..)
        | Event::Citation(..)
        | Event::BlockStop(_)
        | Event::Logprobs(..)
        | Event::Finish { .. }
        | Event::Usage(_)
        | Event::ServiceTier(_)
        | Event::Unread(_)
        | Event::Error(_)
        | Event::End => 0,
    }
}
