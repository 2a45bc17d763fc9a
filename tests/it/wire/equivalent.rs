//! When two requests mean the same.

use serde_json::{Map, Value, json};

/// A member of an object that may as well be absent, and why.
type Default = (&'static str, fn(&Value) -> bool, &'static str);

const DEFAULTS: [Default; 14] = [
    ("stream", |value| value == false, "no stream is the default"),
    ("stream_options", |_| true, "a stream is always asked for its usage"),
    ("is_error", |value| value == false, "a tool has not failed unless it says so"),
    ("detail", |value| value == "auto", "how closely to look at an image is the model's choice"),
    ("ttl", |value| value == "5m", "the usual lifetime of a cache"),
    ("type", |value| value == "message", "an item with a role is a message"),
    ("id", |value| is_server_id(value), "what the provider called its answer; gw keeps no conversations"),
    ("status", |value| value == "completed", "what stands in a conversation is complete"),
    ("phase", Value::is_string, "which part of an answer a message was, as its provider saw it"),
    ("annotations", Value::is_array, "what an earlier answer was taken from"),
    ("name", |value| value == "answer", "what gw calls a schema that has no name"),
    ("reasoning_content", |value| value == "", "no reasoning"),
    ("index", Value::is_number, "details of reasoning stand in order"),
    ("format", Value::is_string, "whose signature it is; gw says so by the signature's tag"),
];

/// Ids that OpenAI's responses give their items; calls are named by `call_id` there.
fn is_server_id(value: &Value) -> bool {
    let is_uuid = |id: &str| id.len() == 36 && id.split('-').count() == 5;
    let prefixes = ["msg_", "rs_", "fc_", "ws_"];
    value.as_str().is_some_and(|id| is_uuid(id) || prefixes.iter().any(|prefix| id.starts_with(prefix)))
}

/// Brings what is written in more than one way into one: what is empty, `null` or the default is not there, and of two
/// spellings one is taken.
pub(super) fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_said = |(name, value): &(&String, &Value)| {
                let is_blank = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                !is_blank && !DEFAULTS.iter().any(|(default, holds, _)| default == name && holds(value))
            };
            let said = members.iter().filter(is_said);
            let mut said: Map<String, Value> =
                said.map(|(name, value)| (name.clone(), spelled(name, normal(value)))).collect();
            said.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty()));
            reasoning(&mut said);
            if let Some(format) = said.remove("output_format") {
                // Anthropic's older place.
                said.insert("output_config".to_owned(), json!({ "format": format }));
            }
            Value::Object(said)
        }
        Value::Array(items) => match &**items {
            // A text is a list of one part of text.
            [Value::Object(part)] if is_plain_text(part) => part["text"].clone(),
            items => Value::Array(items.iter().map(normal).collect()),
        },
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
    }
}

fn is_plain_text(part: &Map<String, Value>) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_known = |(name, value): (&String, &Value)| {
        matches!(name.as_str(), "type" | "text" | "annotations")
            || value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
    };
    matches!(kind, "text" | "input_text" | "output_text")
        && part.get("text").is_some_and(Value::is_string)
        && part.iter().all(is_known)
}

/// Takes one of two spellings of a member's value.
fn spelled(name: &str, value: Value) -> Value {
    match name {
        // Mistral takes the address alone, and so do responses.
        "image_url" if value.is_object() => value["url"].clone(),
        // Mistral's word.
        "tool_choice" if value == "any" => "required".into(),
        // What a response says to one text is what it says to one message of it.
        "input" if value.is_string() => json!([{ "role": "user", "content": value }]),
        // gw asks for what it must send back, because the provider keeps nothing for it.
        "include" => without(value, "reasoning.encrypted_content"),
        _ => value,
    }
}
fn without(list: Value, word: &str) -> Value {
    match list {
        Value::Array(items) => items.into_iter().filter(|item| item != word).collect(),
        other => other,
    }
}

/// Writes reasoning that is sent back in one way: servers have several names for its text, some twice in one message.
fn reasoning(said: &mut Map<String, Value>) {
    if let Some(text) = said.remove("reasoning") {
        said.insert(if text.is_string() { "reasoning_content" } else { "reasoning" }.to_owned(), text);
    }
    if let Some(Value::Array(details)) = said.get("reasoning_details") {
        let is_signed = details.iter().any(|one| one["signature"].is_string() || one["data"].is_string());
        let text: String = details.iter().filter_map(|one| one["text"].as_str()).collect();
        said.remove(if is_signed { "reasoning_content" } else { "reasoning_details" });
        if !is_signed && !text.is_empty() {
            said.insert("reasoning_content".to_owned(), text.into());
        }
    }
    if said.get("type").is_some_and(|kind| kind == "reasoning")
        && let Some(content) = said.remove("content")
    {
        let summary = |text: &Value| json!({ "type": "summary_text", "text": text["text"] });
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        said.entry("summary").or_insert_with(|| parts.iter().map(summary).collect());
    }
}

/// Returns the places where two values differ.
pub(super) fn differences(found: &Value, expected: &Value) -> Vec<String> {
    let mut places = Vec::new();
    descend(found, expected, "", &mut places);
    places
}

fn descend(found: &Value, expected: &Value, path: &str, places: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, value) in found {
                match expected.get(name) {
                    Some(other) => descend(value, other, &format!("{path}.{name}"), places),
                    None => places.push(format!("`{path}.{name}` was added")),
                }
            }
            let missing = expected.keys().filter(|name| !found.contains_key(*name));
            places.extend(missing.map(|name| format!("`{path}.{name}` is missing")));
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                descend(found, expected, &format!("{path}[{index}]"), places);
            }
        }
        (found, expected) if found == expected => {}
        (Value::Array(found), Value::Array(expected)) => {
            places.push(format!("`{path}` has {} items, not {}", found.len(), expected.len()));
        }
        (_, _) => places.push(format!("`{path}` is another")),
    }
}

/// Takes a member out by its path: `tools[0].function.x`.
pub(super) fn remove(value: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = parent.split(['.', '[', ']']).filter(|step| !step.is_empty());
    let pointer: String = steps.map(|step| format!("/{step}")).collect();
    if let Some(Value::Object(members)) = value.pointer_mut(&pointer) {
        members.remove(name);
    }
}
