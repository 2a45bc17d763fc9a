//! How sensitive a request's data is.

use serde::{Deserialize, Serialize};

/// Ranks how sensitive data is: `public < internal < confidential < restricted`.
///
/// A deployment answers up to its ceiling; a request's own statement may only raise its tenant's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Classification {
    /// May be seen by anyone.
    Public,
    /// Stays inside the organisation.
    Internal,
    /// Stays inside a group.
    Confidential,
    /// Stays inside a named group, under control.
    Restricted,
}

/// Says that a text names no classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown classification; known: public, internal, confidential, restricted")]
pub struct UnknownClassification;

impl Classification {
    /// Every classification, least sensitive first.
    pub const ALL: [Self; 4] = [Self::Public, Self::Internal, Self::Confidential, Self::Restricted];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        }
    }
}

impl std::str::FromStr for Classification {
    type Err = UnknownClassification;

    fn from_str(text: &str) -> Result<Self, UnknownClassification> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or(UnknownClassification)
    }
}

impl std::fmt::Display for Classification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
