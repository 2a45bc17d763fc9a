//! Tests of the JSON reader; `serde_json` is the oracle.

use gw_types::TextClasses;
use proptest::prelude::*;

use super::{DEPTH_MAX, Fault, Kind, Reader, line_column};

fn check(text: &str) -> Result<(), Fault> {
    let mut reader = Reader::new(text);
    reader.skip()?;
    reader.end()
}

#[track_caller]
fn refused(text: &str, at: usize, what: &str) {
    assert_eq!(check(text).map_err(|fault| (fault.at, fault.what)), Err((at, what)), "{text}");
}

#[test]
fn json_is_accepted() {
    for text in ["0", "-0.5e+3", " [ ] ", "{}", r#"{"a":[1,{"b":null}],"c":"\u00e9\n"}"#, "1e400", "true"] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
}

#[test]
fn faults_say_where_and_why() {
    refused("", 0, "unexpected end");
    refused("{\"a\":1", 6, "unexpected end");
    refused("[1 2]", 3, "expected `,` or `]`");
    refused("{\"a\" 1}", 5, "expected `:`");
    refused("{a:1}", 1, "expected a field name in quotes");
    refused("{\"a\":1,}", 7, "expected a field name in quotes");
    refused("[1,]", 3, "expected a value");
    refused("01", 1, "invalid number");
    refused("1.", 2, "invalid number");
    refused("nul", 0, "expected a value");
    refused("\"a\nb\"", 2, "control character in a string");
    refused("\"\\x\"", 1, "invalid escape in a string");
    refused("\"abcdefghij", 11, "unterminated string");
    refused("{} x", 3, "unexpected text after the end of the JSON value");
}

#[test]
fn depth_is_bounded_without_recursion() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(check(&nested(DEPTH_MAX as usize)), Ok(()));
    refused(&nested(101), 100, "nested deeper than 100 levels");
    refused(&"[".repeat(100_000), 100, "nested deeper than 100 levels");
    refused(&"{\"a\":".repeat(100_000), 500, "nested deeper than 100 levels");
}

#[test]
fn values_know_their_ranges() {
    let text = r#" {"a": [1, 2] , "b":"x\ty"}"#;
    let mut reader = Reader::new(text);
    let mut seen = Vec::new();
    reader
        .object::<Fault>(|reader, key| {
            let kind = reader.kind()?;
            let span = reader.skip()?;
            seen.push((key.raw(), kind, &text[span]));
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [("a", Kind::Array, "[1, 2]"), ("b", Kind::String, r#""x\ty""#)]);
}

#[test]
fn lone_surrogates_count_as_replacement_characters() {
    let text = r#""\ud800a\udc00\ud83d\ude42""#;
    let read = Reader::new(text).string().unwrap();
    assert_eq!(read.decoded(), "\u{fffd}a\u{fffd}\u{1f642}");
    assert_eq!(read.decoded_len(), read.decoded().len() as u64);
}

#[test]
fn positions_count_lines_and_characters() {
    assert_eq!(line_column("a\né!", 4), (2, 2));
    assert_eq!(line_column("", 0), (1, 1));
}

/// Text that is JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"\\u00e9\"",
        "\\",
        "é",
        "0",
        "-1",
        "2.5e3",
        "01",
        "true",
        "false",
        "null",
        " ",
        "\n",
        "x",
        "{\"k\":",
        "[1,",
        "1]",
        "\"longer than eight\"",
    ]);
    prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn agrees_with_serde_json(text in nearly_json()) {
        let oracle = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(check(&text).is_ok(), oracle, "{}", text);
    }

    #[test]
    fn strings_read_back(said in any::<String>()) {
        let text = serde_json::to_string(&said).unwrap();
        let read = Reader::new(&text).string().unwrap();
        prop_assert_eq!(read.decoded_len(), said.len() as u64);
        prop_assert_eq!(read.measured(), (said.len() as u64, TextClasses::of(&said)));
        prop_assert_eq!(read.decoded(), said);
        prop_assert_eq!(read.span(), 0..text.len());
    }

    /// Lines of every length that is put together, and of some that are not.
    #[test]
    fn long_strings_are_measured_as_what_they_say(
        lines in prop::collection::vec(("[ -~é你🙂]{1,12}", 1_usize..400), 1..12),
    ) {
        let said = lines.iter().map(|(line, times)| line.repeat(*times)).collect::<Vec<_>>().join("\n");
        let text = serde_json::to_string(&said).unwrap();
        let read = Reader::new(&text).string().unwrap();
        prop_assert_eq!(read.measured(), (said.len() as u64, TextClasses::of(&said)));
    }
}
