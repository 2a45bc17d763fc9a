//! The entries of one partition that share a context: codes, vectors and the rest in rows of their own.

use std::sync::Arc;

use gw_types::MonoTime;

use super::{
    codes::{Codes, Scale},
    rows::Rows,
    scan::{Candidate, scan},
    vector::UnitVector,
};
use crate::{CachedAnswer, guard::Guard};

/// The entries of one context, in no order.
///
/// A lookup reads the codes of all, a byte a dimension, and the vectors of the few that can be the nearest.
#[derive(Debug, Default)]
pub(super) struct Group {
    rows: Rows,
    vectors: Vec<f32>,
    entries: Vec<Entry>,
}

/// What an entry is beside its vector.
#[derive(Debug)]
pub(super) struct Entry {
    /// Grows with every entry of the partition.
    pub(super) ticket: u64,
    pub(super) guard: Arc<Guard>,
    pub(super) answer: Arc<CachedAnswer>,
    /// The digest of what the answer says.
    pub(super) says: u64,
    pub(super) weight: u64,
    pub(super) expires: MonoTime,
}

impl Group {
    /// Rows that vectors grow by, at least; beyond it by an eighth, so that little room is held empty.
    const ROWS_MORE: usize = 4;

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns what an entry weighs beside its answer and its guard, in bytes: five for each dimension, and the rest.
    pub(super) fn entry_bytes(dimensions: usize) -> usize {
        dimensions * (size_of::<f32>() + size_of::<i8>())
            + size_of::<Scale>()
            + size_of::<f32>()
            + size_of::<Entry>()
    }

    /// Adds an entry; returns it where its vector has other dimensions than those before.
    pub(super) fn push(&mut self, vector: &UnitVector, entry: Entry) -> Result<(), Entry> {
        let parts = vector.parts();
        if self.is_empty() {
            self.rows = Rows::new(parts.len());
        } else if self.rows.dimensions() != parts.len() {
            return Err(entry);
        }
        if self.entries.len() == self.entries.capacity() {
            let more = Self::ROWS_MORE.max(self.entries.len() / 8);
            self.rows.reserve_exact(more);
            self.vectors.reserve_exact(more * parts.len());
            self.entries.reserve_exact(more);
        }
        self.rows.push(&Codes::of(parts));
        self.vectors.extend_from_slice(parts);
        self.entries.push(entry);
        Ok(())
    }

    /// Takes an entry out by its ticket; the last one takes its row.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<Entry> {
        let row = self.entries.iter().position(|entry| entry.ticket == ticket)?;
        let (last, dimensions) = (self.entries.len() - 1, self.rows.dimensions());
        self.vectors.copy_within(last * dimensions.., row * dimensions);
        self.vectors.truncate(last * dimensions);
        self.rows.swap_remove(row);
        Some(self.entries.swap_remove(row))
    }

    /// Returns the ticket of the entry of an equal question.
    pub(super) fn equal(&self, vector: &UnitVector, guard: &Guard) -> Option<u64> {
        let mut entries = self.entries.iter().enumerate();
        let found =
            entries.find(|(row, entry)| *entry.guard == *guard && self.vector(*row) == vector.parts());
        found.map(|(_, entry)| entry.ticket)
    }

    /// Returns the rows whose cosine with the vector may reach the floor.
    pub(super) fn candidates(&self, vector: &UnitVector, floor: f32) -> Vec<Candidate> {
        if vector.parts().len() != self.rows.dimensions() {
            return Vec::new();
        }
        scan(&Codes::of(vector.parts()), floor, &self.rows)
    }

    pub(super) fn cosine(&self, row: usize, vector: &UnitVector) -> f32 {
        vector.cosine(self.vector(row))
    }

    fn vector(&self, row: usize) -> &[f32] {
        let dimensions = self.rows.dimensions();
        &self.vectors[row * dimensions..(row + 1) * dimensions]
    }
}
