//! Shapes that servers send and no recording holds: each is read as what it means.

use bytes::Bytes;
use gw_dialects::{
    neutral::{Content, Message},
    translate::WireFormat,
};
use serde_json::{Value, json};

use crate::mutated::read;

fn shown(message: &Message) -> String {
    let choices = message.choices.iter().map(|choice| {
        let blocks = choice.blocks.iter().map(|block| match block {
            Content::Text(text) => format!("text {}", text.text),
            Content::Refusal(text) => format!("refusal {text}"),
            Content::Thinking(one) => format!("thinking {}", one.text),
            Content::ToolUse(call) => format!("call {} {}", call.name, call.arguments).trim_end().to_owned(),
            Content::RedactedThinking(_) => "redacted".to_owned(),
            Content::Opaque(_) => "opaque".to_owned(),
            Content::Image(_) | Content::Document(_) | Content::Audio(_) | Content::ToolResult(_) => {
                "other".to_owned()
            }
        });
        let blocks: Vec<String> = blocks.collect();
        format!(
            "{}: {}",
            choice.finish.as_str(),
            if blocks.is_empty() { "nothing".to_owned() } else { blocks.join(", ") }
        )
    });
    choices.collect::<Vec<_>>().join(" / ")
}

fn told(format: WireFormat, body: String, is_stream: bool) -> String {
    match read(format, &Bytes::from(body), is_stream) {
        Ok(message) => shown(&message),
        Err((_, kind)) => kind.as_str().to_owned(),
    }
}

/// Goes through the rows of a table: what is read, and behind ` => ` what it says.
#[track_caller]
fn check(table: &str, says: impl Fn(&str) -> Vec<String>) {
    let rows = table.lines().filter(|row| !row.is_empty()).map(|row| row.split_once(" => ").unwrap());
    let wrong = rows.flat_map(|(input, expected)| {
        let said = says(input).into_iter().filter(move |said| said != expected);
        said.map(move |said| format!("{input}: {said}; not {expected}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A message, why it ended, and what it says: read as a whole answer and as a stream of one chunk.
const MESSAGES: &str = r#"
{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]} tool_calls => tool_calls: call f {"x":1}
{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]} stop => tool_calls: call f {}
{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]} tool_use => tool_calls: call f {}
{"tool_calls":[{"id":null,"index":null,"type":null,"function":{"name":"f","arguments":"{}"}}]} stop => tool_calls: call f {}
{"tool_calls":[{"id":"a","index":"0","function":{"name":"f","arguments":"{}"}}]} function_call => tool_calls: call f {}
{"content":"","tool_calls":[]} stop => stop: nothing
{"content":"a","tool_calls":null,"function_call":null} stop => stop: text a
{"content":null,"function_call":{"name":"f","arguments":"{}"}} function_call => tool_calls: call f {}
{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]} stop => stop: text ab
{"content":[{"type":"output_text","text":"a"}]} stop => stop: text a
{"content":[{"type":"refusal","refusal":"no"}]} stop => refusal: refusal no
{"content":["a",{"type":"text","text":"b"}]} stop => stop: text ab
{"content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"b"}]} stop => stop: thinking t, text b
{"content":null,"refusal":"no"} stop => refusal: refusal no
{"content":"a","reasoning":"t","reasoning_content":"t"} stop => stop: thinking t, text a
{"content":"a","reasoning":{"content":"t"}} stop => stop: text a
{"content":"a","reasoning_details":[{"type":"reasoning.text","text":"t"}]} stop => stop: thinking t, text a
{"content":"a"} length => length: text a
{"content":"a"} max_tokens => length: text a
{"content":"a"} MAX_TOKENS => length: text a
{"content":"a"} model_length => length: text a
{"content":"a"} eos => stop: text a
{"content":"a"} eos_token => stop: text a
{"content":"a"} end_turn => stop: text a
{"content":"a"} stop_sequence => stop: text a
{"content":"a"} COMPLETE => stop: text a
{"content":"a"} STOP => stop: text a
{"content":"a"} content_filter => content_filter: text a
{"content":"a"} content_filter: RECITATION => content_filter: text a
{"content":"a"} what_comes_next => other: text a
"#;

#[test]
fn messages_of_chat() {
    check(MESSAGES, |input| {
        let (message, finish) = input.split_at(input.rfind('}').unwrap() + 1);
        let (message, finish) = (parsed(message), finish.trim());
        let answer = |field: &str| {
            let choice = json!({"index": 0, field: message, "finish_reason": finish});
            json!({"id": "c", "model": "m", "choices": [choice]}).to_string()
        };
        let stream = format!("data: {}\n\ndata: [DONE]\n\n", answer("delta"));
        vec![
            told(WireFormat::OpenAiChat, answer("message"), false),
            told(WireFormat::OpenAiChat, stream, true),
        ]
    });
}

/// Choices or whole chunks of a stream that says `a` first, or begins a call.
const CHUNKS: &str = r#"
{"choices":[{"index":0,"delta":{"content":"a"}}]} {"choices":[{"delta":{},"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"}}]} {"choices":[{"delta":null,"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"}}]} {"choices":[{"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]} {"choices":null,"usage":{"prompt_tokens":1}} => stop: text a
{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]} {"usage":{"prompt_tokens":1}} => stop: text a
{"choices":[{"delta":{"content":"a"},"finish_reason":""}]} {"choices":[{"delta":{},"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"}}]} {"choices":[{"delta":{},"message":{"content":"a"},"finish_reason":"stop"}]} => stop: text a
{"choices":[{"delta":{"content":"a"}}]} {"error":{"message":"overloaded","code":503}} => provider_unavailable
{"error":{"message":"slow down","code":"429"}} => provider_rate_limited
{"error":"the model has failed"} => provider_unavailable
{"detail":"x","error":{"message":"m","type":"rate_limit_exceeded"}} => provider_rate_limited
{"choices":[{"delta":{"content":"a"}}]} {"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"x"}}]} => provider_unavailable
{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]} {"choices":[{"delta":{"function_call":{"arguments":"{}"}},"finish_reason":"function_call"}]} => tool_calls: call f {}
"#;

#[test]
fn streams_of_chat() {
    check(CHUNKS, |input| {
        let chunks = serde_json::Deserializer::from_str(input).into_iter::<Value>();
        let body = chunks.map(|chunk| format!("data: {}\n\n", chunk.unwrap())).collect();
        vec![told(WireFormat::OpenAiChat, body, true)]
    });
}

/// The second piece of a call whose name came in the first.
const PIECES: &str = r#"
{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}} => tool_calls: call f {"x":1}
{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}} => tool_calls: call f {"x":1}
{"index":0,"id":"","type":"","function":{"name":"","arguments":"{\"x\":1}"}} => tool_calls: call f {"x":1}
{"index":0,"id":null,"function":{"name":null,"arguments":"{\"x\":1}"}} => tool_calls: call f {"x":1}
{"function":{"arguments":"{\"x\":1}"}} => tool_calls: call f {"x":1}
{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}} => tool_calls: call f, call g {}
"#;

#[test]
fn pieces_of_calls() {
    check(PIECES, |input| {
        let first = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}});
        let pieces = [first, parsed(input)].map(|piece| json!({"delta": {"tool_calls": [piece]}}));
        let end = json!({"delta": {}, "finish_reason": "stop"});
        let chunks = pieces.into_iter().chain([end]);
        let body = chunks.map(|choice| format!("data: {}\n\n", json!({"choices": [choice]}))).collect();
        vec![told(WireFormat::OpenAiChat, body, true)]
    });
}

fn whole(format: WireFormat) -> impl Fn(&str) -> Vec<String> {
    move |input| vec![told(format, input.to_owned(), false)]
}

/// Whole messages of Anthropic's.
const ANTHROPIC: &str = r#"
{"content":[{"type":"text","text":"a","citations":null}],"stop_reason":"end_turn"} => stop: text a
{"content":[{"type":"tool_use","id":"t","name":"f","input":null}],"stop_reason":"tool_use"} => tool_calls: call f {}
{"content":[{"type":"tool_use","id":"t","name":"f"}],"stop_reason":"tool_use"} => tool_calls: call f {}
{"content":[],"stop_reason":"refusal"} => refusal: nothing
{"content":[{"type":"text","text":"a"}],"stop_reason":"pause_turn"} => other: text a
{"content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"} => length: text a
{"content":[{"type":"new_block","x":1},{"type":"text","text":"a"}],"stop_reason":"end_turn"} => stop: opaque, text a
"#;

/// Whole answers of Gemini's.
const GEMINI: &str = r#"
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]} => tool_calls: call f {}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":null}}]},"finishReason":"STOP"}]} => tool_calls: call f {}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}}]},"finishReason":"STOP"}]} => tool_calls: call f {}, call g {}
{"candidates":[{"content":{"parts":[{"text":"t","thought":true},{"text":"a"}]},"finishReason":"STOP"}]} => stop: thinking t, text a
{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"RECITATION"}]} => content_filter: text a
{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"NEW_REASON"}]} => other: text a
{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]},"finishReason":"STOP"}]} => stop: opaque
"#;

/// Whole answers of Bedrock's.
const BEDROCK: &str = r#"
{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f","input":{}}}]}},"stopReason":"tool_use"} => tool_calls: call f {}
{"output":{"message":{"content":[{"toolUse":{"toolUseId":"t","name":"f"}}]}},"stopReason":"tool_use"} => tool_calls: call f {}
{"output":{"message":{"content":[{"newBlock":{}},{"text":"a"}]}},"stopReason":"end_turn"} => stop: opaque, text a
{"output":{"message":{"content":[{"text":"a"}]}},"stopReason":"model_context_window_exceeded"} => length: text a
"#;

/// Whole answers of the responses format.
const RESPONSES: &str = r#"
{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]} => tool_calls: call f {}
{"status":"completed","output":[{"type":"new_item"},{"type":"message","content":[{"type":"output_text","text":"a"}]}]} => stop: opaque, text a
{"status":"completed","output":[{"type":"message","content":[{"type":"text","text":"a"}]}]} => stop: text a
{"status":"completed","output":[{"type":"message","content":"a"}]} => stop: text a
{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]} => refusal: refusal no
"#;

/// Whole answers of Ollama's; an older server does not say why it ended.
const OLLAMA: &str = r#"
{"message":{"content":"a","thinking":"t"},"done":true,"done_reason":"length"} => length: thinking t, text a
{"message":{"content":"","tool_calls":[{"id":"x","function":{"index":0,"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop"} => tool_calls: call f {}
{"message":{"content":"a"},"done":true,"done_reason":null} => other: text a
"#;

#[test]
fn answers_of_other_formats() {
    check(ANTHROPIC, whole(WireFormat::AnthropicMessages));
    check(GEMINI, whole(WireFormat::Gemini));
    check(BEDROCK, whole(WireFormat::BedrockConverse));
    check(RESPONSES, whole(WireFormat::OpenAiResponses));
    check(OLLAMA, whole(WireFormat::OllamaChat));
}
