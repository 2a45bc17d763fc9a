//! How many entries of a partition have a word.

/// Counts entries by word, in a table of fixed size; words that share a place count together.
///
/// The table is taken with the first entry. A collision makes a rare word look commoner, which only costs a hit.
#[derive(Debug, Default)]
pub(super) struct Rarity {
    counts: Vec<u32>,
    entries: u32,
}

impl Rarity {
    /// Places of the table: 16 KiB a partition.
    const PLACES: usize = 4_096;

    /// Counts an entry with these words, each of them once, sorted.
    pub(super) fn add(&mut self, words: &[u64]) {
        if self.counts.is_empty() {
            self.counts = vec![0; Self::PLACES];
        }
        self.entries = self.entries.saturating_add(1);
        for &word in words {
            let count = &mut self.counts[Self::place(word)];
            *count = count.saturating_add(1);
        }
    }

    /// Takes an entry back.
    pub(super) fn remove(&mut self, words: &[u64]) {
        self.entries = self.entries.saturating_sub(1);
        for &word in words {
            let count = &mut self.counts[Self::place(word)];
            *count = count.saturating_sub(1);
        }
    }

    /// Returns the word's inverse document frequency: 1 for a word of no entry, towards 0 for one of all.
    pub(super) fn of(&self, word: u64) -> f32 {
        let wide = |n: u32| f64::from(n) + 1.0;
        let most = (wide(self.entries) + 1.0).ln();
        let count = self.counts.get(Self::place(word)).copied().unwrap_or(0);
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let rarity = (((wide(self.entries) + 1.0) / wide(count)).ln() / most) as f32;
        rarity.clamp(0.0, 1.0)
    }

    fn place(word: u64) -> usize {
        usize::try_from(word % Self::PLACES as u64).unwrap_or(0)
    }
}
