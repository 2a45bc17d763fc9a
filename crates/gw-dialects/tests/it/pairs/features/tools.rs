//! Tools, and what they were called for.

use gw_dialects::translate::WireFormat;
use gw_types::Operation;
use serde_json::{Value, json};

use super::{Feature, chat_call, messages_call, responses_call, says, schema, tools};

pub(super) fn tool_use() -> Vec<Feature> {
    let result = json!({"content": [{"type": "text", "text": "mark-r"}]});
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "bWFyaw=="}});
    let each = |name, marks: &[&'static str], path: [&'static str; 3], more: Value| {
        says(name, marks)
            .chat(path[0], tools(Operation::Chat, &more))
            .responses(path[1], tools(Operation::Responses, &more))
            .messages(path[2], tools(Operation::Messages, &more))
    };
    let choice = |name, marks: &[&'static str], chat: Value, responses: Value, messages: Value| {
        says(name, marks)
            .chat("tool_choice", json!({"tool_choice": chat}))
            .responses("tool_choice", json!({"tool_choice": responses}))
            .messages("tool_choice", json!({"tool_choice": messages}))
            .with_tools()
    };
    let schema_paths = ["tools[0].function.parameters", "tools[0].parameters", "tools[0].input_schema"];
    vec![
        each("tool", &["mark-f", "mark-d", "mark-a"], schema_paths, json!({"description": "mark-d", "parameters": schema()})),
        each("strict tool", &["strict"], ["tools", "tools", "tools"], json!({"strict": true})),
        says("a provider's own tool", &["search"])
            .chat("tools[0]", json!({"tools": [{"type": "web_search"}]}))
            .responses("tools[0]", json!({"tools": [{"type": "web_search"}]}))
            .messages("tools[0]", json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})),
        choice("call as you like", &[], json!("auto"), json!("auto"), json!({"type": "auto"}))
            .harmless_at(&[WireFormat::OllamaChat]),
        choice("call no tool", &[], json!("none"), json!("none"), json!({"type": "none"})),
        choice("call some tool", &[], json!("required"), json!("required"), json!({"type": "any"})),
        choice("call this tool", &[], json!({"type": "function", "function": {"name": "f"}}), json!({"type": "function", "name": "f"}), json!({"type": "tool", "name": "f"})),
        says("one call at a time", &[])
            .chat("parallel_tool_calls", json!({"parallel_tool_calls": false}))
            .responses("parallel_tool_calls", json!({"parallel_tool_calls": false}))
            .messages("tool_choice", json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}))
            .with_tools(),
        says("call and result", &["mark-f", "mark-x", "mark-r"])
            .chat("messages[1]", chat_call(json!("mark-r")))
            .responses("input[1]", responses_call(json!("mark-r")))
            .messages("messages[1]", messages_call(result)),
        says("parallel calls", &["mark-1", "mark-2", "mark-3", "mark-4"])
            .chat("messages[1]", json!({"messages": [{"role": "user", "content": "hello"},
                {"role": "assistant", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "mark-1", "arguments": "{}"}},
                    {"id": "c2", "type": "function", "function": {"name": "mark-2", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "mark-3"}, {"role": "tool", "tool_call_id": "c2", "content": "mark-4"}]}))
            .responses("input[1]", json!({"input": [{"role": "user", "content": "hello"},
                {"type": "function_call", "call_id": "c1", "name": "mark-1", "arguments": "{}"}, {"type": "function_call", "call_id": "c2", "name": "mark-2", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "mark-3"}, {"type": "function_call_output", "call_id": "c2", "output": "mark-4"}]}))
            .messages("messages[1]", json!({"messages": [{"role": "user", "content": "hello"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "mark-1", "input": {}}, {"type": "tool_use", "id": "c2", "name": "mark-2", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "mark-3"}, {"type": "tool_result", "tool_use_id": "c2", "content": "mark-4"}]}]})),
        says("image as a result", &["bWFyaw=="])
            .responses("input[2].output", responses_call(json!([{"type": "input_image", "image_url": "data:image/png;base64,bWFyaw=="}])))
            .messages("messages[2].content[0]", messages_call(json!({"content": [image]}))),
        says("document as a result", &["bWFyaw=="])
            .responses("input[2].output", responses_call(json!([{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,bWFyaw=="}])))
            .messages("messages[2].content[0]", messages_call(json!({"content": [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "bWFyaw=="}}]}))),
        says("error as a result", &["mark-r"])
            .messages("messages[2].content[0]", messages_call(json!({"content": "mark-r", "is_error": true})))
            .each(|said, _| said.beside = messages_call(json!({"content": "mark-r"}))),
    ]
}
