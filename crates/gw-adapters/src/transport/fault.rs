//! What can go wrong between gw and a provider, and which kind of failure each is.

use gw_types::{ErrorKind, GatewayError};

/// Says why no response head came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendFault {
    /// The connection was closed before it took the request.
    NotSent,
    /// The provider closes a connection that carries many calls, and has said that this one was not processed.
    LeftBehind,
    /// The provider has refused the call before processing it.
    Declined,
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
    /// Returns whether another connection may take the call, where this one was kept from earlier calls: nothing was
    /// sent, or nothing was processed.
    pub(super) fn is_of_the_connection(self) -> bool {
        match self {
            Self::NotSent | Self::LeftBehind | Self::Broken { began: false } => true,
            // Somebody was there and did not want it: when it is asked again is the pipeline's to say.
            Self::Declined => false,
            Self::Broken { began: true } | Self::Unreadable | Self::WriteTimeout | Self::HeadTimeout => false,
        }
    }

    /// Returns whether the other side may no longer be there: nothing was heard of it in the time allowed.
    pub(super) fn is_silence(self) -> bool {
        match self {
            Self::WriteTimeout | Self::HeadTimeout => true,
            Self::NotSent | Self::LeftBehind | Self::Declined | Self::Broken { .. } | Self::Unreadable => {
                false
            }
        }
    }

    pub(super) fn into_error(self) -> GatewayError {
        let transport = |message| GatewayError::new(ErrorKind::Transport, message);
        match self {
            Self::NotSent | Self::Broken { began: false } => {
                transport("the provider closed the connection before the request was sent")
            }
            Self::LeftBehind => {
                transport("the provider closed the connection without processing the request")
            }
            Self::Declined => transport("the provider refused the request before processing it"),
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
    fn only_what_nobody_has_processed_goes_to_another_connection() {
        let goes = |fault: SendFault| fault.is_of_the_connection();
        assert!(goes(SendFault::NotSent) && goes(SendFault::LeftBehind));
        assert!(goes(SendFault::Broken { began: false }) && !goes(SendFault::Broken { began: true }));
        assert!(!goes(SendFault::Declined) && !goes(SendFault::Unreadable));
        assert!(!goes(SendFault::WriteTimeout) && !goes(SendFault::HeadTimeout));
    }

    #[test]
    fn what_may_have_taken_effect_is_ambiguous() {
        check(&SendFault::NotSent.into_error(), Transport, false);
        check(&SendFault::Broken { began: false }.into_error(), Transport, false);
        check(&SendFault::LeftBehind.into_error(), Transport, false);
        check(&SendFault::Declined.into_error(), Transport, false);
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
