//! Opaque state of a provider that a conversation carries.

use super::redacted;

/// Names the wire format whose opaque state something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Anthropic messages, wherever they are served.
    Anthropic,
    /// Bedrock Converse.
    Bedrock,
    /// Gemini.
    Gemini,
    /// OpenAI responses.
    OpenAi,
}

impl Origin {
    const ALL: [Self; 4] = [Self::Anthropic, Self::Bedrock, Self::Gemini, Self::OpenAi];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
        }
    }
}

/// A signature or an encrypted block, and whose it is. Prints as redacted.
///
/// In a caller's format that is not the origin's own the text travels with a tag in front, so that it finds its way back
/// to its origin and to no other: `gw1.gemini.` and the data.
#[derive(Clone, PartialEq, Eq)]
pub struct Signature {
    /// Whose it is.
    pub origin: Origin,
    /// The provider's text, as it came.
    pub data: String,
}

redacted!(Signature);

/// What marks a tagged signature; no provider's base64 has a point in it.
pub(crate) const TAG: &str = "gw1.";

impl Signature {
    /// Returns a signature.
    pub fn new(origin: Origin, data: impl Into<String>) -> Self {
        Self { origin, data: data.into() }
    }

    /// Reads what stands in a caller's body; text without a tag is of the format's own origin.
    pub fn from_wire(text: &str, own: Origin) -> Self {
        let tagged = text.strip_prefix(TAG).and_then(|rest| {
            let (name, data) = rest.split_once('.')?;
            let origin = Origin::ALL.into_iter().find(|origin| origin.as_str() == name)?;
            Some(Self::new(origin, data))
        });
        tagged.unwrap_or_else(|| Self::new(own, text))
    }

    /// Returns what stands in the body of a caller whose format's own origin is `own`.
    pub fn to_wire(&self, own: Origin) -> String {
        if self.origin == own { self.data.clone() } else { format!("{}{}", self.tag(), self.data) }
    }

    /// Returns the tag that a caller's format that is not the origin's own puts in front.
    pub fn tag(&self) -> String {
        format!("{TAG}{}.", self.origin.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, Signature};

    #[test]
    fn signatures_find_their_way_back() {
        for origin in Origin::ALL {
            for own in Origin::ALL {
                let signature = Signature::new(origin, "Sig+/=1");
                assert_eq!(Signature::from_wire(&signature.to_wire(own), own), signature);
            }
        }
        assert_eq!(Signature::from_wire("gw1.nobody.x", Origin::Gemini).data, "gw1.nobody.x");
    }
}
