//! What translations lose of a request and of its answer.

use gw_types::Loss;

use super::Flight;

/// Fields that a record names as lost at most, of request and answer.
const LOSSES_MAX: usize = 256;

impl Flight {
    /// Notes what the translation of the request loses, for an attempt that begins.
    pub(crate) fn translated(&mut self, loss: &Loss) {
        self.lost.items.clear();
        self.record().loss.clear();
        self.lose(loss);
    }

    /// Notes what else a translation lost, field by field. Fields beyond the bound are not told apart.
    pub(crate) fn lose(&mut self, more: &Loss) {
        for item in &more.items {
            if self.lost.items.len() < LOSSES_MAX && !self.lost.items.contains(item) {
                self.lost.items.push(item.clone());
                self.record().loss.push(item.path.clone());
            }
        }
    }

    /// Returns what translations have lost so far.
    pub(crate) fn lost(&self) -> &Loss {
        &self.lost
    }
}
