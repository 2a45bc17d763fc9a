//! Tests of the event-stream codec.

use bytes::Bytes;

use super::{Decoder, FrameFault, HeaderValue, encode};

/// The empty message of the format's description: no headers, no payload.
const EMPTY: [u8; 16] = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];

/// Frames as `(headers, payload)`, and how the stream ended.
type Decoded = (Vec<(String, Vec<u8>)>, Option<FrameFault>, bool);

fn decode(bytes: &[u8], chunk_bytes: usize) -> Decoded {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    let mut fault = None;
    for chunk in bytes.chunks(chunk_bytes) {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = decoder.next_frame() {
            match frame {
                Ok(frame) => {
                    let headers: Vec<_> = frame.headers().collect();
                    frames.push((format!("{headers:?}"), frame.payload.to_vec()));
                }
                Err(found) => fault = Some(found),
            }
        }
    }
    (frames, fault, decoder.is_between_frames())
}

#[track_caller]
fn check(bytes: &[u8], payloads: &[&[u8]], fault: Option<FrameFault>, between: bool) {
    let whole = decode(bytes, bytes.len().max(1));
    assert_eq!(whole.0.iter().map(|(_, payload)| &payload[..]).collect::<Vec<_>>(), payloads);
    assert_eq!((whole.1, whole.2), (fault, between));
    for chunk_bytes in [1, 2, 3, 7, 12, 13] {
        assert_eq!(decode(bytes, chunk_bytes), whole, "{chunk_bytes} bytes a chunk");
    }
}

fn changed(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0x10;
    bytes
}

/// A prelude that says the lengths, with the right checksum.
fn prelude(frame: u32, headers: u32) -> Vec<u8> {
    let mut bytes = [frame.to_be_bytes(), headers.to_be_bytes()].concat();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// A frame with these bytes as headers and the right checksums.
fn with_headers(headers: &[u8]) -> Vec<u8> {
    let length = u32::try_from(headers.len()).unwrap();
    let mut bytes = prelude(16 + length, length);
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

#[test]
fn the_empty_frame_is_as_the_format_describes_it() {
    assert_eq!(encode(&[], b""), &EMPTY[..]);
    check(&EMPTY, &[b""], None, true);
}

#[test]
fn headers_of_every_type_survive() {
    let headers = [
        ("yes", HeaderValue::Bool(true)),
        ("no", HeaderValue::Bool(false)),
        ("byte", HeaderValue::Byte(-1)),
        ("short", HeaderValue::Short(-2)),
        ("integer", HeaderValue::Integer(40_972)),
        ("long", HeaderValue::Long(i64::MIN)),
        ("bytes", HeaderValue::Bytes(&[0, 255])),
        (":event-type", HeaderValue::Text("é")),
        ("time", HeaderValue::Timestamp(8_675_309)),
        ("uuid", HeaderValue::Uuid([7; 16])),
    ];
    let bytes = encode(&headers, b"{}");
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(frame.headers().collect::<Vec<_>>(), headers);
    assert_eq!(frame.text_header(":event-type"), Some("é"));
    assert_eq!((frame.text_header("byte"), frame.header("absent")), (None, None));
}

#[test]
fn frames_follow_each_other() {
    let stream = [&encode(&[], b"a")[..], &encode(&[], b"bc"), &encode(&[], b"")].concat();
    check(&stream, &[b"a", b"bc", b""], None, true);
    check(&stream[..stream.len() - 1], &[b"a", b"bc"], None, false);
    check(&stream[..20], &[b"a"], None, false);
}

#[test]
fn a_chunk_that_was_not_read_is_kept() {
    let frame = encode(&[], b"abc");
    let mut decoder = Decoder::new();
    decoder.push(frame.slice(..5));
    decoder.push(frame.slice(5..));
    decoder.push(frame.clone());
    assert_eq!(decoder.next_frame().unwrap().unwrap().payload, b"abc");
    assert_eq!(decoder.next_frame().unwrap().unwrap().payload, b"abc");
    assert_eq!(decoder.next_frame(), None);
}

#[test]
fn what_is_wrong_is_named_once() {
    let frame = encode(&[("a", HeaderValue::Text("b"))], b"payload").to_vec();
    let good = frame.clone();
    let after_good = |broken: Vec<u8>| [good.clone(), broken].concat();
    check(&changed(frame.clone(), 2), &[], Some(FrameFault::PreludeChecksum), false);
    check(&changed(frame.clone(), 10), &[], Some(FrameFault::PreludeChecksum), false);
    check(&changed(frame.clone(), 13), &[], Some(FrameFault::FrameChecksum), false);
    check(&after_good(changed(frame.clone(), 20)), &[b"payload"], Some(FrameFault::FrameChecksum), false);
    let last = frame.len() - 1;
    check(&changed(frame, last), &[], Some(FrameFault::FrameChecksum), false);
}

#[test]
fn impossible_lengths_are_refused_before_anything_is_held() {
    check(&prelude(15, 0), &[], Some(FrameFault::Lengths), false);
    check(&prelude(0, 0), &[], Some(FrameFault::Lengths), false);
    check(&prelude(20, 5), &[], Some(FrameFault::Lengths), false);
    check(&prelude(u32::MAX, 0), &[], Some(FrameFault::TooLong), false);
    check(&prelude(16 * 1024 * 1024 + 1, 0), &[], Some(FrameFault::TooLong), false);
    check(&prelude(1024 * 1024, 128 * 1024 + 1), &[], Some(FrameFault::TooLong), false);
}

#[test]
fn unsound_headers_are_refused() {
    check(&with_headers(&[1, b'a', 0]), &[b""], None, true);
    check(&with_headers(&[1, b'a', 10]), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[0, 0]), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[2, b'a']), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[1, b'a']), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[1, b'a', 7, 0, 2, b'x']), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[1, b'a', 7, 0, 1, 0xff]), &[], Some(FrameFault::Headers), false);
    check(&with_headers(&[1, b'a', 4, 0, 0]), &[], Some(FrameFault::Headers), false);
}

#[test]
fn names_and_values_are_cut_to_what_the_format_can_say() {
    let long = "é".repeat(40_000);
    let bytes = encode(&[(&long, HeaderValue::Text(&long))], b"");
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let frame = decoder.next_frame().unwrap().unwrap();
    let (name, value) = frame.headers().next().unwrap();
    assert_eq!((name.len(), value), (254, HeaderValue::Text(&long[..65_534])));
}

#[test]
fn i18_debug_shows_no_content() {
    let mut decoder = Decoder::new();
    decoder.push(encode(&[], b"hunter2"));
    assert!(!format!("{decoder:?}").contains("hunter2"));
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(format!("{frame:?}"), "Frame { payload: \"[7 bytes redacted]\", .. }".replace('"', ""));
}
