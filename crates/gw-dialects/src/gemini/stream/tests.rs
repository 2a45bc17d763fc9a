//! Tests of the stream reader.

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, GatewayError};

use super::StreamReader;
use crate::{
    collect::Collector,
    gemini::read_message,
    neutral::{Content, Event, Message},
};

fn events(body: &str, chunk_bytes: usize) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for chunk in body.as_bytes().chunks(chunk_bytes) {
        reader.push(Bytes::copy_from_slice(chunk), &mut events);
    }
    reader.end(&mut events);
    events
}

fn read(body: &str) -> Result<Message, GatewayError> {
    let whole = events(body, body.len().max(1));
    for chunk_bytes in [1, 2, 5, 11] {
        assert_eq!(events(body, chunk_bytes), whole, "{chunk_bytes} bytes a chunk");
    }
    let error = whole.iter().find_map(|event| match event {
        Event::Error(error) => Some(error.clone()),
        _ => None,
    });
    assert_eq!(matches!(whole.last(), Some(Event::End)), error.is_none());
    let mut collector = Collector::default();
    collector.extend(whole);
    error.map_or_else(|| Ok(collector.finish()), Err)
}

/// A stream of documents in the framing of `alt=sse`.
fn sse(documents: &[&str]) -> String {
    documents.iter().map(|document| format!("data: {document}\r\n\r\n")).collect()
}

fn text(text: &str, ending: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}{ending}}}]}}"#)
}

const STOP: &str = r#","finishReason":"STOP""#;

#[track_caller]
fn fails(body: &str, kind: ErrorKind) {
    assert_eq!(read(body).map_err(|error| error.kind()), Err(kind), "{body}");
}

fn said(message: &Message) -> (String, FinishReason) {
    let choice = &message.choices[0];
    (choice.blocks.iter().filter_map(Content::as_text).collect(), choice.finish)
}

#[test]
fn both_framings_and_the_whole_answer_say_the_same() {
    let documents = [text("Hé", ""), text("llo", STOP)];
    let documents = [&*documents[0], &*documents[1]];
    let stream = read(&sse(&documents)).unwrap();
    assert_eq!(said(&stream), ("Héllo".to_owned(), FinishReason::Stop));
    let array = format!("[{}\n,\r\n{}]\n", documents[0], documents[1]);
    assert_eq!(read(&array).unwrap(), stream);
    assert_eq!(read_message(array.as_bytes()).unwrap(), stream);
    assert_eq!(read_message(text("Héllo", STOP).as_bytes()).unwrap().choices, stream.choices);
}

#[test]
fn finish_reasons_follow_content_and_truncation() {
    let call = |ending: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f","args":{{}}}}}}]}},"finishReason":"{ending}"}}]}}"#
        )
    };
    let check = |document: &str, expected| {
        assert_eq!(read(&sse(&[document])).unwrap().choices[0].finish, expected, "{document}");
        assert_eq!(read_message(document.as_bytes()).unwrap().choices[0].finish, expected, "{document}");
    };
    check(&call("STOP"), FinishReason::ToolCalls);
    check(&call("MAX_TOKENS"), FinishReason::Length);
    check(&call("UNEXPECTED_TOOL_CALL"), FinishReason::Other);
    check(&text("a", r#","finishReason":"SAFETY""#), FinishReason::ContentFilter);
    check(r#"{"candidates":[{"content":{},"finishReason":"SAFETY"}]}"#, FinishReason::ContentFilter);
    // Every chunk says that it stops; only the last one is right, and no text is lost.
    let many = sse(&[&text("a", STOP), &text("b", STOP), &text("c", STOP)]);
    assert_eq!(said(&read(&many).unwrap()), ("abc".to_owned(), FinishReason::Stop));
    let finishes = events(&many, 9).iter().filter(|event| matches!(event, Event::Finish { .. })).count();
    assert_eq!(finishes, 1);
    let malformed = r#"{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#;
    fails(&sse(&[malformed]), ErrorKind::MalformedResponse);
    assert_eq!(read_message(malformed.as_bytes()).unwrap_err().kind(), ErrorKind::MalformedResponse);
    let silent = r#"{"candidates":[{"finishReason":"OTHER"}]}"#;
    fails(&sse(&[silent]), ErrorKind::MalformedResponse);
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    fails("", ErrorKind::StreamInterrupted);
    fails("\r\n", ErrorKind::StreamInterrupted);
    fails(&sse(&[&text("a", "")]), ErrorKind::StreamInterrupted);
    fails(&sse(&[r#"{"usageMetadata":{"promptTokenCount":1}}"#]), ErrorKind::StreamInterrupted);
    fails(&format!("[{}", text("a", STOP)), ErrorKind::StreamInterrupted);
    fails(&format!("[{},", text("a", STOP)), ErrorKind::StreamInterrupted);
    // A piece that was cut says that more was to come, whatever the one before it said.
    let cut = format!("{}data: {{\"candidates\":[{{\"cont", sse(&[&text("a", STOP)]));
    fails(&cut, ErrorKind::StreamInterrupted);
    let two = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    fails(&sse(&[two]), ErrorKind::StreamInterrupted);
}

#[test]
fn the_last_event_may_lack_its_blank_line() {
    let body = format!("data: {}", text("a", STOP));
    assert_eq!(said(&read(&body).unwrap()), ("a".to_owned(), FinishReason::Stop));
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let error = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#;
    fails(&sse(&[&text("a", ""), error]), ErrorKind::ProviderRateLimited);
    fails(error, ErrorKind::ProviderRateLimited);
    fails(&format!("[{error}\n]"), ErrorKind::ProviderRateLimited);
    fails(&sse(&[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#]), ErrorKind::ContentFiltered);
    fails("<html>", ErrorKind::StreamInterrupted);
    fails("data: <html>\n\n", ErrorKind::MalformedResponse);
    fails("[1]", ErrorKind::MalformedResponse);
    fails("[{}{}]", ErrorKind::MalformedResponse);
}

#[test]
fn signatures_stay_on_their_block() {
    let document = |part: &str, ending: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}{ending}}}]}}"#)
    };
    let body = sse(&[
        &document(r#"{"text":"hm","thought":true}"#, ""),
        &document(r#"{"text":"a"}"#, ""),
        &document(r#"{"text":"","thoughtSignature":"S1"}"#, ""),
        &document(
            r#"{"text":"b"},{"functionCall":{"name":"f","args":{"x":1}},"thoughtSignature":"S2"}"#,
            STOP,
        ),
    ]);
    let message = read(&body).unwrap();
    let blocks = &message.choices[0].blocks;
    assert!(matches!(&blocks[0], Content::Thinking(thinking) if thinking.text == "hm"));
    assert!(
        matches!(&blocks[1], Content::Text(text) if text.text == "a" && text.signature.as_ref().unwrap().data == "S1")
    );
    assert!(matches!(&blocks[2], Content::Text(text) if text.text == "b" && text.signature.is_none()));
    assert!(matches!(&blocks[3], Content::ToolUse(call) if call.signature.as_ref().unwrap().data == "S2"));
}

#[test]
fn calls_get_ids_that_depend_on_the_answer_alone() {
    let body = |id: &str| {
        sse(&[&format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f"}}}},{{"functionCall":{{"name":"f","id":"own"}}}},{{"functionCall":{{"name":"g"}}}}]}},"finishReason":"STOP"}}]{id}}}"#
        )])
    };
    let ids = |id: &str| -> Vec<String> {
        let message = read(&body(id)).unwrap();
        message.choices[0]
            .blocks
            .iter()
            .filter_map(|block| match block {
                Content::ToolUse(call) => {
                    assert_eq!(call.arguments, "{}");
                    Some(call.id.clone())
                }
                _ => None,
            })
            .collect()
    };
    assert_eq!(ids(r#","responseId":"a.b-C_9""#), ["call_ab-C_9_0_0", "own", "call_ab-C_9_0_2"]);
    let long = ids(&format!(r#","responseId":"{}""#, "x".repeat(99)));
    assert!(long.iter().all(|id| id.len() <= 40));
    assert_eq!(ids(""), ids(""));
    assert_eq!(ids("").iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
}

#[test]
fn other_parts_are_kept_whole() {
    let body = sse(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"executableCode":{"code":"1"}},{},{"text":"b"}]},"finishReason":"STOP"}]}"#,
    ]);
    let message = read(&body).unwrap();
    let blocks = &message.choices[0].blocks;
    assert_eq!(blocks.len(), 3);
    assert!(
        matches!(&blocks[1], Content::Opaque(opaque) if opaque.value.as_str() == r#"{"executableCode":{"code":"1"}}"#)
    );
}

#[test]
fn candidates_are_told_apart() {
    let body = sse(&[
        r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"text":"b"}]}}]}"#,
        r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"d"}]},"finishReason":"MAX_TOKENS"}]}"#,
        r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"c"}]},"finishReason":"STOP"}]}"#,
    ]);
    let message = read(&body).unwrap();
    let facts: Vec<_> =
        message.choices.iter().map(|choice| (choice.blocks[0].as_text().unwrap(), choice.finish)).collect();
    assert_eq!(facts, [("ac", FinishReason::Stop), ("bd", FinishReason::Length)]);
    fails(&sse(&[r#"{"candidates":[{"index":128}]}"#]), ErrorKind::MalformedResponse);
}

#[test]
fn i18_debug_shows_no_content() {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    let part = r#"{"candidates":[{"content":{"parts":[{"text":"hunter2"},{"functionCall":{"name":"f","args":{"hunter2":1},"willContinue":true}}]},"finishMessage":"hunter2","finishReason":"STOP"}]}"#;
    reader.push(Bytes::from(sse(&[part])), &mut events);
    assert!(!format!("{reader:?}{events:?}").contains("hunter2"));
}
