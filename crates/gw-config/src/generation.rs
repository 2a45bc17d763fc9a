//! The lines of a batch: its input, in gw's own form and OpenAI's batch file, read into requests, and its results.

mod result;

use std::fmt::Display;

use bytes::{Bytes, BytesMut};
use gw_dialects::{JsonWriter, completions, embeddings, openai, responses};
use gw_exec::{GenerationRequest, ModelIdentity};
use gw_types::{BoundedText, ErrorKind, GatewayError, NormalizedRequest, Operation, RequestContext};
use serde::Deserialize;
use serde_json::{Number, value::RawValue};

pub use self::result::ResultLines;

/// Bytes of an id, at most.
const ID_BYTES_MAX: usize = 512;

/// One item in gw's own form: the library's and `gw generate`'s.
///
/// Unknown fields are refused. Exactly one of `prompt` and `messages` stands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationSpec {
    /// The item's id, 1 to 512 bytes; one result bears it.
    pub request_id: String,
    /// The task that the item belongs to.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The text of one user message.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Messages as OpenAI's chat completions have them.
    #[serde(default)]
    pub messages: Option<Box<RawValue>>,
    /// The model; absent: the batch's.
    #[serde(default)]
    pub model: Option<String>,
    /// The kind of endpoint, for the result.
    #[serde(default)]
    pub endpoint_type: Option<String>,
    /// The revision of the model's weights, for the result.
    #[serde(default)]
    pub model_revision: Option<String>,
    /// The revision of the tokenizer, for the result.
    #[serde(default)]
    pub tokenizer_revision: Option<String>,
    /// How the answer is sampled.
    #[serde(default)]
    pub sampling: Sampling,
    /// Tools, as OpenAI's chat completions have them.
    #[serde(default)]
    pub tools: Option<Box<RawValue>>,
    /// Which tool must be called.
    #[serde(default)]
    pub tool_choice: Option<Box<RawValue>>,
    /// The form of the answer.
    #[serde(default)]
    pub response_format: Option<Box<RawValue>>,
}

/// How an answer is sampled, in the field's own words; what is absent is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// From 0 to 2.
    #[serde(default)]
    pub temperature: Option<Number>,
    /// From 0 to 1.
    #[serde(default)]
    pub top_p: Option<Number>,
    /// Output tokens of each answer, at most.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Answers.
    #[serde(default)]
    pub n: Option<u32>,
    /// For answers that can be had again.
    #[serde(default)]
    pub seed: Option<i64>,
    /// Texts at which an answer ends.
    #[serde(default)]
    pub stop: Option<Vec<String>>,
    /// From -2 to 2.
    #[serde(default)]
    pub presence_penalty: Option<Number>,
    /// From -2 to 2.
    #[serde(default)]
    pub frequency_penalty: Option<Number>,
}

/// A line that is no item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidGeneration(String);

impl InvalidGeneration {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// The form in which an item came, and its result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationForm {
    /// gw's own.
    Gw,
    /// OpenAI's batch file.
    OpenAiBatch,
}

/// What stands for an item's messages.
enum Messages<'a> {
    Given(&'a RawValue),
    OfPrompt(&'a str),
}

/// Bytes of a body beside its messages, mostly.
const BESIDE_BYTES: usize = 256;

impl GenerationSpec {
    /// Returns an item with one user message, sampled as the provider does.
    pub fn of_prompt(request_id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { request_id: request_id.into(), prompt: Some(prompt.into()), ..Self::default() }
    }

    /// Returns the request; `model` is asked for where the item names none.
    ///
    /// # Errors
    /// [`InvalidGeneration`] says which field is missing or wrong.
    pub fn into_request(self, model: Option<&str>) -> Result<GenerationRequest, InvalidGeneration> {
        let (messages, bytes) = match (&self.messages, &self.prompt) {
            (Some(messages), None) => (Messages::Given(messages), messages.get().len()),
            (None, Some(prompt)) => (Messages::OfPrompt(prompt), prompt.len()),
            (Some(_), Some(_)) => {
                return Err(InvalidGeneration::new(
                    "both `prompt` and `messages` stand there; write one of them",
                ));
            }
            (None, None) => {
                return Err(InvalidGeneration::new("neither `prompt` nor `messages` stands there"));
            }
        };
        let named = self.model.as_deref().or(model);
        let model = named.ok_or_else(|| {
            InvalidGeneration::new(
                "no `model` stands there, and none is set for the whole batch with `--model`",
            )
        })?;
        let mut written = BytesMut::with_capacity(bytes + BESIDE_BYTES);
        JsonWriter::within(&mut written, |json| json.object(|json| self.write_body(json, model, &messages)));
        let label = |text: Option<String>| text.map(|text| BoundedText::new(&text));
        let endpoint = self.endpoint_type.or_else(|| Some("openai-chat".to_owned()));
        Ok(GenerationRequest {
            request_id: id(self.request_id)?,
            task_id: self.task_id,
            identity: ModelIdentity::new(
                label(endpoint),
                label(self.model_revision),
                label(self.tokenizer_revision),
            ),
            request: normalized(Operation::Chat, written.freeze())?,
        })
    }

    fn write_body(&self, json: &mut JsonWriter, model: &str, messages: &Messages<'_>) {
        json.member_string("model", model);
        match messages {
            Messages::Given(messages) => json.member_raw("messages", messages.get()),
            Messages::OfPrompt(prompt) => json.member_array("messages", |json| {
                json.object(|json| {
                    json.member_string("role", "user");
                    json.member_string("content", prompt);
                });
            }),
        }
        self.sampling.write(json);
        let raw = [
            ("tools", &self.tools),
            ("tool_choice", &self.tool_choice),
            ("response_format", &self.response_format),
        ];
        for (name, value) in raw {
            if let Some(value) = value {
                json.member_raw(name, value.get());
            }
        }
    }
}

impl Sampling {
    fn write(&self, json: &mut JsonWriter) {
        let Self { temperature, top_p, max_tokens, n, seed, stop, presence_penalty, frequency_penalty } =
            self;
        number(json, "temperature", temperature.as_ref());
        number(json, "top_p", top_p.as_ref());
        number(json, "max_tokens", *max_tokens);
        number(json, "n", *n);
        number(json, "seed", *seed);
        if let Some(stop) = stop {
            json.member_array("stop", |json| stop.iter().for_each(|text| json.string(text)));
        }
        number(json, "presence_penalty", presence_penalty.as_ref());
        number(json, "frequency_penalty", frequency_penalty.as_ref());
    }
}

fn number(json: &mut JsonWriter, name: &str, number: Option<impl Display>) {
    if let Some(number) = number {
        json.member_number(name, number);
    }
}

/// One line of OpenAI's batch file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine<'a> {
    custom_id: String,
    method: String,
    url: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// Says which form a line has, without reading all of it.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(borrow, default)]
    custom_id: Option<&'a RawValue>,
}

/// Reads one line of a batch's input, in gw's own form or in that of OpenAI's batch file; `model` is asked for where
/// the line names none.
///
/// # Errors
/// [`InvalidGeneration`] says what is wrong: no JSON, a field of a wrong type or that nobody knows, a value out of range.
pub fn read_generation(
    line: &[u8],
    model: Option<&str>,
) -> Result<(GenerationRequest, GenerationForm), InvalidGeneration> {
    // As text where it is text: what is known of the whole line need not be looked for in each of its strings.
    let spec = match std::str::from_utf8(line) {
        Ok(line) => serde_json::from_str::<GenerationSpec>(line),
        Err(_) => serde_json::from_slice(line),
    };
    match spec {
        Ok(spec) => Ok((spec.into_request(model)?, GenerationForm::Gw)),
        // The name of its id is none of gw's own form, whose reading ends there.
        Err(_) if serde_json::from_slice::<Probe<'_>>(line).is_ok_and(|probe| probe.custom_id.is_some()) => {
            Ok((read_batch_line(line)?, GenerationForm::OpenAiBatch))
        }
        Err(error) => Err(wrong(&error)),
    }
}

fn read_batch_line(line: &[u8]) -> Result<GenerationRequest, InvalidGeneration> {
    let BatchLine { custom_id, method, url, body } =
        serde_json::from_slice(line).map_err(|error| wrong(&error))?;
    if method != "POST" {
        return Err(InvalidGeneration::new(format!("`method` is `{}`; `POST` is expected", short(&method))));
    }
    let (operation, endpoint) = match url.as_str() {
        "/v1/chat/completions" => (Operation::Chat, "openai-chat"),
        "/v1/completions" => (Operation::Completions, "openai-completions"),
        "/v1/responses" => (Operation::Responses, "openai-responses"),
        "/v1/embeddings" => (Operation::Embeddings, "openai-embeddings"),
        other => {
            return Err(InvalidGeneration::new(format!(
                "`url` is `{}`; `/v1/chat/completions`, `/v1/completions`, `/v1/responses` or `/v1/embeddings` is expected",
                short(other)
            )));
        }
    };
    Ok(GenerationRequest {
        request_id: id(custom_id)?,
        task_id: None,
        identity: ModelIdentity::new(Some(BoundedText::new(endpoint)), None, None),
        request: normalized(operation, Bytes::copy_from_slice(body.get().as_bytes()))?,
    })
}

fn normalized(operation: Operation, body: Bytes) -> Result<NormalizedRequest, InvalidGeneration> {
    let mut context = RequestContext::default();
    let facts = match operation {
        Operation::Chat => openai::read_chat(&body),
        Operation::Completions => completions::read_request(&body),
        Operation::Embeddings => embeddings::read_request(&body),
        Operation::Responses => responses::read_request(&body).map(|read| {
            context.pinned = !read.state.is_self_contained();
            read.facts
        }),
        Operation::Messages | Operation::CountTokens => {
            Err(GatewayError::new(ErrorKind::InvalidRequest, "batches are in OpenAI's formats"))
        }
    };
    let facts = facts.map_err(|error| match error.param() {
        Some(param) => InvalidGeneration::new(format!("{error} (`{param}`)")),
        None => InvalidGeneration::new(error.to_string()),
    })?;
    if facts.stream {
        return Err(InvalidGeneration::new("`stream` is true; a batch has whole answers, so leave it out"));
    }
    Ok(NormalizedRequest { operation, body, facts, context })
}

fn id(id: String) -> Result<String, InvalidGeneration> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        let length = id.len();
        return Err(InvalidGeneration::new(format!(
            "the id has {length} bytes; 1 to {ID_BYTES_MAX} are expected"
        )));
    }
    Ok(id)
}

/// Says what is wrong with the JSON, and where in the line. A value that is quoted is no prompt: unknown fields and
/// variants are names, and of wrong values serde names only short ones.
fn wrong(error: &serde_json::Error) -> InvalidGeneration {
    let column = error.column();
    if error.is_data() {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let text = if text.starts_with("invalid type: string") {
            text.split_once(", expected").map_or("a string in a wrong place".to_owned(), |(_, expected)| {
                format!("invalid type: string, expected{expected}")
            })
        } else {
            text.to_owned()
        };
        return InvalidGeneration::new(format!("column {column}: {text}"));
    }
    InvalidGeneration::new(format!("column {column}: no JSON"))
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
