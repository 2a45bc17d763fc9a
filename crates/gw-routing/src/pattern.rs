//! Names of models as a route asks for them: exact, or all with a common beginning.

use gw_types::{InvalidName, ModelName};
use serde::{Deserialize, Serialize};

/// The one wildcard; it stands last.
const STAR: char = '*';

/// Matches the name of a model: exactly, or by its beginning where the pattern ends in `*`.
///
/// Upper and lower case differ. `*` alone matches every name.
///
/// | pattern | matches | does not match |
/// |---|---|---|
/// | `gpt-4` | `gpt-4` | `gpt-4.1`, `GPT-4` |
/// | `gpt-*` | `gpt-`, `gpt-4` | `gpt` |
///
/// ```
/// use gw_routing::ModelPattern;
///
/// let pattern = ModelPattern::new("gpt-*")?;
/// assert!(pattern.matches("gpt-4") && !pattern.matches("gpt"));
/// # Ok::<(), gw_routing::InvalidPattern>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelPattern {
    text: ModelName,
}

/// Says why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// The text is no name either.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A `*` stands before the end; holds its place in bytes.
    #[error("a model pattern may have a `*` only as its last character; byte {0} is one")]
    Star(usize),
}

impl ModelPattern {
    /// Returns the pattern if the text is one: a name of a model, of which the last character may be `*`.
    ///
    /// # Errors
    /// [`InvalidPattern`] says what is wrong with the text.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let text = ModelName::new(text)?;
        let last = text.as_str().len() - 1;
        match text.as_str().find(STAR) {
            Some(at) if at < last => Err(InvalidPattern::Star(at)),
            Some(_) | None => Ok(Self { text }),
        }
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the one name that the pattern matches; `None`: it matches by the beginning.
    pub fn exact(&self) -> Option<&ModelName> {
        self.prefix().is_none().then_some(&self.text)
    }

    /// Returns whether the pattern matches the name.
    pub fn matches(&self, model: &str) -> bool {
        match self.prefix() {
            Some(prefix) => model.starts_with(prefix),
            None => model == self.as_str(),
        }
    }

    /// Returns what a name must begin with; `None`: the pattern is exact.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.as_str().strip_suffix(STAR)
    }
}

impl TryFrom<String> for ModelPattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        Self::new(&text)
    }
}

impl From<ModelPattern> for String {
    fn from(pattern: ModelPattern) -> Self {
        pattern.as_str().to_owned()
    }
}

impl std::str::FromStr for ModelPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Self::new(text)
    }
}

impl std::fmt::Display for ModelPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Debug for ModelPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ModelPattern({self})")
    }
}

#[cfg(test)]
mod tests {
    use gw_types::InvalidName;

    use super::{InvalidPattern, ModelPattern};

    fn check(pattern: &str, model: &str, expected: bool) {
        assert_eq!(ModelPattern::new(pattern).unwrap().matches(model), expected, "{pattern} {model}");
    }

    #[test]
    fn matches_exactly_or_by_the_beginning() {
        check("gpt-4", "gpt-4", true);
        check("gpt-4", "gpt-4.1", false);
        check("gpt-4", "GPT-4", false);
        check("gpt-*", "gpt-4", true);
        check("gpt-*", "gpt-", true);
        check("gpt-*", "gpt", false);
        check("*", "anything", true);
        check("*", "", true);
    }

    #[test]
    fn refuses_what_is_no_pattern() {
        assert_eq!(ModelPattern::new(""), Err(InvalidPattern::Name(InvalidName::Empty)));
        assert_eq!(ModelPattern::new("a b"), Err(InvalidPattern::Name(InvalidName::Character(1))));
        assert_eq!(ModelPattern::new("*-4"), Err(InvalidPattern::Star(0)));
        assert_eq!(ModelPattern::new("gpt**"), Err(InvalidPattern::Star(3)));
    }

    #[test]
    fn only_an_exact_pattern_is_a_name() {
        assert_eq!(ModelPattern::new("gpt-4").unwrap().exact().unwrap().as_str(), "gpt-4");
        assert_eq!(ModelPattern::new("gpt-*").unwrap().exact(), None);
    }
}
