//! Tests of the stream writer.

use bytes::BytesMut;
use gw_types::{ErrorKind, FinishReason, GatewayError, TokenCount, Usage};
use serde_json::Value;

use super::StreamWriter;
use crate::neutral::{AnswerStamp, At, BlockKind, Citation, Event, Origin, RawJson, Signature};

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "resp_1", created: 7, model: "asked" };

fn at(block: u32) -> At {
    At { choice: 0, block }
}

/// Returns the events that are written: their names, and their data.
fn write(events: &[Event]) -> Vec<(String, Value)> {
    let mut writer = StreamWriter::new(&STAMP);
    let mut out = BytesMut::new();
    events.iter().for_each(|event| writer.write(event, &mut out));
    let text = String::from_utf8(out.to_vec()).unwrap();
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        (data["type"].as_str().unwrap().trim_start_matches("response.").to_owned(), data)
    };
    text.split_terminator("\n\n").map(event).collect()
}

fn names(events: &[(String, Value)]) -> String {
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.join(" ")
}

fn start() -> Event {
    Event::Start { id: Some("theirs".to_owned()), model: Some("served".to_owned()) }
}

fn finish(reason: FinishReason) -> [Event; 2] {
    [Event::Finish { choice: 0, reason, stop_sequence: None }, Event::End]
}

fn text(block: u32, deltas: &[&str]) -> Vec<Event> {
    let mut events = vec![Event::BlockStart(at(block), BlockKind::Text)];
    events.extend(deltas.iter().map(|delta| Event::TextDelta(at(block), (*delta).to_owned())));
    events.push(Event::BlockStop(at(block)));
    events
}

fn call(block: u32, id: &str) -> Vec<Event> {
    let (id, name) = (id.to_owned(), "f".to_owned());
    vec![
        Event::BlockStart(at(block), BlockKind::ToolUse { id, name, signature: None }),
        Event::ArgumentsDelta(at(block), "{\"a\":".to_owned()),
        Event::ArgumentsDelta(at(block), "1}".to_owned()),
        Event::BlockStop(at(block)),
    ]
}

#[test]
fn text_has_every_documented_event_in_order() {
    let usage = Usage { input: TokenCount::new(3), output: TokenCount::new(2), ..Usage::default() };
    let events =
        [vec![start()], text(0, &["A", "B"]), vec![Event::Usage(usage)], finish(FinishReason::Stop).to_vec()]
            .concat();
    let written = write(&events);
    assert_eq!(
        names(&written),
        "created in_progress output_item.added content_part.added output_text.delta output_text.delta output_text.done \
         content_part.done output_item.done completed"
    );
    let numbers: Vec<u64> =
        written.iter().map(|(_, data)| data["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<u64>>());
    let response = &written[9].1["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], "AB");
    assert_eq!(response["usage"]["total_tokens"], 5);
    assert_eq!((&response["id"], &response["model"]), (&"resp_1".into(), &"served".into()));
    assert_eq!(written[0].1["response"]["status"], "in_progress");
    assert_eq!(written[4].1["item_id"], "msg_1_0");
}

#[test]
fn blocks_of_text_share_a_message_until_something_else_comes() {
    let events = [
        vec![start()],
        text(0, &["A"]),
        text(1, &["B"]),
        call(2, "c"),
        text(3, &["C"]),
        finish(FinishReason::ToolCalls).to_vec(),
    ];
    let written = write(&events.concat());
    let output = &written.last().unwrap().1["response"]["output"];
    let kinds: Vec<&str> =
        output.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "function_call", "message"]);
    assert_eq!(output[0]["content"][1]["text"], "B");
    assert_eq!((&output[1]["call_id"], &output[1]["arguments"]), (&"c".into(), &"{\"a\":1}".into()));
    let added: Vec<u64> = written
        .iter()
        .filter(|(name, _)| name == "output_item.added")
        .map(|(_, data)| data["output_index"].as_u64().unwrap())
        .collect();
    assert_eq!(added, [0, 1, 2]);
}

#[test]
fn calls_may_overlap() {
    let [first, second] = [call(0, "a"), call(1, "b")];
    let order = [&first[0], &second[0], &first[1], &second[1], &first[2], &second[2], &first[3], &second[3]];
    let mut events = vec![start()];
    events.extend(order.into_iter().cloned());
    events.extend(finish(FinishReason::ToolCalls));
    let written = write(&events);
    let output = &written.last().unwrap().1["response"]["output"];
    for (place, id) in ["a", "b"].into_iter().enumerate() {
        assert_eq!(
            (&output[place]["call_id"], &output[place]["arguments"]),
            (&id.into(), &"{\"a\":1}".into())
        );
    }
    assert_eq!(names(&written).matches("function_call_arguments.done").count(), 2);
}

#[test]
fn reasoning_is_a_summary_with_its_encrypted_form() {
    let events = [
        vec![
            start(),
            Event::BlockStart(at(0), BlockKind::Thinking),
            Event::ThinkingDelta(at(0), "Hm".to_owned()),
            Event::SignatureDelta(at(0), Signature::new(Origin::Anthropic, "Sig")),
            Event::SignatureDelta(at(0), Signature::new(Origin::Anthropic, "nature")),
            Event::BlockStop(at(0)),
            Event::BlockStart(at(1), BlockKind::RedactedThinking(Signature::new(Origin::OpenAi, "E"))),
            Event::BlockStop(at(1)),
        ],
        text(2, &["A"]),
        finish(FinishReason::Stop).to_vec(),
    ];
    let written = write(&events.concat());
    assert!(names(&written).starts_with(
        "created in_progress output_item.added reasoning_summary_part.added reasoning_summary_text.delta \
         reasoning_summary_text.done reasoning_summary_part.done output_item.done output_item.added output_item.done"
    ));
    let output = &written.last().unwrap().1["response"]["output"];
    assert_eq!(output[0]["encrypted_content"], "gw1.anthropic.Signature");
    assert_eq!(output[1]["encrypted_content"], "E");
}

#[test]
fn annotations_and_log_probabilities_stand_in_their_part() {
    let cited = Citation { url: Some("https://x".to_owned()), span: Some((0, 1)), ..Citation::default() };
    let logprobs = RawJson::new(r#"{"content":[{"token":"A","logprob":-0.5}],"refusal":null}"#).unwrap();
    let events = [
        vec![
            start(),
            Event::BlockStart(at(0), BlockKind::Text),
            Event::TextDelta(at(0), "A".to_owned()),
            Event::Logprobs(0, logprobs),
            Event::Citation(at(0), cited),
            Event::Citation(at(0), Citation::default()),
            Event::BlockStop(at(0)),
        ],
        finish(FinishReason::Stop).to_vec(),
    ];
    let written = write(&events.concat());
    let part = &written.last().unwrap().1["response"]["output"][0]["content"][0];
    assert_eq!(part["annotations"].as_array().unwrap().len(), 1);
    assert_eq!(part["logprobs"][0]["token"], "A");
    assert_eq!(names(&written).matches("annotation.added").count(), 1);
}

#[test]
fn endings_follow_the_reason() {
    for (reason, status, details) in [
        (FinishReason::Stop, "completed", None),
        (FinishReason::ToolCalls, "completed", None),
        (FinishReason::Refusal, "completed", None),
        (FinishReason::Length, "incomplete", Some("max_output_tokens")),
        (FinishReason::ContentFilter, "incomplete", Some("content_filter")),
        (FinishReason::Other, "incomplete", None),
    ] {
        let written = write(&[vec![start()], text(0, &["A"]), finish(reason).to_vec()].concat());
        let (name, data) = written.last().unwrap();
        assert_eq!((name.as_str(), data["response"]["status"].as_str()), (status, Some(status)));
        assert_eq!(data["response"]["incomplete_details"]["reason"].as_str(), details);
    }
}

#[test]
fn a_failure_is_told_twice() {
    let error = GatewayError::new(ErrorKind::ProviderRateLimited, "slow down");
    let mut events = vec![start(), Event::BlockStart(at(0), BlockKind::Text)];
    events.extend([Event::TextDelta(at(0), "A".to_owned()), Event::Error(error)]);
    let written = write(&events);
    let [.., (error, shown), (failed, response)] = written.as_slice() else { panic!() };
    assert_eq!((error.as_str(), failed.as_str()), ("error", "failed"));
    assert_eq!((&shown["message"], &shown["param"]), (&"slow down".into(), &Value::Null));
    assert_eq!(response["response"]["error"]["code"], "rate_limit_exceeded");
    assert_eq!(response["response"]["output"][0]["content"][0]["text"], "A");
}

#[test]
fn other_choices_have_no_place() {
    let other = At { choice: 1, block: 0 };
    let mut events = vec![start()];
    events.extend([Event::BlockStart(other, BlockKind::Text), Event::TextDelta(other, "B".to_owned())]);
    events.push(Event::BlockStop(other));
    events.extend(finish(FinishReason::Stop));
    assert_eq!(names(&write(&events)), "created in_progress completed");
}
