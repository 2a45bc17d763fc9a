//! Tests of the facts of messages requests.

use bytes::Bytes;
use gw_types::{Capability, Dialect, ErrorKind, RequestFacts};

use super::{read_count_tokens, read_messages};

fn body(fields: &str) -> Bytes {
    Bytes::from(format!(r#"{{"model":"m","max_tokens":64,{fields}}}"#))
}

fn facts(fields: &str) -> RequestFacts {
    read_messages(&body(fields)).unwrap()
}

const HI: &str = r#""messages":[{"role":"user","content":"Hi"}]"#;

#[track_caller]
fn refused(text: &str, param: Option<&str>) {
    let error = read_messages(&Bytes::copy_from_slice(text.as_bytes())).unwrap_err();
    assert_eq!((error.kind(), error.param()), (ErrorKind::InvalidRequest, param), "{text}: {error}");
    assert_eq!(error.http_status(Dialect::Anthropic), 400);
}

#[test]
fn settings_are_read() {
    let facts = facts(&format!(
        r#"{HI},"stream":true,"temperature":0.0,"metadata":{{"user_id":"u"}},"system":"Be","x":1e400"#
    ));
    assert!(facts.stream && facts.include_usage);
    assert_eq!((facts.messages, facts.text_bytes), (2, 4));
    assert_eq!(facts.temperature, gw_types::Temperature::Zero);
    assert_eq!(facts.user.unwrap().as_str(), "u");
    assert!(facts.needs.contains(Capability::Streaming) && !facts.needs.contains(Capability::Tools));
}

#[test]
fn text_is_counted_wherever_it_stands() {
    for (content, text_bytes) in [
        (r#""caf\u00e9""#, 5),
        (r#"[{"type":"text","text":"abc","cache_control":{"type":"ephemeral"}}]"#, 3),
        (r#"[{"type":"tool_result","tool_use_id":"t","content":"abc"}]"#, 4),
        (
            r#"[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"abc"}],"is_error":true}]"#,
            4,
        ),
        (r#"[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]"#, 9),
        (r#"[{"type":"thinking","thinking":"abc","signature":"S"}]"#, 4),
        (r#"[{"type":"image","source":{"type":"base64","media_type":"","data":"AAAA"}}]"#, 0),
        (r#"[{"type":"document","source":{"type":"text","media_type":"","data":"abc"}}]"#, 3),
        (r#"[{"type":"document","source":{"data":"abc","media_type":"","type":"text"}}]"#, 3),
        (r#"[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"abc"}]}}]"#, 3),
    ] {
        let facts = facts(&format!(r#""messages":[{{"role":"user","content":{content}}}]"#));
        assert_eq!(facts.text_bytes, text_bytes, "{content}");
    }
}

#[test]
fn needs_follow_from_the_content() {
    let image = r#"{"type":"image","source":{"type":"url","url":"https://x"}}"#;
    let nested = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":[{image}]}}"#);
    for (part, capability) in [
        (image, Capability::Vision),
        (&nested, Capability::Vision),
        (r#"{"type":"document","source":{"type":"url","url":"https://x"}}"#, Capability::Documents),
    ] {
        let facts = facts(&format!(r#""messages":[{{"role":"user","content":[{part}]}}]"#));
        assert!(facts.needs.contains(capability), "{part}");
    }
    let tools = facts(&format!(r#"{HI},"tools":[{{"name":"f"}}]"#));
    assert!(tools.needs.contains(Capability::Tools));
    assert_eq!(tools.tool_bytes, 14);
    for schema in [r#""output_config":{"format":{"type":"json_schema"}}"#, r#""output_format":{"schema":{}}"#]
    {
        assert!(facts(&format!("{HI},{schema}")).needs.contains(Capability::JsonSchema), "{schema}");
    }
    assert!(
        !facts(&format!(r#"{HI},"output_config":{{"effort":"low"}}"#)).needs.contains(Capability::JsonSchema)
    );
}

#[test]
fn bad_bodies_are_refused_by_name() {
    let with = |fields: &str| format!(r#"{{"model":"m","max_tokens":64,{fields}}}"#);
    refused("", None);
    refused("[]", None);
    refused("{", None);
    refused(&format!("{{{HI},\"max_tokens\":1}}"), Some("model"));
    refused(&format!("{{\"model\":\"m\",{HI}}}"), Some("max_tokens"));
    refused(r#"{"model":"m","max_tokens":64}"#, Some("messages"));
    for bad in ["0", "-1", "1.5", "\"64\""] {
        refused(&format!(r#"{{"model":"m","max_tokens":{bad},{HI}}}"#), Some("max_tokens"));
    }
    refused(&with(r#""messages":[]"#), Some("messages"));
    refused(&with(r#""messages":[{"content":"x"}]"#), Some("messages[0].role"));
    refused(&with(r#""messages":[{"role":"user","content":7}]"#), Some("messages[0].content"));
    refused(&with(r#""messages":[{"role":"user","content":[7]}]"#), Some("messages[0].content[0]"));
    let nested = r#"[{"type":"tool_result","content":[{"text":1}]}]"#;
    refused(
        &with(&format!(r#""messages":[{{"role":"user","content":{nested}}}]"#)),
        Some("messages[0].content[0].content[0].text"),
    );
    refused(&with(&format!(r#"{HI},{HI}"#)), Some("messages"));
    refused(&with(&format!(r#"{HI},"stream":"yes""#)), Some("stream"));
    refused(&with(&format!(r#"{HI},"tools":{{}}"#)), Some("tools"));
    refused(&with(&format!(r#"{HI},"tools":[1]"#)), Some("tools[0]"));
    refused(&with(&format!(r#"{HI},"metadata":{{"user_id":1}}"#)), Some("metadata.user_id"));
    refused(&with(&format!(r#"{HI},"output_config":{{"format":1}}"#)), Some("output_config.format"));
}

#[test]
fn counting_needs_no_bound() {
    let body = Bytes::from(format!(r#"{{"model":"m",{HI}}}"#));
    assert_eq!(read_count_tokens(&body).unwrap().output, None);
}
