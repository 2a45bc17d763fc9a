//! Whole answers: statuses, bodies, and bodies that stop too early.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Fault, text};

/// A whole answer with a `content-length`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Headers; `content-type: application/json` unless they say another.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "text")]
    pub body: Bytes,
    /// Closes the connection behind so many bytes of the body.
    #[serde(default)]
    pub cut_after_bytes: Option<usize>,
}

impl FakeAnswer {
    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds `retry-after`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header("retry-after", &seconds.to_string())
    }

    /// Replaces the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Closes the connection behind so many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after_bytes = Some(bytes);
        self
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into(), cut_after_bytes: None }
    }
}

impl From<FakeAnswer> for Fault {
    fn from(answer: FakeAnswer) -> Self {
        Self::Answer(answer)
    }
}

/// Returns an OpenAI error body with the status.
pub fn status(status: u16) -> FakeAnswer {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        _ => ("server_error", None),
    };
    FakeAnswer::json(status, &error(&format!("the provider answers {status}"), kind, code, None))
}

/// Returns the 400 with which Azure OpenAI refuses a prompt.
pub fn content_filter() -> FakeAnswer {
    let message = "The response was filtered due to the prompt triggering content management policy.";
    FakeAnswer::json(
        400,
        &json!({"error": {
            "message": message, "type": null, "param": "prompt", "code": "content_filter", "status": 400,
            "innererror": {"code": "ResponsibleAIPolicyViolation",
                "content_filter_result": {"violence": {"filtered": true, "severity": "medium"}}},
        }}),
    )
}

/// Returns a 200 that is a web page, as a misrouted base URL gives it.
pub fn html_200() -> FakeAnswer {
    FakeAnswer::json(200, &Value::Null)
        .body("<!doctype html><html><body>Welcome</body></html>")
        .header("content-type", "text/html; charset=utf-8")
}

pub(super) fn error(message: &str, kind: &str, code: Option<&str>, param: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
