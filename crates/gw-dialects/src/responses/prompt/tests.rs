//! Tests of the request reader.

use gw_types::ErrorKind;

use super::read_prompt;
use crate::neutral::{
    Content, Effort, Format, InstructionRole, MediaSource, Origin, Prompt, Role, Summary, ToolChoice,
    ToolKind,
};

fn read(fields: &str) -> Prompt {
    read_prompt(format!("{{\"model\":\"m\",{fields}}}").as_bytes()).unwrap()
}

fn items(items: &str) -> Prompt {
    read(&format!("\"input\":[{items}]"))
}

/// Shows a conversation in short: role, and what each block is.
fn show(prompt: &Prompt) -> String {
    let block = |content: &Content| match content {
        Content::Text(text) => text.text.clone(),
        Content::Image(image) => match &image.source {
            MediaSource::Url(url) => format!("image {url}"),
            MediaSource::Data { media_type, base64 } => format!("image {media_type} {base64}"),
            MediaSource::File(_, id) => format!("image file {id}"),
        },
        Content::Document(document) => format!("document {}", document.title.as_deref().unwrap_or("-")),
        Content::Audio(audio) => format!("audio {}", audio.format),
        Content::ToolUse(call) => format!("{} {} {}", call.id, call.name, call.arguments),
        Content::ToolResult(result) => {
            let texts: Vec<&str> = result.blocks.iter().filter_map(|block| block.content.as_text()).collect();
            format!("{} -> {}", result.id, texts.join("+"))
        }
        Content::Thinking(thinking) => format!("thinks {} {}", thinking.text, thinking.signature.is_some()),
        Content::RedactedThinking(data) => format!("thinks in secret {}", data.data),
        Content::Refusal(text) => format!("refuses {text}"),
        Content::Opaque(_) => "opaque".to_owned(),
    };
    let turn = |turn: &crate::neutral::Turn| {
        let role = if turn.role == Role::User { "user" } else { "assistant" };
        let blocks: Vec<String> = turn.blocks.iter().map(|one| block(&one.content)).collect();
        format!("{role}: {}", blocks.join(", "))
    };
    prompt.turns.iter().map(turn).collect::<Vec<_>>().join(" | ")
}

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(show(&items(input)), expected);
}

#[track_caller]
fn refused(fields: &str, param: &str) {
    let error = read_prompt(format!("{{\"model\":\"m\",{fields}}}").as_bytes()).unwrap_err();
    assert_eq!((error.kind(), error.param()), (ErrorKind::InvalidRequest, Some(param)), "{error}");
}

#[test]
fn items_become_turns() {
    assert_eq!(show(&read(r#""input":"Hi""#)), "user: Hi");
    check(r#"{"role":"user","content":"a"},{"type":"message","role":"user","content":"b"}"#, "user: a, b");
    check(
        r#"{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]}"#,
        "user: a | assistant: b",
    );
    check(r#"{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#, "assistant: refuses no");
    check(
        r#"{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"},{"type":"input_image","file_id":"f"},{"type":"input_image","image_url":"https://x"},{"type":"input_file","filename":"n","file_data":"AA=="},{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}"#,
        "user: image image/png AA==, image file f, image https://x, document n, audio wav",
    );
}

#[test]
fn parallel_tool_results_share_one_turn() {
    let call = |id: &str| {
        format!(
            r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}","id":"fc","status":"completed"}}"#
        )
    };
    let output = |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{id}!"}}"#);
    let input = [
        r#"{"role":"user","content":"go"}"#.to_owned(),
        call("a"),
        call("b"),
        r#"{"role":"user","content":"wait"}"#.to_owned(),
        output("b"),
        output("a"),
    ];
    let prompt = items(&input.join(","));
    assert_eq!(show(&prompt), "user: go | assistant: a f {}, b f {} | user: b -> b!, a -> a!, wait");
    assert!(prompt.rest.is_empty());
}

#[test]
fn tool_arguments_that_are_empty_or_not_json() {
    let call = |arguments: &str| {
        format!(r#""input":[{{"type":"function_call","call_id":"c","name":"f","arguments":"{arguments}"}}]"#)
    };
    for blank in ["", "  "] {
        assert_eq!(show(&read(&call(blank))), "assistant: c f {}");
    }
    for broken in [r#"{\"city\":\"Par"#, r#"\"x\""#, "[1]"] {
        refused(&call(broken), "input[0].arguments");
    }
}

#[test]
fn reasoning_keeps_its_encrypted_form() {
    let reasoning = |fields: &str| format!(r#"{{"type":"reasoning","id":"rs",{fields}}}"#);
    let summary = r#""summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]"#;
    check(&reasoning(summary), "assistant: thinks a\n\nb false");
    check(&reasoning(&format!(r#"{summary},"encrypted_content":"X""#)), "assistant: thinks a\n\nb true");
    check(&reasoning(r#""summary":[],"encrypted_content":"X""#), "assistant: thinks in secret X");
    check(
        &reasoning(r#""summary":[],"content":[{"type":"reasoning_text","text":"c"}]"#),
        "assistant: thinks c false",
    );
    let by_id = items(&reasoning(r#""summary":[]"#));
    assert_eq!((show(&by_id).as_str(), by_id.rest[0].path.as_str()), ("", "input[0]"));
    let foreign = items(&reasoning(r#""summary":[],"encrypted_content":"gw1.anthropic.Sig""#));
    let Content::RedactedThinking(signature) = &foreign.turns[0].blocks[0].content else { panic!() };
    assert_eq!((signature.origin, signature.data.as_str()), (Origin::Anthropic, "Sig"));
}

#[test]
fn instructions_keep_their_place() {
    let prompt = read(
        r#""instructions":"first","input":[{"role":"user","content":"a"},{"role":"developer","content":"then"}]"#,
    );
    let told: Vec<(InstructionRole, usize)> =
        prompt.instructions.iter().map(|one| (one.role, one.before_turn)).collect();
    assert_eq!(told, [(InstructionRole::System, 0), (InstructionRole::Developer, 1)]);
    refused(
        r#""input":[{"role":"system","content":[{"type":"input_image","image_url":"u"}]}]"#,
        "input[0].content",
    );
}

#[test]
fn settings_are_read() {
    let prompt = read(
        r#""input":"a","max_output_tokens":9,"temperature":0.5,"top_logprobs":2,"reasoning":{"effort":"xhigh","summary":"auto"},"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}},"store":false,"metadata":{},"safety_identifier":"u","parallel_tool_calls":false,"stream":true,"service_tier":"flex","prompt_cache_key":"k""#,
    );
    assert_eq!((prompt.max_output, prompt.stream, prompt.store), (Some(9), true, Some(false)));
    assert_eq!((prompt.sampling.logprobs, prompt.sampling.top_logprobs), (Some(true), Some(2)));
    let reasoning = prompt.reasoning.unwrap();
    assert_eq!((reasoning.effort, reasoning.summary), (Some(Effort::ExtraHigh), Some(Summary::Auto)));
    let Format::JsonSchema(schema) = &prompt.format else { panic!() };
    assert_eq!((schema.name.as_deref(), schema.strict), (Some("n"), Some(true)));
    assert_eq!((prompt.metadata.is_none(), prompt.user.as_deref()), (true, Some("u")));
    assert!(prompt.rest.is_empty());
}

#[test]
fn tools_are_functions_or_opaque() {
    let prompt = read(
        r#""input":"a","tools":[{"type":"function","name":"f","description":"d","parameters":{},"strict":null},{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"}"#,
    );
    assert!(matches!(&prompt.tools[0].kind, ToolKind::Function { name, strict: None, .. } if name == "f"));
    assert!(matches!(&prompt.tools[1].kind, ToolKind::Server(Origin::OpenAi, _)));
    assert_eq!(prompt.tool_choice, Some(ToolChoice::Tool("f".to_owned())));
    check(
        r#"{"type":"web_search_call","id":"ws"},{"type":"shell_call_output","x":1}"#,
        "assistant: opaque | user: opaque",
    );
}

#[test]
fn unknown_fields_are_kept_by_their_path() {
    let prompt = read(
        r#""x":1,"input":[{"role":"user","content":[{"type":"input_text","text":"a","y":2}],"z":3}],"text":{"v":4},"include":["w"]"#,
    );
    let mut paths: Vec<&str> = prompt.rest.iter().map(|unknown| unknown.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["include", "input[0].content[0].y", "input[0].z", "text.v", "x"]);
}

#[test]
fn what_one_provider_keeps_cannot_be_translated() {
    refused(r#""input":"a","previous_response_id":"r""#, "previous_response_id");
    refused(r#""input":"a","conversation":"c""#, "conversation");
    refused(r#""prompt":{"id":"p"}"#, "prompt");
    refused(r#""input":"a","background":true"#, "background");
    refused(r#""input":[{"type":"item_reference","id":"i"}]"#, "input[0]");
}

#[test]
fn bad_shapes_are_refused_by_their_path() {
    refused(r#""stream":true"#, "input");
    refused(r#""input":7"#, "input");
    refused(r#""input":[7]"#, "input[0]");
    refused(r#""input":[{"role":"user"}]"#, "input[0].content");
    refused(r#""input":[{"role":"tool","content":"a"}]"#, "input[0].role");
    refused(r#""input":[{"role":"user","content":[{"type":"input_text"}]}]"#, "input[0].content[0].text");
    refused(
        r#""input":[{"role":"user","content":[{"type":"input_image"}]}]"#,
        "input[0].content[0].image_url",
    );
    refused(r#""input":[{"type":"function_call","name":"f"}]"#, "input[0].call_id");
    refused(r#""input":[{"type":"function_call_output","call_id":"c"}]"#, "input[0].output");
    refused(r#""input":"a","tool_choice":{"type":"allowed_tools"}"#, "tool_choice");
    refused(r#""input":"a","tool_choice":"maybe""#, "tool_choice");
    refused(r#""input":"a","tools":[{"name":"f"}]"#, "tools[0].type");
    refused(r#""input":"a","tools":[{"type":"function"}]"#, "tools[0].name");
    refused(r#""input":"a","reasoning":{"effort":"much"}"#, "reasoning.effort");
    refused(r#""input":"a","reasoning":{"summary":"long"}"#, "reasoning.summary");
    refused(r#""input":"a","text":{"format":{"type":"xml"}}"#, "text.format.type");
}
