//! Answers that gw writes itself: out of the cache, and where it ends a stream.

use bytes::Bytes;
use gw_types::{Completion, Usage};
use serde::Serialize;

use crate::openai::{AnswerStamp, completion, finish, wire::WrittenUsage};

#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: Vec<WrittenChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<WrittenUsage>,
}

#[derive(Serialize)]
struct WrittenChoice<'a> {
    text: &'a str,
    index: usize,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

/// Returns a whole answer.
pub fn completion_body(completion: &Completion, stamp: &AnswerStamp<'_>) -> Bytes {
    let choices = completion.choices.iter().enumerate().map(|(index, choice)| WrittenChoice {
        text: &choice.text,
        index,
        logprobs: None,
        finish_reason: Some(finish::write(choice.finish)),
    });
    Bytes::from(json(&written(stamp, choices.collect(), completion.usage.as_ref())))
}

/// Returns a whole answer as the events of a stream, without the final marker: for each choice its text and its end; then
/// the usage chunk, if it is wanted and known.
pub fn completion_events(
    completion: &Completion,
    stamp: &AnswerStamp<'_>,
    include_usage: bool,
) -> Vec<Bytes> {
    let mut events = Vec::new();
    for (index, choice) in completion.choices.iter().enumerate() {
        if !choice.text.is_empty() {
            events.push(chunk(stamp, index, &choice.text, None));
        }
        events.push(chunk(stamp, index, "", Some(finish::write(choice.finish))));
    }
    if include_usage && completion.usage.is_some() {
        events.push(event(&written(stamp, Vec::new(), completion.usage.as_ref())));
    }
    events
}

/// Returns the event that ends a stream at its output bound.
pub fn length_event(stamp: &AnswerStamp<'_>) -> Bytes {
    chunk(stamp, 0, "", Some("length"))
}

fn chunk(stamp: &AnswerStamp<'_>, index: usize, text: &str, finish_reason: Option<&'static str>) -> Bytes {
    event(&written(stamp, vec![WrittenChoice { text, index, logprobs: None, finish_reason }], None))
}

fn written<'a>(
    stamp: &AnswerStamp<'a>,
    choices: Vec<WrittenChoice<'a>>,
    usage: Option<&Usage>,
) -> Written<'a> {
    Written {
        id: stamp.id,
        object: "text_completion",
        created: stamp.created,
        model: stamp.model,
        choices,
        usage: usage.map(completion::usage),
    }
}

fn event(document: &Written<'_>) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend_from_slice(&json(document));
    event.extend_from_slice(b"\n\n");
    Bytes::from(event)
}

fn json(document: &Written<'_>) -> Vec<u8> {
    serde_json::to_vec(document).expect("text and integers always serialise")
}
