//! Tests of questions: what makes two of them comparable.

use gw_types::Question;

use super::read;

fn ask(body: &str) -> Option<Question> {
    read(body.as_bytes())
}

#[track_caller]
fn comparable(a: &str, b: &str, expected: bool) {
    assert_eq!(ask(a).unwrap().context == ask(b).unwrap().context, expected, "{a}\n{b}");
}

#[test]
fn the_last_user_turn_is_the_question() {
    let question = ask(
        r#"{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"H\u00e9"}]}"#,
    );
    assert_eq!(question.unwrap().text, "Hé");
    let parts =
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"}]}]}"#;
    assert_eq!(ask(parts).unwrap().text, "a\nb");
}

#[test]
fn only_plain_text_of_a_user_is_a_question() {
    for body in [
        r#"{"messages":[{"role":"assistant","content":"a"}]}"#,
        r#"{"messages":[{"role":"user","content":" "}]}"#,
        r#"{"messages":[{"role":"user","content":null}]}"#,
        r#"{"messages":[{"role":"user"}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]}]}"#,
        r#"{"messages":[]}"#,
        "{}",
        "x",
    ] {
        assert_eq!(ask(body), None, "{body}");
    }
}

#[test]
fn transport_spelling_and_order_do_not_matter() {
    let plain = r#"{"model":"m","n":1,"messages":[{"role":"user","content":"a"}]}"#;
    comparable(plain, r#"{ "messages":[{"content":"b","role":"user"}],"n":1,"model":"\u006d" }"#, true);
    let streamed = r#"{"model":"m","stream":true,"stream_options":{},"user":"u","n":1,"messages":[{"role":"user","content":"a"}]}"#;
    comparable(plain, streamed, true);
}

#[test]
fn everything_else_does() {
    let with = |fields: &str, before: &str| {
        format!(r#"{{"model":"m"{fields},"messages":[{before}{{"role":"user","content":"a"}}]}}"#)
    };
    let plain = with("", "");
    comparable(&plain, &with(r#","temperature":1"#, ""), false);
    comparable(&plain, &with("", r#"{"role":"system","content":"S"},"#), false);
    comparable(&plain, &with(r#","unknown":{"a":[1,null,true]}"#, ""), false);
    let big = |number: &str| with(&format!(",\"seed\":{number}"), "");
    comparable(&big("18446744073709551616"), &big("18446744073709551617"), false);
    comparable(&plain, r#"{"model":"m","messages":[{"role":"user","name":"n","content":"a"}]}"#, false);
}
