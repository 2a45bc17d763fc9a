//! Usage: what Bedrock reports, brought into classes that do not overlap.

use gw_types::{TokenCount, Usage};

use crate::json::Node;

/// Reads a `usage` object, or returns `None` if nothing was counted.
///
/// `inputTokens` stands beside what the cache has read and written; each of these is reported under two names. Reasoning
/// is part of `outputTokens` and not told apart.
pub(super) fn read(node: &Node<'_>) -> Option<Usage> {
    if node.holds_a_negative() {
        return Some(Usage { implausible: true, ..Usage::default() });
    }
    let count = |names: [&str; 2]| names.into_iter().find_map(|name| node.count(name)).unwrap_or(0);
    let input = node.count("inputTokens").unwrap_or(0);
    let output = node.count("outputTokens").unwrap_or(0);
    let read = count(["cacheReadInputTokens", "cacheReadInputTokenCount"]);
    let written = count(["cacheWriteInputTokens", "cacheWriteInputTokenCount"]);
    let sum = [output, read, written].into_iter().fold(input, u64::saturating_add);
    if sum == 0 {
        return None;
    }
    let long = written_for(node, "1h");
    let contradicts = long > written || node.count("totalTokens").is_some_and(|total| total != sum);
    Some(Usage {
        input: TokenCount::new(input),
        cached_input: TokenCount::new(read),
        cache_write: TokenCount::new(written.saturating_sub(long)),
        cache_write_long: TokenCount::new(long),
        output: TokenCount::new(output),
        inconsistent: contradicts,
        ..Usage::default()
    })
}

/// Returns what was written to the cache for a lifetime.
fn written_for(node: &Node<'_>, lifetime: &str) -> u64 {
    let details = node.get("cacheDetails").map(Node::items).unwrap_or_default();
    let ours = details.iter().filter(|detail| detail.text("ttl").as_deref() == Some(lifetime));
    ours.filter_map(|detail| detail.count("inputTokens")).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use gw_types::Usage;

    use super::read;
    use crate::json::Node;

    /// Input, read, written, written for an hour, output, and whether the figures contradict each other.
    #[track_caller]
    fn check(json: &str, expected: [u64; 5], inconsistent: bool) {
        let usage = read(&Node::read(json).unwrap()).unwrap();
        let classes =
            [usage.input, usage.cached_input, usage.cache_write, usage.cache_write_long, usage.output];
        assert_eq!(
            (classes.map(|count| count.get()), usage.inconsistent),
            (expected, inconsistent),
            "{json}"
        );
    }

    #[test]
    fn cache_counts_stand_beside_the_input() {
        check(r#"{"inputTokens":36,"outputTokens":73,"totalTokens":109}"#, [36, 0, 0, 0, 73], false);
        check(
            r#"{"inputTokens":3,"outputTokens":121,"totalTokens":2072,"cacheReadInputTokens":1712,"cacheReadInputTokenCount":1712,
            "cacheWriteInputTokenCount":236,"cacheWriteInputTokens":236,"cacheDetails":[{"inputTokens":236,"ttl":"5m"}]}"#,
            [3, 1712, 236, 0, 121],
            false,
        );
        check(
            r#"{"inputTokens":3,"outputTokens":1,"cacheWriteInputTokens":30,
            "cacheDetails":[{"inputTokens":10,"ttl":"5m"},{"inputTokens":20,"ttl":"1h"}]}"#,
            [3, 0, 10, 20, 1],
            false,
        );
        check(r#"{"inputTokens":3,"outputTokens":1,"cacheReadInputTokenCount":5}"#, [3, 5, 0, 0, 1], false);
    }

    #[test]
    fn contradictions_are_marked() {
        check(r#"{"inputTokens":3,"outputTokens":1,"totalTokens":9}"#, [3, 0, 0, 0, 1], true);
        assert_eq!(read(&Node::read(r#"{"serverToolUsage":{}}"#).unwrap()), None);
    }

    #[test]
    fn a_negative_count_makes_the_report_implausible() {
        let implausible = Some(Usage { implausible: true, ..Usage::default() });
        for text in [
            r#"{"inputTokens":-9,"outputTokens":5}"#,
            r#"{"inputTokens":9,"cacheDetails":[{"ttl":"1h","inputTokens":-1}]}"#,
        ] {
            assert_eq!(read(&Node::read(text).unwrap()), implausible, "{text}");
        }
    }
}
