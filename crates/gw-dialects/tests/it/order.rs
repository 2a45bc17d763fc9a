//! The order that neutral events keep, whatever a provider sends.

use std::collections::{BTreeMap, BTreeSet};

use gw_dialects::neutral::{At, BlockKind, Event};

/// Checks that the events of one streamed answer are in order: the start first and once, blocks numbered without gaps and
/// ended before their choice, deltas of the kind of their block, an end or an error last.
#[track_caller]
pub(crate) fn check(events: &[Event]) {
    let mut order = Order::default();
    for (place, event) in events.iter().enumerate() {
        let is_last = place + 1 == events.len();
        assert_eq!(matches!(event, Event::End | Event::Error(_)), is_last, "{event:?}");
        order.next(place, event);
    }
    if let Some(Event::End) = events.last() {
        assert!(order.open.is_empty() && order.choices.keys().all(|choice| order.finished.contains(choice)));
        assert!(!order.finished.is_empty());
    }
}

#[derive(Default)]
struct Order {
    /// Blocks begun, by choice.
    choices: BTreeMap<u32, u32>,
    open: BTreeMap<At, &'static str>,
    finished: BTreeSet<u32>,
}

impl Order {
    fn next(&mut self, place: usize, event: &Event) {
        match event {
            Event::Start { .. } => assert_eq!(place, 0),
            Event::BlockStart(at, kind) => {
                let begun = self.choices.entry(at.choice).or_default();
                assert_eq!(at.block, *begun);
                *begun += 1;
                assert!(!self.finished.contains(&at.choice));
                assert_eq!(self.open.insert(*at, name(kind)), None);
            }
            Event::TextDelta(at, text) => self.delta(*at, &["text"], text),
            Event::ThinkingDelta(at, text) => self.delta(*at, &["thinking"], text),
            Event::ArgumentsDelta(at, text) => self.delta(*at, &["call"], text),
            Event::RefusalDelta(at, text) => self.delta(*at, &["refusal"], text),
            Event::SignatureDelta(at, signature) => {
                self.delta(*at, &["text", "thinking", "call"], &signature.data);
            }
            Event::Citation(at, _) => self.delta(*at, &["text"], "cited"),
            Event::BlockStop(at) => assert!(self.open.remove(at).is_some()),
            Event::Finish { choice, .. } => {
                assert!(self.open.keys().all(|at| at.choice != *choice));
                assert!(self.finished.insert(*choice));
                self.choices.entry(*choice).or_default();
            }
            Event::Logprobs(..)
            | Event::Usage(_)
            | Event::ServiceTier(_)
            | Event::Unread(_)
            | Event::Error(_)
            | Event::End => {}
        }
    }

    fn delta(&self, at: At, kinds: &[&str], text: &str) {
        assert!(!text.is_empty(), "an empty delta says nothing");
        assert!(self.open.get(&at).is_some_and(|kind| kinds.contains(kind)), "{at:?}");
    }
}

fn name(kind: &BlockKind) -> &'static str {
    match kind {
        BlockKind::Text => "text",
        BlockKind::Thinking => "thinking",
        BlockKind::RedactedThinking(_) => "redacted",
        BlockKind::ToolUse { .. } => "call",
        BlockKind::Refusal => "refusal",
        BlockKind::Opaque(..) => "opaque",
    }
}
