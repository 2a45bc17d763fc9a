//! Tests of the endings.

use gw_types::{ErrorKind, GatewayError, UpstreamDetail};
use serde_json::{Value, json};

use super::StreamEnding;
use crate::neutral::AnswerStamp;

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "resp_1", created: 7, model: "asked" };

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn created() -> String {
    event(&json!({"type": "response.created", "sequence_number": 0,
        "response": {"id": "resp_9", "model": "served", "status": "in_progress", "tools": [1], "output": [], "usage": null}}))
}

fn message_began() -> String {
    let item = json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
        "item": {"id": "msg_9", "type": "message", "status": "in_progress", "role": "assistant", "content": []}});
    let part = json!({"type": "response.content_part.added", "sequence_number": 2, "output_index": 0, "content_index": 0,
        "item_id": "msg_9", "part": {"type": "output_text", "text": ""}});
    let delta = json!({"type": "response.output_text.delta", "sequence_number": 3, "output_index": 0, "content_index": 0,
        "item_id": "msg_9", "delta": "Hé"});
    [event(&item), event(&part), event(&delta)].concat()
}

/// Returns the events of an ending, and their names.
fn read(ending: &[u8]) -> (Vec<Value>, String) {
    let text = std::str::from_utf8(ending).unwrap();
    let data = |event: &str| serde_json::from_str(event.split_once("\ndata: ").unwrap().1).unwrap();
    let events: Vec<Value> = text.split_terminator("\n\n").map(data).collect();
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    (events.clone(), names.join(" "))
}

fn watching(relayed: &str) -> StreamEnding {
    let mut ending = StreamEnding::new(&STAMP);
    ending.observe(relayed.as_bytes());
    ending
}

#[test]
fn what_is_open_ends_before_the_response_does() {
    let (events, names) = read(&watching(&(created() + &message_began())).capped());
    assert_eq!(
        names,
        "response.output_text.done response.content_part.done response.output_item.done response.incomplete"
    );
    assert_eq!(events[0]["sequence_number"], 4);
    let response = &events[3]["response"];
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!((&response["id"], &response["tools"]), (&json!("resp_9"), &json!([1])));
    assert_eq!(response["output"][0]["content"][0]["text"], "Hé");
    assert_eq!(response["output"][0]["status"], "incomplete");
}

#[test]
fn what_has_ended_does_not_end_again() {
    let done = event(&json!({"type": "response.output_item.done", "sequence_number": 4, "output_index": 0,
        "item": {"id": "msg_9", "type": "message", "status": "completed", "x": 1}}));
    let (events, names) = read(&watching(&(created() + &message_began() + &done)).capped());
    assert_eq!(names, "response.incomplete");
    assert_eq!(
        events[0]["response"]["output"],
        json!([{"id": "msg_9", "type": "message", "status": "completed", "x": 1}])
    );
}

#[test]
fn calls_end_with_the_arguments_so_far() {
    let added = event(&json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"id": "fc_9", "type": "function_call", "call_id": "c", "name": "f", "arguments": ""}}));
    let delta =
        event(&json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a"}));
    let (events, names) = read(&watching(&(created() + &added + &delta)).capped());
    assert_eq!(names, "response.function_call_arguments.done response.output_item.done response.incomplete");
    assert_eq!((&events[0]["arguments"], &events[0]["sequence_number"]), (&json!("{\"a"), &json!(3)));
}

#[test]
fn an_error_is_told_with_the_providers_words() {
    let error = GatewayError::new(ErrorKind::ProviderUnavailable, "the provider failed")
        .with_detail(UpstreamDetail::new("overloaded").with_code("busy"))
        .ambiguous();
    let (events, names) = read(&watching(&(created() + &message_began())).failed(&error));
    assert_eq!(names, "error response.failed");
    assert_eq!(
        events[0],
        json!({"type": "error", "sequence_number": 4, "code": "busy", "message": "overloaded", "param": null,
            "outcome": "ambiguous"})
    );
    let response = &events[1]["response"];
    assert_eq!(response["error"], json!({"code": "server_error", "message": "overloaded"}));
    assert_eq!((&response["status"], &response["id"]), (&json!("failed"), &json!("resp_9")));
}

#[test]
fn nothing_relayed_is_no_hindrance() {
    let (events, _) = read(&watching("").capped());
    assert_eq!((&events[0]["response"]["id"], &events[0]["sequence_number"]), (&json!("resp_1"), &json!(0)));
    let (events, _) = read(&watching(": ping\n\ndata: nothing\n\n").capped());
    assert_eq!(events[0]["response"]["output"], json!([]));
}

#[test]
fn i18_debug_shows_no_content() {
    let relayed = created().replace("\"tools\":[1]", "\"instructions\":\"canary\"")
        + &message_began().replace("Hé", "canary");
    assert!(relayed.matches("canary").count() == 2);
    assert!(!format!("{:?}", watching(&relayed)).contains("canary"));
}
