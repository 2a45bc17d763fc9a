//! Every format of a caller at every format of a deployment: what a request says arrives, or the loss report names it.
//!
//! `docs/translation.md` has the outcome as a table; `GW_UPDATE=1` writes it anew, and the difference is read.

mod features;
mod table;

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use gw_dialects::{
    neutral::WriteOptions,
    translate::{self, Strictness, WireFormat},
};
use gw_types::{ErrorKind, LossItem, Operation, OutputField, TokenCount};
use serde_json::{Value, json};

use self::features::{Feature, Said, features};

const CALLERS: [Operation; 3] = [Operation::Chat, Operation::Responses, Operation::Messages];

/// A deployment: its column in the table, its format, and a model by whose name the format's writer decides.
struct Target {
    name: &'static str,
    format: WireFormat,
    model: &'static str,
}

const TARGETS: [Target; 7] = [
    Target { name: "OpenAI chat", format: WireFormat::OpenAiChat, model: "gpt-5" },
    Target { name: "OpenAI responses", format: WireFormat::OpenAiResponses, model: "gpt-5" },
    Target { name: "Anthropic", format: WireFormat::AnthropicMessages, model: "claude-opus-4-6" },
    Target { name: "Gemini", format: WireFormat::Gemini, model: "gemini-3-pro" },
    Target {
        name: "Bedrock, Claude",
        format: WireFormat::BedrockConverse,
        model: "us.anthropic.claude-opus-4-6-v1",
    },
    Target {
        name: "Bedrock, Nova",
        format: WireFormat::BedrockConverse,
        model: "us.amazon.nova-2-lite-v1:0",
    },
    Target { name: "Ollama", format: WireFormat::OllamaChat, model: "llama3.2" },
];

/// What became of a feature on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is there, and nothing is reported.
    Arrived,
    /// The report names it, with these kinds.
    Reported(BTreeSet<&'static str>),
    /// It is not there, and the table of the harmless says why that is no loss.
    Harmless,
    /// It is not there, and nobody was told.
    Silent,
}

/// Whether caller and deployment write the same format, so that nothing is translated.
fn is_same(caller: Operation, format: WireFormat) -> bool {
    matches!(
        (caller, format),
        (Operation::Chat, WireFormat::OpenAiChat)
            | (Operation::Responses, WireFormat::OpenAiResponses)
            | (Operation::Messages, WireFormat::AnthropicMessages)
    )
}

fn base(caller: Operation) -> Value {
    match caller {
        Operation::Responses => json!({"model": "m", "input": "hello"}),
        Operation::Messages => {
            json!({"model": "m", "max_tokens": 50_000, "messages": [{"role": "user", "content": "hello"}]})
        }
        _ => json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]}),
    }
}

/// Translates a body; returns what goes out and what is lost.
fn translated(caller: Operation, body: &Value, target: &Target) -> (String, Vec<LossItem>) {
    let options = WriteOptions {
        model: target.model,
        output_bound: None,
        default_output: TokenCount::new(50_000),
        output_field: OutputField::MaxCompletionTokens,
    };
    let text = body.to_string();
    let translated = translate::request(caller, text.as_bytes(), target.format, &options, Strictness::Report);
    let (sent, loss) =
        translated.unwrap_or_else(|error| panic!("{caller:?} to {}: {error:?}: {text}", target.name));
    let strict = translate::request(caller, text.as_bytes(), target.format, &options, Strictness::Refuse);
    match strict {
        Ok((same, _)) => assert!(loss.items.is_empty() && same == sent, "{text}"),
        Err(error) => {
            assert_eq!((error.kind(), loss.items.is_empty()), (ErrorKind::TranslationLoss, false), "{text}");
        }
    }
    (String::from_utf8(sent.to_vec()).unwrap(), loss.items)
}

/// Sets fields of a body.
fn with(mut body: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Returns whether a body holds a text, as it is or as a file.
fn holds(body: &str, mark: &str) -> bool {
    body.contains(mark) || body.contains(&STANDARD.encode(mark))
}

fn outcome(
    caller: Operation,
    feature: &Feature,
    said: &Said,
    target: &Target,
    faults: &mut Vec<String>,
) -> Outcome {
    let without = with(base(caller), &said.beside);
    let (before, known) = translated(caller, &without, target);
    let (after, losses) = translated(caller, &with(without, &said.fields), target);
    let kept_to_itself = feature
        .only_for
        .iter()
        .any(|(mark, formats)| after.contains(mark) && !formats.contains(&target.format));
    let mut fault =
        |text: String| faults.push(format!("{} of {caller:?} at {}: {text}", feature.name, target.name));
    if kept_to_itself {
        fault(format!("another format's state: {after}"));
    }
    let is_of_it = |item: &&LossItem| {
        item.path.as_str().starts_with(said.path) || said.path.starts_with(item.path.as_str())
    };
    let news: Vec<&LossItem> = losses
        .iter()
        .filter(|item| !known.iter().any(|old| old.path == item.path && old.kind == item.kind))
        .collect();
    let kinds: BTreeSet<&'static str> =
        news.iter().copied().filter(|item| is_of_it(item)).map(|item| item.kind.as_str()).collect();
    let others: Vec<&str> =
        news.iter().copied().filter(|item| !is_of_it(item)).map(|item| item.path.as_str()).collect();
    if !others.is_empty() {
        fault(format!("is reported as {others:?}"));
    }
    let is_there = before != after && feature.marks.iter().all(|mark| holds(&after, mark));
    match (kinds.is_empty(), is_there) {
        (false, _) => Outcome::Reported(kinds),
        (true, true) => Outcome::Arrived,
        (true, false) if said.harmless_at.contains(&target.format) => Outcome::Harmless,
        (true, false) => {
            fault(format!("is dropped in silence: {after}"));
            Outcome::Silent
        }
    }
}

#[test]
fn what_a_request_says_arrives_or_is_reported() {
    let mut faults = Vec::new();
    let mut rows = Vec::new();
    for feature in features() {
        for caller in CALLERS {
            let Some(said) = feature.said_by(caller) else { continue };
            let mut at = |target: &Target| {
                (!is_same(caller, target.format))
                    .then(|| outcome(caller, &feature, said, target, &mut faults))
            };
            let outcomes: Vec<Option<Outcome>> = TARGETS.iter().map(&mut at).collect();
            rows.push((feature.name, caller, outcomes));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    table::compare(&rows);
}
