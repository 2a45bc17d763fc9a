//! What a deployment can do and what a request needs.

use serde::{Deserialize, Serialize};

/// Names one thing that a deployment can do or a request can need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Answers conversations.
    Chat,
    /// Answers as a stream.
    Streaming,
    /// Calls tools.
    Tools,
    /// Calls several tools in one answer.
    ParallelTools,
    /// Keeps to a JSON schema.
    JsonSchema,
    /// Reads images.
    Vision,
    /// Reads or speaks audio.
    Audio,
    /// Reads documents.
    Documents,
    /// Shows or keeps its reasoning.
    Reasoning,
    /// Returns log probabilities.
    Logprobs,
    /// Takes a seed.
    Seed,
    /// Turns text into vectors.
    Embeddings,
}

/// Says that a text names no capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown capability")]
pub struct UnknownCapability;

impl Capability {
    /// Every capability, in declaration order.
    pub const ALL: [Self; 12] = [
        Self::Chat,
        Self::Streaming,
        Self::Tools,
        Self::ParallelTools,
        Self::JsonSchema,
        Self::Vision,
        Self::Audio,
        Self::Documents,
        Self::Reasoning,
        Self::Logprobs,
        Self::Seed,
        Self::Embeddings,
    ];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Streaming => "streaming",
            Self::Tools => "tools",
            Self::ParallelTools => "parallel_tools",
            Self::JsonSchema => "json_schema",
            Self::Vision => "vision",
            Self::Audio => "audio",
            Self::Documents => "documents",
            Self::Reasoning => "reasoning",
            Self::Logprobs => "logprobs",
            Self::Seed => "seed",
            Self::Embeddings => "embeddings",
        }
    }
}

impl std::str::FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, UnknownCapability> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or(UnknownCapability)
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities in one word.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct CapabilitySet(u32);

impl CapabilitySet {
    /// The set without members.
    pub const EMPTY: Self = Self(0);

    /// Returns the set with one more member.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u32)
    }

    /// Returns whether the capability is a member.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }

    /// Returns the members of `self` that `other` lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether every member of `needed` is a member of `self`.
    pub const fn covers(self, needed: Self) -> bool {
        needed.without(self).0 == 0
    }

    /// Returns whether the set has no member.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(members: I) -> Self {
        members.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl From<Vec<Capability>> for CapabilitySet {
    fn from(members: Vec<Capability>) -> Self {
        members.into_iter().collect()
    }
}

impl From<CapabilitySet> for Vec<Capability> {
    fn from(set: CapabilitySet) -> Self {
        set.iter().collect()
    }
}

impl std::fmt::Debug for CapabilitySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability, CapabilitySet};

    #[test]
    fn names_read_back() {
        for capability in Capability::ALL {
            assert_eq!(capability.as_str().parse(), Ok(capability));
        }
    }

    #[test]
    fn sets_cover_and_subtract() {
        let has = CapabilitySet::from_iter([Capability::Chat, Capability::Tools]);
        let needs = CapabilitySet::from_iter([Capability::Tools, Capability::Vision]);
        assert!(!has.covers(needs));
        assert_eq!(needs.without(has), CapabilitySet::EMPTY.with(Capability::Vision));
        assert!(has.covers(CapabilitySet::EMPTY));
    }
}
