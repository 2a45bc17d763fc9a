//! Tests of the repair, with the variants of the reported fault.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;

use crate::openai::{StreamDecoder, StreamOptions};

/// Streams one `tool_calls` element an event; returns what is relayed.
fn relay(elements: &[&str]) -> Vec<String> {
    let mut stream = String::new();
    for element in elements {
        stream.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[");
        stream.push_str(element);
        stream.push_str("]},\"finish_reason\":null}]}\n\n");
    }
    stream.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(Bytes::from(stream), &mut items);
    assert!(items.back().unwrap().facts.terminal);
    let raw: Vec<u8> = items.iter().flat_map(|item| item.raw.to_vec()).collect();
    String::from_utf8(raw).unwrap().split_terminator("\n\n").map(str::to_owned).collect()
}

/// Assembles the calls as clients do: by index alone, ids and names joined like arguments.
fn assemble(events: &[String]) -> Vec<(String, String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for event in events {
        let chunk: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
        for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if index == calls.len() {
                calls.push(Default::default());
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            calls[index].0.push_str(&text(&call["id"]));
            calls[index].1.push_str(&text(&call["function"]["name"]));
            calls[index].2.push_str(&text(&call["function"]["arguments"]));
        }
    }
    calls
}

#[track_caller]
fn check(elements: &[&str]) {
    let calls = assemble(&relay(elements));
    let expected = [("call_a", "f", r#"{"p":1}"#), ("call_b", "g", r#"{"q":2}"#)];
    let expected =
        expected.map(|(id, name, arguments)| (id.to_owned(), name.to_owned(), arguments.to_owned()));
    assert_eq!(calls, expected, "{elements:?}");
}

const A: &str = r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":"{\"p\":1}"}}"#;
const B: &str = r#"{"index":0,"id":"call_b","function":{"name":"g","arguments":"{\"q\":2}"}}"#;

#[test]
fn streamed_tool_calls_with_bad_indexes_stay_apart() {
    check(&[A, B]);
    check(&[
        A,
        r#"{"index":0,"id":"call_b","function":{"name":"g","arguments":""}}"#,
        r#"{"index":1,"function":{"arguments":"{\"q\":2}"}}"#,
    ]);
    let bare = |call: &str| call.replace("\"index\":0,", "");
    check(&[&bare(A), &bare(B)]);
    check(&[A, &B.replace("\"index\":0", "\"index\":2")]);
    check(&[
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":""}}"#,
        r#"{"index":1,"id":"call_b","function":{"name":"g","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"p\""}}"#,
        r#"{"index":1,"function":{"arguments":"{\"q\""}}"#,
        r#"{"index":0,"function":{"arguments":":1}"}}"#,
        r#"{"index":1,"function":{"arguments":":2}"}}"#,
    ]);
    check(&[
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":"{\"p\""}}"#,
        r#"{"index":0,"id":"","function":{"arguments":":1"}}"#,
        r#"{"index":0,"id":null,"function":{"arguments":"}"}}"#,
        &B.replace("\"index\":0", "\"index\":1"),
    ]);
}

#[test]
fn several_calls_may_stand_in_one_event() {
    check(&[&format!("{A},{B}")]);
    check(&[&format!("{},{}", A.replace("\"index\":0,", ""), B.replace("\"index\":0", "\"index\":\"1\""))]);
}

#[test]
fn ids_and_names_are_sent_once() {
    check(&[
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":"{\"p\""}}"#,
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":":1}"}}"#,
        r#"{"id":"call_b","function":{"arguments":"{\"q\"","name":"g"}}"#,
        r#"{"id":"call_b","function":{"arguments":":2}","name":"g"}}"#,
    ]);
    assert_eq!(assemble(&relay(&[A, r#"{"id":"call_a"}"#, r#"{"index":0,"id":"call_a"}"#])).len(), 1);
}

#[test]
fn a_call_may_learn_its_id_late() {
    let elements = [
        r#"{"index":0,"function":{"name":"f","arguments":""}}"#,
        r#"{"index":0,"id":"call_a","function":{"arguments":"{\"p\":1}"}}"#,
        r#"{"index":1,"function":{"name":"g","arguments":"{\"q\":2}"}}"#,
        r#"{"index":1,"id":"call_b"}"#,
    ];
    check(&elements);
}

#[test]
fn indexes_that_begin_late_are_moved() {
    let events = relay(&[
        &A.replace("\"index\":0", "\"index\":1"),
        r#"{"index":1,"function":{"arguments":" "}}"#,
        "{}",
    ]);
    assert!(events[..3].iter().all(|event| event.contains("{\"index\":0")), "{events:?}");
}

#[test]
fn well_formed_fragments_are_not_touched() {
    let fine = [
        A,
        r#"{"index":0,"function":{"arguments":" "}}"#,
        r#"{"index":1 ,"id":"x","function":{"name":"g"}}"#,
    ];
    for (event, element) in relay(&fine).iter().zip(fine) {
        assert!(event.contains(element), "{event}");
    }
}

#[test]
fn calls_are_bounded() {
    let element = r#"{"id":"c","function":{"name":"f"}}"#;
    let mut stream = String::new();
    for call in 0..=super::CALLS_MAX {
        let element = element.replace("\"c\"", &format!("\"c{call}\""));
        stream.push_str(&format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{element}]}}}}]}}\n\n"));
    }
    let mut items = VecDeque::new();
    StreamDecoder::new(StreamOptions::default()).push(Bytes::from(stream), &mut items);
    let error = items.back().unwrap().facts.error.clone().unwrap();
    assert_eq!(error.kind(), gw_types::ErrorKind::MalformedResponse);
}
