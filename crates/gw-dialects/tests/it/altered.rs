//! Recorded answers in another spelling: members in another order, fields that nobody knows, `null` for what is absent,
//! blanks and escapes, other framing. None of it says anything, so every answer means what it meant.

use bytes::Bytes;
use gw_dialects::{
    neutral::{Content, Message},
    openai::ErrorHead,
    translate::{self, WireFormat},
};
use gw_types::UtcTime;
use serde_json::{Map, Value, json};

use crate::{
    fixtures::Exchange,
    mutated::{ANSWERS, Told, is_success, read},
};

/// Members whose values are a caller's or a model's own and not the format's.
const OWN: [&str; 8] =
    ["input", "args", "arguments", "parameters", "logprobs", "logprobsResult", "schema", "metadata"];

/// How JSON is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// The last member first.
    Reversed,
    /// Members that nobody knows, before and behind the known ones of every object.
    Strange,
    /// `null` for every optional member that is absent.
    Nulls,
    /// Members that are `null` are left out.
    NoNulls,
    /// Blanks between all tokens, and everything escaped that may be.
    Escaped,
    /// Counts with a fraction of zero.
    Fractions,
}

const SPELLINGS: [Spelling; 6] = [
    Spelling::Reversed,
    Spelling::Strange,
    Spelling::Nulls,
    Spelling::NoNulls,
    Spelling::Escaped,
    Spelling::Fractions,
];

/// Optional members of the formats, which some servers write as `null` wherever they have nothing to say.
const OPTIONAL: &[&str] = &[
    "error",
    "usage",
    "refusal",
    "function_call",
    "tool_calls",
    "audio",
    "annotations",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "logprobs",
    "service_tier",
    "system_fingerprint",
    "stop_sequence",
    "stop_details",
    "citations",
    "signature",
    "x_groq",
    "search_results",
    "images",
    "finish_reason",
    "incomplete_details",
    "encrypted_content",
    "summary",
    "thoughtSignature",
    "thought",
    "functionCall",
    "inlineData",
    "executableCode",
    "groundingMetadata",
    "citationMetadata",
    "promptFeedback",
    "finishMessage",
    "logprobsResult",
    "usageMetadata",
    "finishReason",
    "content_filter_results",
    "prompt_filter_results",
    "prompt_tokens_details",
    "completion_tokens_details",
    "input_tokens_details",
    "output_tokens_details",
    "cached_tokens",
    "reasoning_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
    "toolUsePromptTokenCount",
    "thinking",
    "done_reason",
    "trace",
    "additionalModelResponseFields",
    "performanceConfig",
    "serviceTier",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
    "reasoningContent",
    "toolUse",
    "citationsContent",
    "image",
    "server_tool_use",
    "container",
    "context_management",
    "code",
    "param",
    "metadata",
    "details",
    "detail",
];

fn write(value: &Value, spelling: Spelling, name: &str, out: &mut String) {
    let blank = if spelling == Spelling::Escaped { " \t" } else { "" };
    match value {
        Value::Object(members) if !is_own(name) => {
            let mut members: Vec<(String, Value)> =
                members.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            respell(&mut members, spelling);
            out.push('{');
            for (place, (name, value)) in members.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                out.push_str(&format!("{blank}{}{blank}:{blank}", Value::from(name.as_str())));
                write(value, spelling, name, out);
                out.push_str(blank);
            }
            out.push('}');
        }
        Value::Array(items) if !is_own(name) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { "," } else { "" });
                out.push_str(blank);
                write(item, spelling, "", out);
            }
            out.push_str(blank);
            out.push(']');
        }
        Value::String(text) if spelling == Spelling::Escaped => escape(text, out),
        Value::Number(number) if spelling == Spelling::Fractions && number.is_u64() && is_count(name) => {
            out.push_str(&format!("{number}.0"));
        }
        other => out.push_str(&other.to_string()),
    }
}

fn is_count(name: &str) -> bool {
    name.ends_with("tokens") || name.ends_with("Tokens") || name.ends_with("TokenCount")
}

fn respell(members: &mut Vec<(String, Value)>, spelling: Spelling) {
    match spelling {
        Spelling::Reversed => members.reverse(),
        Spelling::Strange => {
            members.insert(0, ("x_new".to_owned(), json!({"type": "text", "text": "x", "id": "x"})));
            members.push(("x_more".to_owned(), json!([{"index": 7}, null, 1.5e3, "x"])));
        }
        Spelling::Nulls => {
            for name in OPTIONAL {
                if members.iter().all(|(known, _)| known != name) {
                    members.push(((*name).to_owned(), Value::Null));
                }
            }
        }
        Spelling::NoNulls => members.retain(|(_, value)| !value.is_null()),
        Spelling::Escaped | Spelling::Fractions => {}
    }
}

fn escape(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => out.push(byte.into()),
            Ok(b'/') => out.push_str("\\/"),
            _ => out.push_str(&format!("\\u{unit:04X}")),
        }
    }
    out.push('"');
}

fn respelled(text: &str, spelling: Spelling) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let mut out = String::new();
    write(&value, spelling, "", &mut out);
    Some(out)
}

/// Writes the JSON of a body anew, line by line where it is a stream.
fn body_in(exchange: &Exchange, spelling: Spelling) -> Option<Bytes> {
    let text = std::str::from_utf8(&exchange.body).ok()?;
    if let Some(whole) = respelled(text, spelling) {
        return Some(whole.into());
    }
    let lines = text.split('\n').map(|line| {
        let (head, data) = line.split_at(line.find(['{', '[']).unwrap_or(line.len()));
        let end = if data.ends_with('\r') { "\r" } else { "" };
        match respelled(data, spelling) {
            Some(data) => format!("{head}{data}{end}"),
            None => line.to_owned(),
        }
    });
    Some(lines.collect::<Vec<_>>().join("\n").into())
}

/// What a caller is told, with JSON as its value and without what nobody knows.
fn told(told: &Told) -> Value {
    match told {
        Ok(message) => json!({"said": said(message)}),
        Err((message, kind)) => json!({"said": message.as_deref().map(said), "failed": kind.as_str()}),
    }
}

fn said(message: &Message) -> Value {
    let choices = message.choices.iter().map(|choice| {
        let blocks: Vec<Value> = choice.blocks.iter().map(block).collect();
        json!([blocks, choice.finish.as_str(), choice.stop_sequence, choice.logprobs.is_some()])
    });
    let usage = format!("{:?}", message.usage);
    json!([message.id, message.model, choices.collect::<Vec<_>>(), usage, message.service_tier])
}

fn block(content: &Content) -> Value {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    match content {
        Content::Text(text) => {
            let sources = text.citations.iter();
            let sources: Vec<Value> =
                sources.map(|one| json!([one.url, one.title, one.quote, one.span])).collect();
            json!(["text", text.text, sources, text.signature.as_ref().map(|one| &one.data)])
        }
        Content::Refusal(text) => json!(["refusal", text]),
        Content::Thinking(one) => json!(["thinking", one.text, one.signature.as_ref().map(|one| &one.data)]),
        Content::RedactedThinking(one) => json!(["redacted", one.data]),
        Content::ToolUse(call) => {
            let signature = call.signature.as_ref().map(|one| &one.data);
            json!(["call", call.id, call.name, parsed(&call.arguments), signature])
        }
        Content::Opaque(opaque) => {
            let mut value = parsed(opaque.value.as_str());
            forget(&mut value);
            json!(["opaque", value])
        }
        Content::Image(_) | Content::Document(_) | Content::Audio(_) | Content::ToolResult(_) => {
            json!(["other"])
        }
    }
}

/// Takes out of a block what its spelling has put in: what nobody knows, `null`, and how counts are written.
fn forget(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let kept = std::mem::take(members).into_iter();
            let kept = kept.filter(|(name, value)| !value.is_null() && !name.starts_with("x_"));
            *members = kept.collect::<Map<_, _>>();
            members.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        Value::Number(number) => *value = json!(number.as_f64()),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn successes() -> impl Iterator<Item = (&'static Exchange, WireFormat)> {
    ANSWERS.iter().filter(|(exchange, _)| is_success(exchange)).copied()
}

fn is_sse(exchange: &Exchange) -> bool {
    exchange.stream && exchange.body.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"data:"))
}

#[test]
fn json_in_another_spelling_says_the_same() {
    let mut faults = Vec::new();
    for (exchange, format) in successes() {
        let plain = told(&read(format, &exchange.body.clone().into(), exchange.stream));
        for spelling in SPELLINGS {
            let Some(body) = body_in(exchange, spelling) else { continue };
            let other = told(&read(format, &body, exchange.stream));
            if other != plain {
                faults.push(format!("{} {spelling:?}:\n  {plain}\n  {other}", exchange.id));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn framing_in_another_form_says_the_same() {
    let mut faults = Vec::new();
    for (exchange, format) in successes().filter(|(exchange, _)| is_sse(exchange)) {
        let text = String::from_utf8(exchange.body.clone()).unwrap().replace("\r\n", "\n");
        let plain = told(&read(format, &text.clone().into(), true));
        for (name, body) in framed(&text, format) {
            let other = told(&read(format, &body.into(), true));
            if other != plain {
                faults.push(format!("{} {name}:\n  {plain}\n  {other}", exchange.id));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

fn framed(text: &str, format: WireFormat) -> Vec<(&'static str, String)> {
    let unknown = match format {
        WireFormat::OpenAiChat => "data: {\"object\":\"chat.completion.new\",\"x_new\":{\"a\":1}}\n\n",
        WireFormat::Gemini => "data: {\"xNew\":{\"a\":1}}\n\n",
        _ => {
            "event: response.new.kind\ndata: {\"type\":\"response.new.kind\",\"x_new\":{\"a\":1},\"output_index\":0}\n\n"
        }
    };
    let ping = if format == WireFormat::AnthropicMessages {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    } else {
        ": ping\n\nevent: ping\n\n"
    };
    let between = |more: &str| {
        let mut frames: Vec<&str> = text.split_inclusive("\n\n").collect();
        let end = frames.len().saturating_sub(1);
        (1..=end).rev().for_each(|place| frames.insert(place, more));
        frames.concat()
    };
    vec![
        ("no blank behind the colon", text.replace("data: ", "data:")),
        ("ids and retry", text.replace("data: {", "id: 7\nretry: 3000\ndata: {")),
        ("a comment in each event", text.replace("data: {", ": OPENROUTER PROCESSING\ndata: {")),
        ("unknown events", between(unknown)),
        ("pings", between(ping)),
        ("the name behind the data", names_last(text)),
        (
            "no names",
            text.lines().filter(|line| !line.starts_with("event:")).map(|line| format!("{line}\n")).collect(),
        ),
        ("no last blank line", text.trim_end().to_owned()),
    ]
}

fn names_last(text: &str) -> String {
    let frames = text.split_inclusive("\n\n").map(|frame| {
        let mut lines: Vec<&str> = frame.lines().filter(|line| !line.is_empty()).collect();
        lines.sort_by_key(|line| line.starts_with("event:"));
        format!("{}\n\n", lines.join("\n"))
    });
    frames.collect()
}

#[test]
fn errors_in_another_spelling_are_of_the_same_kind() {
    let mut faults = Vec::new();
    for (exchange, format) in ANSWERS.iter().filter(|(exchange, _)| !is_success(exchange)) {
        let header = |name: &str| exchange.header(name);
        let head = ErrorHead { status: exchange.status, header: &header, utc: UtcTime::default() };
        let kind = |body: &[u8]| translate::classify(*format, &head, body).kind();
        let plain = kind(&exchange.body);
        let spelled = SPELLINGS
            .iter()
            .filter_map(|spelling| body_in(exchange, *spelling).map(|body| (format!("{spelling:?}"), body)));
        let text = String::from_utf8_lossy(&exchange.body);
        let wrapped = serde_json::from_str::<Value>(&text).ok().into_iter().flat_map(|value| {
            [("in an array", json!([value])), ("in an event", Value::Null)].map(|(name, other)| {
                let body = if other.is_null() { format!("data: {text}\n\n") } else { other.to_string() };
                (name.to_owned(), Bytes::from(body))
            })
        });
        for (name, body) in spelled.chain(wrapped) {
            let other = kind(&body);
            if other != plain {
                faults.push(format!("{} {name}: {plain} {other}: {text}", exchange.id));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// Returns whether a member's value is written as it is.
fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with("x_")
}
