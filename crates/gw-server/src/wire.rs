//! What is read and written in the wire format of an operation.

use bytes::Bytes;
use gw_dialects::{anthropic, completions, embeddings, openai, responses};
use gw_exec::KeptEvents;
use gw_types::{
    Completion, Dialect, ErrorKind, GatewayError, ModelName, NormalizedRequest, Operation, RequestContext,
    RequestFacts, RequestId, TokenCount,
};

use crate::stamp::Stamp;

/// Reads a request of the operation.
///
/// # Errors
/// `InvalidRequest`, naming what is wrong with the body.
pub(crate) fn read(
    operation: Operation,
    body: Bytes,
    mut context: RequestContext,
) -> Result<NormalizedRequest, GatewayError> {
    let facts: RequestFacts = match operation {
        Operation::Chat => openai::read_chat(&body)?,
        Operation::Completions => completions::read_request(&body)?,
        Operation::Embeddings => embeddings::read_request(&body)?,
        Operation::Messages => anthropic::read_messages(&body)?,
        Operation::CountTokens => anthropic::read_count_tokens(&body)?,
        Operation::Responses => {
            let read = responses::read_request(&body)?;
            if read.state.background {
                let message =
                    "an answer in the background would have to be fetched later, which gw does not offer";
                return Err(GatewayError::new(ErrorKind::InvalidRequest, message).with_param("background"));
            }
            // What the request goes on from lives at one deployment, and another could only say that it does not know it.
            context.pinned = !read.state.is_self_contained();
            read.facts
        }
    };
    Ok(NormalizedRequest { operation, body, facts, context })
}

/// Returns an error's body in the dialect.
pub(crate) fn error_body(dialect: Dialect, error: &GatewayError, request_id: Option<&str>) -> Bytes {
    match dialect {
        Dialect::OpenAi => openai::error_body(error),
        Dialect::Anthropic => anthropic::error_body(error, request_id),
    }
}

/// Returns the list of models in the dialect.
pub(crate) fn models_body(dialect: Dialect, names: &[ModelName], created: i64) -> Bytes {
    match dialect {
        Dialect::OpenAi => openai::models_body(names, created),
        Dialect::Anthropic => anthropic::models_body(names, created),
    }
}

/// Returns the description of one model in the dialect.
pub(crate) fn model_body(dialect: Dialect, name: &ModelName, created: i64) -> Bytes {
    match dialect {
        Dialect::OpenAi => openai::model_body(name, created),
        Dialect::Anthropic => anthropic::model_body(name, created),
    }
}

/// Returns a remembered answer as a plain body; `None` where the operation's answers are remembered as bytes only.
pub(crate) fn completion_body(operation: Operation, completion: &Completion, stamp: &Stamp) -> Option<Bytes> {
    let stamp = stamp.as_answer_stamp();
    Some(match operation {
        Operation::Chat => openai::completion_body(completion, &stamp),
        Operation::Completions => completions::completion_body(completion, &stamp),
        Operation::Messages => anthropic::completion_body(completion, &stamp),
        Operation::Responses => responses::completion_body(completion, &stamp),
        Operation::Embeddings | Operation::CountTokens => return None,
    })
}

/// Returns a remembered answer as a whole stream; `None` where the operation has no streams.
pub(crate) fn completion_events(
    operation: Operation,
    completion: &Completion,
    stamp: &Stamp,
    include_usage: bool,
) -> Option<Bytes> {
    let stamp = stamp.as_answer_stamp();
    let with_marker = |mut events: Vec<Bytes>| {
        events.push(openai::done_event());
        Bytes::from(events.concat())
    };
    Some(match operation {
        Operation::Chat => with_marker(openai::completion_events(completion, &stamp, include_usage)),
        Operation::Completions => {
            with_marker(completions::completion_events(completion, &stamp, include_usage))
        }
        Operation::Messages => anthropic::completion_events(completion, &stamp),
        Operation::Responses => responses::completion_events(completion, &stamp),
        Operation::Embeddings | Operation::CountTokens => return None,
    })
}

/// Returns a stream that was relayed before, as a whole.
pub(crate) fn kept_events(kept: &KeptEvents, mut ending: StreamEnding) -> Bytes {
    let last = match kept.capped {
        Some(output) => {
            ending.observe(&kept.events);
            ending.capped(output)
        }
        None => ending.done(),
    };
    [&kept.events[..], &last[..]].concat().into()
}

/// How a relayed stream is ended in its format, wherever it stands.
#[derive(Debug)]
pub(crate) enum StreamEnding {
    /// Every event of a chat stream stands for itself.
    Chat(Stamp),
    /// As a chat stream.
    Completions(Stamp),
    /// What is open must be closed.
    Messages {
        /// Knows what is open.
        ending: Box<anthropic::StreamEnding>,
        /// Stands in the error event.
        request_id: RequestId,
    },
    /// The last event repeats the whole answer.
    Responses(Box<responses::StreamEnding>),
}

impl StreamEnding {
    /// Returns the ending of a stream of which nothing was relayed yet; `None` where the operation has no streams.
    pub(crate) fn new(operation: Operation, stamp: Stamp, request_id: &RequestId) -> Option<Self> {
        Some(match operation {
            Operation::Chat => Self::Chat(stamp),
            Operation::Completions => Self::Completions(stamp),
            Operation::Messages => Self::Messages {
                ending: Box::new(anthropic::StreamEnding::new(&stamp.as_answer_stamp())),
                request_id: request_id.clone(),
            },
            Operation::Responses => {
                Self::Responses(Box::new(responses::StreamEnding::new(&stamp.as_answer_stamp())))
            }
            Operation::Embeddings | Operation::CountTokens => return None,
        })
    }

    /// Takes notice of bytes that were relayed.
    pub(crate) fn observe(&mut self, relayed: &Bytes) {
        match self {
            Self::Chat(_) | Self::Completions(_) => {}
            Self::Messages { ending, .. } => ending.observe(relayed),
            Self::Responses(ending) => ending.observe(relayed),
        }
    }

    /// Returns the final marker behind a complete answer; empty where its last event is marker enough.
    pub(crate) fn done(&self) -> Bytes {
        match self {
            Self::Chat(_) | Self::Completions(_) => openai::done_event(),
            Self::Messages { .. } | Self::Responses(_) => Bytes::new(),
        }
    }

    /// Returns the events that end an answer at its output bound; `output` is what is charged for it.
    pub(crate) fn capped(&mut self, output: TokenCount) -> Bytes {
        match self {
            Self::Chat(stamp) => {
                [openai::length_event(&stamp.as_answer_stamp()), openai::done_event()].concat().into()
            }
            Self::Completions(stamp) => {
                [completions::length_event(&stamp.as_answer_stamp()), openai::done_event()].concat().into()
            }
            Self::Messages { ending, .. } => ending.capped(output.get()),
            Self::Responses(ending) => ending.capped(),
        }
    }

    /// Returns the events that end an answer that broke off: an error, and no final marker.
    pub(crate) fn failed(&mut self, error: &GatewayError) -> Bytes {
        match self {
            Self::Chat(_) | Self::Completions(_) => openai::error_event(error),
            Self::Messages { ending, request_id } => ending.failed(error, Some(request_id.as_str())),
            Self::Responses(ending) => ending.failed(error),
        }
    }
}
