//! Tests of the event decoder: every case whole, byte by byte, and cut at every position.

use bytes::Bytes;

use super::{Decoder, EVENT_BYTES_MAX, EventTooLong};

/// Returns the data of the events of a stream that comes in these pieces.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(event) = decoder.next_event() {
            events.push(event.unwrap().data.to_vec());
        }
    }
    events
}

#[track_caller]
fn check(stream: impl AsRef<[u8]>, expected: &[&str]) {
    let stream = stream.as_ref();
    let expected: Vec<&[u8]> = expected.iter().map(|text| text.as_bytes()).collect();
    assert_eq!(decode([stream]), expected, "whole");
    assert_eq!(decode(stream.chunks(1)), expected, "byte by byte");
    for cut in 0..=stream.len() {
        let (before, after) = stream.split_at(cut);
        assert_eq!(decode([before, after]), expected, "cut at {cut}");
        assert_eq!(decode([before, b"", after]), expected, "cut at {cut} with an empty chunk");
    }
}

#[test]
fn line_endings() {
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check("data: a\r\rdata: b\r\r", &["a", "b"]);
    check("data: a\n\r\ndata: b\r\n\n", &["a", "b"]);
    check("data: a\r\n\rdata: b\r\r\n", &["a", "b"]);
    check("\n\n\r\ndata: a\n\n\n\n", &["a"]);
}

#[test]
fn comments_and_other_fields_mean_nothing() {
    check(": hi\n:\ndata: a\n: in between\n\n:\n\ndata: b\n\n", &["a", "b"]);
    check("id: 7\nretry: 10\nevent: message\ndata: a\n\nid: 8\n\n", &["a"]);
    check("data2: x\ndat: y\ndata: a\n\n", &["a"]);
    check("event: lost\n\ndata: a\n\n", &["a"]);
}

#[test]
fn one_space_is_optional() {
    check("data:a\n\ndata:  b\n\ndata: \n\ndata\n\n", &["a", " b", "", ""]);
    check("data:a: b\n\n", &["a: b"]);
}

#[test]
fn data_lines_are_joined() {
    check("data: a\ndata: b\n\n", &["a\nb"]);
    check("data\ndata\n\n", &["\n"]);
    check("data: a\r\n: x\r\ndata:b\r\nid: 1\r\ndata: c\r\n\r\n", &["a\nb\nc"]);
}

#[test]
fn a_byte_order_mark_is_passed_at_the_start_only() {
    check("\u{feff}data: a\n\n", &["a"]);
    check("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &["b"]);
    check("data: \u{feff}a\n\n\u{feff}data: b\n\n", &["\u{feff}a"]);
    check(b"\xEF\xBBdata: a\n\ndata: b\n\n", &["b"]);
}

#[test]
fn characters_may_be_cut_anywhere() {
    check("data: 你好🙂\n\ndata: é\r\n\r\n", &["你好🙂", "é"]);
}

#[test]
fn nothing_comes_of_an_unfinished_event() {
    check("data: a\n\ndata: b\n", &["a"]);
    check("", &[]);
    check(":", &[]);
}

#[test]
fn an_event_is_handed_out_as_soon_as_its_blank_line_is_there() {
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(b"data: a\r\n\r"));
    assert_eq!(decoder.next_event().unwrap().unwrap().data, b"a");
    decoder.push(Bytes::from_static(b"\ndata: b\n\n"));
    assert_eq!(decoder.next_event().unwrap().unwrap().data, b"b");
    assert_eq!(decoder.next_event(), None);
}

#[test]
fn canonical_events_know_their_place_in_the_chunk() {
    let stream = b"data: a\n\ndata:b\n\ndata: c\n\ndata: d\r\n\r\n";
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(stream));
    let mut places = Vec::new();
    while let Some(event) = decoder.next_event() {
        places.push(event.unwrap().canonical);
    }
    assert_eq!(places, [Some((0, 9)), None, Some((17, 26)), None]);
}

#[test]
fn named_events_know_their_place_in_the_chunk() {
    let stream = b"event: n\ndata: a\n\nevent:n\ndata: b\n\ndata: c\nevent: n\n\nevent: n\ndata: d\ndata: e\n\nevent: m\ndata: f\n\n";
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(stream));
    let mut seen = Vec::new();
    while let Some(event) = decoder.next_event() {
        let event = event.unwrap();
        seen.push((event.name.to_vec(), event.data.to_vec(), event.named));
    }
    let event = |name: &str, data: &str, place| (name.as_bytes().to_vec(), data.as_bytes().to_vec(), place);
    assert_eq!(
        seen,
        [
            event("n", "a", Some((0, 18))),
            event("n", "b", None),
            event("n", "c", None),
            event("n", "d\ne", None),
            event("m", "f", Some((stream.len() - 18, stream.len()))),
        ]
    );
}

#[test]
fn names_belong_to_their_event() {
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(b"event: error\ndata: a\n\ndata: b\n\n"));
    assert_eq!(decoder.next_event().unwrap().unwrap().name, b"error");
    assert_eq!(decoder.next_event().unwrap().unwrap().name, b"");
}

#[test]
fn chunks_may_be_pushed_before_events_are_taken() {
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(b"data: a\n\nda"));
    decoder.push(Bytes::from_static(b"ta: b\n\n"));
    assert_eq!(decoder.next_event().unwrap().unwrap().data, b"a");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, b"b");
}

#[test]
fn the_last_event_may_lack_its_blank_line() {
    for stream in ["data: a", "data: a\n", "data: a\r\n"] {
        let mut decoder = Decoder::new();
        decoder.push(Bytes::from_static(stream.as_bytes()));
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.finish().unwrap().data, b"a", "{stream:?}");
        assert_eq!(decoder.finish(), None);
    }
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(b"data: a\n\n: bye"));
    assert!(decoder.next_event().is_some());
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.finish(), None);
}

#[test]
fn events_and_lines_are_bounded() {
    let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
    for head in ["data: ", ": ", "event: "] {
        let mut decoder = Decoder::new();
        decoder.push(Bytes::from_static(head.as_bytes()));
        let mut pushed = 0;
        let failed = loop {
            match decoder.next_event() {
                Some(event) => break event.map(|event| event.data.len()),
                None => decoder.push(piece.clone()),
            }
            pushed += piece.len();
        };
        assert_eq!(failed, Err(EventTooLong), "{head}");
        assert!(pushed <= EVENT_BYTES_MAX + piece.len());
        decoder.push(Bytes::from_static(b"\n\ndata: a\n\n"));
        assert_eq!(decoder.next_event(), None);
    }
}

#[test]
fn i18_debug_shows_no_content() {
    let mut decoder = Decoder::new();
    decoder.push(Bytes::from_static(b"data: secret\n\n"));
    let event = format!("{:?}", decoder.next_event());
    assert!(!format!("{decoder:?}{event}").contains("secret"));
}
