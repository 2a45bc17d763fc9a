//! From the lines of a streamed answer to neutral events.

use bytes::Bytes;
use gw_types::GatewayError;

use super::decode::Reading;
use crate::{
    failure::{interrupted, malformed},
    json::Node,
    json_stream::LineDecoder,
    neutral::Event,
};

/// Reads one streamed answer, chunk by chunk, into neutral events.
///
/// It is complete with the line that says `done`; an end without it is an error event of kind `StreamInterrupted`. The last
/// line may lack its end.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::{neutral::Event, ollama::StreamReader};
///
/// let mut reader = StreamReader::new();
/// let mut events = Vec::new();
/// let lines = "{\"message\":{\"content\":\"Hi\"},\"done\":false}\n{\"done\":true,\"done_reason\":\"stop\"}\n";
/// reader.push(Bytes::from_static(lines.as_bytes()), &mut events);
/// assert_eq!(events.last(), Some(&Event::End));
/// ```
#[derive(Debug, Default)]
pub struct StreamReader {
    lines: LineDecoder,
    reading: Reading,
    ended: bool,
}

impl StreamReader {
    /// Returns a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the body; appends what they bring. After `End` or `Error` nothing follows.
    pub fn push(&mut self, chunk: Bytes, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        self.lines.push(chunk);
        while let Some(line) = self.lines.next_value() {
            let read = match line {
                Ok(line) => read(&mut self.reading, line, events),
                Err(_) => Err(malformed("a line of the provider's stream is too long")),
            };
            match read {
                Ok(()) if self.reading.done => events.push(Event::End),
                Ok(()) => continue,
                Err(error) => events.push(Event::Error(error)),
            }
            self.ended = true;
            return;
        }
    }

    /// Says that the body has ended; appends `End` or `Error`, unless that was said already.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // A cut line is no JSON, and then the interruption is what counts.
        let last = self.lines.finish().filter(|line| is_json(line));
        let read = last.map_or(Ok(()), |line| read(&mut self.reading, line, events));
        events.push(match read {
            Ok(()) if self.reading.done => Event::End,
            Ok(()) => Event::Error(interrupted()),
            Err(error) => Event::Error(error),
        });
    }
}

fn read(reading: &mut Reading, line: &[u8], events: &mut Vec<Event>) -> Result<(), GatewayError> {
    let text =
        std::str::from_utf8(line).map_err(|_| malformed("the provider's stream is not valid UTF-8"))?;
    let node =
        Node::read(text).map_err(|_| malformed("the provider's stream holds a line that is not JSON"))?;
    reading.line(&node, events)
}

fn is_json(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|text| Node::read(text).is_ok())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::ErrorKind;

    use super::StreamReader;
    use crate::neutral::Event;

    /// Returns how a stream ends: `None` for well; fed whole and byte by byte.
    #[track_caller]
    fn check(body: &str, texts: &str, expected: Option<ErrorKind>) {
        for step in [body.len().max(1), 1] {
            let mut reader = StreamReader::new();
            let mut events = Vec::new();
            let bytes = Bytes::from(body.to_owned());
            for chunk in bytes.chunks(step) {
                reader.push(bytes.slice_ref(chunk), &mut events);
            }
            reader.end(&mut events);
            let said: String = events
                .iter()
                .filter_map(|event| match event {
                    Event::TextDelta(_, text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let ending = match events.last() {
                Some(Event::End) => None,
                Some(Event::Error(error)) => Some(error.kind()),
                other => panic!("{other:?}"),
            };
            assert_eq!((said.as_str(), ending), (texts, expected), "{body}, {step} bytes at a time");
        }
    }

    const SAID: &str = r#"{"message":{"content":"a"},"done":false}"#;
    const DONE: &str = r#"{"message":{"content":"b"},"done":true,"done_reason":"stop"}"#;

    #[test]
    fn the_line_that_says_done_is_the_last() {
        check(&format!("{SAID}\n{DONE}\n"), "ab", None);
        check(&format!("{SAID}\r\n\r\n{DONE}"), "ab", None);
        check(&format!("{DONE}\n{SAID}\n"), "b", None);
        check(&format!("{SAID}\n"), "a", Some(ErrorKind::StreamInterrupted));
        check(&format!("{SAID}\n{}", &DONE[..DONE.len() - 1]), "a", Some(ErrorKind::StreamInterrupted));
        check("", "", Some(ErrorKind::StreamInterrupted));
    }

    #[test]
    fn errors_and_what_is_no_line_end_it() {
        let error = r#"{"error":"the model runner has stopped"}"#;
        check(&format!("{SAID}\n{error}\n{DONE}\n"), "a", Some(ErrorKind::ProviderUnavailable));
        check(&format!("{SAID}\nhello\n{DONE}\n"), "a", Some(ErrorKind::MalformedResponse));
        check(&format!("{SAID}\n[]\n"), "a", Some(ErrorKind::MalformedResponse));
    }
}
