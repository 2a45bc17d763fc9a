//! Usage: what Anthropic reports, brought into classes that do not overlap, and back.

use gw_types::{Operation, TokenCount, Usage};

use crate::{
    json::{Node, Writer},
    neutral::tier_for,
};

/// What Anthropic reported, as it reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WireUsage {
    input: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cache_write_short: Option<u64>,
    cache_write_long: Option<u64>,
    /// Whether a count below zero was reported.
    negative: bool,
}

impl WireUsage {
    /// Reads a `usage` object.
    pub(super) fn read(node: &Node<'_>) -> Self {
        let lifetimes = node.get("cache_creation");
        let lifetime = |name| lifetimes.and_then(|node| node.count(name));
        Self {
            input: node.count("input_tokens"),
            output: node.count("output_tokens"),
            thinking: node.get("output_tokens_details").and_then(|node| node.count("thinking_tokens")),
            cache_read: node.count("cache_read_input_tokens"),
            cache_write: node.count("cache_creation_input_tokens"),
            cache_write_short: lifetime("ephemeral_5m_input_tokens"),
            cache_write_long: lifetime("ephemeral_1h_input_tokens"),
            negative: node.holds_a_negative(),
        }
    }

    /// Takes over every meaningful figure of a later report: `message_delta` repeats what `message_start` said, and some
    /// who serve the format report zeros first.
    pub(super) fn merge(&mut self, later: &Self) {
        let fields = [
            (&mut self.input, later.input),
            (&mut self.output, later.output),
            (&mut self.thinking, later.thinking),
            (&mut self.cache_read, later.cache_read),
            (&mut self.cache_write, later.cache_write),
            (&mut self.cache_write_short, later.cache_write_short),
            (&mut self.cache_write_long, later.cache_write_long),
        ];
        for (field, later) in fields {
            if field.is_none() || later.is_some_and(|later| later > 0) {
                *field = later.or(*field);
            }
        }
        self.negative |= later.negative;
    }

    /// Returns the usage in disjoint classes, or `None` if nothing was counted.
    ///
    /// `input_tokens` stands beside what the cache has read and written; thinking is part of `output_tokens`.
    pub(super) fn classes(&self) -> Option<Usage> {
        if self.negative {
            return Some(Usage { implausible: true, ..Usage::default() });
        }
        let count = |field: Option<u64>| field.unwrap_or(0);
        let long = count(self.cache_write_long);
        let short = self.cache_write.map_or(count(self.cache_write_short), |all| all.saturating_sub(long));
        let output = count(self.output);
        let thinking = count(self.thinking);
        let usage = Usage {
            input: TokenCount::new(count(self.input)),
            cached_input: TokenCount::new(count(self.cache_read)),
            cache_write: TokenCount::new(short),
            cache_write_long: TokenCount::new(long),
            output: TokenCount::new(output.saturating_sub(thinking)),
            reasoning: TokenCount::new(thinking.min(output)),
            inconsistent: thinking > output || self.cache_write.is_some_and(|all| all < long),
            ..Usage::default()
        };
        (!usage.total().is_zero()).then_some(usage)
    }
}

/// Writes usage in Anthropic's convention: what the cache has read and written stands beside the input, and here stands the
/// tier, where it is known and the format has a word for it.
pub(super) fn write(json: &mut Writer, usage: &Usage, tier: Option<&str>) {
    let beside = [usage.cached_input, usage.cache_write, usage.cache_write_long];
    let beside = beside.into_iter().fold(TokenCount::ZERO, TokenCount::saturating_add);
    json.object(|json| {
        json.member_number("input_tokens", usage.input_total().saturating_sub(beside));
        json.member_number(
            "cache_creation_input_tokens",
            usage.cache_write.saturating_add(usage.cache_write_long),
        );
        json.member_number("cache_read_input_tokens", usage.cached_input);
        if !usage.cache_write_long.is_zero() {
            json.member_object("cache_creation", |json| {
                json.member_number("ephemeral_5m_input_tokens", usage.cache_write);
                json.member_number("ephemeral_1h_input_tokens", usage.cache_write_long);
            });
        }
        json.member_number("output_tokens", usage.output_total());
        if !usage.reasoning.is_zero() {
            json.member_object("output_tokens_details", |json| {
                json.member_number("thinking_tokens", usage.reasoning);
            });
        }
        if let Some(tier) = tier.and_then(|tier| tier_for(Operation::Messages, tier)) {
            json.member_string("service_tier", tier);
        }
    });
}

#[cfg(test)]
mod tests {
    use gw_types::Usage;

    use super::{WireUsage, write};
    use crate::json::{Node, Writer};

    fn read(text: &str) -> WireUsage {
        WireUsage::read(&Node::read(text).unwrap())
    }

    fn counts(usage: &Usage) -> [u64; 6] {
        [
            usage.input,
            usage.cached_input,
            usage.cache_write,
            usage.cache_write_long,
            usage.output,
            usage.reasoning,
        ]
        .map(gw_types::TokenCount::get)
    }

    #[test]
    fn cache_stands_beside_the_input() {
        let usage = read(
            r#"{"input_tokens":4,"cache_read_input_tokens":14210,"cache_creation_input_tokens":30,
            "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":9,
            "output_tokens_details":{"thinking_tokens":5}}"#,
        );
        let usage = usage.classes().unwrap();
        assert_eq!(counts(&usage), [4, 14_210, 10, 20, 4, 5]);
        let mut json = Writer::default();
        write(&mut json, &usage, None);
        let written = json.into_bytes();
        let again = read(std::str::from_utf8(&written).unwrap()).classes().unwrap();
        assert_eq!(again, usage);
    }

    #[test]
    fn the_last_report_wins_and_is_not_added() {
        let mut usage = read(r#"{"input_tokens":853,"cache_read_input_tokens":7,"output_tokens":8}"#);
        usage.merge(&read(r#"{"input_tokens":853,"cache_read_input_tokens":0,"output_tokens":72}"#));
        assert_eq!(counts(&usage.classes().unwrap()), [853, 7, 0, 0, 72, 0]);
        usage.merge(&read(r#"{"output_tokens":80}"#));
        assert_eq!(counts(&usage.classes().unwrap()), [853, 7, 0, 0, 80, 0]);
        assert_eq!(read("{}").classes(), None);
    }

    #[test]
    fn a_negative_count_makes_the_report_implausible() {
        let implausible = Some(Usage { implausible: true, ..Usage::default() });
        for text in [
            r#"{"input_tokens":9,"output_tokens":-5}"#,
            r#"{"input_tokens":9,"cache_creation":{"ephemeral_1h_input_tokens":-1}}"#,
        ] {
            assert_eq!(read(text).classes(), implausible, "{text}");
        }
    }
}
