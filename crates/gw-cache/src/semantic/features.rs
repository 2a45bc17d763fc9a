//! What is known of a would-be hit when it is decided.

/// What the decision about a would-be hit looks at. Numbers alone; no text.
///
/// Each is between 0 and 1. The order is fixed: [`Features::COUNT`] numbers in [`Features::values`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// Cosine similarity of the question and the nearest entry that the guards let through.
    pub nearest: f32,
    /// The same of the second nearest; 0 where there is none.
    pub second: f32,
    /// `second`, where both entries hold the same answer; else 0.
    pub agreeing: f32,
    /// Share of the nearest [`Features::VOTERS`] entries that hold the nearest's answer, weighted by similarity.
    pub votes: f32,
    /// Similarity of the nearest entry that the guards held back; 0 where there is none.
    pub blocked: f32,
    /// Words in both questions over words in either.
    pub shared_words: f32,
    /// The same with rare words counting more, by how many entries of the partition have them.
    pub shared_rarity: f32,
    /// Share of the question's words that the entry does not have.
    pub new_words: f32,
    /// The rarest word that only one of them has, as a share of the rarest possible.
    pub odd_word: f32,
    /// Words of the shorter question over words of the longer.
    pub length_ratio: f32,
    /// 1 where the words that both have stand in the same order.
    pub same_order: f32,
    /// 1 where both ask in the same way.
    pub same_asking: f32,
}

impl Features {
    /// How many numbers [`Features::values`] returns.
    pub const COUNT: usize = 12;
    /// How many entries [`Features::votes`] asks.
    pub const VOTERS: usize = 5;

    /// Returns the numbers in the order of the fields.
    pub fn values(&self) -> [f32; Self::COUNT] {
        let Self {
            nearest,
            second,
            agreeing,
            votes,
            blocked,
            shared_words,
            shared_rarity,
            new_words,
            odd_word,
            length_ratio,
            same_order,
            same_asking,
        } = *self;
        [
            nearest,
            second,
            agreeing,
            votes,
            blocked,
            shared_words,
            shared_rarity,
            new_words,
            odd_word,
            length_ratio,
            same_order,
            same_asking,
        ]
    }
}
