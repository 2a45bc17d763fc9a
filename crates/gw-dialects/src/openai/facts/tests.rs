//! Tests of the request reader: what it reads, and each of the ways in which a body is refused.

use bytes::Bytes;
use gw_types::{Capability, CapabilitySet, ErrorKind, OutputField, RequestFacts, Temperature, TextClasses};

use super::read_chat;
use crate::openai::error_body;

fn read(body: &str) -> RequestFacts {
    read_chat(&Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

/// Reads a body with the fields given beside a model and one message.
fn with(fields: &str) -> RequestFacts {
    read(&format!(r#"{{"model":"m","messages":[{{"role":"user","content":"Hi"}}],{fields}}}"#))
}

#[track_caller]
fn refused(body: impl AsRef<[u8]>, param: Option<&str>, display: &str) {
    let error = read_chat(&Bytes::copy_from_slice(body.as_ref())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.http_status(gw_types::Dialect::OpenAi), 400);
    assert_eq!((error.param(), error.to_string().as_str()), (param, display));
    serde_json::from_slice::<serde_json::Value>(&error_body(&error)).unwrap();
}

#[track_caller]
fn field_refused(fields: &str, param: &str, message: &str) {
    let body = format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\"}}],\n{fields}}}");
    let error = read_chat(&Bytes::from(body)).unwrap_err();
    assert_eq!(
        (error.kind(), error.param(), error.message()),
        (ErrorKind::InvalidRequest, Some(param), message)
    );
    assert!(error.to_string().contains(" at line 2 column "), "{error}");
}

#[track_caller]
fn message_refused(messages: &str, param: &str, message: &str) {
    let error = read_chat(&Bytes::from(format!(r#"{{"model":"m","messages":{messages}}}"#))).unwrap_err();
    assert_eq!(
        (error.kind(), error.param(), error.message()),
        (ErrorKind::InvalidRequest, Some(param), message)
    );
}

#[test]
fn a_plain_request_is_read() {
    let body =
        " {\"model\": \"fast\\u002d1\",\"messages\":[{\"role\":\"user\",\"content\":\"H\\u00e9\\n🙂\"}]} ";
    let facts = read(body);
    assert_eq!(&*facts.model, "fast-1");
    assert_eq!(&body[facts.model_span.start..facts.model_span.end], r#""fast\u002d1""#);
    assert_eq!(facts.object_start, 2);
    assert_eq!((facts.messages, facts.text_bytes, facts.choices), (1, 8, 1));
    assert_eq!(facts.text_classes, TextClasses::of("Hé\n🙂"));
    assert_eq!(
        (facts.stream, facts.include_usage, facts.stream_options, facts.output),
        (false, false, None, None)
    );
    assert_eq!((facts.images, facts.audio, facts.tool_bytes, facts.user), (0, false, 0, None));
    assert_eq!(facts.needs, CapabilitySet::EMPTY.with(Capability::Chat));
    assert_eq!(facts.temperature, Temperature::Absent);
}

#[test]
fn null_is_absent() {
    let nulls = r#""stream":null,"stream_options":null,"max_tokens":null,"n":null,"tools":null,"functions":null,
        "response_format":null,"modalities":null,"audio":null,"temperature":null,"user":null"#;
    assert_eq!(with(nulls), with(r#""x":0"#));
}

#[test]
fn stream_settings_are_read() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"a":[1],"include_usage":true}}"#;
    let facts = read(body);
    assert!(facts.stream && facts.include_usage);
    let options = facts.stream_options.unwrap();
    assert_eq!(&body[options.start..options.end], r#"{"a":[1],"include_usage":true}"#);
    assert!(facts.needs.contains(Capability::Streaming));
    assert!(!with(r#""stream_options":{"include_usage":null}"#).include_usage);
}

#[test]
fn output_bounds_are_read() {
    let output = with(r#""max_tokens": 16"#).output.unwrap();
    assert_eq!((output.tokens.get(), output.field), (16, OutputField::MaxTokens));
    let output = with(r#""max_tokens":7,"max_completion_tokens":7"#).output.unwrap();
    assert_eq!((output.tokens.get(), output.field), (7, OutputField::MaxCompletionTokens));
    assert_eq!(with(r#""n":128"#).choices, 128);
}

#[test]
fn tools_and_schemas_are_counted_as_they_stand() {
    let tool = r#"[ {"type":"function","function":{"name":"f"}} ]"#;
    let facts = with(&format!(r#""tools":{tool}"#));
    assert_eq!(facts.tool_bytes, tool.len() as u64);
    assert!(facts.needs.contains(Capability::Tools));
    assert!(!with(r#""tools":[]"#).needs.contains(Capability::Tools));
    assert!(with(r#""functions":[{}]"#).needs.contains(Capability::Tools));
    let schema = r#"{"type":"json_schema","json_schema":{"schema":{}}}"#;
    let facts = with(&format!(r#""response_format":{schema}"#));
    assert_eq!(facts.tool_bytes, schema.len() as u64);
    assert!(facts.needs.contains(Capability::JsonSchema));
    let facts = with(r#""response_format":{"type":"json_object"}"#);
    assert_eq!((facts.tool_bytes, facts.needs), (0, CapabilitySet::EMPTY.with(Capability::Chat)));
}

#[test]
fn wishes_are_no_needs() {
    let wishes = r#""seed":1,"logprobs":true,"parallel_tool_calls":true,"reasoning_effort":"high""#;
    assert_eq!(with(wishes).needs, CapabilitySet::EMPTY.with(Capability::Chat));
}

#[test]
fn parts_are_read() {
    let facts = read(
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"abc"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"u"}},
        {"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"file","file":{"file_id":"f"}}]},
        {"role":"assistant","content":null,"refusal":"no"}]}"#,
    );
    assert_eq!((facts.images, facts.audio, facts.messages, facts.text_bytes), (2, true, 2, 5));
    let needs = [Capability::Chat, Capability::Vision, Capability::Audio, Capability::Documents];
    assert_eq!(facts.needs, needs.into_iter().collect());
}

#[test]
fn audio_may_be_asked_for() {
    assert!(with(r#""modalities":["text","audio"]"#).audio);
    assert!(with(r#""audio":{"voice":"v"}"#).needs.contains(Capability::Audio));
    assert!(!with(r#""modalities":["text"]"#).audio);
}

#[test]
fn history_counts_whatever_field_it_stands_in() {
    let calls = r#"[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]"#;
    let facts = read(&format!(
        r#"{{"model":"m","messages":[{{"role":"assistant","content":"a","tool_calls":{calls},"reasoning_content":"bc","x":1}}]}}"#
    ));
    assert_eq!(facts.text_bytes, 3 + calls.len() as u64);
}

#[test]
fn temperature_is_zero_in_any_spelling() {
    for (text, expected) in [
        ("0", Temperature::Zero),
        ("0.00", Temperature::Zero),
        ("-0.0e9", Temperature::Zero),
        ("0.001", Temperature::Above),
        ("1e-400", Temperature::Above),
        ("2", Temperature::Above),
    ] {
        assert_eq!(with(&format!(r#""temperature":{text}"#)).temperature, expected, "{text}");
    }
}

#[test]
fn the_user_label_is_bounded() {
    let facts = with(&format!(r#""user":"a\nb{}""#, "c".repeat(500)));
    assert!(facts.user.unwrap().as_str().starts_with("a?bccc"));
}

#[test]
fn fields_that_gw_does_not_read_may_hold_anything() {
    with(r#""metadata":{"n":0,"model":1},"big":1e400,"logit_bias":{"50256":-100},"\u00fcber":[[[]]]"#);
}

#[test]
fn what_is_no_json_object_is_refused() {
    refused("", None, "the body is empty; expected a JSON object");
    refused(" \n", None, "the body is empty; expected a JSON object");
    refused("[]", None, "expected the body to be a JSON object at line 1 column 1");
    refused("\n \"x\"", None, "expected the body to be a JSON object at line 2 column 2");
    refused("{\"model\":\"m\",}", None, "expected a field name in quotes at line 1 column 14");
    refused("{\"model\":\"m\"\n \"messages\":[]}", None, "expected `,` or `}` at line 2 column 2");
    refused("{\"a\":tru}", None, "expected a value at line 1 column 6");
    refused("{\"a\":\"b", None, "unterminated string at line 1 column 8");
    refused("<html>", None, "expected a value at line 1 column 1");
    refused(b"{\"a\":\"\xff\"}", None, "the body is not valid UTF-8 at line 1 column 7");
    let trailing = r#"{"model":"m","messages":[{"role":"user"}]} {}"#;
    refused(trailing, None, "unexpected text after the end of the JSON value at line 1 column 44");
}

#[test]
fn deep_nesting_is_refused_and_never_overflows_the_stack() {
    for levels in [100, 101, 100_000] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user"}}],"x":{}{}}}"#,
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        );
        let read = read_chat(&Bytes::from(body));
        assert_eq!(read.is_ok(), levels <= 100, "{levels}");
    }
    let open =
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":{}"#, "[{\"a\":".repeat(100_000));
    assert!(read_chat(&Bytes::from(open)).is_err());
}

#[test]
fn the_model_is_required_and_sound() {
    let messages = r#""messages":[{"role":"user","content":"Hi"}]"#;
    refused(format!("{{{messages}}}"), Some("model"), "the field `model` is missing at line 1 column 1");
    let model = |value: &str| format!("{{{messages},\"model\":{value}}}");
    let at = " at line 1 column 54";
    refused(model("7"), Some("model"), &format!("expected a string{at}"));
    refused(model("null"), Some("model"), &format!("expected a string{at}"));
    refused(model("\"\""), Some("model"), &format!("the model name is empty{at}"));
    refused(model("\"a\\n\""), Some("model"), &format!("the model name has a control character{at}"));
    let long = format!("\"{}\"", "x".repeat(257));
    refused(model(&long), Some("model"), &format!("the model name is longer than 256 bytes{at}"));
    read(&model(&format!("\"{}\"", "x".repeat(256))));
}

#[test]
fn repeated_fields_are_refused() {
    let message = "a field stands in the body more than once";
    field_refused(r#""model":"other""#, "model", message);
    field_refused(r#""messages":[{"role":"user"}]"#, "messages", message);
    field_refused(r#""max_tokens":1,"max_tokens":2"#, "max_tokens", message);
    let nested = r#""stream_options":{"include_usage":true,"include_usage":false}"#;
    field_refused(nested, "stream_options.include_usage", message);
}

#[test]
fn known_names_spelt_with_escapes_are_refused() {
    let body = r#"{"model":"m","messages":[{"role":"user"}],"mod\u0065l":"other"}"#;
    refused(body, None, "a field name is spelt with needless escapes at line 1 column 43");
    read(r#"{"model":"m","messages":[{"role":"user"}],"\u00e9":1,"A\u0042":2}"#);
}

#[test]
fn messages_are_required_and_sound() {
    refused(r#"{"model":"m"}"#, Some("messages"), "the field `messages` is missing at line 1 column 1");
    message_refused("[]", "messages", "expected at least one message");
    message_refused("{}", "messages", "expected an array of messages");
    message_refused("null", "messages", "expected an array of messages");
    message_refused("[1]", "messages[0]", "expected an object");
    message_refused(r#"[{"content":"Hi"}]"#, "messages[0].role", "the field `role` of a message is missing");
    message_refused(r#"[{"role":1}]"#, "messages[0].role", "expected a string");
    let user = r#"{"role":"user","content":"Hi"}"#;
    message_refused(
        &format!(r#"[{user},{user},{user},{{"role":"user","content":5}}]"#),
        "messages[3].content",
        "expected a string, an array of parts or null",
    );
    message_refused(r#"[{"role":"user","content":["Hi"]}]"#, "messages[0].content[0]", "expected an object");
    message_refused(
        r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":1}]}]"#,
        "messages[0].content[1].text",
        "expected a string",
    );
    message_refused(
        r#"[{"role":"user","content":[{"type":2}]}]"#,
        "messages[0].content[0].type",
        "expected a string",
    );
}

#[test]
fn wrong_types_and_ranges_are_refused() {
    for value in ["0", "-1", "1.5", "1e2", "\"7\"", "true", "99999999999999999999999", "{}"] {
        for field in ["max_tokens", "max_completion_tokens"] {
            field_refused(&format!("\"{field}\":{value}"), field, "expected a whole number of at least 1");
        }
    }
    for value in ["0", "129", "-1", "2.0", "\"1\""] {
        field_refused(&format!("\"n\":{value}"), "n", "expected a whole number from 1 to 128");
    }
    let differ = "`max_tokens` and `max_completion_tokens` are both set and differ; set one";
    field_refused(r#""max_tokens":1,"max_completion_tokens":2"#, "max_tokens", differ);
    field_refused(r#""stream":"true""#, "stream", "expected `true` or `false`");
    field_refused(r#""stream_options":true"#, "stream_options", "expected an object");
    let nested = r#""stream_options":{"include_usage":1}"#;
    field_refused(nested, "stream_options.include_usage", "expected `true` or `false`");
    field_refused(r#""tools":{}"#, "tools", "expected an array of objects");
    field_refused(r#""tools":[{},"x"]"#, "tools[1]", "expected an object");
    field_refused(r#""response_format":"json""#, "response_format", "expected an object");
    field_refused(r#""response_format":{"type":1}"#, "response_format.type", "expected a string");
    field_refused(r#""modalities":"audio""#, "modalities", "expected an array of strings");
    field_refused(r#""modalities":[1]"#, "modalities[0]", "expected a string");
    field_refused(r#""temperature":"0""#, "temperature", "expected a number");
    field_refused(r#""user":{}"#, "user", "expected a string");
}

#[test]
fn i18_refusals_quote_nothing_of_the_body() {
    let secret = "canary";
    for body in [
        format!(r#"{{"{secret}":{secret}}}"#),
        format!(r#"{{"model":"{secret}","messages":"{secret}"}}"#),
        format!(r#"{{"model":"{secret}","messages":[{{"role":"user","content":{{"{secret}":1}}}}]}}"#),
        format!(r#"{{"model":"m","model":"{secret}"}}"#),
        secret.to_owned(),
    ] {
        let error = read_chat(&Bytes::from(body)).unwrap_err();
        let shown = format!("{error} {error:?} {}", String::from_utf8_lossy(&error_body(&error)));
        assert!(!shown.contains(secret), "{shown}");
    }
}
