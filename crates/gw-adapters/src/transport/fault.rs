//! What can go wrong between gw and a provider, and which kind of failure each is.

use gw_types::{ErrorKind, GatewayError};

/// Says why no response head came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFault {
    /// The connection was closed before it took the request.
    NotSent,
    /// The connection broke; `began` says whether any byte of the request had been written.
    Broken { began: bool },
    /// The response head is no HTTP.
    Unreadable,
    /// The provider did not take the request in time.
    WriteTimeout,
    /// The provider took the request and did not answer in time.
    HeadTimeout,
}

impl SendFault {
    pub(super) fn into_error(self) -> GatewayError {
        let transport = |message| GatewayError::new(ErrorKind::Transport, message);
        match self {
            Self::NotSent | Self::Broken { began: false } => {
                transport("the provider closed the connection before the request was sent")
            }
            Self::Broken { began: true } => {
                transport("the connection to the provider broke before it answered").ambiguous()
            }
            Self::Unreadable => transport("the provider's answer is no HTTP").ambiguous(),
            Self::WriteTimeout => {
                transport("the provider did not take the request in the time allowed").ambiguous()
            }
            Self::HeadTimeout => GatewayError::new(
                ErrorKind::ProviderTimeout,
                "the provider did not begin to answer in the time allowed",
            )
            .ambiguous(),
        }
    }
}

/// Says why a body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// The connection broke, or the framing was wrong.
    Broken,
    /// Nothing came for longer than allowed.
    Idle,
    /// More came than is kept.
    TooLong,
}

impl BodyFault {
    /// Returns the failure of a plain answer.
    pub(crate) fn of_answer(self) -> GatewayError {
        match self {
            Self::Broken => GatewayError::new(
                ErrorKind::Transport,
                "the connection to the provider broke in the middle of its answer",
            )
            .ambiguous(),
            Self::Idle => idle(),
            Self::TooLong => {
                GatewayError::new(ErrorKind::MalformedResponse, "the provider's answer is too long")
                    .ambiguous()
            }
        }
    }

    /// Returns the failure of a stream.
    pub(crate) fn of_stream(self) -> GatewayError {
        match self {
            Self::Broken | Self::TooLong => GatewayError::new(
                ErrorKind::StreamInterrupted,
                "the connection to the provider broke mid-stream",
            )
            .ambiguous(),
            Self::Idle => idle(),
        }
    }
}

fn idle() -> GatewayError {
    GatewayError::new(ErrorKind::ProviderTimeout, "the provider fell silent in the middle of its answer")
        .ambiguous()
}

#[cfg(test)]
mod tests {
    use gw_types::ErrorKind::{self, MalformedResponse, ProviderTimeout, StreamInterrupted, Transport};

    use super::{BodyFault, GatewayError, SendFault};

    fn check(error: &GatewayError, kind: ErrorKind, ambiguous: bool) {
        assert_eq!((error.kind(), error.is_ambiguous()), (kind, ambiguous));
    }

    #[test]
    fn what_may_have_taken_effect_is_ambiguous() {
        check(&SendFault::NotSent.into_error(), Transport, false);
        check(&SendFault::Broken { began: false }.into_error(), Transport, false);
        check(&SendFault::Broken { began: true }.into_error(), Transport, true);
        check(&SendFault::Unreadable.into_error(), Transport, true);
        check(&SendFault::WriteTimeout.into_error(), Transport, true);
        check(&SendFault::HeadTimeout.into_error(), ProviderTimeout, true);
        check(&BodyFault::Broken.of_answer(), Transport, true);
        check(&BodyFault::Idle.of_answer(), ProviderTimeout, true);
        check(&BodyFault::TooLong.of_answer(), MalformedResponse, true);
        check(&BodyFault::Broken.of_stream(), StreamInterrupted, true);
        check(&BodyFault::Idle.of_stream(), ProviderTimeout, true);
    }
}
