//! From server-sent events to neutral events: what the readers of all formats do alike.

use bytes::Bytes;
use gw_types::GatewayError;

use crate::{failure::interrupted, json::Node, neutral::Event, sse};

/// Reads the events of one streamed answer into neutral events.
pub(crate) trait EventReader {
    /// Returns the decoder of the body, and whether the answer has ended.
    fn body(&mut self) -> (&mut sse::Decoder, &mut bool);

    /// Reads one event.
    fn event(&mut self, event: &sse::Event<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError>;

    /// Returns whether the data of an event without its blank line is whole. A cut one is no JSON, and then the
    /// interruption is what counts.
    fn is_whole(data: &[u8]) -> bool {
        std::str::from_utf8(data).is_ok_and(|text| Node::read(text).is_ok())
    }

    /// Says what the end of the body means, where no event has ended the answer.
    fn body_ended(&mut self, events: &mut Vec<Event>) {
        self.fail(interrupted(), events);
    }

    /// Adds the next bytes of the body; appends what they bring. After `End` or `Error` nothing follows.
    fn push_body(&mut self, chunk: Bytes, events: &mut Vec<Event>) {
        if *self.body().1 {
            return;
        }
        let mut decoder = std::mem::take(self.body().0);
        decoder.push(chunk);
        while !*self.body().1
            && let Some(event) = decoder.next_event()
        {
            let step = event.map_err(GatewayError::from).and_then(|event| self.event(&event, events));
            if let Err(error) = step {
                self.fail(error, events);
            }
        }
        *self.body().0 = decoder;
    }

    /// Says that the body has ended; appends the last events, `End` or `Error` at the end of them.
    fn end_body(&mut self, events: &mut Vec<Event>) {
        if *self.body().1 {
            return;
        }
        let mut decoder = std::mem::take(self.body().0);
        // A last event that lacks its blank line still counts.
        if let Some(event) = decoder.finish()
            && Self::is_whole(event.data)
            && let Err(error) = self.event(&event, events)
        {
            self.fail(error, events);
        }
        if !*self.body().1 {
            self.body_ended(events);
        }
    }

    /// Ends the answer with an error.
    fn fail(&mut self, error: GatewayError, events: &mut Vec<Event>) {
        *self.body().1 = true;
        events.push(Event::Error(error));
    }
}
