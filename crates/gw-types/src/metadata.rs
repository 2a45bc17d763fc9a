//! What a caller says about a request in keys and values of its own.

/// The metadata of a request: keys and values that routes may match. Prints as a count, because values are the
/// caller's text; kept in records only under the names that the operator asks for.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(Box<str>, Box<str>)>);

impl Metadata {
    /// The most pairs that are kept; OpenAI allows as many.
    pub const PAIRS_MAX: usize = 16;
    /// The longest key or value that is kept, in bytes: no route matches a longer one.
    pub const TEXT_BYTES_MAX: usize = 128;

    /// Returns the first [`Metadata::PAIRS_MAX`] pairs whose key and value are short enough to be matched.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let fits = |(key, value): &(String, String)| {
            key.len() <= Self::TEXT_BYTES_MAX && value.len() <= Self::TEXT_BYTES_MAX
        };
        let kept = pairs.into_iter().filter(fits).take(Self::PAIRS_MAX);
        Self(kept.map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// Returns the value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }

    /// Returns the pairs in their order.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value)).collect()
    }
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Metadata({} pairs)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Metadata;

    #[test]
    fn what_is_kept_is_bounded_and_not_printed() {
        let pair = |n: usize| (format!("key{n}"), "canary".to_owned());
        let long = ("k".to_owned(), "x".repeat(Metadata::TEXT_BYTES_MAX + 1));
        let metadata = Metadata::new(std::iter::once(long).chain((0..40).map(pair)));
        assert_eq!(metadata.pairs().len(), Metadata::PAIRS_MAX);
        assert_eq!(metadata.pairs()[0], ("key0", "canary"));
        assert_eq!(format!("{metadata:?}"), "Metadata(16 pairs)");
    }
}
