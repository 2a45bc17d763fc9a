//! Results as lines: gw's own form, and OpenAI's batch file.

use gw_config::GenerationForm;
use gw_exec::{GenerationResult, GenerationStatus};
use gw_types::{BoundedText, Choice, DeploymentName, ErrorKind, RequestId, ToolCall, Usage};
use serde::Serialize;
use serde_json::value::RawValue;

/// Writes the line, with its end, in the place of the one before.
///
/// # Errors
/// None: texts, numbers and lists of them, which JSON can hold, in memory.
pub(super) fn line(
    result: &GenerationResult,
    form: GenerationForm,
    line: &mut Vec<u8>,
) -> serde_json::Result<()> {
    line.clear();
    match form {
        GenerationForm::Gw => serde_json::to_writer(&mut *line, &Own::of(result))?,
        GenerationForm::OpenAiBatch => serde_json::to_writer(&mut *line, &OpenAi::of(result))?,
    }
    line.push(b'\n');
    Ok(())
}

#[derive(Serialize)]
struct Own<'a> {
    request_id: &'a str,
    task_id: Option<&'a str>,
    status: &'static str,
    endpoint_type: Option<&'a str>,
    model_revision: Option<&'a str>,
    tokenizer_revision: Option<&'a str>,
    served_model: Option<&'a str>,
    deployment: Option<&'a str>,
    completions: Vec<OwnChoice<'a>>,
    attempts: u32,
    attempt_error_classes: Vec<&'static str>,
    admission_wait_us: u64,
    latency_us: u64,
    usage: Option<Usage>,
    cost_micros: u64,
    error_class: Option<&'static str>,
    message: Option<&'a str>,
    upstream_status: Option<u16>,
    record_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OwnChoice<'a> {
    text: &'a str,
    reasoning: Option<&'a str>,
    refusal: Option<&'a str>,
    finish_reason: &'static str,
    tool_calls: Vec<OwnCall<'a>>,
}

#[derive(Serialize)]
struct OwnCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn choice(choice: &Choice) -> OwnChoice<'_> {
    OwnChoice {
        text: &choice.text,
        reasoning: Some(choice.reasoning.as_str()).filter(|text| !text.is_empty()),
        refusal: choice.refusal.as_deref(),
        finish_reason: choice.finish.as_str(),
        tool_calls: choice.tool_calls.iter().map(tool_call).collect(),
    }
}

fn tool_call(call: &ToolCall) -> OwnCall<'_> {
    OwnCall { id: &call.id, name: &call.name, arguments: &call.arguments }
}

impl<'a> Own<'a> {
    fn of(result: &'a GenerationResult) -> Self {
        Self {
            request_id: &result.request_id,
            task_id: result.task_id.as_deref(),
            status: result.status.as_str(),
            endpoint_type: result.identity.endpoint_type(),
            model_revision: result.identity.model_revision(),
            tokenizer_revision: result.identity.tokenizer_revision(),
            served_model: result.served_model.as_ref().map(BoundedText::as_str),
            deployment: result.deployment.as_ref().map(DeploymentName::as_str),
            completions: result.completions.iter().map(choice).collect(),
            attempts: result.attempts,
            attempt_error_classes: result.attempt_error_classes.iter().map(|kind| kind.as_str()).collect(),
            admission_wait_us: micros(result.admission_wait),
            latency_us: micros(result.latency),
            usage: result.usage,
            cost_micros: result.cost.micros_rounded_up(),
            error_class: result.error_class.map(ErrorKind::as_str),
            message: result.message.as_deref(),
            upstream_status: result.upstream_status,
            record_id: result.record_id.as_ref().map(RequestId::as_str),
        }
    }
}

#[derive(Serialize)]
struct OpenAi<'a> {
    id: String,
    custom_id: &'a str,
    response: Option<Response<'a>>,
    error: Option<Failure<'a>>,
}

#[derive(Serialize)]
struct Response<'a> {
    status_code: u16,
    request_id: &'a str,
    body: Box<RawValue>,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: &'static str,
    message: &'a str,
}

impl<'a> OpenAi<'a> {
    fn of(result: &'a GenerationResult) -> Self {
        let record = result.record_id.as_ref().map_or("", RequestId::as_str);
        let body = result.raw.as_ref().and_then(|raw| {
            // A line is a line: what a provider has laid out over several becomes one.
            let value: Box<RawValue> = serde_json::from_slice(raw).ok()?;
            if !raw.contains(&b'\n') {
                return Some(value);
            }
            let value: serde_json::Value = serde_json::from_slice(raw).ok()?;
            serde_json::value::to_raw_value(&value).ok()
        });
        let response = match (result.status, body) {
            (GenerationStatus::Ok, Some(body)) => {
                Some(Response { status_code: 200, request_id: record, body })
            }
            (GenerationStatus::Ok, None) | (GenerationStatus::Failed | GenerationStatus::Cancelled, _) => {
                None
            }
        };
        let error = response.is_none().then(|| Failure {
            code: result.error_class.map_or("not_kept", ErrorKind::as_str),
            message: result.message.as_deref().unwrap_or("the answer was remembered and its bytes were not"),
        });
        Self { id: format!("batch_req_{record}"), custom_id: &result.request_id, response, error }
    }
}
