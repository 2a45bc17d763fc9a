//! What of a message has no place in the neutral form.

use crate::{json::Node, neutral::UnreadFields};

/// Looks for what is not read of a message, whole or as it begins in a stream.
pub(super) fn look(message: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(message, "", is_known);
}

/// Looks for what is not read of a `message_delta`.
pub(super) fn look_at_delta(event: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(event, "", |name| matches!(name, "type" | "delta" | "usage"));
    if let Some(delta) = event.get("delta") {
        fields.look(delta, "", is_known);
    }
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "id" | "type"
            | "role"
            | "model"
            | "content"
            | "stop_reason"
            | "stop_sequence"
            | "stop_details"
            | "usage"
    )
}
