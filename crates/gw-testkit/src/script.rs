//! What a fake provider does, as data.

mod answer;
mod chat;
mod text;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use self::chat::Wanted;
pub use self::{
    answer::{FakeAnswer, content_filter, html_200, status},
    chat::{ChatEnd, FakeChat, ok, stream_cut_after},
};

/// What a fake provider does, request by request.
///
/// A request takes the next fault of its model's list, or of the common list where its model has none of its own; the
/// last fault of a list repeats, and an empty list answers `ok`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultScript {
    /// The common list.
    pub faults: Vec<Fault>,
    /// The lists of single models, by the name that the request carries.
    pub by_model: BTreeMap<String, Vec<Fault>>,
}

impl FaultScript {
    /// Returns a script of one fault, which repeats.
    pub fn of(fault: impl Into<Fault>) -> Self {
        Self { faults: vec![fault.into()], by_model: BTreeMap::new() }
    }

    /// Adds a fault to the common list.
    #[must_use]
    pub fn then(mut self, fault: impl Into<Fault>) -> Self {
        self.faults.push(fault.into());
        self
    }

    /// Adds a fault to a model's own list.
    #[must_use]
    pub fn for_model(mut self, model: &str, fault: impl Into<Fault>) -> Self {
        self.by_model.entry(model.to_owned()).or_default().push(fault.into());
        self
    }
}

/// What a fake provider does with one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Answers as a chat model would, plain or as a stream, as the request asks.
    Chat(FakeChat),
    /// Answers a whole body, whatever the request asks.
    Answer(FakeAnswer),
    /// Answers step by step.
    Stream(FakeStream),
    /// Reads the request and says nothing until the client goes away.
    HangBeforeHead,
    /// Reads the request and resets the connection.
    ResetBeforeHead,
    /// Reads the request and closes the connection cleanly.
    CloseBeforeHead,
    /// Stops listening as soon as this fault is next: connections are refused from then on, and idle ones are closed.
    /// What stands behind it is played after [`crate::FakeProvider::listen_again`].
    RefuseConnection,
    /// Reads the request and waits before it plays another fault.
    SlowHead {
        /// How long, in milliseconds of real time.
        delay_ms: u64,
        /// What comes then.
        then: Box<Fault>,
    },
    /// Reads the request and waits for [`crate::FakeProvider::open_gate`] before it plays another fault.
    AtGate {
        /// What comes then.
        then: Box<Fault>,
    },
}

/// An answer that is written step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeStream {
    /// The HTTP status.
    pub status: u16,
    /// Headers; `content-type: text/event-stream` unless they say another.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// How the body's end is marked.
    #[serde(default)]
    pub framing: Framing,
    /// What happens, in order. Behind the last step the body is ended properly.
    pub steps: Vec<Step>,
}

impl FakeStream {
    /// Returns a 200 event stream of the steps.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            framing: Framing::default(),
            steps: steps.into_iter().collect(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Ends the body by closing the connection instead of a last chunk.
    #[must_use]
    pub fn until_close(mut self) -> Self {
        self.framing = Framing::UntilClose;
        self
    }
}

/// How the end of a streamed body is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// `transfer-encoding: chunked`, one chunk a step.
    #[default]
    Chunked,
    /// The connection closes.
    UntilClose,
}

/// One step of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Writes bytes of the body: one chunk, one write, no delay for more. In text: a string, or a list of numbers.
    Bytes(#[serde(with = "text")] Bytes),
    /// Writes bytes as they are, past the framing.
    Raw(#[serde(with = "text")] Bytes),
    /// Waits, in real time.
    PauseMs(u64),
    /// Waits for [`crate::FakeProvider::open_gate`]; each opening lets one step pass.
    WaitForGate,
    /// Resets the connection.
    Reset,
    /// Closes the connection cleanly, whatever is missing.
    Close,
    /// Ends its own side of the connection and reads on until the client ends the other.
    HalfClose,
    /// Says nothing until the client goes away.
    Hang,
}

impl Step {
    /// Returns a step that writes text.
    pub fn text(text: &str) -> Self {
        Self::Bytes(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Returns a step that writes one event with the data.
    pub fn event(data: &str) -> Self {
        Self::Bytes(Bytes::from(format!("data: {data}\n\n")))
    }

    /// Returns a step that waits; whole milliseconds.
    pub fn pause(duration: Duration) -> Self {
        Self::PauseMs(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Returns a 200 event stream whose first and only event is an error.
pub fn error_event_first() -> FakeStream {
    let error =
        r#"{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}"#;
    FakeStream::new([Step::event(error)])
}

impl From<FakeStream> for Fault {
    fn from(stream: FakeStream) -> Self {
        Self::Stream(stream)
    }
}
