//! The raw events, one JSON object a line.

use super::finding::Event;

/// Returns the lines, in the order of the checks; within a check calls by item, then results by item.
pub(super) fn lines(events: &[Event]) -> String {
    // Texts, numbers and lists of them, which JSON can hold.
    events.iter().map(|event| serde_json::to_string(event).unwrap_or_default() + "\n").collect()
}
