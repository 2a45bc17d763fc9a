//! What kind of question it is.

/// The kind of a question, by its first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    Person,
    Time,
    Place,
    Reason,
    Quantity,
    /// How and what and which: paraphrases move between them.
    Open,
    /// Whether something is so.
    Fact,
    /// Whether something is possible.
    Possible,
    /// Whether something should be.
    Advised,
    /// Whether something will be.
    Future,
    /// A statement or an order. It may ask anything.
    Said,
}

impl Asking {
    /// Returns the kind of a question that begins with these words, in lower case.
    pub(super) fn of(words: &[String]) -> Self {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let first = word(0).split(['\'', '’']).next().unwrap_or_default();
        match (first, word(1)) {
            ("who" | "whom" | "whose", _) => Self::Person,
            ("when", _) | ("what", "time" | "date" | "day") => Self::Time,
            ("where", _) => Self::Place,
            ("why", _) | ("how", "come") => Self::Reason,
            (
                "how",
                "many" | "much" | "long" | "often" | "far" | "old" | "soon" | "quickly" | "fast" | "big",
            ) => Self::Quantity,
            ("how" | "what" | "which", _) => Self::Open,
            ("is", "it") if word(2) == "possible" => Self::Possible,
            ("can" | "could" | "may" | "might", _) => Self::Possible,
            ("should" | "must" | "need" | "ought", _) => Self::Advised,
            ("will" | "would" | "shall", _) => Self::Future,
            (
                "is" | "are" | "was" | "were" | "am" | "do" | "does" | "did" | "has" | "have" | "had" | "isn"
                | "aren" | "don" | "doesn" | "didn",
                _,
            ) => Self::Fact,
            _ => Self::Said,
        }
    }

    /// Returns whether an answer to one kind may answer the other.
    pub(super) fn is_like(self, other: Self) -> bool {
        self == other || self == Self::Said || other == Self::Said
    }
}
