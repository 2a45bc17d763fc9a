//! Every recorded request, through the neutral form and back into the format that it was recorded in.

use bytes::Bytes;
use gw_dialects::{
    anthropic,
    neutral::{Prompt, WriteOptions},
    openai,
};
use gw_types::{GatewayError, Loss, OutputField, TokenCount};
use serde_json::Value;

use crate::fixtures::{chat_exchanges, exchanges_of};

fn options(body: &Value) -> WriteOptions<'_> {
    let newer = body["max_completion_tokens"].is_number();
    WriteOptions {
        model: body["model"].as_str().unwrap_or_default(),
        output_bound: None,
        default_output: TokenCount::new(1),
        output_field: if newer { OutputField::MaxCompletionTokens } else { OutputField::MaxTokens },
    }
}

/// Brings what is written in more than one way into one: text as a list of one part is text, neighbours of one role are
/// one message, and what is empty or `null` is not there.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| {
                let is_blank = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                !is_blank && !is_default(name, value)
            });
            let mut kept: serde_json::Map<String, Value> =
                kept.map(|(name, value)| (known(name, value), named(name, normal(value)))).collect();
            if let Some(Value::Array(details)) = kept.get("reasoning_details") {
                // The text stands in both; only signatures need the details.
                let signed =
                    details.iter().any(|one| one["signature"].is_string() || one["data"].is_string());
                let said: String = details.iter().filter_map(|one| one["text"].as_str()).collect();
                kept.remove(if signed { "reasoning_content" } else { "reasoning_details" });
                if !signed && !said.is_empty() {
                    kept.insert("reasoning_content".to_owned(), said.into());
                }
            }
            if let Some(Value::Array(messages)) = kept.get("messages") {
                let merged = merged(messages);
                kept.insert("messages".to_owned(), merged);
            }
            Value::Object(kept)
        }
        Value::Array(items) => match &**items {
            [one] if one["type"] == "text" && one["cache_control"].is_null() && one["text"].is_string() => {
                one["text"].clone()
            }
            items => Value::Array(items.iter().map(normal).collect()),
        },
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
    }
}

/// Reasoning has two names.
fn known(name: &str, value: &Value) -> String {
    if name == "reasoning" && value.is_string() { "reasoning_content".to_owned() } else { name.to_owned() }
}

/// Mistral takes the address of an image alone, and has its own word for a tool choice beside OpenAI's.
fn named(name: &str, value: Value) -> Value {
    match name {
        "image_url" if value.is_string() => serde_json::json!({"url": value}),
        "tool_choice" if value == "any" => "required".into(),
        _ => value,
    }
}

/// Settings that say what holds anyway.
fn is_default(name: &str, value: &Value) -> bool {
    matches!(
        (name, value),
        ("stream" | "is_error" | "store" | "parallel_tool_calls", Value::Bool(false)) | ("stream_options", _)
    ) || (name == "caller" && value["type"] == "direct")
        || (name == "type" && value == "custom")
        || (name == "ttl" && value == "5m")
        || (name == "reasoning_content" && value == "")
        // Perplexity needs no name for a schema.
        || (name == "name" && value == "answer")
        // OpenRouter says in whose format a signature is; gw does so by its tag.
        || (name == "format" && value.is_string())
        || (name == "index" && value.is_number())
}

fn merged(messages: &[Value]) -> Value {
    let parts = |content: &Value| match content {
        Value::Array(parts) => parts.clone(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut merged: Vec<Value> = Vec::new();
    for message in messages {
        let plain = |message: &Value| {
            matches!(message["role"].as_str(), Some("user" | "assistant"))
                && message.as_object().is_some_and(|members| members.len() == 2)
        };
        match merged.last_mut() {
            Some(last) if last["role"] == message["role"] && plain(last) && plain(message) => {
                let mut both = parts(&last["content"]);
                both.extend(parts(&message["content"]));
                last["content"] = Value::Array(both);
            }
            Some(_) | None => merged.push(message.clone()),
        }
    }
    Value::Array(merged)
}

type Read = fn(&[u8]) -> Result<Prompt, GatewayError>;
type Write = fn(&Prompt, &WriteOptions<'_>) -> (Bytes, Loss);

/// Returns whether the request came back the same; what the neutral form has no place for is in the report, and not held
/// against it.
fn check(id: &str, body: &Value, read: Read, write: Write) {
    let prompt = read(body.to_string().as_bytes()).unwrap_or_else(|error| panic!("{id}: {error:?}"));
    let (sent, _) = write(&prompt, &options(body));
    let mut sent: Value = serde_json::from_slice(&sent).unwrap();
    let mut expected = body.clone();
    // Some who serve a format take the model in the path.
    sent["model"] = body["model"].clone();
    for unknown in &prompt.rest {
        remove(&mut expected, &unknown.path);
    }
    if let Some(format) = expected.as_object_mut().and_then(|body| body.remove("output_format")) {
        expected["output_config"]["format"] = format;
    }
    let difference = difference(&normal(&sent), &normal(&expected));
    assert!(difference.is_none(), "{id}: {}", difference.unwrap_or_default());
    let again = read(sent.to_string().as_bytes()).unwrap();
    assert_eq!(again.turns.len(), prompt.turns.len(), "{id}");
}

/// Returns where two values differ first.
fn difference(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort_unstable();
            names
                .into_iter()
                .find_map(|name| {
                    let found = difference(one.get(name)?, other.get(name)?);
                    found.map(|found| format!("{name}.{found}"))
                })
                .or_else(|| {
                    let lone = one.keys().filter(|name| !other.contains_key(*name));
                    let mut lone = lone.chain(other.keys().filter(|name| !one.contains_key(*name)));
                    lone.next().map(|name| format!("{name} stands in one alone"))
                })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| {
                difference(one, other).map(|found| format!("[{index}].{found}"))
            })
        }
        (one, other) => (one != other).then(|| format!(" {one:.300} | {other:.300}")),
    }
}

/// Takes a member out by its path.
fn remove(value: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer: String = parent
        .split(['.', '[', ']'])
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{part}"))
        .collect();
    if let Some(Value::Object(members)) = value.pointer_mut(&pointer) {
        members.remove(name);
    }
}

#[test]
fn recorded_messages_requests_come_back_the_same() {
    let mut read = 0;
    for exchange in exchanges_of("messages").into_iter().filter(|one| one.status == 200) {
        if exchange.request["messages"].is_array() {
            check(&exchange.id, &exchange.request, anthropic::read_prompt, anthropic::write_prompt);
            read += 1;
        }
    }
    assert!(read == 0 || read > 20, "{read}");
}

#[test]
fn recorded_chat_requests_come_back_the_same() {
    let mut read = 0;
    for exchange in chat_exchanges().into_iter().filter(|one| one.status == 200) {
        let body = &exchange.request;
        if !body["messages"].is_array() || body["functions"].is_array() {
            continue;
        }
        check(&exchange.id, body, openai::read_prompt, openai::write_prompt);
        read += 1;
    }
    assert!(read == 0 || read > 50, "{read}");
}
