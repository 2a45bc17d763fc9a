//! Collects what a caller does not see of an answer that was translated.

use gw_types::{BoundedText, Loss, LossItem, LossKind, Operation};

use super::{
    At, BlockKind, Citation, Content, Event, Message, Origin,
    tier::{is_usual, tier_for},
};

/// The most fields that one answer reports; more are not told apart.
const ITEMS_MAX: usize = 64;

/// Collects what the caller's format has no place for, of a whole answer or of a stream, step by step.
///
/// Paths begin with `answer.`. Behind it stand the parts of the neutral form (`blocks[2]` is the third block of the first
/// choice, `choices[1]` the second choice), or what the provider's own format calls a field that gw does not read.
#[derive(Debug)]
pub struct AnswerLoss {
    to: Operation,
    items: Vec<LossItem>,
    told: usize,
    /// Blocks of text that are open: what signs or supports them is theirs.
    texts: Vec<At>,
    /// Whether the first block has begun.
    begun: bool,
}

impl AnswerLoss {
    /// Returns an empty report for a caller of the format.
    pub fn new(to: Operation) -> Self {
        Self { to, items: Vec::new(), told: 0, texts: Vec::new(), begun: false }
    }

    /// Returns what a caller does not see of a whole answer.
    pub fn of_message(to: Operation, message: &Message) -> Loss {
        let mut loss = Self::new(to);
        for (number, choice) in (0..).zip(&message.choices) {
            if loss.choice(number) {
                (0..)
                    .zip(&choice.blocks)
                    .for_each(|(block, content)| loss.content(At { choice: number, block }, content));
                loss.logprobs(choice.logprobs.is_some());
                loss.stop_sequence(choice.stop_sequence.is_some());
            }
        }
        loss.service_tier(message.service_tier.as_deref());
        message.unread.iter().for_each(|path| loss.unread(path));
        Loss { items: loss.items }
    }

    /// Adds what an event of a stream brings that the caller does not see.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::BlockStart(at, kind) => {
                self.begun = true;
                if self.choice(at.choice) {
                    self.start(*at, kind);
                }
            }
            Event::SignatureDelta(at, _) => {
                if self.texts.contains(at) {
                    self.signature(*at);
                }
            }
            Event::Citation(at, citation) => self.citation(*at, citation),
            Event::BlockStop(at) => self.texts.retain(|open| open != at),
            Event::Logprobs(choice, _) => {
                if self.choice(*choice) {
                    self.logprobs(true);
                }
            }
            Event::Finish { choice, stop_sequence, .. } => {
                if self.choice(*choice) {
                    self.stop_sequence(stop_sequence.is_some());
                }
            }
            Event::Unread(path) => self.unread(path),
            Event::ServiceTier(tier) => self.service_tier(Some(tier)),
            Event::Start { .. }
            | Event::TextDelta(..)
            | Event::ThinkingDelta(..)
            | Event::ArgumentsDelta(..)
            | Event::RefusalDelta(..)
            | Event::Usage(_)
            | Event::Error(_)
            | Event::End => {}
        }
    }

    /// Returns what was added since the last time; `None` for nothing.
    pub fn news(&mut self) -> Option<Box<Loss>> {
        let told = std::mem::replace(&mut self.told, self.items.len());
        let items = self.items.get(told..).filter(|items| !items.is_empty())?;
        Some(Box::new(Loss { items: items.to_vec() }))
    }

    /// Returns whether the caller's format has a place for the choice, and reports it where not.
    fn choice(&mut self, number: u32) -> bool {
        let shown = number == 0 || self.to == Operation::Chat;
        if !shown {
            let why = "the caller's format has one answer";
            self.add(&format!("choices[{number}]"), LossKind::Dropped, why);
        }
        shown
    }

    fn start(&mut self, at: At, kind: &BlockKind) {
        match kind {
            BlockKind::Text => self.texts.push(at),
            BlockKind::Refusal => self.refusal(at),
            BlockKind::Opaque(origin, _) => self.opaque(at, *origin),
            // Reasoning stands in each format, signed or not; so do calls and what signs them.
            BlockKind::Thinking | BlockKind::RedactedThinking(_) | BlockKind::ToolUse { .. } => {}
        }
    }

    fn content(&mut self, at: At, content: &Content) {
        match content {
            Content::Text(text) => {
                text.citations.iter().for_each(|citation| self.citation(at, citation));
                if text.signature.is_some() {
                    self.signature(at);
                }
            }
            Content::Refusal(_) => self.refusal(at),
            Content::Opaque(opaque) => self.opaque(at, opaque.origin),
            Content::ToolUse(call) => {
                if self.to == Operation::Messages && call.arguments_object().as_str() != call.arguments {
                    let why = "arguments that are no JSON object stand as an empty one";
                    self.add(&block(at, ".arguments"), LossKind::Approximated, why);
                }
            }
            Content::Image(_) | Content::Document(_) | Content::Audio(_) | Content::ToolResult(_) => {
                self.add(&block(at, ""), LossKind::Dropped, "the caller's format has no such block");
            }
            Content::Thinking(_) | Content::RedactedThinking(_) => {}
        }
    }

    fn opaque(&mut self, at: At, origin: Origin) {
        let shown = match self.to {
            Operation::Messages | Operation::CountTokens => origin == Origin::Anthropic,
            Operation::Responses => origin == Origin::OpenAi,
            Operation::Chat | Operation::Completions | Operation::Embeddings => false,
        };
        if !shown {
            self.add(&block(at, ""), LossKind::Dropped, "the block is the provider's own");
        }
    }

    fn refusal(&mut self, at: At) {
        if self.to == Operation::Messages {
            self.add(&block(at, ""), LossKind::Emulated, "the caller's format says refusals as text");
        }
    }

    fn citation(&mut self, at: At, citation: &Citation) {
        if self.to == Operation::Messages {
            if !matches!(citation.native, Some((Origin::Anthropic, _))) {
                let why = "the citation lacks what the caller's format demands";
                self.add(&block(at, ".citations"), LossKind::Dropped, why);
            }
        } else if citation.url.is_none() {
            self.add(
                &block(at, ".citations"),
                LossKind::Dropped,
                "the caller's format cites addresses alone",
            );
        } else if citation.quote.is_some() {
            let why = "the caller's format has no place for the words of the source";
            self.add(&block(at, ".citations"), LossKind::Approximated, why);
        }
    }

    fn signature(&mut self, at: At) {
        // Messages have a block for it.
        if self.to != Operation::Messages {
            let why = "the caller's format has no place for what signs a text";
            self.add(&block(at, ".signature"), LossKind::Dropped, why);
        }
    }

    fn logprobs(&mut self, said: bool) {
        if said && self.to == Operation::Messages {
            self.add("logprobs", LossKind::Dropped, "the caller's format has none");
        }
    }

    fn stop_sequence(&mut self, said: bool) {
        if said && self.to != Operation::Messages {
            let why = "the caller's format does not say which stop sequence was met";
            self.add("stop_sequence", LossKind::Dropped, why);
        }
    }

    fn service_tier(&mut self, tier: Option<&str>) {
        let Some(tier) = tier.filter(|tier| !is_usual(tier)) else { return };
        if tier_for(self.to, tier).is_none() {
            self.add("service_tier", LossKind::Dropped, "the caller's format has no word for it");
        } else if self.begun && self.to == Operation::Messages {
            self.add("service_tier", LossKind::Dropped, "the caller's format says it before the first block");
        }
    }

    fn unread(&mut self, path: &str) {
        self.add(path, LossKind::Dropped, "the caller's format has no such field");
    }

    fn add(&mut self, path: &str, kind: LossKind, why: &'static str) {
        let is_known = |item: &LossItem| item.path.as_str().strip_prefix("answer.") == Some(path);
        if self.items.len() < ITEMS_MAX && !self.items.iter().any(is_known) {
            let path = BoundedText::new(&format!("answer.{path}"));
            self.items.push(LossItem { path, kind, why });
        }
    }
}

fn block(at: At, field: &str) -> String {
    let At { choice, block } = at;
    match choice {
        0 => format!("blocks[{block}]{field}"),
        _ => format!("choices[{choice}].blocks[{block}]{field}"),
    }
}
