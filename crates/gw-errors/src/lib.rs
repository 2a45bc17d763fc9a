//! The error taxonomy of the gw model gateway.
//!
//! Every failure is one [`ErrorKind`] of a closed set. Whether a kind may be repeated at the same deployment, may move
//! to the next one, or counts against a deployment's health is a property of the *kind*, read off three exhaustive
//! tables; an occurrence ([`GatewayError`]) can only forbid, never permit.
//!
//! The crate does no I/O, knows no provider and holds no content: a [`GatewayError`] has room for fixed text, names
//! from the configuration and numbers. What a provider said travels as an [`UpstreamDetail`] that prints as redacted.
//!
//! ```
//! use gw_errors::{Dialect, ErrorKind, FallOver, GatewayError, Retry};
//!
//! let error = GatewayError::new(ErrorKind::ContentFiltered, "the provider refused the prompt");
//! assert_eq!(error.kind().retryable(), Retry::Never);
//! assert_eq!(error.kind().falls_over(), FallOver::Never);
//! assert_eq!(error.http_status(Dialect::OpenAi), 400);
//! ```

#![forbid(unsafe_code)]

mod detail;
mod error;
mod kind;
mod outcome;
mod wire;

pub use self::{
    detail::UpstreamDetail,
    error::GatewayError,
    kind::{Billing, ErrorKind, FallOver, Health, Retry},
    outcome::{AttemptEnd, Outcome},
    wire::{Dialect, anthropic_type, http_status, openai_code, openai_type},
};
