//! The codes of many vectors, in the order in which a scan reads them.

use super::codes::{Codes, Scale, head_of};

/// The codes and scales of vectors of the same dimensions, a row each.
///
/// Heads lie together and apart from what is behind them, which a scan mostly leaves unread.
#[derive(Debug, Default)]
pub(super) struct Rows {
    dimensions: usize,
    heads: Vec<i8>,
    rests: Vec<i8>,
    scales: Vec<Scale>,
    /// The lengths of the rests.
    lengths: Vec<f32>,
}

impl Rows {
    /// Returns no rows, of so many codes each.
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions, ..Self::default() }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn scales(&self) -> &[Scale] {
        &self.scales
    }

    /// Returns the lengths of what stands behind the heads.
    pub(super) fn lengths(&self) -> &[f32] {
        &self.lengths
    }

    /// Returns how many codes a head has.
    pub(super) fn head(&self) -> usize {
        head_of(self.dimensions)
    }

    /// Returns the heads of all rows, one behind the other.
    pub(super) fn heads(&self) -> &[i8] {
        &self.heads
    }

    /// Returns what stands behind the heads of all rows, one behind the other.
    pub(super) fn rests(&self) -> &[i8] {
        &self.rests
    }

    /// Makes room for so many more rows.
    pub(super) fn reserve_exact(&mut self, more: usize) {
        let head = self.head();
        self.heads.reserve_exact(more * head);
        self.rests.reserve_exact(more * (self.dimensions - head));
        self.scales.reserve_exact(more);
        self.lengths.reserve_exact(more);
    }

    /// Adds a row, which has as many codes as the others.
    pub(super) fn push(&mut self, codes: &Codes) {
        let (head, rest) = codes.codes.split_at(self.head());
        self.heads.extend_from_slice(head);
        self.rests.extend_from_slice(rest);
        self.scales.push(codes.scale);
        self.lengths.push(codes.rest);
    }

    /// Takes a row out; the last one takes its place.
    pub(super) fn swap_remove(&mut self, row: usize) {
        let (head, last) = (self.head(), self.scales.len() - 1);
        for (codes, width) in [(&mut self.heads, head), (&mut self.rests, self.dimensions - head)] {
            codes.copy_within(last * width.., row * width);
            codes.truncate(last * width);
        }
        self.scales.swap_remove(row);
        self.lengths.swap_remove(row);
    }
}
