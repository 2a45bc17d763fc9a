//! Tests of the value streams.

use bytes::Bytes;

use super::{ArrayDecoder, LineDecoder, VALUE_BYTES_MAX, ValueFault};

/// What a decoder gave: the values, its fault, and whether the stream was complete (or had a rest).
type Decoded = (Vec<String>, Option<ValueFault>, bool);

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn array(stream: &str, chunk_bytes: usize) -> Decoded {
    let mut decoder = ArrayDecoder::new();
    let (mut values, mut fault) = (Vec::new(), None);
    for chunk in stream.as_bytes().chunks(chunk_bytes) {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(value) = decoder.next_value() {
            match value {
                Ok(value) => values.push(text(value)),
                Err(found) => fault = Some(found),
            }
        }
    }
    (values, fault, decoder.is_complete())
}

fn lines(stream: &str, chunk_bytes: usize) -> Decoded {
    let mut decoder = LineDecoder::new();
    let (mut values, mut fault) = (Vec::new(), None);
    for chunk in stream.as_bytes().chunks(chunk_bytes) {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(value) = decoder.next_value() {
            match value {
                Ok(value) => values.push(text(value)),
                Err(found) => fault = Some(found),
            }
        }
    }
    let rest = decoder.finish().map(text);
    let has_rest = rest.is_some();
    values.extend(rest);
    (values, fault, has_rest)
}

#[track_caller]
fn check(
    decode: fn(&str, usize) -> Decoded,
    stream: &str,
    values: &[&str],
    fault: Option<ValueFault>,
    end: bool,
) {
    let whole = decode(stream, stream.len().max(1));
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    assert_eq!(whole, (values, fault, end), "{stream}");
    for chunk_bytes in 1..9 {
        assert_eq!(decode(stream, chunk_bytes), whole, "{stream} at {chunk_bytes}");
    }
}

#[track_caller]
fn check_array(stream: &str, values: &[&str], complete: bool) {
    check(array, stream, values, None, complete);
}

#[track_caller]
fn check_fault(stream: &str, values: &[&str]) {
    check(array, stream, values, Some(ValueFault::Misplaced), false);
}

#[track_caller]
fn check_lines(stream: &str, values: &[&str], rest: bool) {
    check(lines, stream, values, None, rest);
}

#[test]
fn items_are_cut_where_they_end() {
    check_array("[]", &[], true);
    check_array(" [ ] \r\n", &[], true);
    check_array("[{\"a\":[1,{}]},\r\n{\"b\":\"}],\"}]", &["{\"a\":[1,{}]}", "{\"b\":\"}],\"}"], true);
    check_array(r#"[{"a":"\"}\\"}]"#, &[r#"{"a":"\"}\\"}"#], true);
    check_array("[1, true ,\"x\",null]", &["1", "true", "\"x\"", "null"], true);
    check_array("[[1],[2]\n]", &["[1]", "[2]"], true);
}

#[test]
fn an_array_that_is_cut_is_not_complete() {
    check_array("", &[], false);
    check_array("[", &[], false);
    check_array("[{\"a\":1}", &["{\"a\":1}"], false);
    check_array("[{\"a\":1},", &["{\"a\":1}"], false);
    check_array("[{\"a\":1},{\"b", &["{\"a\":1}"], false);
}

#[test]
fn a_value_alone_is_one_item() {
    check_array("\n {\"error\":{\"code\":500}}\n", &["{\"error\":{\"code\":500}}"], true);
    check_array("\"gone\"", &["\"gone\""], true);
    check_fault("{} {}", &["{}"]);
    check_fault("<html>,", &["<html>"]);
}

#[test]
fn misplaced_bytes_are_a_fault() {
    check_fault("[,]", &[]);
    check_fault("[{}{}]", &["{}"]);
    check_fault("[{},]", &["{}"]);
    check_fault("[{}] x", &["{}"]);
    check_fault("]", &[]);
    check_fault("[1}]", &[]);
    check_fault(&format!("[{}", "[".repeat(101)), &[]);
}

#[test]
fn lines_end_with_either_end() {
    check_lines("", &[], false);
    check_lines(
        "{\"a\":1}\n{\"b\":2}\r\n\r\n \n{\"c\":3}\n",
        &["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"],
        false,
    );
    check_lines("{\"a\":1}\n{\"b\"", &["{\"a\":1}", "{\"b\""], true);
    check_lines("\n \r\n ", &[], false);
    check_lines("  {} \n", &["{}"], false);
}

#[test]
fn what_was_not_taken_is_kept() {
    let mut decoder = LineDecoder::new();
    decoder.push(Bytes::from_static(b"1\n2\n3"));
    assert_eq!(decoder.next_value(), Some(Ok(&b"1"[..])));
    decoder.push(Bytes::from_static(b"4\n"));
    assert_eq!(decoder.next_value(), Some(Ok(&b"2"[..])));
    assert_eq!(decoder.next_value(), Some(Ok(&b"34"[..])));
    let mut decoder = ArrayDecoder::new();
    decoder.push(Bytes::from_static(b"[{\"a\":1},{\"b\""));
    assert_eq!(decoder.next_value(), Some(Ok(&b"{\"a\":1}"[..])));
    decoder.push(Bytes::from_static(b":2}]"));
    assert_eq!(decoder.next_value(), Some(Ok(&b"{\"b\":2}"[..])));
}

#[test]
fn a_value_without_end_is_refused_at_the_bound() {
    let piece = Bytes::from(vec![b'x'; VALUE_BYTES_MAX / 8]);
    let mut line = LineDecoder::new();
    let mut array = ArrayDecoder::new();
    array.push(Bytes::from_static(b"[\""));
    assert_eq!(array.next_value(), None);
    for _ in 0..8 {
        line.push(piece.clone());
        assert_eq!(line.next_value(), None);
    }
    line.push(piece.clone());
    assert_eq!(line.next_value(), Some(Err(ValueFault::TooLong)));
    assert_eq!(line.next_value(), None);
    assert_eq!(line.finish(), None);
    let faults = (0..9).filter_map(|_| {
        array.push(piece.clone());
        array.next_value().map(|value| value.map(<[u8]>::to_vec))
    });
    assert_eq!(faults.collect::<Vec<_>>(), [Err(ValueFault::TooLong)]);
}

#[test]
fn i18_debug_shows_no_content() {
    let mut lines = LineDecoder::new();
    lines.push(Bytes::from_static(b"hunter2"));
    let mut array = ArrayDecoder::new();
    array.push(Bytes::from_static(b"[\"hunter2\""));
    assert!(!format!("{lines:?}{array:?}").contains("hunter2"));
}
