//! A map that forgets who was not asked for, so that names from outside cannot fill the memory.

use std::{collections::HashMap, hash::Hash};

use foldhash::fast::FixedState;

/// At most so many values in two generations: what was touched since the last change of generations stays at the
/// next. O(1); who is forgotten begins anew.
#[derive(Debug)]
pub(super) struct Cells<K, V> {
    half: usize,
    young: HashMap<K, V, FixedState>,
    old: HashMap<K, V, FixedState>,
}

impl<K: Eq + Hash + Clone, V> Cells<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self { half: (most / 2).max(1), young: HashMap::default(), old: HashMap::default() }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(super) fn touch(&mut self, key: &K, fresh: impl FnOnce() -> V) -> &mut V {
        if !self.young.contains_key(key) && self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(key.clone()).or_insert_with(|| old.remove(key).unwrap_or_else(fresh))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Cells;

    #[test]
    fn the_bound_holds_and_who_is_asked_for_stays() {
        let mut cells = Cells::new(10);
        for other in 1..1_000 {
            *cells.touch(&0, || 0) += 1;
            cells.touch(&other, || 0);
            assert!(cells.len() <= 10);
        }
        assert_eq!(cells.get(&0), Some(&999));
        assert_eq!(cells.get(&1), None);
    }
}
