//! Tests of the stream reader.

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason};

use super::StreamReader;
use crate::{
    collect::Collector,
    neutral::{Content, Event, Message},
};

fn events(chunks: &[&str], bytes: usize) -> Vec<Event> {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for piece in body.as_bytes().chunks(bytes) {
        reader.push(Bytes::copy_from_slice(piece), &mut events);
    }
    reader.end(&mut events);
    events
}

fn message(chunks: &[&str]) -> Message {
    let collect = |bytes| {
        let mut collector = Collector::default();
        collector.extend(events(chunks, bytes));
        collector.finish()
    };
    let whole = collect(usize::MAX);
    assert_eq!(whole, collect(1));
    whole
}

fn tool_calls(fragments: &[&str]) -> Vec<(String, String, String)> {
    let mut chunks: Vec<String> = fragments
        .iter()
        .map(|fragment| {
            format!(r#"{{"id":"a","choices":[{{"index":0,"delta":{{"tool_calls":[{fragment}]}}}}]}}"#)
        })
        .collect();
    chunks.push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let message = message(&chunks);
    assert_eq!(message.choices[0].finish, FinishReason::ToolCalls);
    let calls = message.choices[0].blocks.iter().map(|block| match block {
        Content::ToolUse(call) => (call.id.clone(), call.name.clone(), call.arguments.clone()),
        other => panic!("{other:?}"),
    });
    calls.collect()
}

#[test]
fn streamed_tool_calls_with_bad_indexes_stay_apart() {
    let expected = [("call_a", "f", "{\"p\":1}"), ("call_b", "g", "{\"q\":2}")]
        .map(|(id, name, arguments)| (id.to_owned(), name.to_owned(), arguments.to_owned()));
    let v1 = [
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":"{\"p\":1}"}}"#,
        r#"{"index":0,"id":"call_b","function":{"name":"g","arguments":"{\"q\":2}"}}"#,
    ];
    assert_eq!(tool_calls(&v1), expected);
    let v2 = [
        v1[0],
        r#"{"index":0,"id":"call_b","function":{"name":"g","arguments":""}}"#,
        r#"{"index":1,"function":{"arguments":"{\"q\":2}"}}"#,
    ];
    assert_eq!(tool_calls(&v2), expected);
    let v3 = v1.map(|fragment| fragment.replace("\"index\":0,", ""));
    assert_eq!(tool_calls(&[&v3[0], &v3[1]]), expected);
    let v4 = v1[1].replace("\"index\":0", "\"index\":2");
    assert_eq!(tool_calls(&[v1[0], &v4]), expected);
    let v5 = [
        r#"{"index":0,"id":"call_a","function":{"name":"f","arguments":""}}"#,
        r#"{"index":1,"id":"call_b","function":{"name":"g","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"p\""}}"#,
        r#"{"index":1,"function":{"arguments":"{\"q\""}}"#,
        r#"{"index":0,"id":"","function":{"arguments":":1}"}}"#,
        r#"{"index":1,"id":null,"function":{"arguments":":2}"}}"#,
    ];
    assert_eq!(tool_calls(&v5), expected);
}

#[test]
fn only_a_plain_stop_becomes_tool_calls() {
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]},"finish_reason":"REASON"}]}"#;
    for (reason, expected) in [("stop", FinishReason::ToolCalls), ("length", FinishReason::Length)] {
        let finish = message(&[&call.replace("REASON", reason)]).choices[0].finish;
        assert_eq!(finish, expected, "{reason}");
    }
    let refusal = r#"{"choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":"stop"}]}"#;
    assert_eq!(message(&[refusal]).choices[0].finish, FinishReason::Refusal);
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    let content = r#"{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    for chunks in [&[content][..], &[content, "[DONE]"], &[]] {
        let events = events(chunks, usize::MAX);
        assert!(!events.iter().any(|event| matches!(event, Event::Finish { .. })));
        let Some(Event::Error(error)) = events.last() else { panic!("{events:?}") };
        assert_eq!(error.kind(), ErrorKind::StreamInterrupted);
    }
    assert!(matches!(events(&[content, stop], 3).last(), Some(Event::End)));
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let content = r#"{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#;
    let error = r#"{"id":"c1","choices":[],"error":{"message":"overloaded","code":503}}"#;
    let events = events(&[content, error], usize::MAX);
    let Some(Event::Error(error)) = events.last() else { panic!("{events:?}") };
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
    assert_eq!(error.detail().unwrap().message(), "overloaded");
}

#[test]
fn usage_arrives_in_fragments() {
    let content = r#"{"id":"a","choices":[{"index":0,"delta":{"content":"A"}}],"usage":null}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#;
    let usage = message(&[content, stop, usage, "[DONE]"]).usage.unwrap();
    assert_eq!((usage.input_total().get(), usage.output_total().get()), (11, 7));
}
