//! From the bytes of a streamed answer to neutral events.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::GatewayError;

use super::decode::Reading;
use crate::{
    failure::{interrupted, malformed},
    json::Node,
    json_stream::ArrayDecoder,
    neutral::Event,
    sse,
};

/// Reads one streamed answer: server-sent events (`alt=sse`), or one JSON array that grows. The first byte tells which,
/// whatever the content type says.
///
/// Gemini has no terminal event. The answer is complete when the body ends, every candidate has said why it ended and
/// nothing is left half sent; an end without that is `StreamInterrupted`.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::{gemini::StreamReader, neutral::Event};
///
/// let mut reader = StreamReader::new();
/// let mut events = Vec::new();
/// let body = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n";
/// reader.push(Bytes::from_static(body.as_bytes()), &mut events);
/// reader.end(&mut events);
/// assert_eq!(events.last(), Some(&Event::End));
/// ```
#[derive(Debug, Default)]
pub struct StreamReader {
    framing: Framing,
    reading: Reading,
    ended: bool,
}

/// How documents are told apart.
#[derive(Debug, Default)]
enum Framing {
    /// Nothing came yet but blanks.
    #[default]
    Unknown,
    Events(Box<sse::Decoder>),
    Array(Box<ArrayDecoder>),
}

impl StreamReader {
    /// Returns a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the body; appends what they bring. After an `Error` nothing follows.
    pub fn push(&mut self, chunk: Bytes, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        if let Framing::Unknown = self.framing {
            match chunk.trim_ascii_start().first() {
                None => return,
                Some(b'[' | b'{') => self.framing = Framing::Array(Box::default()),
                Some(_) => self.framing = Framing::Events(Box::default()),
            }
        }
        let read = match &mut self.framing {
            Framing::Unknown => Ok(()),
            Framing::Events(decoder) => {
                decoder.push(chunk);
                read_events(decoder, &mut self.reading, events)
            }
            Framing::Array(decoder) => {
                decoder.push(chunk);
                read_array(decoder, &mut self.reading, events)
            }
        };
        if let Err(error) = read {
            self.fail(error, events);
        }
    }

    /// Says that the body has ended; appends what is left, and `End` or `Error` as the last event.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let finished = self.finish(events);
        match finished {
            Ok(()) => {
                self.ended = true;
                events.push(Event::End);
            }
            Err(error) => self.fail(error, events),
        }
    }

    fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let whole = match &mut self.framing {
            Framing::Unknown => false,
            Framing::Events(decoder) => match decoder.finish() {
                // The last event may lack its blank line; if it is cut, more was to come.
                Some(event) => match document(event.data) {
                    Ok(node) => {
                        self.reading.document(&node, events)?;
                        true
                    }
                    Err(_) => false,
                },
                None => true,
            },
            Framing::Array(decoder) => decoder.is_complete(),
        };
        if !whole || !self.reading.is_complete() {
            return Err(interrupted());
        }
        self.reading.finish(events)
    }

    fn fail(&mut self, error: GatewayError, events: &mut Vec<Event>) {
        self.ended = true;
        events.push(Event::Error(error));
    }
}

fn read_events(
    decoder: &mut sse::Decoder,
    reading: &mut Reading,
    events: &mut Vec<Event>,
) -> Result<(), GatewayError> {
    while let Some(event) = decoder.next_event() {
        let event = event?;
        if !event.data.trim_ascii().is_empty() {
            reading.document(&document(event.data)?, events)?;
        }
    }
    Ok(())
}

fn read_array(
    decoder: &mut ArrayDecoder,
    reading: &mut Reading,
    events: &mut Vec<Event>,
) -> Result<(), GatewayError> {
    while let Some(value) = decoder.next_value() {
        let value = value.map_err(|_| malformed("the provider's stream is not an array of JSON values"))?;
        reading.document(&document(value)?, events)?;
    }
    Ok(())
}

fn document(data: &[u8]) -> Result<Node<'_>, GatewayError> {
    let text =
        std::str::from_utf8(data).map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
    Node::read(text).map_err(|_| malformed("the provider's stream holds an event that is not JSON"))
}
