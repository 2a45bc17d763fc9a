//! Tests of the stream decoder.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, Usage};

use super::StreamDecoder;

/// What a caller gets to see of a stream, and what the pipeline learns.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    raw: String,
    content_bytes: u32,
    content_frames: u32,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    served: Vec<String>,
    tool_calls: u32,
    complete: bool,
    error: Option<ErrorKind>,
}

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    let mut seen = Seen::default();
    match decoder.end() {
        Ok(item) => items.push_back(item),
        Err(error) => seen.error = Some(error.kind()),
    }
    for item in items {
        seen.raw.push_str(std::str::from_utf8(&item.raw).unwrap());
        seen.content_bytes += item.facts.content_bytes;
        seen.content_frames += item.facts.content_frames;
        seen.finish = item.facts.finish.or(seen.finish);
        seen.usage = item.facts.usage.map(|usage| *usage).or(seen.usage);
        seen.served.extend(item.facts.served_model.map(|model| model.to_string()));
        seen.tool_calls += u32::from(item.facts.tool_calls);
        seen.complete |= item.facts.terminal;
        seen.error = item.facts.error.map(|error| error.kind()).or(seen.error);
    }
    seen
}

/// Decodes a stream whole and cut at every position, and returns what all of them give.
#[track_caller]
fn read(stream: &str) -> Seen {
    let bytes = stream.as_bytes();
    let whole = decode([bytes]);
    assert_eq!(decode(bytes.chunks(1)), whole, "byte by byte");
    for cut in 1..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(decode([first, second]), whole, "cut at {cut}");
    }
    whole
}

fn event(kind: &str, fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{comma}{fields}}}\n\n")
}

fn created() -> String {
    event("response.created", r#""response":{"model":"m-1","status":"in_progress","usage":null}"#)
}

fn text(delta: &str) -> String {
    event("response.output_text.delta", &format!("\"delta\":\"{delta}\",\"logprobs\":[]"))
}

fn last(kind: &str, response: &str) -> String {
    event(kind, &format!("\"response\":{{{response}}}"))
}

fn completed() -> String {
    last(
        "response.completed",
        r#""status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":2}"#,
    )
}

#[test]
fn events_are_relayed_as_they_came() {
    let stream = [created(), text("A"), text("\\u00e9"), completed()].concat();
    let seen = read(&stream);
    assert_eq!((seen.raw.as_str(), seen.content_bytes, seen.content_frames), (stream.as_str(), 3, 2));
    assert_eq!((seen.finish, seen.complete, seen.error), (Some(FinishReason::Stop), true, None));
    assert_eq!(seen.served, ["m-1"]);
    let usage = seen.usage.unwrap();
    assert_eq!((usage.input.get(), usage.output.get()), (3, 2));
}

#[test]
fn one_chunk_is_one_slice() {
    let stream = Bytes::from([created(), text("A"), completed()].concat());
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    decoder.push(stream.clone(), &mut items);
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].raw.as_ptr(), stream.as_ptr());
}

#[test]
fn other_framing_becomes_the_dialects_own() {
    let expected = [created(), text("A"), completed()].concat();
    let unnamed: String = expected
        .lines()
        .filter(|line| !line.starts_with("event"))
        .fold(String::new(), |stream, line| stream + line + "\n");
    assert_eq!(read(&unnamed).raw, expected);
    assert_eq!(read(&expected.replace('\n', "\r\n")).raw, expected);
    assert_eq!(read(&format!(": ping\n\n{}", expected.replace("\ndata", "\nid: 7\ndata"))).raw, expected);
    assert_eq!(read(&expected.replace("event: response.created", "event: message")).raw, expected);
    assert_eq!(read(&format!("\u{feff}{expected}data: [DONE]\n\n")).raw, expected);
    assert_eq!(read(expected.trim_end()).raw, expected);
}

#[test]
fn every_kind_of_content_counts() {
    for kind in [
        "response.refusal.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.custom_tool_call_input.delta",
    ] {
        let seen = read(&[event(kind, r#""delta":"ab""#), completed()].concat());
        assert_eq!((seen.content_bytes, seen.content_frames), (2, 1), "{kind}");
    }
    let silent = [
        event("response.output_text.done", r#""text":"ab""#),
        event("response.output_text.delta", r#""delta":"""#),
        event("response.audio.delta", r#""delta":null"#),
    ];
    let seen = read(&[silent.concat(), completed()].concat());
    assert_eq!((seen.content_bytes, seen.content_frames), (0, 0));
}

#[test]
fn a_call_that_begins_is_content_and_the_reason() {
    let added = |kind: &str| event("response.output_item.added", &format!(r#""item":{{"type":"{kind}"}}"#));
    let seen =
        read(&[added("reasoning"), added("function_call"), added("function_call"), completed()].concat());
    assert_eq!((seen.content_frames, seen.tool_calls, seen.finish), (2, 1, Some(FinishReason::ToolCalls)));
    let seen = read(&[added("web_search_call"), completed()].concat());
    assert_eq!((seen.content_frames, seen.tool_calls, seen.finish), (0, 0, Some(FinishReason::Stop)));
    let whole = last("response.completed", r#""output":[{"type":"function_call","arguments":"{}"}]"#);
    let seen = read(&whole);
    assert_eq!((seen.tool_calls, seen.finish), (1, Some(FinishReason::ToolCalls)));
}

#[test]
fn a_cut_answer_is_complete() {
    let cut = r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]"#;
    let seen = read(&[text("A"), last("response.incomplete", cut)].concat());
    assert_eq!((seen.finish, seen.complete, seen.error), (Some(FinishReason::Length), true, None));
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    for end in
        ["", "data: [DONE]\n\n", "event: response.completed\n", "event: response.completed\ndata: {\"ty"]
    {
        let seen = read(&format!("{}{end}", text("Hel")));
        assert_eq!(seen.raw, text("Hel"), "{end}");
        assert_eq!((seen.error, seen.complete), (Some(ErrorKind::StreamInterrupted), false), "{end}");
    }
}

#[track_caller]
fn fails(event: &str, kind: ErrorKind) {
    let seen = read(&[text("Hel").as_str(), event, &completed()].concat());
    assert_eq!((seen.raw, seen.error, seen.complete), (text("Hel"), Some(kind), false), "{event}");
}

#[test]
fn in_band_upstream_error_on_http_200() {
    fails(
        &event("error", r#""error":{"type":"tokens","code":"rate_limit_exceeded","message":"m"}"#),
        ErrorKind::ProviderRateLimited,
    );
    fails(
        &event("error", r#""code":"server_error","message":"m","param":null"#),
        ErrorKind::ProviderUnavailable,
    );
    fails(&event("error", r#""code":"invalid_prompt","message":"m""#), ErrorKind::InvalidRequest);
    fails("data: {\"error\":{\"message\":\"m\",\"code\":503}}\n\n", ErrorKind::ProviderUnavailable);
    fails("event: error\ndata: nothing\n\n", ErrorKind::MalformedResponse);
    fails(
        &last("response.failed", r#""status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}"#),
        ErrorKind::ProviderRateLimited,
    );
    fails(&last("response.failed", r#""status":"failed","error":null"#), ErrorKind::ProviderUnavailable);
}

#[test]
fn what_is_no_event_is_malformed() {
    fails("data: {\"choices\":[]}\n\n", ErrorKind::MalformedResponse);
    fails("data: {\"type\":\"response.created\"\n\n", ErrorKind::MalformedResponse);
    fails("data: 7\n\n", ErrorKind::MalformedResponse);
}

#[test]
fn utf8_split_across_transport_chunks() {
    let stream = [text("你好🙂"), completed()].concat();
    assert_eq!(read(&stream).raw, stream);
    let mut broken = stream.into_bytes();
    let place = broken.iter().position(|byte| *byte == 0xA0).unwrap();
    broken[place] = 0xFF;
    assert_eq!(decode([&*broken]).error, Some(ErrorKind::MalformedResponse));
}
