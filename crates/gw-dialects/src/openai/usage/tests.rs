//! Tests of usage, with the figures of the reported faults and of recorded answers.

use gw_types::{Price, Usage};

use super::WireUsage;
use crate::json::Reader;

fn read(text: &str) -> Option<Usage> {
    WireUsage::read(&mut Reader::new(text)).unwrap().unwrap().classes()
}

/// Input, cached, written, output, reasoning, audio in, audio out, image.
#[track_caller]
fn check(text: &str, classes: [u64; 8], inconsistent: bool) {
    let usage = read(text).unwrap();
    let read = [
        usage.input,
        usage.cached_input,
        usage.cache_write,
        usage.output,
        usage.reasoning,
        usage.audio_input,
        usage.audio_output,
        usage.image_input,
    ];
    assert_eq!((read.map(|count| count.get()), usage.inconsistent), (classes, inconsistent), "{text}");
}

#[test]
fn prompt_cache_tokens_are_priced_once() {
    let price = Price { cached_input: Some(300_000), ..Price::new(3_000_000, 15_000_000) };
    let cost = |text| price.cost(&read(text).unwrap()).unwrap().money.micros_rounded_up();
    let consistent = r#"{"prompt_tokens":3010,"completion_tokens":100,"total_tokens":3110,
        "prompt_tokens_details":{"cached_tokens":2000}}"#;
    check(consistent, [1_010, 2_000, 0, 100, 0, 0, 0, 0], false);
    assert_eq!(cost(consistent), 5_130);
    let contradicting =
        r#"{"prompt_tokens":100,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":150}}"#;
    check(contradicting, [0, 150, 0, 100, 0, 0, 0, 0], true);
    assert_eq!(cost(contradicting), 1_545);
}

#[test]
fn reasoning_tokens_neither_lost_nor_doubled() {
    let inside = r#"{"prompt_tokens":200,"completion_tokens":1050,"completion_tokens_details":{"reasoning_tokens":50}}"#;
    check(inside, [200, 0, 0, 1_000, 50, 0, 0, 0], false);
    let apart = r#"{"prompt_tokens":429,"completion_tokens":44,"total_tokens":975,
        "prompt_tokens_details":{"text_tokens":429,"cached_tokens":192},"completion_tokens_details":{"reasoning_tokens":502}}"#;
    check(apart, [237, 192, 0, 44, 502, 0, 0, 0], false);
    let more_than_all = r#"{"prompt_tokens":43,"completion_tokens":10,"total_tokens":53,"completion_tokens_details":{"reasoning_tokens":11}}"#;
    check(more_than_all, [43, 0, 0, 0, 10, 0, 0, 0], true);
}

#[test]
fn audio_tokens_are_not_text() {
    let text = r#"{"prompt_tokens":115,"completion_tokens":47,"prompt_tokens_details":{"audio_tokens":100},
        "completion_tokens_details":{"audio_tokens":34}}"#;
    check(text, [15, 0, 0, 13, 0, 100, 34, 0], false);
}

#[test]
fn images_take_what_caching_leaves() {
    let text = r#"{"prompt_tokens":504,"completion_tokens":91,"total_tokens":595,
        "prompt_tokens_details":{"cached_tokens":370,"text_tokens":248,"image_tokens":256}}"#;
    check(text, [0, 370, 0, 91, 0, 0, 0, 134], false);
}

#[test]
fn cached_tokens_stand_in_many_places() {
    check(r#"{"prompt_tokens":9,"completion_tokens":1,"cached_tokens":4}"#, [5, 4, 0, 1, 0, 0, 0, 0], false);
    let both = r#"{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4},
        "prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}"#;
    check(both, [5, 4, 0, 1, 0, 0, 0, 0], false);
    let write = r#"{"prompt_tokens":1220,"completion_tokens":100,"total_tokens":1320,
        "prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":1217},"completion_tokens_details":{"reasoning_tokens":100}}"#;
    check(write, [3, 0, 1_217, 0, 100, 0, 0, 0], false);
}

#[test]
fn missing_figures_follow_from_the_total() {
    check(r#"{"prompt_tokens":11,"total_tokens":18}"#, [11, 0, 0, 7, 0, 0, 0, 0], false);
    check(r#"{"completion_tokens":7,"total_tokens":18}"#, [11, 0, 0, 7, 0, 0, 0, 0], false);
    check(r#"{"prompt_tokens":11,"completion_tokens":7,"total_tokens":99}"#, [11, 0, 0, 7, 0, 0, 0, 0], true);
}

#[test]
fn what_counts_nothing_is_no_usage() {
    assert_eq!(read("{}"), None);
    assert_eq!(read(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#), None);
    assert_eq!(read(r#"{"prompt_tokens":"1","completion_tokens":1.5,"total_tokens":null}"#), None);
    assert_eq!(WireUsage::read(&mut Reader::new("null")), Ok(None));
    assert_eq!(WireUsage::read(&mut Reader::new("[1]")), Ok(None));
}

#[test]
fn huge_figures_do_not_overflow() {
    let text = r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615,
        "total_tokens":1,"prompt_tokens_details":{"cached_tokens":18446744073709551615,"audio_tokens":18446744073709551615},
        "completion_tokens_details":{"reasoning_tokens":18446744073709551615,"audio_tokens":18446744073709551615}}"#;
    assert!(read(text).unwrap().implausible);
}

#[test]
fn a_negative_count_makes_the_report_implausible() {
    for text in [
        r#"{"prompt_tokens":-1,"completion_tokens":5,"total_tokens":4}"#,
        r#"{"prompt_tokens":9,"completion_tokens":-5}"#,
        r#"{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-3}}"#,
    ] {
        assert_eq!(read(text), Some(Usage { implausible: true, ..Usage::default() }), "{text}");
    }
    assert_eq!(
        read(r#"{"prompt_tokens":-0,"completion_tokens":5,"total_tokens":14}"#).unwrap().input.get(),
        9
    );
}

#[test]
fn later_reports_win_field_by_field() {
    let mut usage = WireUsage::default();
    for text in [
        r#"{"prompt_tokens":0}"#,
        r#"{"prompt_tokens":11,"completion_tokens":1}"#,
        r#"{"completion_tokens":7}"#,
    ] {
        usage.merge(&WireUsage::read(&mut Reader::new(text)).unwrap().unwrap());
    }
    usage.merge(&WireUsage::default());
    let usage = usage.classes().unwrap();
    assert_eq!((usage.input.get(), usage.output.get()), (11, 7));
}
