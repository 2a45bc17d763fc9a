//! One occurrence of a failure.

use std::time::Duration;

use crate::{Dialect, ErrorKind, Outcome, Retry, UpstreamDetail, http_status, openai_code};

/// One occurrence of a failure: a kind, fixed text, and facts that may only forbid.
///
/// The text is `&'static str` so that no prompt, completion or secret can get into it; names from the configuration
/// go into the subject, field paths of the request into the parameter. One pointer wide, so that results stay small.
#[derive(Clone, PartialEq, Eq)]
pub struct GatewayError {
    facts: Box<Facts>,
}

#[derive(Clone, PartialEq, Eq)]
struct Facts {
    kind: ErrorKind,
    message: &'static str,
    subject: Option<Box<str>>,
    param: Option<Box<str>>,
    position: Option<(u32, u32)>,
    retry_after: Option<Duration>,
    status: Option<u16>,
    upstream_request_id: Option<Box<str>>,
    no_retry: bool,
    pinned: bool,
    ambiguous: bool,
    attempt: Option<Box<str>>,
    unclassified: bool,
    detail: Option<UpstreamDetail>,
}

impl GatewayError {
    /// The longest subject, parameter or upstream request id kept, in bytes.
    pub const NAME_BYTES_MAX: usize = 128;

    /// Returns an error of the kind with gw's own fixed text: lower case, no full stop.
    pub fn new(kind: ErrorKind, message: &'static str) -> Self {
        Self {
            facts: Box::new(Facts {
                kind,
                message,
                subject: None,
                param: None,
                position: None,
                retry_after: None,
                status: None,
                upstream_request_id: None,
                no_retry: false,
                pinned: false,
                ambiguous: false,
                attempt: None,
                unclassified: false,
                detail: None,
            }),
        }
    }

    /// Names what of the configuration the error is about: a limit, a deployment, a tenant. Never caller's text.
    #[must_use]
    pub fn with_subject(mut self, subject: &str) -> Self {
        self.facts.subject = name(subject);
        self
    }

    /// Names the request field that was wrong, as a path such as `messages[3].content`.
    #[must_use]
    pub fn with_param(mut self, param: &str) -> Self {
        self.facts.param = name(param);
        self
    }

    /// Adds the line and column (from 1) at which the body could not be read.
    #[must_use]
    pub fn with_position(mut self, line: usize, column: usize) -> Self {
        let clip = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.facts.position = Some((clip(line), clip(column)));
        self
    }

    /// Adds how long the caller should wait before it asks again.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.facts.retry_after = Some(retry_after);
        self
    }

    /// Adds the HTTP status of this occurrence: the provider's, or for an intake refusal gw's own.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.facts.status = Some(status);
        self
    }

    /// Adds the provider's id of the failed call; anything but visible ASCII is dropped.
    #[must_use]
    pub fn with_upstream_request_id(mut self, id: &str) -> Self {
        self.facts.upstream_request_id = name(id);
        self
    }

    /// Adds what the provider said.
    #[must_use]
    pub fn with_detail(mut self, detail: UpstreamDetail) -> Self {
        self.facts.detail = Some(detail);
        self
    }

    /// Forbids another attempt at the same deployment.
    #[must_use]
    pub fn without_retry(mut self) -> Self {
        self.facts.no_retry = true;
        self
    }

    /// Forbids moving to another deployment.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.facts.pinned = true;
        self
    }

    /// Marks that the call may have taken effect at the provider without a known result.
    #[must_use]
    pub fn ambiguous(mut self) -> Self {
        self.facts.ambiguous = true;
        self
    }

    /// Takes the mark of [`GatewayError::ambiguous`] back: for a request that changes nothing it is no news.
    #[must_use]
    pub fn unambiguous(mut self) -> Self {
        self.facts.ambiguous = false;
        self
    }

    /// Names the attempt whose result is not known, by the id that the caller can ask about.
    #[must_use]
    pub fn with_attempt(mut self, id: &str) -> Self {
        self.facts.attempt = name(id);
        self
    }

    /// Marks that the provider's answer has a shape that gw does not know, so that the kind follows from the status alone.
    #[must_use]
    pub fn unclassified(mut self) -> Self {
        self.facts.unclassified = true;
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.facts.kind
    }

    /// Returns gw's own text, without subject, parameter or position.
    pub fn message(&self) -> &'static str {
        self.facts.message
    }

    /// Returns the configuration's name that the error is about.
    pub fn subject(&self) -> Option<&str> {
        self.facts.subject.as_deref()
    }

    /// Returns the request field that was wrong.
    pub fn param(&self) -> Option<&str> {
        self.facts.param.as_deref()
    }

    /// Returns how long the caller should wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.facts.retry_after
    }

    /// Returns the status of this occurrence.
    pub fn status(&self) -> Option<u16> {
        self.facts.status
    }

    /// Returns the provider's id of the failed call.
    pub fn upstream_request_id(&self) -> Option<&str> {
        self.facts.upstream_request_id.as_deref()
    }

    /// Returns what the provider said, for the caller's error body only.
    pub fn detail(&self) -> Option<&UpstreamDetail> {
        self.facts.detail.as_ref()
    }

    /// Returns whether another attempt at the same deployment is allowed by kind and occurrence.
    pub fn may_retry(&self) -> bool {
        self.facts.kind.retryable() == Retry::SameDeployment && !self.facts.no_retry
    }

    /// Returns whether this occurrence forbids moving to another deployment.
    pub fn is_pinned(&self) -> bool {
        self.facts.pinned
    }

    /// Returns whether this occurrence forbids another attempt at the same deployment.
    pub fn forbids_retry(&self) -> bool {
        self.facts.no_retry
    }

    /// Returns whether the call may have taken effect without a known result.
    pub fn is_ambiguous(&self) -> bool {
        self.facts.ambiguous
    }

    /// Returns the id of the attempt whose result is not known.
    pub fn attempt(&self) -> Option<&str> {
        self.facts.attempt.as_deref()
    }

    /// Returns whether the kind follows from the status alone, because gw does not know the shape of the answer.
    pub fn is_unclassified(&self) -> bool {
        self.facts.unclassified
    }

    /// Returns the outcome that the request's record carries.
    pub fn outcome(&self) -> Outcome {
        if self.facts.ambiguous { Outcome::Ambiguous } else { Outcome::of(self.facts.kind) }
    }

    /// Returns the HTTP status for a caller of the dialect.
    pub fn http_status(&self, dialect: Dialect) -> u16 {
        http_status(self.facts.kind, self.facts.status, dialect)
    }

    /// Returns the OpenAI error code: the provider's own where it said one, else the kind's.
    pub fn openai_code(&self) -> Option<&str> {
        self.detail().and_then(UpstreamDetail::code).or(openai_code(self.facts.kind))
    }
}

/// Keeps visible ASCII and blanks, up to the bound.
fn name(text: &str) -> Option<Box<str>> {
    let kept: String = text
        .chars()
        .filter(|character| character.is_ascii_graphic() || *character == ' ')
        .take(GatewayError::NAME_BYTES_MAX)
        .collect();
    (!kept.is_empty()).then(|| kept.into_boxed_str())
}

impl std::fmt::Display for GatewayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.facts.message)?;
        if let Some(subject) = self.subject() {
            write!(f, ": `{subject}`")?;
        }
        if let Some((line, column)) = self.facts.position {
            write!(f, " at line {line} column {column}")?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for GatewayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayError")
            .field("kind", &self.facts.kind)
            .field("message", &self.facts.message)
            .field("subject", &self.facts.subject)
            .field("param", &self.facts.param)
            .field("retry_after", &self.facts.retry_after)
            .field("status", &self.facts.status)
            .field("upstream_request_id", &self.facts.upstream_request_id)
            .field("no_retry", &self.facts.no_retry)
            .field("pinned", &self.facts.pinned)
            .field("ambiguous", &self.facts.ambiguous)
            .field("attempt", &self.facts.attempt)
            .field("unclassified", &self.facts.unclassified)
            .field("detail", &self.facts.detail)
            .finish()
    }
}

impl std::error::Error for GatewayError {}
