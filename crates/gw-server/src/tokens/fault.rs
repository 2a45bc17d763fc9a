//! Why a token is not taken: a closed set, each with its words. None of them quotes the token.

use std::time::Duration;

use gw_config::NotACaller;
use gw_types::{ErrorKind, GatewayError};

use crate::refusal::{Reason, Refusal};

/// When to come again where the keys of an issuer cannot be had.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why a token is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// It cannot be read.
    Malformed,
    /// Its algorithm is none that is taken from the issuer.
    Algorithm,
    /// Nobody knows who issued it.
    Issuer,
    /// It is for somebody else.
    Audience,
    /// It says no end.
    Endless,
    /// It has ended.
    Expired,
    /// It has not begun.
    NotYetValid,
    /// The issuer has no such key.
    Key,
    /// It is not signed by that key.
    Signature,
    /// No key of the configuration asks for its claims, or that key may not be used from there.
    NoKey,
    /// Several keys of the configuration ask for its claims.
    Ambiguous,
    /// The issuer's keys cannot be fetched.
    KeysAway,
}

impl TokenFault {
    /// Every fault.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 12] = [
        Self::Malformed,
        Self::Algorithm,
        Self::Issuer,
        Self::Audience,
        Self::Endless,
        Self::Expired,
        Self::NotYetValid,
        Self::Key,
        Self::Signature,
        Self::NoKey,
        Self::Ambiguous,
        Self::KeysAway,
    ];

    const fn message(self) -> &'static str {
        match self {
            Self::Malformed => "the token cannot be read; a signed JSON Web Token is expected",
            Self::Algorithm => "the token is signed by an algorithm that is not taken from its issuer",
            Self::Issuer => "the token's issuer (`iss`) is unknown",
            Self::Audience => "the token is not for this gateway (`aud`)",
            Self::Endless => "the token has no end (`exp`)",
            Self::Expired => "the token has expired (`exp`)",
            Self::NotYetValid => "the token is not valid yet (`nbf`)",
            Self::Key => "the token's signing key (`kid`) is none of its issuer's",
            Self::Signature => "the token's signature is wrong",
            Self::NoKey => "the token is genuine, but no tenant takes its claims",
            Self::Ambiguous => "the token is genuine, but several keys take its claims",
            Self::KeysAway => "the keys of the token's issuer cannot be fetched",
        }
    }

    /// Returns why the request was turned away, and the kind of its error.
    const fn place(self) -> (Reason, ErrorKind) {
        match self {
            Self::Malformed
            | Self::Algorithm
            | Self::Issuer
            | Self::Audience
            | Self::Endless
            | Self::Expired
            | Self::NotYetValid
            | Self::Key
            | Self::Signature => (Reason::Token, ErrorKind::Unauthenticated),
            Self::NoKey | Self::Ambiguous => (Reason::TokenForbidden, ErrorKind::Forbidden),
            Self::KeysAway => (Reason::TokenKeys, ErrorKind::Overloaded),
        }
    }
}

impl From<NotACaller> for TokenFault {
    fn from(why: NotACaller) -> Self {
        match why {
            // Where a key may be used from is not said to who may not use it.
            NotACaller::Unknown | NotACaller::NotPermitted => Self::NoKey,
            NotACaller::Ambiguous => Self::Ambiguous,
        }
    }
}

impl From<TokenFault> for Refusal {
    fn from(fault: TokenFault) -> Self {
        let (reason, kind) = fault.place();
        let mut error = GatewayError::new(kind, fault.message());
        if fault == TokenFault::KeysAway {
            error = error.with_retry_after(RETRY_AFTER);
        }
        Self::new(reason, error)
    }
}
