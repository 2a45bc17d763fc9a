//! Requests that are turned away at the door: a closed set of reasons, each with its error.

use std::time::Duration;

use gw_types::{ErrorKind, GatewayError};

/// Why a request was turned away at the door; the label of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The head cannot be read as HTTP.
    HeadUnreadable,
    /// The head has too many fields, or is too long.
    HeadTooLarge,
    /// The head did not come in time.
    HeadTimeout,
    /// No key, or an unknown one.
    Unauthenticated,
    /// A token that is not taken.
    Token,
    /// A genuine token that is nobody's here.
    TokenForbidden,
    /// A token whose issuer's keys cannot be had.
    TokenKeys,
    /// More than one key.
    AmbiguousKey,
    /// The key may not use the admin plane, or the caller is not on this machine.
    Forbidden,
    /// No such path.
    UnknownPath,
    /// Not by this method.
    Method,
    /// The body is compressed.
    Encoding,
    /// The body is no JSON by its own statement.
    MediaType,
    /// The body is too large.
    BodyTooLarge,
    /// The body did not come in time.
    BodyTimeout,
    /// The body broke off.
    BodyUnreadable,
    /// A header of gw's own is malformed.
    Header,
    /// No place in the ledger's queue, or the tenant is gone.
    NotAdmitted,
    /// The server is shutting down.
    Draining,
    /// One address has as many connections as it may.
    AddressConnections,
    /// The client and the server did not agree on TLS, or not in time.
    Tls,
    /// The handler failed by a fault of gw's own.
    Fault,
}

impl Reason {
    /// Returns the name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::HeadUnreadable => "head_unreadable",
            Self::HeadTooLarge => "head_too_large",
            Self::HeadTimeout => "head_timeout",
            Self::Unauthenticated => "unauthenticated",
            Self::Token => "token",
            Self::TokenForbidden => "token_forbidden",
            Self::TokenKeys => "token_keys",
            Self::AmbiguousKey => "ambiguous_key",
            Self::Forbidden => "forbidden",
            Self::UnknownPath => "unknown_path",
            Self::Method => "method",
            Self::Encoding => "encoding",
            Self::MediaType => "media_type",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyUnreadable => "body_unreadable",
            Self::Header => "header",
            Self::NotAdmitted => "not_admitted",
            Self::Draining => "draining",
            Self::AddressConnections => "address_connections",
            Self::Tls => "tls",
            Self::Fault => "fault",
        }
    }
}

/// A request that is turned away.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) error: GatewayError,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, error: GatewayError) -> Self {
        Self { reason, error }
    }

    fn intake(reason: Reason, status: u16, message: &'static str) -> Self {
        Self::new(reason, GatewayError::new(ErrorKind::Intake, message).with_status(status))
    }

    fn invalid(reason: Reason, message: &'static str) -> Self {
        Self::new(reason, GatewayError::new(ErrorKind::InvalidRequest, message))
    }

    /// No key, or an unknown one; which of the two is not said.
    pub(crate) fn unauthenticated() -> Self {
        let message = "no valid API key; send it as `Authorization: Bearer KEY` or `x-api-key: KEY`";
        Self::new(Reason::Unauthenticated, GatewayError::new(ErrorKind::Unauthenticated, message))
    }

    pub(crate) fn ambiguous_key() -> Self {
        Self::invalid(Reason::AmbiguousKey, "more than one `Authorization` or `x-api-key` header")
    }

    pub(crate) fn forbidden(message: &'static str) -> Self {
        Self::new(Reason::Forbidden, GatewayError::new(ErrorKind::Forbidden, message))
    }

    pub(crate) fn unknown_path() -> Self {
        Self::intake(Reason::UnknownPath, 404, "no such path; paths are matched exactly")
    }

    pub(crate) fn method() -> Self {
        Self::intake(Reason::Method, 405, "the path does not take this method")
    }

    pub(crate) fn encoding() -> Self {
        Self::intake(Reason::Encoding, 415, "compressed bodies are not taken; send no `content-encoding`")
    }

    pub(crate) fn media_type() -> Self {
        Self::intake(Reason::MediaType, 415, "the body must be sent as `content-type: application/json`")
    }

    pub(crate) fn body_too_large() -> Self {
        Self::intake(Reason::BodyTooLarge, 413, "the body is larger than `max_body_bytes` allows")
    }

    pub(crate) fn body_timeout() -> Self {
        Self::intake(Reason::BodyTimeout, 408, "the body did not come in time")
    }

    pub(crate) fn body_unreadable() -> Self {
        Self::invalid(Reason::BodyUnreadable, "the body broke off or is framed wrongly")
    }

    pub(crate) fn head_timeout() -> Self {
        Self::intake(Reason::HeadTimeout, 408, "the request's head did not come in time")
    }

    pub(crate) fn head_too_large() -> Self {
        Self::intake(Reason::HeadTooLarge, 431, "the request's head has too many fields or is too long")
    }

    pub(crate) fn head_unreadable() -> Self {
        Self::invalid(Reason::HeadUnreadable, "the request's head is no valid HTTP")
    }

    pub(crate) fn draining() -> Self {
        Self::new(Reason::Draining, shutting_down())
    }

    pub(crate) fn fault() -> Self {
        Self::new(Reason::Fault, fault())
    }
}

/// Returns the error of requests that meet a shutdown: another instance may answer at once.
pub(crate) fn shutting_down() -> GatewayError {
    GatewayError::new(ErrorKind::Overloaded, "the gateway is shutting down")
        .with_retry_after(Duration::from_secs(1))
}

/// Returns the error of requests that met a fault of gw's own.
pub(crate) fn fault() -> GatewayError {
    GatewayError::new(ErrorKind::Internal, "the gateway met a fault of its own")
}
