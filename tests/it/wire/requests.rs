//! Recorded requests, as if callers had sent them: through gw and out to the provider that they were recorded for.

use bytes::Bytes;
use gw_dialects::{
    anthropic::{self, MessagesEdits},
    completions::{self, CompletionsEdits},
    embeddings::{self, EmbeddingsEdits},
    neutral::{Prompt, WriteOptions},
    openai::{self, ChatEdits},
    responses::{self, ResponsesEdits},
    translate::{self, Strictness, WireFormat},
    vendors::{self, Preset},
};
use gw_types::{
    GatewayError, Loss, NormalizedRequest, Operation, OutputField, RequestContext, RequestFacts, TokenCount,
};
use serde_json::Value;

use super::{
    equivalent::{differences, normal, remove},
    exchange::Exchange,
    report::Verdict,
    schema::schemas,
    spoken::{Spoken, spoken},
};

/// The model as the deployment knows it.
const MODEL: &str = "deployed-model";

/// Sends a recorded request through gw, both ways: as a caller's of the provider's own format, whose bytes pass, and
/// through the neutral form.
pub(super) fn check(exchange: &Exchange) -> Verdict {
    let operation = match operation(exchange) {
        Ok(operation) => operation,
        Err(reason) => return Verdict::Skipped(reason),
    };
    if !exchange.request.is_object() {
        return Verdict::Skipped("no request was recorded".to_owned());
    }
    let mut body = exchange.request.clone();
    // Some who serve a format take the model in the path; gw's callers name it.
    if body["model"].is_null() {
        body["model"] = "m".into();
    }
    let bytes = Bytes::from(body.to_string());
    let facts = match read(operation, &bytes) {
        Ok(facts) => facts,
        Err(_) if matches!(exchange.status, 400 | 422) => return Verdict::Passed,
        Err(error) => return Verdict::Failed(vec![format!("is not read: {error:?}")]),
    };
    let context = RequestContext::default();
    let request = NormalizedRequest { operation, body: bytes, facts, context };
    let mut faults = passed(exchange, &request, &body);
    if is_carried(operation, &body) {
        faults.extend(through_neutral(operation, &request.body, &body));
        faults.extend(translated(operation, &request.body));
    }
    if faults.is_empty() { Verdict::Passed } else { Verdict::Failed(faults) }
}

/// Returns whether a request has a neutral form. Legacy completions and embeddings have none, tokens are counted by the
/// provider's own; functions, which tools have replaced, and conversations that one provider keeps go nowhere else.
fn is_carried(operation: Operation, body: &Value) -> bool {
    matches!(operation, Operation::Chat | Operation::Responses | Operation::Messages)
        && body["functions"].is_null()
        && body["previous_response_id"].is_null()
}

/// Returns what callers ask for in the format of an exchange, or why they do not.
fn operation(exchange: &Exchange) -> Result<Operation, String> {
    let api = &exchange.api;
    match spoken(api) {
        None => Err(format!("gw does not speak {api}")),
        Some(Spoken::Answers(WireFormat::OpenAiChat)) => Ok(Operation::Chat),
        Some(Spoken::Answers(WireFormat::OpenAiResponses)) => Ok(Operation::Responses),
        Some(Spoken::Answers(WireFormat::AnthropicMessages)) => Ok(Operation::Messages),
        Some(Spoken::Completions) => Ok(Operation::Completions),
        Some(Spoken::Embeddings) => Ok(Operation::Embeddings),
        Some(Spoken::AnthropicTokens) => Ok(Operation::CountTokens),
        Some(
            Spoken::Answers(WireFormat::Gemini | WireFormat::BedrockConverse | WireFormat::OllamaChat)
            | Spoken::GeminiEmbeddings
            | Spoken::GeminiTokens,
        ) => Err(format!("no caller of gw writes {api}")),
    }
}

fn read(operation: Operation, body: &Bytes) -> Result<RequestFacts, GatewayError> {
    match operation {
        Operation::Chat => openai::read_chat(body),
        Operation::Responses => responses::read_request(body).map(|request| request.facts),
        Operation::Messages => anthropic::read_messages(body),
        Operation::CountTokens => anthropic::read_count_tokens(body),
        Operation::Completions => completions::read_request(body),
        Operation::Embeddings => embeddings::read_request(body),
    }
}

/// Returns what is wrong with the body for a deployment of the caller's own format: all but the model's name must stay.
fn passed(exchange: &Exchange, request: &NormalizedRequest, body: &Value) -> Vec<String> {
    let mut expected = body.clone();
    expected["model"] = MODEL.into();
    let sent = rewrite(request);
    let mut faults = compare("passed on", &sent, &expected);
    if let (Operation::Chat, Some(preset)) = (request.operation, Preset::named(&exchange.provider)) {
        let sent = vendors::rewrite_chat(request, &chat_edits(), preset);
        faults.extend(compare("for the vendor", &sent, &for_vendor(expected, preset)));
    }
    faults
}

fn rewrite(request: &NormalizedRequest) -> Bytes {
    match request.operation {
        Operation::Chat => openai::rewrite_chat(request, &chat_edits()),
        Operation::Responses => {
            responses::rewrite(request, &ResponsesEdits { model: MODEL, output_bound: None })
        }
        Operation::Messages | Operation::CountTokens => {
            anthropic::rewrite_messages(request, &MessagesEdits { model: MODEL, output_bound: None }).0
        }
        Operation::Completions => {
            let edits = CompletionsEdits { model: MODEL, output_bound: None, ask_usage: false };
            completions::rewrite(request, &edits)
        }
        Operation::Embeddings => {
            embeddings::rewrite(request, &EmbeddingsEdits { model: MODEL, floats_only: false })
        }
    }
}

fn chat_edits() -> ChatEdits<'static> {
    let output_field = OutputField::MaxTokens;
    ChatEdits { model: MODEL, output_bound: None, output_field, ask_usage: false }
}

/// Applies what a preset says that a vendor does not take.
fn for_vendor(mut body: Value, preset: &Preset) -> Value {
    let members = body.as_object_mut().expect("an object");
    if !preset.takes_stream_options {
        members.remove("stream_options");
    }
    if preset.gaps.contains(&"max_completion_tokens")
        && let Some(bound) = members.remove("max_completion_tokens")
    {
        members.insert("max_tokens".to_owned(), bound);
    }
    body
}

fn compare(way: &str, sent: &Bytes, expected: &Value) -> Vec<String> {
    let sent: Value = serde_json::from_slice(sent).expect("a request is JSON");
    differences(&sent, expected).into_iter().map(|difference| format!("{way}: {difference}")).collect()
}

/// Returns what is wrong with the body that the neutral form gives: equal up to the defaults that [`normal`] documents and
/// to fields that the form has no place for, which it keeps a list of.
fn through_neutral(operation: Operation, bytes: &Bytes, body: &Value) -> Vec<String> {
    let prompt = match translate::read_prompt(operation, bytes) {
        Ok(prompt) => prompt,
        Err(error) => return vec![format!("is not read into the neutral form: {error:?}")],
    };
    let (sent, _) = write(operation, &prompt, &options(body));
    let sent: Value = serde_json::from_slice(&sent).expect("a request is JSON");
    let mut expected = body.clone();
    expected["model"] = MODEL.into();
    for unknown in &prompt.rest {
        remove(&mut expected, &unknown.path);
    }
    differences(&normal(&sent), &normal(&expected))
        .into_iter()
        .map(|difference| format!("through the neutral form: {difference}"))
        .collect()
}

/// Returns what is wrong with the bodies for deployments of other formats: by the schemas of those that have one here, the
/// others need only be written.
fn translated(operation: Operation, bytes: &Bytes) -> Vec<String> {
    let mut faults = Vec::new();
    let formats = [
        (Some(Operation::Chat), WireFormat::OpenAiChat),
        (Some(Operation::Responses), WireFormat::OpenAiResponses),
        (Some(Operation::Messages), WireFormat::AnthropicMessages),
        (None, WireFormat::Gemini),
        (None, WireFormat::BedrockConverse),
        (None, WireFormat::OllamaChat),
    ];
    for (_, to) in formats.into_iter().filter(|(own, _)| *own != Some(operation)) {
        match translate::request(operation, bytes, to, &OPTIONS, Strictness::Report) {
            Ok((body, _)) => {
                let body = serde_json::from_slice(&body).expect("a request is JSON");
                let broken = schemas().and_then(|schemas| schemas.request(to, &body));
                faults.extend(broken.map(|broken| format!("to {to:?}: {broken}")));
            }
            Err(error) => faults.push(format!("to {to:?}: is not translated: {error:?}")),
        }
    }
    faults
}

fn write(operation: Operation, prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    match operation {
        Operation::Responses => responses::write_prompt(prompt, options),
        Operation::Messages | Operation::CountTokens => anthropic::write_prompt(prompt, options),
        Operation::Chat | Operation::Completions | Operation::Embeddings => {
            openai::write_prompt(prompt, options)
        }
    }
}

const OPTIONS: WriteOptions<'_> = WriteOptions {
    model: MODEL,
    output_bound: None,
    default_output: TokenCount::new(1),
    output_field: OutputField::MaxTokens,
};

fn options(body: &Value) -> WriteOptions<'static> {
    let newer = body["max_completion_tokens"].is_number();
    let output_field = if newer { OutputField::MaxCompletionTokens } else { OutputField::MaxTokens };
    WriteOptions { output_field, ..OPTIONS }
}
