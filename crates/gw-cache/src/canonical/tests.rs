//! The canonical form, case by case.

use gw_types::Operation;

use super::{Canonical, DEPTH_MAX};

fn canonical(body: &str) -> Option<String> {
    let canonical = Canonical::read(body.as_bytes(), Operation::Chat)?;
    Some(canonical.members().map(|member| String::from_utf8(member.to_vec()).unwrap()).collect())
}

fn check(body: &str, expected: &str) {
    assert_eq!(canonical(body).as_deref(), Some(expected), "{body}");
}

fn check_value(value: &str, expected: &str) {
    check(&format!("{{\"v\":{value}}}"), &format!("\"v\":{expected},"));
}

fn refuses(body: &str) {
    assert_eq!(canonical(body), None, "{body}");
}

#[test]
fn members_are_sorted_at_every_level() {
    check("{}", "");
    check(" { } ", "");
    check(r#"{"b":1,"a":2}"#, r#""a":2,"b":1,"#);
    check(r#"{"a":{"d":1,"c":{"f":[],"e":{}}}}"#, r#""a":{"c":{"e":{},"f":[],},"d":1,},"#);
    check("{\n\t\"a\" :\r [ 1 , {\"c\":1 , \"b\":2} ] }", r#""a":[1,{"b":2,"c":1,},],"#);
    check(r#"{"a":[{"z":1},{"y":2}]}"#, r#""a":[{"z":1,},{"y":2,},],"#);
}

#[test]
fn the_last_of_equal_keys_wins() {
    check(r#"{"a":1,"a":2}"#, r#""a":2,"#);
    check(r#"{"b":{"a":1,"c":0,"\u0061":2,"a":3}}"#, r#""b":{"a":3,"c":0,},"#);
}

#[test]
fn fields_that_do_not_matter_go_at_the_top_only() {
    check(r#"{"stream":true,"stream_options":{"include_usage":true},"user":"u","a":1}"#, r#""a":1,"#);
    check(r#"{"str\u0065am":true}"#, "");
    check(r#"{"metadata":{"user":"u"}}"#, r#""metadata":{"user":"u",},"#);
    check(r#"{"streams":true}"#, r#""streams":true,"#);
}

#[test]
fn numbers_are_compared_by_value() {
    for zero in ["0", "-0", "0.0", "-0.00", "0e0", "0E+7", "0.0e-99"] {
        check_value(zero, "0");
    }
    for number in ["120", "120.0", "1.2e2", "1.2E+2", "12e1", "0.12e3", "1200e-1"] {
        check_value(number, "12e1");
    }
    check_value("0.5", "5e-1");
    check_value("-0.050", "-5e-2");
    check_value("7", "7");
    check_value("1.0", "1");
    check_value("9007199254740993", "9007199254740993");
    check_value("9223372036854775809", "9223372036854775809");
    check_value("1e400", "1e400");
    check_value("0.1000000000000000055511151231257827", "1000000000000000055511151231257827e-34");
    for wrong in ["01", "+1", ".5", "1.", "1e", "1e+", "-", "0x1", "NaN", "1e99999999999999999999", "--1"] {
        refuses(&format!("{{\"v\":{wrong}}}"));
    }
}

#[test]
fn strings_are_compared_by_their_characters() {
    check_value(r#""\u0041\u00e9\u20AC\/""#, r#""Aé€/""#);
    check_value(r#""\ud83d\ude00""#, "\"\u{1f600}\"");
    check_value(r#""\u000a\n\u0009\u0022\u005c""#, r#""\n\n\t\"\\""#);
    check_value(r#""\u0001\u007f""#, "\"\\u0001\u{7f}\"");
    check_value(r#""\uD83D x""#, r#""\ud83d x""#);
    check_value(r#""\ud83d\u0041""#, r#""\ud83dA""#);
    check_value(r#""\ud83d\n""#, r#""\ud83d\n""#);
    check_value(r#""\ude00\ud83d""#, r#""\ude00\ud83d""#);
    check_value(r#"" a  B\t""#, r#"" a  B\t""#);
    for wrong in
        ["\"\u{1}\"", "\"\n\"", r#""\x""#, r#""\u12""#, r#""\u12g4""#, r#"""#, r#""\"#, r#""\u+123""#]
    {
        refuses(&format!("{{\"v\":{wrong}}}"));
    }
}

#[test]
fn only_one_whole_object_is_read() {
    for wrong in [
        "",
        " ",
        "[]",
        "1",
        "null",
        "{",
        "}",
        "{}{}",
        "{} x",
        "{,}",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":tru}",
        "{\"a\":nul}",
        "{\"a\":1 \"b\":2}",
        "\u{feff}{}",
        "{\"a\":[",
    ] {
        refuses(wrong);
    }
    assert!(Canonical::read(b"{\"a\":\"\xff\"}", Operation::Chat).is_none());
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let most = DEPTH_MAX as usize - 1;
    assert!(canonical(&nested(most)).is_some());
    refuses(&nested(most + 1));
    refuses(&nested(100_000));
}

#[test]
fn sorting_moves_a_bounded_number_of_bytes() {
    let nested =
        |levels: usize| format!("{{\"a\":{}0{}}}", "{\"b\":0,\"a\":".repeat(levels), "}".repeat(levels));
    assert!(canonical(&nested(20)).is_some());
    refuses(&nested(90).replace(":0}", &format!(":\"{}\"}}", "x".repeat(10_000))));
}
