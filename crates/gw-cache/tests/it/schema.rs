//! Every field of the public API descriptions against the key: pairs of requests that differ in one place.

use std::{collections::HashSet, path::Path};

use gw_cache::{CacheKey, KeyParts};
use gw_types::Operation;
use serde_json::{Map, Value, json};

use crate::support::{Names, must_run, report_skip};

/// How deep a sample of a schema goes.
const DEPTH_MAX: u32 = 4;
/// Choices of a schema that are sampled; the richest is taken.
const CHOICES_MAX: usize = 4;

/// What does not change a key, by the field: the table that the crate's own must equal.
fn is_irrelevant(operation: Operation, field: &str) -> bool {
    let openai = [
        "stream",
        "stream_options",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
    ];
    match operation {
        Operation::Messages | Operation::CountTokens => field == "stream",
        Operation::Chat | Operation::Responses | Operation::Completions | Operation::Embeddings => {
            openai.contains(&field)
        }
    }
}

fn schemas(file: &str) -> Option<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/openapi").join(file);
    match std::fs::read_to_string(path) {
        Ok(text) => Some(serde_json::from_str::<Value>(&text).unwrap()["components"]["schemas"].clone()),
        Err(_) => {
            assert!(!must_run(), "the API descriptions are absent");
            report_skip("the API descriptions");
            None
        }
    }
}

fn resolve<'a>(schemas: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => resolve(schemas, &schemas[name.rsplit('/').next().unwrap()]),
        None => schema,
    }
}

/// Collects the properties of a schema and of all that it is made of.
fn properties<'a>(schemas: &'a Value, schema: &'a Value, found: &mut Map<String, Value>) {
    let schema = resolve(schemas, schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        properties(schemas, part, found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name.clone(), property.clone());
    }
}

/// Returns a value of the schema: every property, one element, the first choice that is an object or else the first.
fn sample(schemas: &Value, schema: &Value, depth: u32) -> Value {
    let schema = resolve(schemas, schema);
    let choices = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array());
    if let Some(choices) = choices.filter(|_| depth < DEPTH_MAX) {
        let samples: Vec<Value> =
            choices.iter().take(CHOICES_MAX).map(|choice| sample(schemas, choice, depth + 1)).collect();
        let richest = samples.iter().max_by_key(|value| value.to_string().len().min(2_000));
        return richest.cloned().unwrap_or(Value::Null);
    }
    if depth >= DEPTH_MAX {
        return json!("deep");
    }
    let mut members = Map::new();
    properties(schemas, schema, &mut members);
    if !members.is_empty() {
        let sampled = members.into_iter().map(|(name, member)| {
            let value = sample(schemas, &member, depth + 1);
            (name, value)
        });
        return Value::Object(sampled.collect());
    }
    match schema["type"].as_str() {
        Some("array") => json!([sample(schemas, &schema["items"], depth + 1)]),
        Some("integer" | "number") => json!(7),
        Some("boolean") => json!(true),
        Some("object") => json!({"k": "v"}),
        Some(_) | None => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text")),
    }
}

/// Returns the paths to everything in a value that is no container, and to empty ones.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                leaves(member, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{at}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

fn digest(operation: Operation, body: &Value) -> String {
    let names = Names::of("t");
    let parts = KeyParts { operation, ..names.parts() };
    CacheKey::new(&parts, body.to_string().as_bytes()).unwrap().digest_hex().as_str().to_owned()
}

/// Values that a field is given in turn; all of them mean something else.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(2),
        json!(2.5),
        json!("a"),
        json!("A"),
        json!("a "),
        json!("2"),
        json!([]),
        json!([2]),
        json!({}),
        json!({"a": 2}),
    ]
}

/// Checks every place of a sample of the schema, and every field at the top with many values.
fn check(file: &str, schema: &str, operation: Operation, fields_min: usize) {
    let Some(schemas) = schemas(file) else { return };
    let base = sample(&schemas, &schemas[schema], 0);
    let fields: Vec<String> = base.as_object().unwrap().keys().cloned().collect();
    assert!(fields.len() >= fields_min, "{schema}: {} fields", fields.len());
    let mut seen = HashSet::from([digest(operation, &base)]);
    let mut places = Vec::new();
    leaves(&base, "", &mut places);
    for place in &places {
        let mut changed = base.clone();
        *changed.pointer_mut(place).unwrap() = json!("another value");
        let irrelevant = is_irrelevant(operation, place.split('/').nth(1).unwrap());
        assert_eq!(seen.insert(digest(operation, &changed)), !irrelevant, "{schema}: {place}");
    }
    let bare = json!({"model": "m"});
    let plain = digest(operation, &bare);
    for field in &fields {
        let mut digests = HashSet::from([plain.clone()]);
        for value in values() {
            let mut changed = bare.clone();
            changed[field] = value.clone();
            let irrelevant = is_irrelevant(operation, field);
            assert_eq!(
                digests.insert(digest(operation, &changed)),
                !irrelevant,
                "{schema}: {field}: {value}"
            );
        }
    }
}

#[test]
fn no_two_requests_that_differ_in_one_field_share_a_key() {
    check("openai.json", "CreateChatCompletionRequest", Operation::Chat, 30);
    check("openai.json", "CreateResponse", Operation::Responses, 25);
    check("openai.json", "CreateEmbeddingRequest", Operation::Embeddings, 4);
    check("anthropic.json", "MessageCreateParamsNonStreaming", Operation::Messages, 15);
}

/// Looks for the default that the description declares for a field.
fn declared_default(schemas: &Value, schema: &Value) -> Option<Value> {
    let schema = resolve(schemas, schema);
    let own = schema.get("default").cloned();
    let parts =
        ["allOf", "anyOf", "oneOf"].iter().flat_map(|key| schema[*key].as_array().into_iter().flatten());
    own.or_else(|| parts.into_iter().find_map(|part| declared_default(schemas, part)))
}

#[test]
fn a_default_that_is_spelled_out_is_no_difference() {
    let check = |operation: Operation, schema: &str, defaults: &[(&str, Value)]| {
        let schemas = schemas("openai.json");
        for (field, default) in defaults {
            let (bare, mut spelled) = (json!({"model": "m"}), json!({"model": "m"}));
            spelled[*field] = default.clone();
            assert_eq!(digest(operation, &bare), digest(operation, &spelled), "{field}");
            // Below the top it is somebody else's field.
            let inner = json!({"model": "m", "x": spelled});
            assert_ne!(
                digest(operation, &json!({"model": "m", "x": bare})),
                digest(operation, &inner),
                "{field}"
            );
            if let Some(schemas) = &schemas {
                let mut members = Map::new();
                properties(schemas, &schemas[schema], &mut members);
                assert_eq!(declared_default(schemas, &members[*field]).as_ref(), Some(default), "{field}");
            }
        }
    };
    let chat = [
        ("frequency_penalty", json!(0)),
        ("logprobs", json!(false)),
        ("n", json!(1)),
        ("presence_penalty", json!(0)),
        ("store", json!(false)),
    ];
    check(Operation::Chat, "CreateChatCompletionRequest", &chat);
    let responses = [("background", json!(false)), ("truncation", json!("disabled"))];
    check(Operation::Responses, "CreateResponse", &responses);
    check(Operation::Embeddings, "CreateEmbeddingRequest", &[("encoding_format", json!("float"))]);
}
