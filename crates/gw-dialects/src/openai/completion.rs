//! Answers that gw writes itself: out of the cache, and where it ends a stream.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{Choice, Completion, Usage};

use super::{
    finish,
    wire::{
        CompletionDetails, Delta, PromptDetails, Written, WrittenCall, WrittenChoice, WrittenFunction,
        WrittenMessage, WrittenUsage,
    },
};
use crate::neutral::AnswerStamp;

/// Returns a whole answer.
pub fn completion_body(completion: &Completion, stamp: &AnswerStamp<'_>) -> Bytes {
    let choices = completion.choices.iter().enumerate().map(|(index, choice)| WrittenChoice {
        index,
        message: Some(WrittenMessage {
            role: "assistant",
            content: visible(choice),
            refusal: choice.refusal.as_deref(),
            reasoning_content: &choice.reasoning,
            tool_calls: calls(choice, false),
        }),
        delta: None,
        logprobs: None,
        finish_reason: Some(finish::write(choice.finish)),
    });
    let choices = choices.collect();
    let body = written(stamp, "chat.completion", choices, completion.usage.as_ref().map(usage));
    Bytes::from(serde_json::to_vec(&body).expect("text and integers always serialise"))
}

/// Returns a whole answer as the events of a stream, without the final marker: for each choice the role, what it holds in
/// one event a kind, and its end; then the usage chunk, if it is wanted and known.
pub fn completion_events(
    completion: &Completion,
    stamp: &AnswerStamp<'_>,
    include_usage: bool,
) -> Vec<Bytes> {
    let mut events = Vec::new();
    for (index, choice) in completion.choices.iter().enumerate() {
        let mut add = |delta, finish_reason| events.push(chunk(stamp, index, delta, finish_reason));
        add(Delta { role: Some("assistant"), content: Some(""), ..Delta::default() }, None);
        if !choice.reasoning.is_empty() {
            add(Delta { reasoning_content: Some(&choice.reasoning), ..Delta::default() }, None);
        }
        if !choice.text.is_empty() {
            add(Delta { content: Some(&choice.text), ..Delta::default() }, None);
        }
        if let Some(refusal) = &choice.refusal {
            add(Delta { refusal: Some(refusal), ..Delta::default() }, None);
        }
        if !choice.tool_calls.is_empty() {
            add(Delta { tool_calls: calls(choice, true), ..Delta::default() }, None);
        }
        add(Delta::default(), Some(finish::write(choice.finish)));
    }
    if include_usage && let Some(known) = &completion.usage {
        events.push(event(&written(stamp, "chat.completion.chunk", Vec::new(), Some(usage(known)))));
    }
    events
}

/// Returns the event that ends a stream at its output bound.
pub fn length_event(stamp: &AnswerStamp<'_>) -> Bytes {
    chunk(stamp, 0, Delta::default(), Some("length"))
}

/// Returns the final marker of a stream.
pub fn done_event() -> Bytes {
    Bytes::from_static(b"data: [DONE]\n\n")
}

fn chunk<'a>(
    stamp: &AnswerStamp<'a>,
    index: usize,
    delta: Delta<'a>,
    finish_reason: Option<&'static str>,
) -> Bytes {
    let choice = WrittenChoice { index, message: None, delta: Some(delta), logprobs: None, finish_reason };
    event(&written(stamp, "chat.completion.chunk", vec![choice], None))
}

fn event(document: &Written<'_>) -> Bytes {
    let mut event = b"data: ".to_vec();
    serde_json::to_writer(&mut event, document).expect("text and integers always serialise");
    event.extend_from_slice(b"\n\n");
    Bytes::from(event)
}

fn written<'a>(
    stamp: &AnswerStamp<'a>,
    object: &'static str,
    choices: Vec<WrittenChoice<'a>>,
    usage: Option<WrittenUsage>,
) -> Written<'a> {
    Written { id: stamp.id, object, created: stamp.created, model: stamp.model, choices, usage }
}

/// Returns the visible text; an answer that only calls tools or refuses has none.
fn visible(choice: &Choice) -> Option<&str> {
    let absent = choice.text.is_empty() && (choice.refusal.is_some() || !choice.tool_calls.is_empty());
    (!absent).then_some(choice.text.as_str())
}

fn calls(choice: &Choice, indexed: bool) -> Vec<WrittenCall<'_>> {
    let calls = choice.tool_calls.iter().enumerate().map(|(index, call)| WrittenCall {
        index: indexed.then_some(index),
        id: &call.id,
        kind: "function",
        function: WrittenFunction { name: &call.name, arguments: &call.arguments },
    });
    calls.collect()
}

/// Returns usage in the dialect's own convention: cached input is part of the prompt, reasoning of the completion.
pub(crate) fn usage(usage: &Usage) -> WrittenUsage {
    WrittenUsage {
        prompt_tokens: usage.input_total().get(),
        completion_tokens: usage.output_total().get(),
        total_tokens: usage.total().get(),
        prompt_tokens_details: PromptDetails {
            cached_tokens: usage.cached_input.get(),
            audio_tokens: usage.audio_input.get(),
        },
        completion_tokens_details: CompletionDetails {
            reasoning_tokens: usage.reasoning.get(),
            audio_tokens: usage.audio_output.get(),
        },
    }
}
