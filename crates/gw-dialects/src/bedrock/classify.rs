//! From Bedrock's error answers and exception frames to one kind of failure.

#[cfg(test)]
mod tests;

use gw_types::{ErrorKind, GatewayError, UpstreamDetail};

use crate::{event_stream::Frame, failure::error_text, json::Node, openai::ErrorHead, retry};

/// Classifies an error answer.
///
/// The kind stands in the header `x-amzn-errortype`, with an address behind a colon, or in the body's `__type`; the body
/// says no more than `message`. Where neither says a kind, the status decides.
///
/// ```
/// use gw_dialects::{bedrock::classify, openai::ErrorHead};
/// use gw_types::{ErrorKind, UtcTime};
///
/// let header = |name: &str| (name == "x-amzn-errortype").then_some("ThrottlingException:http://internal/");
/// let head = ErrorHead { status: 429, header: &header, utc: UtcTime::default() };
/// let error = classify(&head, br#"{"message":"Too many requests"}"#);
/// assert_eq!(error.kind(), ErrorKind::ProviderRateLimited);
/// ```
pub fn classify(head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
    let mut said = Said::read(body);
    if let Some(kind) = (head.header)("x-amzn-errortype") {
        said.kind = bare(kind).to_owned();
    }
    let guidance = retry::guidance(head.header, head.utc);
    let mut error = said.error(head.status).with_status(head.status);
    if waits(error.kind())
        && let Some(wait) = guidance.retry_after
    {
        error = error.with_retry_after(wait);
    }
    if guidance.should_retry == Some(false) {
        error = error.without_retry();
    }
    match (head.header)("x-amzn-requestid") {
        Some(id) => error.with_upstream_request_id(id),
        None => error,
    }
}

/// Classifies an exception or an error that came as a frame of a stream; returns `None` for a frame that is neither.
pub(super) fn frame(frame: &Frame<'_>) -> Option<GatewayError> {
    let mut said = Said::read(frame.payload);
    match frame.text_header(":message-type")? {
        "exception" => said.kind = frame.text_header(":exception-type").unwrap_or_default().to_owned(),
        "error" => {
            said.kind = frame.text_header(":error-code").unwrap_or_default().to_owned();
            if let Some(message) = frame.text_header(":error-message") {
                message.clone_into(&mut said.message);
            }
        }
        _ => return None,
    }
    let status = said.status();
    Some(said.error(status).with_status(status))
}

/// Whether waiting can help, so that `retry-after` means something.
fn waits(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ProviderRateLimited | ErrorKind::ProviderUnavailable | ErrorKind::ProviderTimeout
    )
}

/// Returns a kind without the name space before `#` and the address behind `:`.
fn bare(kind: &str) -> &str {
    let kind = kind.rsplit('#').next().unwrap_or(kind);
    kind.split(':').next().unwrap_or(kind).trim()
}

/// What an error says.
#[derive(Default)]
struct Said {
    kind: String,
    message: String,
}

const CONTEXT_PHRASES: [&str; 8] = [
    "input is too long",
    "prompt is too long",
    "too many input tokens",
    "maximum context length",
    "exceed context limit",
    "too many total text bytes",
    "exceeds the maximum number of tokens",
    "context window",
];
const MODEL_PHRASES: [&str; 4] = [
    "model identifier is invalid",
    "on-demand throughput isn",
    "access to the model",
    "model is not supported in",
];
const FILTER_PHRASES: [&str; 2] = ["content filter", "blocked by our"];
const DAILY_PHRASES: [&str; 1] = ["per day"];

impl Said {
    fn read(body: &[u8]) -> Self {
        let Ok(node) = Node::read(error_text(body)) else { return Self::default() };
        let node = node.items().first().unwrap_or(&node);
        let message = ["message", "Message", "errorMessage"].into_iter().find_map(|name| node.filled(name));
        let kind = node.filled("__type").or_else(|| node.filled("code")).unwrap_or_default();
        Self { kind: bare(&kind).to_owned(), message: message.unwrap_or_default() }
    }

    /// Returns the status that the kind would have had as an answer.
    fn status(&self) -> u16 {
        match self.kind.to_ascii_lowercase().as_str() {
            "validationexception" | "servicequotaexceededexception" => 400,
            "accessdeniedexception" => 403,
            "resourcenotfoundexception" => 404,
            "modeltimeoutexception" => 408,
            "throttlingexception" | "modelnotreadyexception" => 429,
            "serviceunavailableexception" => 503,
            _ => 500,
        }
    }

    fn error(&self, status: u16) -> GatewayError {
        let kind = self.kind.to_ascii_lowercase();
        match kind.as_str() {
            "validationexception" => self.refused(),
            "accessdeniedexception" if self.mentions(&MODEL_PHRASES) => self.missing(),
            "accessdeniedexception"
            | "unrecognizedclientexception"
            | "expiredtokenexception"
            | "expiredtoken"
            | "invalidsignatureexception"
            | "incompletesignatureexception"
            | "signaturedoesnotmatch"
            | "missingauthenticationtokenexception"
            | "invalidclienttokenid"
            | "requestexpired"
            | "optinrequired" => self.credential(),
            "resourcenotfoundexception" => self.missing(),
            "throttlingexception" => self.limited(),
            "servicequotaexceededexception" => {
                self.with(ErrorKind::ProviderRateLimited, "the provider's quota is used up").without_retry()
            }
            "modelnotreadyexception" | "serviceunavailableexception" => {
                self.with(ErrorKind::ProviderUnavailable, "the provider's model is not ready")
            }
            "modeltimeoutexception" => self.with(ErrorKind::ProviderTimeout, "the provider timed out"),
            "modelerrorexception"
            | "modelstreamerrorexception"
            | "internalserverexception"
            | "internalfailure" => self.with(ErrorKind::ProviderUnavailable, "the provider failed"),
            _ => self.by_status(status),
        }
    }

    fn by_status(&self, status: u16) -> GatewayError {
        match status {
            400 | 413 | 422 => self.refused(),
            401 | 403 => self.credential(),
            404 | 410 => self.missing(),
            408 => self.with(ErrorKind::ProviderTimeout, "the provider timed out"),
            424 | 500.. => self.with(ErrorKind::ProviderUnavailable, "the provider failed"),
            429 => self.limited(),
            402 | 405..=499 => self.with(ErrorKind::InvalidRequest, "the provider refused the request"),
            0..=399 => {
                let message = "the provider's answer has an unexpected status";
                self.with(ErrorKind::MalformedResponse, message)
            }
        }
    }

    fn refused(&self) -> GatewayError {
        if self.mentions(&MODEL_PHRASES) {
            self.missing()
        } else if self.mentions(&CONTEXT_PHRASES) {
            let message = "the request is longer than the model's context window";
            self.with(ErrorKind::ContextLengthExceeded, message)
        } else if self.mentions(&FILTER_PHRASES) {
            let message = "the provider's content filter refused the request";
            self.with(ErrorKind::ContentFiltered, message)
        } else {
            self.with(ErrorKind::InvalidRequest, "the provider refused the request")
        }
    }

    fn limited(&self) -> GatewayError {
        if self.mentions(&DAILY_PHRASES) {
            return self
                .with(ErrorKind::ProviderRateLimited, "the provider's quota is used up")
                .without_retry();
        }
        self.with(ErrorKind::ProviderRateLimited, "the provider's rate limit is reached")
    }

    fn missing(&self) -> GatewayError {
        let message = "the provider does not know the model or deployment";
        self.with(ErrorKind::DeploymentMissing, message)
    }

    fn credential(&self) -> GatewayError {
        self.with(ErrorKind::ProviderAuth, "the provider did not accept gw's credential")
    }

    /// Adds the message. The kind stays out: to a caller of another dialect it is no code.
    fn with(&self, kind: ErrorKind, message: &'static str) -> GatewayError {
        let error = GatewayError::new(kind, message);
        if self.message.is_empty() { error } else { error.with_detail(UpstreamDetail::new(&self.message)) }
    }

    fn mentions(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }
}
