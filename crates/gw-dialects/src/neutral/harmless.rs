//! Fields that a translation may drop without a word.
//!
//! What stands here changes how an answer is cached, billed, labelled or sent, and nothing of what it says. Losing it is
//! no loss to report, and nothing that strict translation refuses.

use gw_types::Operation;

/// A path in the caller's format, `[]` for any index, and `*` in front for any place; and why it does no harm.
type Row = (&'static str, &'static str);

const IN_CHAT: [Row; 10] = [
    ("metadata", "labels for the caller's own lists at the provider"),
    ("store", "asks the provider to list the answer"),
    ("user", "names the end user for the provider's watch against abuse"),
    ("safety_identifier", "names the end user for the provider's watch against abuse"),
    ("prompt_cache_key", "steers the provider's own cache"),
    ("prompt_cache_retention", "steers the provider's own cache"),
    ("prompt_cache_options", "steers the provider's own cache"),
    ("stream_options.include_obfuscation", "pads the stream"),
    ("*.cache_control", "steers the provider's own cache"),
    ("*.prompt_cache_breakpoint", "steers the provider's own cache"),
];

const IN_RESPONSES: [Row; 9] = [
    ("metadata", "labels for the caller's own lists at the provider"),
    ("store", "asks the provider to keep the answer; what goes on from it is pinned to its provider"),
    ("user", "names the end user for the provider's watch against abuse"),
    ("safety_identifier", "names the end user for the provider's watch against abuse"),
    ("prompt_cache_key", "steers the provider's own cache"),
    ("prompt_cache_retention", "steers the provider's own cache"),
    ("prompt_cache_options", "steers the provider's own cache"),
    ("stream_options.include_obfuscation", "pads the stream"),
    ("*.prompt_cache_breakpoint", "steers the provider's own cache"),
];

const IN_MESSAGES: [Row; 6] = [
    ("metadata.user_id", "names the end user for the provider's watch against abuse"),
    ("cache_control", "steers the provider's own cache"),
    ("*.cache_control", "steers the provider's own cache"),
    ("diagnostics", "asks why a cache was missed"),
    ("tools[].eager_input_streaming", "changes how arguments are cut in a stream"),
    ("*.caller", "says that the model itself made a call"),
];

/// Returns why it does no harm to drop a field, or `None` if it may.
pub(super) fn reason(ingress: Operation, path: &str) -> Option<&'static str> {
    let rows: &[Row] = match ingress {
        Operation::Chat | Operation::Completions | Operation::Embeddings => &IN_CHAT,
        Operation::Responses => &IN_RESPONSES,
        Operation::Messages | Operation::CountTokens => &IN_MESSAGES,
    };
    rows.iter().find(|(pattern, _)| fits(pattern, path)).map(|(_, why)| *why)
}

/// Returns whether a path fits a pattern. Takes one pass.
fn fits(pattern: &str, path: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        return path.ends_with(end);
    }
    let mut rest = path.chars();
    let mut wanted = pattern.chars().peekable();
    while let Some(character) = wanted.next() {
        if rest.next() != Some(character) {
            return false;
        }
        if character == '[' && wanted.peek() == Some(&']') {
            wanted.next();
            if !rest.by_ref().any(|character| character == ']') {
                return false;
            }
        }
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use gw_types::Operation;

    use super::{fits, reason};

    #[test]
    fn patterns() {
        assert!(fits("store", "store") && !fits("store", "stored") && !fits("store", "x.store"));
        assert!(fits("*.caller", "messages[1].content[0].caller") && !fits("*.caller", "caller"));
        let pattern = "tools[].eager_input_streaming";
        assert!(fits(pattern, "tools[12].eager_input_streaming") && !fits(pattern, "tools[1].strict"));
    }

    #[test]
    fn each_format_has_its_own() {
        assert!(reason(Operation::Chat, "store").is_some());
        assert!(reason(Operation::Messages, "store").is_none());
        assert!(reason(Operation::Messages, "messages[0].content[1].cache_control").is_some());
        assert!(reason(Operation::Chat, "seed").is_none());
    }
}
