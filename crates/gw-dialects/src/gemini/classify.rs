//! From Google's error answers to one kind of failure.

#[cfg(test)]
mod tests;

use std::time::Duration;

use gw_types::{ErrorKind, GatewayError, UpstreamDetail, UtcTime};

use crate::{
    failure::error_text,
    json::{Node, Value},
    openai::ErrorHead,
    retry,
};

/// Classifies an error answer of the Gemini API or of Vertex AI.
///
/// The body is `{"error": {...}}`, or an array with one of these where a stream without `alt=sse` was asked for, whatever
/// the content type says. The status decides; the error's own `status`, the reasons in its `details` and, where there is
/// nothing else, its message refine: a bad key is 400 here. The wait is in the details (`RetryInfo`), not in a header.
///
/// ```
/// use gw_dialects::{gemini::classify, openai::ErrorHead};
/// use gw_types::{ErrorKind, UtcTime};
///
/// let head = ErrorHead { status: 503, header: &|_| None, utc: UtcTime::default() };
/// let body = br#"[{"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}]"#;
/// assert_eq!(classify(&head, body).kind(), ErrorKind::ProviderUnavailable);
/// ```
pub fn classify(head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
    let said = Said::read(body);
    let guidance = retry::guidance(head.header, head.utc);
    let error = said.error(head.status).with_status(head.status);
    let error = match said.retry_delay.or(guidance.retry_after) {
        Some(wait) if waits(error.kind()) => error.with_retry_after(wait),
        Some(_) | None => error,
    };
    if guidance.should_retry == Some(false) { error.without_retry() } else { error }
}

/// Classifies an error that came inside a 2xx answer or stream; `document` is the object that holds it.
///
/// The status is the one that the error names.
pub(super) fn in_band(document: &Node<'_>) -> GatewayError {
    let said = document.get("error").map(Said::of).unwrap_or_default();
    let status = said.code.filter(|code| (400..600).contains(code)).unwrap_or(500);
    let error = said.error(status).with_status(status);
    match said.retry_delay {
        Some(wait) if waits(error.kind()) => error.with_retry_after(wait),
        Some(_) | None => error,
    }
}

/// Returns the refusal of a prompt that Google blocked, with its reason in the detail.
pub(super) fn blocked(feedback: &Node<'_>) -> GatewayError {
    let error =
        GatewayError::new(ErrorKind::ContentFiltered, "the provider's content filter refused the request");
    let said = feedback
        .filled("blockReasonMessage")
        .or_else(|| feedback.filled("blockReason").map(|reason| format!("the prompt was blocked: {reason}")));
    match said {
        Some(said) => error.with_detail(UpstreamDetail::new(&said)),
        None => error,
    }
}

/// Whether waiting can help, so that a wait means something.
fn waits(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ProviderRateLimited | ErrorKind::ProviderUnavailable | ErrorKind::ProviderTimeout
    )
}

/// What an error says. Of the details only what decides.
#[derive(Default)]
struct Said {
    code: Option<u16>,
    status: String,
    message: String,
    reasons: Vec<String>,
    retry_delay: Option<Duration>,
    /// Whether a quota of a whole day is used up.
    daily: bool,
}

/// The most details, and quota violations, that are looked at.
const DETAILS_MAX: usize = 64;

const KEY_REASONS: [&str; 6] = [
    "API_KEY_INVALID",
    "API_KEY_EXPIRED",
    "API_KEY_SERVICE_BLOCKED",
    "ACCESS_TOKEN_EXPIRED",
    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    "CREDENTIALS_MISSING",
];
const KEY_PHRASES: [&str; 3] = ["api key not valid", "api key expired", "api key not found"];
const CONTEXT_PHRASES: [&str; 3] =
    ["exceeds the maximum number of tokens", "input token count", "exceeds the model's context"];

impl Said {
    /// Reads an error body: an object, an array with one, or one that stands in an event.
    fn read(body: &[u8]) -> Self {
        let Ok(node) = Node::read(error_text(body)) else { return Self::default() };
        let document = node.items().first().unwrap_or(&node);
        document.get("error").map(Self::of).unwrap_or_default()
    }

    /// Reads the value of an `error` member.
    fn of(error: &Node<'_>) -> Self {
        if let Value::String(text) = &error.value {
            return Self { message: text.decoded().into_owned(), ..Self::default() };
        }
        let details = error.get("details").map(Node::items).unwrap_or_default();
        let mut said = Self {
            code: error.count("code").and_then(|code| u16::try_from(code).ok()),
            status: error.text("status").unwrap_or_default(),
            message: error.text("message").unwrap_or_default(),
            ..Self::default()
        };
        for detail in details.iter().take(DETAILS_MAX) {
            said.reasons.extend(detail.filled("reason"));
            if let Some(delay) = detail.text("retryDelay") {
                said.retry_delay = seconds(&delay);
            }
            let violations = detail.get("violations").map(Node::items).unwrap_or_default();
            let is_daily =
                |violation: &Node<'_>| violation.text("quotaId").is_some_and(|id| id.contains("PerDay"));
            said.daily |= violations.iter().take(DETAILS_MAX).any(is_daily);
        }
        said
    }

    fn error(&self, status: u16) -> GatewayError {
        let error = |kind, message| self.with_words(GatewayError::new(kind, message));
        match status {
            400 | 413 | 422 => self.refused(),
            401 | 403 => self.credential(),
            404 | 410 => {
                error(ErrorKind::DeploymentMissing, "the provider does not know the model or deployment")
            }
            408 => error(ErrorKind::ProviderTimeout, "the provider timed out"),
            429 if self.daily => {
                error(ErrorKind::ProviderRateLimited, "the provider's quota is used up").without_retry()
            }
            429 => error(ErrorKind::ProviderRateLimited, "the provider's rate limit is reached"),
            499 => error(ErrorKind::ProviderUnavailable, "the provider gave up the request"),
            424 | 500.. => error(ErrorKind::ProviderUnavailable, "the provider failed"),
            402 | 405..=498 => error(ErrorKind::InvalidRequest, "the provider refused the request"),
            0..=399 => error(ErrorKind::MalformedResponse, "the provider's answer has an unexpected status"),
        }
    }

    fn refused(&self) -> GatewayError {
        let error = |kind, message| self.with_words(GatewayError::new(kind, message));
        if self.has_reason(&KEY_REASONS) || self.mentions(&KEY_PHRASES) {
            self.credential()
        } else if self.mentions(&CONTEXT_PHRASES) {
            let message = "the request is longer than the model's context window";
            error(ErrorKind::ContextLengthExceeded, message)
        } else if self.status == "FAILED_PRECONDITION" {
            // The account may not use the model from here, or has no billing: another account may.
            error(ErrorKind::ProviderAuth, "the provider does not serve gw's account")
        } else {
            error(ErrorKind::InvalidRequest, "the provider refused the request")
        }
    }

    fn credential(&self) -> GatewayError {
        self.with_words(GatewayError::new(
            ErrorKind::ProviderAuth,
            "the provider did not accept gw's credential",
        ))
    }

    /// Adds the message. Status and reasons stay out: to a caller of another dialect they are no code.
    fn with_words(&self, error: GatewayError) -> GatewayError {
        if self.message.is_empty() { error } else { error.with_detail(UpstreamDetail::new(&self.message)) }
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.reasons.iter().any(|reason| reasons.contains(&reason.as_str()))
    }

    fn mentions(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}

/// Reads a duration of protocol buffers' JSON: seconds with decimals and `s`.
fn seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    retry::guidance(&|name| (name == "retry-after").then_some(number), UtcTime::default()).retry_after
}
