//! Tests of the stream decoder.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, StreamItem};

use super::StreamDecoder;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","model":"claude","usage":{"input_tokens":11,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn event(data: &str) -> String {
    let kind = data.split('"').nth(3).unwrap();
    format!("event: {kind}\ndata: {data}\n\n")
}

fn text(said: &str) -> String {
    let delta = format!(r#"{{"type":"text_delta","text":"{said}"}}"#);
    event(&format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#))
}

fn delta(usage: &str) -> String {
    event(&format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#))
}

fn decode(body: &str, bytes: usize) -> (Vec<StreamItem>, Option<ErrorKind>) {
    decode_chunks(body.as_bytes().chunks(bytes))
}

fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<StreamItem>, Option<ErrorKind>) {
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk), &mut items);
    }
    let error = match decoder.end() {
        Ok(item) => {
            items.push_back(item);
            items.iter().find_map(|item| item.facts.error.as_ref()).map(|error| error.kind())
        }
        Err(error) => Some(error.kind()),
    };
    (items.into(), error)
}

fn relayed(items: &[StreamItem]) -> String {
    String::from_utf8(items.iter().flat_map(|item| item.raw.to_vec()).collect()).unwrap()
}

#[test]
fn i19_events_are_relayed_as_they_came() {
    let body = [
        event(START),
        event(r#"{"type": "ping"}"#),
        event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}   }"#),
        text("A"),
        text("\\u00e9"),
        event(r#"{"type":"content_block_stop","index":0}"#),
        event(r#"{"type":"something_new","x":1e400}"#),
        delta(r#"{"output_tokens":7}"#),
        event(STOP),
    ]
    .concat();
    for bytes in [usize::MAX, 1, 7] {
        let (items, error) = decode(&body, bytes);
        assert_eq!((relayed(&items), error), (body.clone(), None));
        let content: u32 = items.iter().map(|item| item.facts.content_bytes).sum();
        let frames: u32 = items.iter().map(|item| item.facts.content_frames).sum();
        assert_eq!((content, frames), (3, 2));
        assert_eq!(items.iter().filter(|item| item.facts.terminal).count(), 1);
    }
    let (items, _) = decode(&body, usize::MAX);
    assert_eq!(items.len(), 2, "one chunk is one slice, and an empty last item");
    let facts = &items[0].facts;
    assert_eq!(facts.finish, Some(FinishReason::Stop));
    assert_eq!(facts.served_model.as_ref().unwrap().as_str(), "claude");
    let usage = facts.usage.as_deref().unwrap();
    assert_eq!((usage.input_total().get(), usage.output_total().get()), (11, 7));
}

#[test]
fn other_framing_becomes_the_dialects_own() {
    let body = format!(
        ": hi\r\ndata:{START}\r\n\r\nevent: x\r\nid: 7\r\ndata: {{\"type\":\ndata: \"ping\"}}\n\ndata: {STOP}"
    );
    let (items, error) = decode(&body, usize::MAX);
    assert_eq!(error, None);
    let expected = format!("{}event: ping\ndata: {{\"type\": \"ping\"}}\n\n{}", event(START), event(STOP));
    assert_eq!(relayed(&items), expected);
}

#[test]
fn pings_are_no_progress() {
    let (items, _) = decode(&event(r#"{"type":"ping"}"#), usize::MAX);
    assert!(items.iter().all(|item| !item.facts.is_meaningful()));
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    for body in [String::new(), event(START), event(START) + &text("Hel"), event(START) + &delta("{}")] {
        let (items, error) = decode(&body, usize::MAX);
        assert_eq!(error, Some(ErrorKind::StreamInterrupted), "{body}");
        assert!(items.iter().all(|item| !item.facts.terminal));
        let cut = format!("{body}event: message_stop\ndata: {{\"type\":\"mess");
        assert_eq!(decode(&cut, 5).1, Some(ErrorKind::StreamInterrupted));
    }
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let error = event(
        r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"} }"#,
    );
    let body = event(START) + &text("Hel") + &error + &event(STOP);
    let (items, kind) = decode(&body, usize::MAX);
    assert_eq!(kind, Some(ErrorKind::ProviderUnavailable));
    assert_eq!(relayed(&items), event(START) + &text("Hel"));
}

#[test]
fn what_is_no_event_is_malformed() {
    for body in
        ["event: ping\ndata: x\n\n", "data: []\n\n", "data: {}\n\n", "event: a b\ndata: {\"x\":1}\n\n"]
    {
        assert_eq!(decode(body, usize::MAX).1, Some(ErrorKind::MalformedResponse), "{body}");
    }
}

#[test]
fn only_deltas_that_mean_text_alone_are_taken_for_it() {
    let call = event(
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    );
    let start = event(
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
    );
    let body = event(START) + &text("A") + &text("B") + &start + &call + &text("C") + &event(STOP);
    let (items, error) = decode(&body, usize::MAX);
    assert_eq!(error, None);
    assert_eq!((items[0].facts.content_bytes, items[0].facts.content_frames), (5, 5));
    assert!(items[0].facts.tool_calls);
    let padded = text("A") + &text("B").replace("\"}}", "\"}     }") + &text("C").replace("}}", "},\"x\":1}");
    let (items, _) = decode(&(event(START) + &padded + &event(STOP)), usize::MAX);
    assert_eq!(items[0].facts.content_bytes, 3);
}

/// What a stream says that comes in these chunks, however they are joined: bytes, content, frames, the kind of an error.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, u32, u32, Option<ErrorKind>) {
    let (items, error) = decode_chunks(chunks);
    let content = items.iter().map(|item| item.facts.content_bytes).sum();
    let frames = items.iter().map(|item| item.facts.content_frames).sum();
    (items.iter().flat_map(|item| item.raw.to_vec()).collect(), content, frames, error)
}

#[test]
fn a_chunk_that_is_one_event_says_what_its_bytes_say() {
    let like = |said: &str| text(said).into_bytes();
    let odd = |from: &str, to: &str| text("B").replace(from, to).into_bytes();
    let two = [text("B"), text("C")].concat().into_bytes();
    let mut broken = like("B");
    let at = broken.iter().position(|byte| *byte == b'B').unwrap();
    broken[at] = 0xff;
    for chunk in [
        like("B"),
        like(""),
        like("\\u00e9\\n \\\"quoted\\\" \u{e9}"),
        like("B\nC"),
        like("B\rC"),
        odd("}}", "}  } "),
        odd("}}", "},\"more\":1}"),
        odd("}}", "}}}"),
        odd("}}", "}"),
        odd("\n\n", "\n"),
        odd("\n\n", "\n\n\n"),
        odd("\n\n", "\r\n\r\n"),
        odd("event: content_block_delta", "event: ping"),
        odd("event: ", ": a comment\nevent: "),
        odd("data: ", "data:"),
        odd("text_delta", "thinking_delta"),
        odd("\"B\"", "7"),
        odd("B", "B\\x"),
        two,
        broken,
        b"\n".to_vec(),
    ] {
        for before in ["A", ""] {
            let (start, first, stop) = (event(START), text(before), event(STOP));
            let whole = [start.as_bytes(), first.as_bytes(), &chunk, stop.as_bytes()].concat();
            let by_event = read([start.as_bytes(), first.as_bytes(), &chunk, stop.as_bytes()]);
            let printed = String::from_utf8_lossy(&chunk);
            assert_eq!(by_event, read(whole.chunks(1)), "{printed}");
            assert_eq!(by_event, read([whole.as_slice()]), "{printed}");
        }
    }
}
