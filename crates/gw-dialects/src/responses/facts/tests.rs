//! Tests of the request reader.

use bytes::Bytes;
use gw_types::{Capability, ErrorKind, Temperature};

use super::{ProviderState, ResponsesRequest, read_request};

fn with(fields: &str) -> ResponsesRequest {
    read_request(&Bytes::from(format!("{{\"model\":\"m\",{fields}}}"))).unwrap()
}

#[track_caller]
fn sizes(input: &str, items: u32, text_bytes: u64, images: u32) {
    let facts = with(&format!("\"input\":{input}")).facts;
    assert_eq!((facts.messages, facts.text_bytes, facts.images), (items, text_bytes, images));
}

#[track_caller]
fn refused(body: &str, param: Option<&str>) {
    let error = read_request(&Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
    assert_eq!((error.kind(), error.param()), (ErrorKind::InvalidRequest, param), "{error}");
}

#[track_caller]
fn state(fields: &str, expected: &ProviderState) {
    assert_eq!(&with(fields).state, expected);
}

#[test]
fn text_is_counted_wherever_it_stands() {
    sizes(r#""caf\u00e9""#, 1, 5, 0);
    sizes(r#"[{"role":"user","content":"abc"}]"#, 1, 4 + 3, 0);
    sizes(r#"[{"content":[{"type":"input_text","text":"abc"}]},{"content":"x"}]"#, 2, 4, 0);
    sizes(r#"[{"type":"function_call","arguments":"{}","name":"f","call_id":"c"}]"#, 1, 4, 0);
    sizes(
        r#"[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"ab"}]}]"#,
        1,
        3,
        0,
    );
    sizes(r#"[{"unknown":[{"deep":["ab",7,null,true]}]}]"#, 1, 2, 0);
    let read = with(r#""input":"a","instructions":"bc""#);
    assert_eq!(read.facts.text_bytes, 3);
    assert_eq!(read.facts.text_classes.letters, 3);
}

#[test]
fn images_files_and_sound_are_no_text() {
    sizes(r#"[{"content":[{"image_url":"data:image/png;base64,AAAA","type":"input_image"}]}]"#, 1, 0, 1);
    sizes(r#"[{"content":[{"type":"input_image","file_id":"f"}]}]"#, 1, 1, 1);
    sizes(
        r#"[{"content":[{"type":"input_image","image_url":"u"},{"type":"input_image","image_url":"u"}]}]"#,
        1,
        0,
        2,
    );
    let file = with(r#""input":[{"content":[{"type":"input_file","file_data":"AAAA"}]}]"#).facts;
    assert!(file.needs.contains(Capability::Documents) && file.text_bytes == 0);
    let sound = with(r#""input":[{"content":[{"type":"input_audio","input_audio":{"data":"AAAA"}}]}]"#).facts;
    assert!(sound.audio && sound.needs.contains(Capability::Audio) && sound.text_bytes == 0);
}

#[test]
fn needs_follow_from_the_fields() {
    let needs = |fields: &str| {
        let facts = with(fields).facts;
        let names: Vec<&str> = facts.needs.iter().map(Capability::as_str).collect();
        names.join(" ")
    };
    assert_eq!(needs(r#""input":"a""#), "chat");
    assert_eq!(needs(r#""input":"a","stream":true"#), "chat streaming");
    assert_eq!(needs(r#""input":"a","tools":[]"#), "chat");
    assert_eq!(needs(r#""input":"a","tools":[{"type":"function"}]"#), "chat tools");
    assert_eq!(needs(r#""input":"a","text":{"format":{"type":"json_schema"}}"#), "chat json_schema");
    assert_eq!(needs(r#""input":"a","text":{"format":{"type":"text"},"verbosity":"low"}"#), "chat");
    assert_eq!(needs(r#""input":"a","text":{"format":null}"#), "chat");
    assert_eq!(needs(r#""input":[{"content":[{"type":"input_image"}]}]"#), "chat vision");
}

#[test]
fn settings_are_read() {
    let facts = with(r#""input":"a","max_output_tokens":20,"temperature":0.0,"user":"u""#).facts;
    assert_eq!(facts.output.unwrap().tokens.get(), 20);
    assert_eq!((facts.temperature, facts.user.unwrap().as_str()), (Temperature::Zero, "u"));
    assert!(facts.include_usage && !facts.stream);
    let tools = r#"[{"type":"function","name":"f"}]"#;
    assert_eq!(with(&format!(r#""input":"a","tools":{tools}"#)).facts.tool_bytes, tools.len() as u64);
}

#[test]
fn what_lives_at_the_provider_is_told() {
    let none = ProviderState::default;
    state(r#""input":"a""#, &none());
    state(r#""input":"a","store":null,"previous_response_id":null,"conversation":null"#, &none());
    state(r#""input":"a","store":false"#, &ProviderState { store: Some(false), ..none() });
    assert!(with(r#""input":"a","store":true"#).state.is_self_contained());
    for fields in [
        r#""previous_response_id":"resp_1""#,
        r#""conversation":"conv_1""#,
        r#""conversation":{"id":"conv_1"}"#,
        r#""prompt":{"id":"pmpt_1"}"#,
        r#""input":"a","background":true"#,
        r#""input":[{"type":"item_reference","id":"msg_1"}]"#,
    ] {
        assert!(!with(fields).state.is_self_contained(), "{fields}");
    }
    let id = with(r#""previous_response_id":"resp_1""#).state.previous_response_id;
    assert_eq!(id.unwrap().as_str(), "resp_1");
}

#[test]
fn bad_fields_are_refused_by_name() {
    refused(r#"{"input":"a"}"#, Some("model"));
    refused(r#"{"model":"m"}"#, Some("input"));
    refused(r#"{"model":"m","input":[]}"#, Some("input"));
    for (fields, param) in [
        (r#""input":7"#, "input"),
        (r#""input":["a"]"#, "input[0]"),
        (r#""input":"a","input":"a""#, "input"),
        (r#""input":"a","max_output_tokens":0"#, "max_output_tokens"),
        (r#""input":"a","max_output_tokens":1.5"#, "max_output_tokens"),
        (r#""input":"a","max_output_tokens":"64""#, "max_output_tokens"),
        (r#""input":"a","instructions":[]"#, "instructions"),
        (r#""input":"a","stream":"yes""#, "stream"),
        (r#""input":"a","tools":{}"#, "tools"),
        (r#""input":"a","tools":[7]"#, "tools[0]"),
        (r#""input":"a","text":{"format":{"type":7}}"#, "text.format.type"),
        (r#""input":"a","text":{"format":"json"}"#, "text.format"),
        (r#""input":"a","previous_response_id":7"#, "previous_response_id"),
        (r#""input":"a","conversation":7"#, "conversation"),
        (r#""input":"a","background":1"#, "background"),
    ] {
        refused(&format!("{{\"model\":\"m\",{fields}}}"), Some(param));
    }
    let deep = format!("{{\"model\":\"m\",\"input\":[{{\"a\":{}{}}}]}}", "[".repeat(200), "]".repeat(200));
    refused(&deep, Some("input[0]"));
    refused("\u{feff}", None);
}
