//! The published schemas of the callers' formats, as validators.

use std::{collections::BTreeMap, path::Path, sync::OnceLock};

use gw_dialects::translate::WireFormat;
use gw_types::Operation;
use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

use super::exchange::{beside_the_workspace, is_absent};

/// Validators of what gw writes.
pub(super) struct Schemas {
    chat: Caller,
    responses: Caller,
    messages: Caller,
    requests: [Validator; 4],
}

/// Validators of what one kind of caller reads.
struct Caller {
    answer: Validator,
    event: EventSchema,
    error: Validator,
}

/// What stands in one event of a stream.
enum EventSchema {
    /// Events of one kind.
    One(Validator),
    /// Events that say their `type`.
    ByType(BTreeMap<String, Validator>),
}

/// Returns the validators, or `None` where the schemas are absent. They are compiled once a process.
pub(super) fn schemas() -> Option<&'static Schemas> {
    static SCHEMAS: OnceLock<Option<Schemas>> = OnceLock::new();
    let read = || {
        let folder = beside_the_workspace("fixtures/openapi");
        let read = |name: &str| Document::read(&folder.join(name));
        (!is_absent(&folder)).then(|| Schemas::new(&read("openai.json"), &read("anthropic.json")))
    };
    SCHEMAS.get_or_init(read).as_ref()
}

impl Schemas {
    fn new(openai: &Document, anthropic: &Document) -> Self {
        Self {
            chat: Caller {
                answer: openai.named("CreateChatCompletionResponse"),
                event: EventSchema::One(openai.named("CreateChatCompletionStreamResponse")),
                error: openai.named("ErrorResponse"),
            },
            responses: Caller {
                answer: openai.named("Response"),
                event: EventSchema::ByType(openai.by_type("ResponseStreamEvent")),
                error: openai.named("ErrorResponse"),
            },
            messages: Caller {
                answer: anthropic.named("Message"),
                event: EventSchema::ByType(anthropic.by_type("RawMessageStreamEvent")),
                error: anthropic.named("ErrorResponse"),
            },
            requests: [
                openai.named("CreateChatCompletionRequest"),
                openai.named("CreateResponse"),
                anthropic.named("MessageCreateParamsNonStreaming"),
                anthropic.named("MessageCreateParamsStreaming"),
            ],
        }
    }

    /// Returns what is wrong with a whole answer to a caller.
    pub(super) fn answer(&self, caller: Operation, answer: &Value) -> Option<Broken> {
        first_fault(&self.of(caller).answer, answer)
    }

    /// Returns what is wrong with the body of an error answer to a caller.
    pub(super) fn error(&self, caller: Operation, error: &Value) -> Option<Broken> {
        first_fault(&self.of(caller).error, error)
    }

    /// Returns what is wrong with an event of a stream to a caller.
    pub(super) fn event(&self, caller: Operation, event: &Value) -> Option<Broken> {
        match &self.of(caller).event {
            EventSchema::One(validator) => first_fault(validator, event),
            EventSchema::ByType(kinds) => {
                let kind = event["type"].as_str().unwrap_or_default();
                let Some(validator) = kinds.get(kind) else {
                    return Some(Broken { place: "/type".to_owned(), rule: format!("events: no `{kind}`") });
                };
                first_fault(validator, event)
            }
        }
    }

    /// Returns what is wrong with a request to a deployment; `None` also for formats that have no schema here.
    pub(super) fn request(&self, to: WireFormat, request: &Value) -> Option<Broken> {
        let [chat, responses, messages, streamed] = &self.requests;
        match to {
            WireFormat::OpenAiChat => first_fault(chat, request),
            WireFormat::OpenAiResponses => first_fault(responses, request),
            WireFormat::AnthropicMessages if request["stream"] == true => first_fault(streamed, request),
            WireFormat::AnthropicMessages => first_fault(messages, request),
            WireFormat::Gemini | WireFormat::BedrockConverse | WireFormat::OllamaChat => None,
        }
    }

    fn of(&self, caller: Operation) -> &Caller {
        match caller {
            Operation::Messages | Operation::CountTokens => &self.messages,
            Operation::Responses => &self.responses,
            Operation::Chat | Operation::Completions | Operation::Embeddings => &self.chat,
        }
    }
}

/// A rule of a schema that a value breaks.
#[derive(PartialEq, Eq)]
pub(super) struct Broken {
    /// Where in the value.
    pub(super) place: String,
    /// Where in the schema.
    pub(super) rule: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` breaks {}", self.place, self.rule)
    }
}

/// Returns the first rule that is broken.
fn first_fault(validator: &Validator, value: &Value) -> Option<Broken> {
    if validator.is_valid(value) {
        return None;
    }
    let error = validator.iter_errors(value).next()?;
    Some(Broken { place: error.instance_path().to_string(), rule: error.schema_path().to_string() })
}

/// One OpenAPI document, which schemas refer to by its address.
struct Document {
    value: Value,
    registry: Registry<'static>,
}

/// The address of the document in its registry.
const ADDRESS: &str = "urn:gw:document";

impl Document {
    fn read(path: &Path) -> Self {
        let text = std::fs::read(path).expect("a document");
        let mut value: Value = serde_json::from_slice(&text).expect("an OpenAPI document");
        mend(&mut value);
        let builder =
            Registry::new().draft(Draft::Draft202012).add(ADDRESS, value.clone()).expect("an address");
        Self { value, registry: builder.prepare().expect("references that lead somewhere") }
    }

    /// Returns the validator of a named schema.
    fn named(&self, name: &str) -> Validator {
        assert!(self.value["components"]["schemas"][name].is_object(), "no schema `{name}`");
        self.at(&format!("#/components/schemas/{name}"))
    }

    /// Returns the validators of a union by the `type` of its members.
    fn by_type(&self, union: &str) -> BTreeMap<String, Validator> {
        let union = &self.value["components"]["schemas"][union];
        let members = union["anyOf"].as_array().expect("a union");
        let member = |member: &Value| {
            let reference = member["$ref"].as_str().expect("a reference");
            let schema = self.value.pointer(reference.trim_start_matches('#')).expect("a schema");
            let kind = &schema["properties"]["type"];
            let kind = kind["const"].as_str().or(kind["enum"][0].as_str()).expect("a type");
            (kind.to_owned(), self.at(reference))
        };
        members.iter().map(member).collect()
    }

    fn at(&self, reference: &str) -> Validator {
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_registry(&self.registry)
            .build(&json!({ "$ref": format!("{ADDRESS}{reference}") }))
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Mends what the documents get wrong: `nullable`, a word of OpenAPI 3.0 that some schemas of a 3.1 document still use, is
/// put in the words of JSON Schema, and unions whose members overlap (messages with and without a role's own rules) are
/// told by any of them.
fn mend(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(mend);
            if let Some(union) = members.remove("oneOf") {
                members.insert("anyOf".to_owned(), union);
            }
            if members.get("nullable") == Some(&Value::Bool(true)) {
                if let Some(kind) = members.get_mut("type").filter(|kind| kind.is_string()) {
                    *kind = json!([kind.take(), "null"]);
                }
                if let Some(Value::Array(values)) = members.get_mut("enum") {
                    values.push(Value::Null);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mend),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
