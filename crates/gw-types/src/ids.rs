//! Names and identifiers: validated once, then carried as types.

use std::{borrow::Borrow, sync::Arc};

use serde::{Deserialize, Serialize};

/// Says why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The name is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The name is longer than [`InvalidName::BYTES_MAX`].
    #[error("a name must be at most 128 bytes long, not {0}")]
    TooLong(usize),
    /// The name has a character other than visible ASCII, or a quote, backquote, backslash or comma.
    #[error("a name must be visible ASCII without quotes, commas and backslashes; byte {0} is not")]
    Character(usize),
}

impl InvalidName {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = 128;

    fn check(text: &str) -> Result<(), Self> {
        if text.is_empty() {
            return Err(Self::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(Self::TooLong(text.len()));
        }
        let allowed =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b',');
        match text.bytes().position(|byte| !allowed(byte)) {
            Some(at) => Err(Self::Character(at)),
            None => Ok(()),
        }
    }
}

/// Declares a name type: shared text that was checked once.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the name if it is one.
            ///
            /// # Errors
            /// [`InvalidName`] says what is wrong with the text.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                InvalidName::check(text).map(|()| Self(Arc::from(text)))
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

name! {
    /// Names a tenant: whoever is limited, billed and kept apart from others.
    TenantId
}
name! {
    /// Names one of a tenant's keys.
    KeyName
}
name! {
    /// Names a configured provider account or server.
    ProviderName
}
name! {
    /// Names one of several credentials of a provider; never holds any of it.
    CredentialName
}
name! {
    /// Names who signs tokens that callers may present.
    IssuerName
}
name! {
    /// Names a deployment: a model at an endpoint in a region.
    DeploymentName
}
name! {
    /// Names a route.
    RouteName
}
name! {
    /// Names a model as a caller asks for it or a provider knows it.
    ModelName
}
name! {
    /// Names the place where a deployment runs.
    Region
}
name! {
    /// Names a group of regions that a request may demand.
    Residency
}
name! {
    /// Names a kind of work, as `x-gw-task-class` carries it.
    TaskClass
}

/// Identifies one request: `req_` and 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Returns the id for 128 bits from an [`crate::IdSource`].
    pub fn from_bits(bits: u128) -> Self {
        Self(format!("req_{bits:032x}").into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RequestId {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        InvalidName::check(&text).map(|()| Self(text.into()))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RequestId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidName, RequestId, TenantId};

    #[test]
    fn names_are_checked() {
        assert!(TenantId::new("wholesale").is_ok());
        assert!(TenantId::new("a/b:c@1.0").is_ok());
        for (text, expected) in [
            ("", InvalidName::Empty),
            ("a b", InvalidName::Character(1)),
            ("a\"", InvalidName::Character(1)),
            ("é", InvalidName::Character(0)),
        ] {
            assert_eq!(TenantId::new(text), Err(expected));
        }
        assert_eq!(TenantId::new(&"a".repeat(129)), Err(InvalidName::TooLong(129)));
    }

    #[test]
    fn request_id_has_a_fixed_shape() {
        assert_eq!(RequestId::from_bits(255).as_str(), "req_000000000000000000000000000000ff");
    }
}
