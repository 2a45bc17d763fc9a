//! Recorded exchanges, played again.

use std::{fs, io, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::{FakeAnswer, FakeStream, Fault, Step};

/// How many bytes of a stream are written at once: few enough that events are cut, characters too.
const PIECE_BYTES: usize = 61;

/// An exchange between a client and a provider as a recorder took it, whose answer a [`crate::FakeProvider`] can give again:
/// a whole answer in one piece, a stream in many.
#[derive(Clone, Debug)]
pub struct Recording {
    answer: FakeAnswer,
    is_stream: bool,
    request: Value,
}

impl Recording {
    /// Reads a file of the shared fixtures' format: `request.body`, and a `response` of status, headers and one of `body`
    /// (JSON), `body_text` and `body_base64`.
    ///
    /// # Errors
    /// The file cannot be read, or is not of the format (`InvalidData`).
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&fs::read(path)?)
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// It is not of the format (`InvalidData`).
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
        let file: File = serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))?;
        let response = file.response;
        let body = match (response.body_base64, response.body_text) {
            (Some(base64), _) => STANDARD.decode(base64).map_err(|error| invalid(error.to_string()))?.into(),
            (None, Some(text)) => Bytes::from(text),
            (None, None) => response.body.unwrap_or_default().to_string().into(),
        };
        let headers = response.headers.into_iter().collect();
        let answer = FakeAnswer { status: response.status, headers, body, cut_after_bytes: None };
        Ok(Self { answer, is_stream: file.stream, request: file.request.body })
    }

    /// Returns the body of the request, `Null` where none was recorded.
    pub fn request(&self) -> &Value {
        &self.request
    }

    /// Returns the answer's bytes.
    pub fn body(&self) -> &Bytes {
        &self.answer.body
    }

    /// Returns the first bytes of the answer's stream, and then a reset of the connection.
    pub fn cut_after(&self, bytes: usize) -> Fault {
        let end = bytes.min(self.answer.body.len());
        self.stream(end, [Step::Reset]).into()
    }

    fn stream(&self, end: usize, last: impl IntoIterator<Item = Step>) -> FakeStream {
        let body = &self.answer.body;
        let pieces = body[..end].chunks(PIECE_BYTES).map(|piece| Step::Bytes(body.slice_ref(piece)));
        let mut stream = FakeStream::new(pieces.chain(last));
        stream.status = self.answer.status;
        stream.headers.clone_from(&self.answer.headers);
        stream
    }
}

impl From<&Recording> for Fault {
    fn from(recording: &Recording) -> Self {
        if recording.is_stream {
            recording.stream(recording.answer.body.len(), []).into()
        } else {
            recording.answer.clone().into()
        }
    }
}

#[derive(Deserialize)]
struct File {
    stream: bool,
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
struct Response {
    status: u16,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    body: Option<Value>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Recording;
    use crate::{Fault, Step};

    fn recording(stream: bool, body: &str) -> Recording {
        let text = format!(
            r#"{{"id":"x","stream":{stream},"request":{{"body":{{"a":1}}}},"response":{{"status":200,"headers":{{"content-type":"x/y"}},{body}}}}}"#
        );
        Recording::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_whole_answer_comes_in_one_piece_and_a_stream_in_many() {
        let Fault::Answer(answer) = Fault::from(&recording(false, r#""body":{"b":2}"#)) else {
            panic!("no answer")
        };
        assert_eq!((&*answer.body, &*answer.headers[0].1), (&br#"{"b":2}"#[..], "x/y"));
        let long = recording(true, &format!(r#""body_text":"{}""#, "a".repeat(100)));
        assert_eq!((long.request()["a"].as_u64(), long.body().len()), (Some(1), 100));
        let Fault::Stream(stream) = Fault::from(&long) else { panic!("no stream") };
        assert_eq!(stream.steps.len(), 2);
        let Fault::Stream(stream) = long.cut_after(30) else { panic!("no stream") };
        assert_eq!(stream.steps, [Step::text(&"a".repeat(30)), Step::Reset]);
    }

    #[test]
    fn bytes_are_bytes() {
        assert_eq!(&**recording(true, r#""body_base64":"AP8=""#).body(), [0, 0xff]);
        let broken = r#"{"stream":true,"request":{},"response":{"status":200,"body_base64":"?"}}"#;
        assert!(Recording::parse(broken.as_bytes()).is_err() && Recording::parse(b"{}").is_err());
    }
}
