//! Results as lines: gw's own form, and OpenAI's batch file.

use bytes::BytesMut;
use gw_dialects::JsonWriter;
use gw_exec::{GenerationResult, GenerationStatus};
use gw_types::{BoundedText, Choice, DeploymentName, ErrorKind, RequestId};
use serde_json::value::RawValue;

use super::GenerationForm;

/// Writes results as lines, one at a time in one buffer.
#[derive(Default)]
pub struct ResultLines {
    line: BytesMut,
}

/// Shows nothing of a line: it holds answers.
impl std::fmt::Debug for ResultLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResultLines").finish_non_exhaustive()
    }
}

impl ResultLines {
    /// Returns the line of a result, with its end.
    ///
    /// # Errors
    /// None: a usage is numbers, which JSON can hold, in memory.
    pub fn write(&mut self, result: &GenerationResult, form: GenerationForm) -> serde_json::Result<&[u8]> {
        let usage = serde_json::to_string(&result.usage)?;
        self.line.clear();
        JsonWriter::within(&mut self.line, |json| match form {
            GenerationForm::Gw => json.object(|json| own(json, result, &usage)),
            GenerationForm::OpenAiBatch => json.object(|json| openai_batch(json, result)),
        });
        self.line.extend_from_slice(b"\n");
        Ok(&self.line)
    }
}

fn own(json: &mut JsonWriter, result: &GenerationResult, usage: &str) {
    json.member_string("request_id", &result.request_id);
    json.member_string_or_null("task_id", result.task_id.as_deref());
    json.member_string("status", result.status.as_str());
    json.member_string_or_null("endpoint_type", result.identity.endpoint_type());
    json.member_string_or_null("model_revision", result.identity.model_revision());
    json.member_string_or_null("tokenizer_revision", result.identity.tokenizer_revision());
    json.member_string_or_null("served_model", result.served_model.as_ref().map(BoundedText::as_str));
    json.member_string_or_null("deployment", result.deployment.as_ref().map(DeploymentName::as_str));
    json.member_array("completions", |json| {
        result.completions.iter().for_each(|choice| json.object(|json| completion(json, choice)));
    });
    json.member_number("attempts", result.attempts);
    json.member_array("attempt_error_classes", |json| {
        result.attempt_error_classes.iter().for_each(|kind| json.string(kind.as_str()));
    });
    json.member_number("admission_wait_us", result.admission_wait.as_micros());
    json.member_number("latency_us", result.latency.as_micros());
    json.member_raw("usage", usage);
    json.member_number("cost_micros", result.cost.micros_rounded_up());
    json.member_string_or_null("error_class", result.error_class.map(ErrorKind::as_str));
    json.member_string_or_null("message", result.message.as_deref());
    match result.upstream_status {
        Some(status) => json.member_number("upstream_status", status),
        None => json.member_null("upstream_status"),
    }
    json.member_string_or_null("record_id", result.record_id.as_ref().map(RequestId::as_str));
}

fn completion(json: &mut JsonWriter, choice: &Choice) {
    json.member_string("text", &choice.text);
    let reasoning = Some(choice.reasoning.as_str()).filter(|text| !text.is_empty());
    json.member_string_or_null("reasoning", reasoning);
    json.member_string_or_null("refusal", choice.refusal.as_deref());
    json.member_string("finish_reason", choice.finish.as_str());
    json.member_array("tool_calls", |json| {
        for call in &choice.tool_calls {
            json.object(|json| {
                json.member_string("id", &call.id);
                json.member_string("name", &call.name);
                json.member_string("arguments", &call.arguments);
            });
        }
    });
}

fn openai_batch(json: &mut JsonWriter, result: &GenerationResult) {
    let record = result.record_id.as_ref().map_or("", RequestId::as_str);
    json.member_string("id", &format!("batch_req_{record}"));
    json.member_string("custom_id", &result.request_id);
    let body = match result.status {
        GenerationStatus::Ok => body(result),
        GenerationStatus::Failed | GenerationStatus::Cancelled => None,
    };
    match body {
        Some(body) => {
            json.member_object("response", |json| {
                json.member_number("status_code", 200);
                json.member_string("request_id", record);
                json.member_raw("body", body.get());
            });
            json.member_null("error");
        }
        None => {
            json.member_null("response");
            json.member_object("error", |json| {
                json.member_string("code", result.error_class.map_or("not_kept", ErrorKind::as_str));
                let not_kept = "the answer was remembered and its bytes were not";
                json.member_string("message", result.message.as_deref().unwrap_or(not_kept));
            });
        }
    }
}

/// Returns the provider's answer in one line: what it has laid out over several becomes one.
fn body(result: &GenerationResult) -> Option<Box<RawValue>> {
    let raw = result.raw.as_ref()?;
    let value: Box<RawValue> = serde_json::from_slice(raw).ok()?;
    if !raw.contains(&b'\n') {
        return Some(value);
    }
    let value: serde_json::Value = serde_json::from_slice(raw).ok()?;
    serde_json::value::to_raw_value(&value).ok()
}
