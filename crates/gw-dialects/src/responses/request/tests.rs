//! Tests of the request writer: what other formats ask for, as responses.

use gw_types::{Loss, LossKind, OutputField, TokenCount};
use serde_json::{Value, json};

use super::write_prompt;
use crate::{
    neutral::{Prompt, WriteOptions},
    openai,
};

const OPTIONS: WriteOptions<'static> = WriteOptions {
    model: "m",
    output_bound: None,
    default_output: TokenCount::new(1_024),
    output_field: OutputField::MaxOutputTokens,
};

fn write(prompt: &Prompt) -> (Value, Loss) {
    let (body, loss) = write_prompt(prompt, &OPTIONS);
    (serde_json::from_slice(&body).unwrap(), loss)
}

fn chat(fields: &str) -> (Value, Loss) {
    let body = format!("{{\"model\":\"x\",{fields}}}");
    write(&openai::read_prompt(body.as_bytes()).unwrap())
}

/// Checks one field of what a chat request becomes.
#[track_caller]
fn check(fields: &str, field: &str, expected: &Value) {
    let fields =
        if fields.contains("\"messages\"") { fields.to_owned() } else { format!("\"messages\":[],{fields}") };
    let (body, _) = chat(&fields);
    assert_eq!(&body[field], expected, "{body}");
}

#[track_caller]
fn lost(fields: &str, expected: &[(&str, LossKind)]) {
    let (_, loss) = chat(&format!("\"messages\":[{{\"role\":\"user\",\"content\":\"a\"}}],{fields}"));
    let lost: Vec<(&str, LossKind)> = loss.items.iter().map(|item| (item.path.as_str(), item.kind)).collect();
    assert_eq!(lost, expected);
}

#[test]
fn a_system_prompt_is_the_instructions() {
    let messages = r#""messages":[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"developer","content":"D"},{"role":"assistant","content":"b"}]"#;
    let (body, loss) = chat(messages);
    assert_eq!(body["instructions"], "S");
    let roles: Vec<&str> =
        body["input"].as_array().unwrap().iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "developer", "assistant"]);
    assert!(loss.items.is_empty());
}

#[test]
fn parallel_tool_results_share_one_turn() {
    let messages = r#""messages":[{"role":"user","content":"go"},{"role":"assistant","content":"ok","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":""}}]},{"role":"tool","tool_call_id":"a","content":"r0"},{"role":"tool","tool_call_id":"b","content":"r1"},{"role":"user","content":"and?"}]"#;
    let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"});
    let output =
        |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    check(
        messages,
        "input",
        &json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "ok"},
            call("a", "f"),
            call("b", "g"),
            output("a", "r0"),
            output("b", "r1"),
            {"role": "user", "content": "and?"},
        ]),
    );
}

#[test]
fn parts_have_names_of_their_own() {
    let messages = r#""messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}},{"type":"file","file":{"filename":"n","file_data":"data:application/pdf;base64,AA=="}}]},{"role":"assistant","content":null,"refusal":"no"}]"#;
    check(
        messages,
        "input",
        &json!([
            {"role": "user", "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_file", "filename": "n", "file_data": "data:application/pdf;base64,AA=="},
            ]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ]),
    );
}

#[test]
fn settings_have_names_of_their_own() {
    check(r#""max_completion_tokens":64"#, "max_output_tokens", &json!(64));
    check(r#""max_tokens":64"#, "max_output_tokens", &json!(64));
    check(r#""stream":true,"stream_options":{"include_usage":true}"#, "stream_options", &Value::Null);
    check(r#""reasoning_effort":"high""#, "reasoning", &json!({"effort": "high"}));
    let format = r#""response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}},"verbosity":"low""#;
    check(
        format,
        "text",
        &json!({
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true},
            "verbosity": "low",
        }),
    );
    check(
        r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#,
        "tools",
        &json!([{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": false}]),
    );
    let tool = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
    check(
        &format!(r#"{tool},"tool_choice":{{"type":"function","function":{{"name":"f"}}}}"#),
        "tool_choice",
        &json!({"type": "function", "name": "f"}),
    );
    check(&format!(r#"{tool},"parallel_tool_calls":false"#), "parallel_tool_calls", &json!(false));
    check(r#""temperature":0.50,"top_p":1"#, "temperature", &json!(0.5));
    check(r#""logprobs":true,"top_logprobs":3"#, "top_logprobs", &json!(3));
}

#[test]
fn nothing_is_kept_at_the_provider_for_another_format() {
    check(r#""x":1"#, "store", &json!(false));
    check(r#""x":1"#, "include", &json!(["reasoning.encrypted_content"]));
    let include = json!(["reasoning.encrypted_content", "message.output_text.logprobs"]);
    check(r#""logprobs":true"#, "include", &include);
}

#[test]
fn what_responses_lack_is_reported() {
    use LossKind::{Approximated, Dropped};
    lost(r#""seed":1,"stop":"x","n":2"#, &[("seed", Dropped), ("stop", Dropped), ("n", Dropped)]);
    lost(
        r#""frequency_penalty":1,"presence_penalty":1,"logit_bias":{},"top_k":1"#,
        &[
            ("top_k", Dropped),
            ("frequency_penalty", Dropped),
            ("presence_penalty", Dropped),
            ("logit_bias", Dropped),
        ],
    );
    lost(r#""n":1"#, &[]);
    lost(r#""unknown":1"#, &[("unknown", Dropped)]);
    lost(r#""reasoning":{"max_tokens":2000}"#, &[("reasoning_effort", Approximated)]);
}

#[test]
fn a_failed_tool_says_so() {
    use crate::neutral::{Block, Content, Place, Role, ToolResult};
    let mut prompt = Prompt::new(gw_types::Operation::Messages);
    let blocks = vec![Block::new(Content::text("boom"))];
    let result = ToolResult { id: "t".to_owned(), blocks, is_error: true };
    prompt.say(Role::User, vec![Block::at(Place::item("messages", 0), Content::ToolResult(result))]);
    let (body, loss) = write(&prompt);
    let output = &body["input"][0]["output"];
    assert_eq!((&output[0]["text"], &output[1]["text"]), (&json!("The tool failed:"), &json!("boom")));
    assert_eq!(loss.items[0].kind, LossKind::Emulated);
}

#[test]
fn signed_thinking_survives_the_round_trip() {
    use crate::neutral::{Block, Content, Origin, Place, Role, Signature, Thinking};
    let mut prompt = Prompt::new(gw_types::Operation::Messages);
    let thinking = |origin| {
        let signature = Some(Signature::new(origin, "Sig+/=1"));
        let place = Place::item("messages", 1);
        Block::at(place, Content::Thinking(Thinking { text: "aé/ b".to_owned(), signature }))
    };
    prompt.say(Role::Assistant, vec![thinking(Origin::OpenAi), thinking(Origin::Anthropic)]);
    let (body, loss) = write(&prompt);
    assert_eq!(
        body["input"],
        json!([{
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "aé/ b"}],
            "encrypted_content": "Sig+/=1",
        }])
    );
    assert_eq!(loss.items.len(), 1);
    assert!(!body.to_string().contains("gw1."));
}

#[test]
fn a_tool_that_leaves_strictness_open_keeps_it_open_in_its_own_format() {
    let tools = r#""tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]"#;
    let body = format!(r#"{{"model":"x","input":"a",{tools}}}"#);
    let (sent, _) = write(&crate::responses::read_prompt(body.as_bytes()).unwrap());
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]),
        "strict is the default here"
    );
}

#[test]
fn a_bound_below_the_least_is_raised_and_reported() {
    check(r#""max_tokens":5"#, "max_output_tokens", &json!(16));
    check(r#""max_tokens":17"#, "max_output_tokens", &json!(17));
    lost(r#""max_tokens":5"#, &[("max_completion_tokens", LossKind::Approximated)]);
    lost(r#""max_tokens":16"#, &[]);
}

#[test]
fn a_turn_of_the_model_that_is_lost_as_a_whole_leaves_no_message() {
    let tool = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#;
    let body = format!(
        r#"{{"model":"x","max_tokens":99,"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{tool}]}},{{"role":"user","content":"b"}}]}}"#
    );
    let (sent, loss) = write(&crate::anthropic::read_prompt(body.as_bytes()).unwrap());
    assert_eq!(sent["input"], json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]));
    assert_eq!(loss.items[0].path.as_str(), "messages[1].content[0]");
}
