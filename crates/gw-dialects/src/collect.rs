//! From the steps of a streamed answer to the whole answer.

use gw_types::{FinishReason, Usage};

use crate::{
    json::{Node, Writer},
    neutral::{
        At, BlockKind, Content, Event, Message, MessageChoice, Opaque, RawJson, Text, Thinking, ToolUse,
    },
};

/// The most choices, and the most blocks of one choice, that are collected; more are left out.
const PARTS_MAX: usize = 1_024;

/// Puts a streamed answer together, event by event.
///
/// ```
/// use gw_dialects::{collect::Collector, neutral::{At, BlockKind, Event}};
/// use gw_types::FinishReason;
///
/// let at = At::default();
/// let mut collector = Collector::default();
/// collector.push(Event::BlockStart(at, BlockKind::Text));
/// collector.push(Event::TextDelta(at, "Hi".to_owned()));
/// collector.push(Event::Finish { choice: 0, reason: FinishReason::Stop, stop_sequence: None });
/// let message = collector.finish();
/// assert_eq!(message.choices[0].blocks[0].as_text(), Some("Hi"));
/// ```
#[derive(Debug, Default)]
pub struct Collector {
    id: Option<String>,
    model: Option<String>,
    choices: Vec<Choice>,
    usage: Option<Usage>,
    tier: Option<String>,
    unread: Vec<String>,
}

#[derive(Debug, Default)]
struct Choice {
    blocks: Vec<Content>,
    finish: Option<FinishReason>,
    stop_sequence: Option<String>,
    logprobs: Vec<RawJson>,
}

impl Extend<Event> for Collector {
    fn extend<T: IntoIterator<Item = Event>>(&mut self, events: T) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl Collector {
    /// Adds the next event. `Error` and `End` add nothing.
    pub fn push(&mut self, event: Event) {
        match event {
            Event::Start { id, model } => {
                self.id = id;
                self.model = model;
            }
            Event::BlockStart(at, kind) => self.start(at, kind),
            Event::TextDelta(at, text)
            | Event::ThinkingDelta(at, text)
            | Event::RefusalDelta(at, text)
            | Event::ArgumentsDelta(at, text) => self.add_text(at, &text),
            Event::SignatureDelta(at, signature) => {
                let slot = match self.block(at) {
                    Some(Content::Text(Text { signature, .. })) => signature,
                    Some(Content::Thinking(Thinking { signature, .. })) => signature,
                    Some(Content::ToolUse(ToolUse { signature, .. })) => signature,
                    Some(_) | None => return,
                };
                match slot {
                    Some(so_far) => so_far.data.push_str(&signature.data),
                    None => *slot = Some(signature),
                }
            }
            Event::Citation(at, citation) => {
                if let Some(Content::Text(text)) = self.block(at) {
                    text.citations.push(citation);
                }
            }
            Event::Logprobs(choice, logprobs) => {
                if let Some(choice) = self.choice(choice) {
                    choice.logprobs.push(logprobs);
                }
            }
            Event::Finish { choice, reason, stop_sequence } => {
                if let Some(choice) = self.choice(choice) {
                    choice.finish = Some(reason);
                    choice.stop_sequence = stop_sequence;
                }
            }
            Event::Usage(usage) => self.usage = Some(usage),
            Event::ServiceTier(tier) => self.tier = Some(tier),
            Event::Unread(path) => self.unread.push(path),
            Event::BlockStop(_) | Event::Error(_) | Event::End => {}
        }
    }

    /// Returns what was collected. A choice that has not said why it ended gets [`FinishReason::Other`].
    pub fn finish(self) -> Message {
        let choice = |choice: Choice| MessageChoice {
            blocks: choice.blocks,
            finish: choice.finish.unwrap_or(FinishReason::Other),
            stop_sequence: choice.stop_sequence,
            logprobs: joined(choice.logprobs),
        };
        Message {
            id: self.id,
            model: self.model,
            choices: self.choices.into_iter().map(choice).collect(),
            usage: self.usage,
            service_tier: self.tier,
            unread: self.unread,
        }
    }

    fn start(&mut self, at: At, kind: BlockKind) {
        let content = match kind {
            BlockKind::Text => Content::Text(Text::default()),
            BlockKind::Thinking => Content::Thinking(Thinking { text: String::new(), signature: None }),
            BlockKind::RedactedThinking(signature) => Content::RedactedThinking(signature),
            BlockKind::ToolUse { id, name, signature } => {
                Content::ToolUse(ToolUse { id, name, arguments: String::new(), signature })
            }
            BlockKind::Refusal => Content::Refusal(String::new()),
            BlockKind::Opaque(origin, value) => Content::Opaque(Opaque { origin, value }),
        };
        if let Some(choice) = self.choice(at.choice)
            && choice.blocks.len() < PARTS_MAX
        {
            choice.blocks.push(content);
        }
    }

    fn add_text(&mut self, at: At, more: &str) {
        match self.block(at) {
            Some(Content::Text(text)) => text.text.push_str(more),
            Some(Content::Thinking(thinking)) => thinking.text.push_str(more),
            Some(Content::Refusal(text)) => text.push_str(more),
            Some(Content::ToolUse(call)) => call.arguments.push_str(more),
            Some(
                Content::Image(_)
                | Content::Document(_)
                | Content::Audio(_)
                | Content::ToolResult(_)
                | Content::RedactedThinking(_)
                | Content::Opaque(_),
            )
            | None => {}
        }
    }

    fn choice(&mut self, choice: u32) -> Option<&mut Choice> {
        let index = usize::try_from(choice).ok().filter(|index| *index < PARTS_MAX)?;
        if index >= self.choices.len() {
            self.choices.resize_with(index + 1, Choice::default);
        }
        self.choices.get_mut(index)
    }

    fn block(&mut self, at: At) -> Option<&mut Content> {
        self.choice(at.choice)?.blocks.get_mut(usize::try_from(at.block).ok()?)
    }
}

/// Joins the log probabilities of the pieces of an answer.
fn joined(mut pieces: Vec<RawJson>) -> Option<RawJson> {
    if pieces.len() < 2 {
        return pieces.pop();
    }
    let nodes: Vec<Node<'_>> = pieces.iter().filter_map(|piece| Node::read(piece.as_str()).ok()).collect();
    let mut json = Writer::default();
    json.object(|json| {
        for list in ["content", "refusal"] {
            let mut lists = nodes.iter().filter_map(|node| node.get(list)).peekable();
            if lists.peek().is_none() {
                json.member_null(list);
                continue;
            }
            json.member_array(list, |json| lists.flat_map(Node::items).for_each(|item| json.raw(item.raw)));
        }
    });
    RawJson::new(std::str::from_utf8(&json.into_bytes()).ok()?)
}

#[cfg(test)]
mod tests {
    use gw_types::{FinishReason, Usage};

    use super::Collector;
    use crate::neutral::{At, BlockKind, Citation, Content, Event, Origin, RawJson, Signature};

    const fn at(block: u32) -> At {
        At { choice: 0, block }
    }

    fn signature(data: &str) -> Signature {
        Signature::new(Origin::Gemini, data)
    }

    #[test]
    fn every_kind_of_block_is_put_together() {
        let mut collector = Collector::default();
        let call = BlockKind::ToolUse { id: "c".to_owned(), name: "f".to_owned(), signature: None };
        let events = [
            Event::Start { id: Some("a".to_owned()), model: Some("m".to_owned()) },
            Event::BlockStart(at(0), BlockKind::Thinking),
            Event::ThinkingDelta(at(0), "Hm".to_owned()),
            Event::SignatureDelta(at(0), signature("S1")),
            Event::SignatureDelta(at(0), signature("S2")),
            Event::BlockStop(at(0)),
            Event::BlockStart(at(1), BlockKind::RedactedThinking(signature("R"))),
            Event::BlockStart(at(2), BlockKind::Text),
            Event::TextDelta(at(2), "a".to_owned()),
            Event::TextDelta(at(2), "b".to_owned()),
            Event::Citation(at(2), Citation { title: Some("t".to_owned()), ..Citation::default() }),
            Event::BlockStart(at(3), call),
            Event::ArgumentsDelta(at(3), "{\"x\"".to_owned()),
            Event::ArgumentsDelta(at(3), ":1}".to_owned()),
            Event::BlockStart(at(4), BlockKind::Refusal),
            Event::RefusalDelta(at(4), "no".to_owned()),
            Event::BlockStart(at(5), BlockKind::Opaque(Origin::Gemini, RawJson::empty_object())),
            Event::Usage(Usage::default()),
            Event::Finish { choice: 0, reason: FinishReason::ToolCalls, stop_sequence: Some("x".to_owned()) },
            Event::End,
        ];
        collector.extend(events);
        let message = collector.finish();
        assert_eq!((message.id.as_deref(), message.model.as_deref()), (Some("a"), Some("m")));
        assert!(message.usage.is_some());
        let choice = &message.choices[0];
        assert_eq!((choice.finish, choice.stop_sequence.as_deref()), (FinishReason::ToolCalls, Some("x")));
        let Content::Thinking(thinking) = &choice.blocks[0] else { panic!("{choice:?}") };
        assert_eq!((&*thinking.text, thinking.signature.clone()), ("Hm", Some(signature("S1S2"))));
        assert!(matches!(&choice.blocks[1], Content::RedactedThinking(signature) if signature.data == "R"));
        assert!(
            matches!(&choice.blocks[2], Content::Text(text) if text.text == "ab" && text.citations.len() == 1)
        );
        assert!(matches!(&choice.blocks[3], Content::ToolUse(call) if call.arguments == "{\"x\":1}"));
        assert!(matches!(&choice.blocks[4], Content::Refusal(text) if text == "no"));
        assert!(matches!(&choice.blocks[5], Content::Opaque(_)));
    }

    #[test]
    fn log_probabilities_are_joined() {
        let joined = |pieces: &[&str]| {
            let mut collector = Collector::default();
            pieces.iter().for_each(|piece| collector.push(Event::Logprobs(0, RawJson::new(piece).unwrap())));
            collector.finish().choices[0].logprobs.as_ref().map(|joined| joined.as_str().to_owned())
        };
        assert_eq!(joined(&[r#"{"content":[1],"x":2}"#]).unwrap(), r#"{"content":[1],"x":2}"#);
        let pieces = [r#"{"content":[1],"refusal":null}"#, r#"{"content":[2,3]}"#];
        assert_eq!(joined(&pieces).unwrap(), r#"{"content":[1,2,3],"refusal":null}"#);
    }

    #[test]
    fn places_outside_of_the_bounds_are_left_out() {
        let mut collector = Collector::default();
        let far = At { choice: u32::MAX, block: 0 };
        collector.push(Event::BlockStart(far, BlockKind::Text));
        collector.push(Event::TextDelta(at(7), "x".to_owned()));
        let message = collector.finish();
        assert!(message.choices.iter().all(|choice| choice.blocks.is_empty()));
    }
}
