//! From a provider's status, headers and body to one kind of failure.

#[cfg(test)]
mod tests;

use gw_types::{ErrorKind, GatewayError, UtcTime};

use super::said::Said;
use crate::retry;

/// The head of a provider's error answer.
#[derive(Clone, Copy)]
pub struct ErrorHead<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Looks up a header by its name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
    /// Now, for `retry-after` as a date.
    pub utc: UtcTime,
}

impl std::fmt::Debug for ErrorHead<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrorHead")
            .field("status", &self.status)
            .field("utc", &self.utc)
            .finish_non_exhaustive()
    }
}

/// The headers that carry the provider's id of the call, in order.
const REQUEST_ID_HEADERS: [&str; 3] = ["x-request-id", "request-id", "apim-request-id"];

/// Classifies a provider's error answer.
///
/// The status decides, the body refines: context length and content filter among the 400s, exhausted quota and oversized
/// requests among the 429s, a bad key where a provider answers 400 for it. What the provider said travels along as a
/// redacting detail; an error page of HTML says nothing.
///
/// ```
/// use gw_dialects::openai::{ErrorHead, classify};
/// use gw_types::{ErrorKind, UtcTime};
///
/// let header = |name: &str| (name == "retry-after").then_some("2");
/// let head = ErrorHead { status: 429, header: &header, utc: UtcTime::default() };
/// let error = classify(&head, br#"{"error":{"message":"slow down"}}"#);
/// assert_eq!(error.kind(), ErrorKind::ProviderRateLimited);
/// assert_eq!(error.retry_after().unwrap().as_secs(), 2);
/// ```
pub fn classify(head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
    let said = Said::read(body);
    let verdict = Verdict::of(head.status, &said);
    let guidance = retry::guidance(head.header, head.utc);
    let mut error = verdict.error.with_status(head.status);
    if !is_listed(head.status) || said.is_silent() && !is_blank_or_page(body) {
        error = error.unclassified();
    }
    if verdict.may_wait
        && let Some(wait) = guidance.retry_after
    {
        error = error.with_retry_after(wait);
    }
    if guidance.should_retry == Some(false) {
        error = error.without_retry();
    }
    match REQUEST_ID_HEADERS.iter().find_map(|name| (head.header)(name)) {
        Some(id) => error.with_upstream_request_id(id),
        None => error,
    }
}

/// Classifies an error that came inside a 2xx answer or stream; `body` is the JSON that holds it.
///
/// The status is the one that the error names (`code`, `status`, `status_code`), else the one that its type implies.
pub(crate) fn in_band(body: &[u8]) -> GatewayError {
    let said = Said::read(body);
    let status = said.status.or_else(|| implied_status(&said));
    let Verdict { error, .. } = Verdict::of(status.unwrap_or(500), &said);
    let error = if status.is_some_and(is_listed) { error } else { error.unclassified() };
    match said.status {
        Some(status) => error.with_status(status),
        None => error,
    }
}

/// Classifies an error inside a 2xx answer or stream whose status the caller knows from the error's own words.
pub(crate) fn of_status(status: u16, body: &[u8]) -> GatewayError {
    Verdict::of(status, &Said::read(body)).error.with_status(status)
}

/// The error statuses that providers are known to send.
const STATUSES: [u16; 26] = [
    400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 422, 424, 429, 451, 498, 499, 500, 501, 502, 503,
    504, 520, 522, 524, 529,
];

fn is_listed(status: u16) -> bool {
    STATUSES.contains(&status)
}

/// Returns whether a body is nothing or a page for people, as proxies in front of providers send them.
fn is_blank_or_page(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    body.is_empty() || body.starts_with(b"<")
}

struct Verdict {
    error: GatewayError,
    /// Whether waiting can help, so that `retry-after` means something.
    may_wait: bool,
}

const CONTEXT_CODES: [&str; 3] =
    ["context_length_exceeded", "too_many_prompt_tokens", "model_max_prompt_tokens_exceeded"];
const CONTEXT_PHRASES: [&str; 6] = [
    "maximum context length",
    "context_length_exceeded",
    "context window",
    "context length exceeded",
    "prompt is too long",
    "input is too long",
];
const FILTER_CODES: [&str; 6] = [
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content_filter_error",
    "image_content_policy_violation",
    "bio_policy",
];
const QUOTA_CODES: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"];
/// Anthropic says so in a 400.
const QUOTA_PHRASES: [&str; 1] = ["credit balance is too low"];
const KEY_CODES: [&str; 3] = ["invalid_api_key", "api_key_invalid", "authentication_error"];
const KEY_PHRASES: [&str; 3] = ["incorrect api key", "invalid api key", "api key not valid"];
const MODEL_CODES: [&str; 5] =
    ["model_not_found", "deploymentnotfound", "invalid_model", "model_not_available", "unknown_model"];
/// DeepSeek, Mistral, OpenRouter, Voyage: what a 400 says of a model that they do not have.
const MODEL_PHRASES: [&str; 4] =
    ["model not exist", "invalid model:", "is not a valid model id", "is not supported. supported models"];
/// What is wrong with an input, in the words of a failed response.
const INPUT_CODES: [&str; 14] = [
    "invalid_prompt",
    "data_residency_mismatch",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
];
const SERVER_CODES: [&str; 9] = [
    "server_error",
    "internal_error",
    "internal_server_error",
    "internalservererror",
    "api_error",
    "overloaded_error",
    "service_unavailable",
    "vector_store_timeout",
    "timeout",
];
const OVERSIZE_PHRASES: [&str; 1] = ["request too large"];

impl Verdict {
    fn of(status: u16, said: &Said) -> Self {
        match status {
            400 | 422 => Self::refused(said),
            // OpenRouter says 403 where its moderation refuses a prompt.
            403 if said.flagged => Self::filtered(said),
            401 | 403 => Self::credential(said),
            402 => Self::limited(said, "the provider's quota is used up", false),
            // 410 is said of a model that was withdrawn.
            404 | 410 => Self::missing(said),
            408 => Self::new(ErrorKind::ProviderTimeout, "the provider timed out", said).wait(),
            // Groq says so where a single request is above the rate itself; a deployment with a higher rate can take it.
            413 if said.is_one_of(&["rate_limit_exceeded"]) => {
                Self::limited(said, "the request is above the provider's rate limit", false)
            }
            413 => Self::refused(said),
            429 if said.is_one_of(&QUOTA_CODES) => {
                Self::limited(said, "the provider's quota is used up", false)
            }
            429 if said.mentions(&OVERSIZE_PHRASES) => {
                Self::limited(said, "the request is above the provider's rate limit", false)
            }
            429 => Self::limited(said, "the provider's rate limit is reached", true),
            // 498 and 499 are servers' own ways to say that they gave up.
            498 | 499 => {
                Self::new(ErrorKind::ProviderUnavailable, "the provider gave up the request", said).wait()
            }
            // 424 is said by servers whose engine failed behind them.
            424 | 500.. => Self::new(ErrorKind::ProviderUnavailable, "the provider failed", said).wait(),
            405..=497 => Self::new(ErrorKind::InvalidRequest, "the provider refused the request", said),
            0..=399 => Self::new(
                ErrorKind::MalformedResponse,
                "the provider's answer has an unexpected status",
                said,
            ),
        }
    }

    fn new(kind: ErrorKind, message: &'static str, said: &Said) -> Self {
        Self::with_words(kind, message, said, true)
    }

    fn with_words(kind: ErrorKind, message: &'static str, said: &Said, own_words: bool) -> Self {
        let error = GatewayError::new(kind, message);
        let error = match said.detail(own_words) {
            Some(detail) => error.with_detail(detail),
            None => error,
        };
        Self { error, may_wait: false }
    }

    fn wait(mut self) -> Self {
        self.may_wait = true;
        self
    }

    fn refused(said: &Said) -> Self {
        if said.is_one_of(&FILTER_CODES) {
            Self::filtered(said)
        } else if said.is_one_of(&CONTEXT_CODES) || said.mentions(&CONTEXT_PHRASES) {
            let message = "the request is longer than the model's context window";
            Self::new(ErrorKind::ContextLengthExceeded, message, said)
        } else if said.mentions(&QUOTA_PHRASES) {
            Self::limited(said, "the provider's quota is used up", false)
        } else if said.is_one_of(&KEY_CODES) || said.mentions(&KEY_PHRASES) {
            Self::credential(said)
        } else if said.is_one_of(&MODEL_CODES) || said.mentions(&MODEL_PHRASES) {
            Self::missing(said)
        } else {
            Self::new(ErrorKind::InvalidRequest, "the provider refused the request", said)
        }
    }

    fn filtered(said: &Said) -> Self {
        Self::new(ErrorKind::ContentFiltered, "the provider's content filter refused the request", said)
    }

    /// The provider's type and code stay out: to the caller they would read as a fault of its own key.
    fn credential(said: &Said) -> Self {
        Self::with_words(ErrorKind::ProviderAuth, "the provider did not accept gw's credential", said, false)
    }

    fn missing(said: &Said) -> Self {
        Self::new(ErrorKind::DeploymentMissing, "the provider does not know the model or deployment", said)
    }

    fn limited(said: &Said, message: &'static str, retry: bool) -> Self {
        let Self { error, .. } = Self::new(ErrorKind::ProviderRateLimited, message, said);
        Self { error: if retry { error } else { error.without_retry() }, may_wait: true }
    }
}

/// Returns the status that the words of an error imply, where it names none.
fn implied_status(said: &Said) -> Option<u16> {
    let implied: [(&[&str], u16); 10] = [
        (&["rate_limit_error", "rate_limit_exceeded", "too_many_requests", "tokens", "requests"], 429),
        (&QUOTA_CODES, 429),
        (&FILTER_CODES, 400),
        (&CONTEXT_CODES, 400),
        (&MODEL_CODES, 404),
        (&KEY_CODES, 401),
        (&["permission_error", "permission_denied"], 403),
        (
            &[
                "invalid_request_error",
                "badrequesterror",
                "bad_request",
                "invalid-argument",
                "invalid_argument",
            ],
            400,
        ),
        (&INPUT_CODES, 400),
        (&SERVER_CODES, 500),
    ];
    implied.iter().find(|(names, _)| said.is_one_of(names)).map(|(_, status)| *status)
}
