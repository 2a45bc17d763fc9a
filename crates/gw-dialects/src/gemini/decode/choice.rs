//! One candidate: from its parts to blocks.

use gw_types::{FinishReason, GatewayError, UpstreamDetail};

use super::{
    super::finish::{self, Ending},
    grounding, logprobs,
    partial::PartialArguments,
};
use crate::{
    failure::malformed,
    json::Node,
    neutral::{At, BlockKind, Event, Origin, RawJson, Signature, derived_finish},
};

/// The most blocks of one candidate.
const BLOCKS_MAX: u32 = 4_096;
/// How much text is kept to place citations, in bytes; behind it they have no place.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How much of the answer's id stands in the id of a call, in bytes: ids of more than 40 are refused by others.
const ID_BYTES_MAX: usize = 24;

/// One candidate so far. Prints its size, not its words.
pub(super) struct Choice {
    index: u32,
    blocks: u32,
    open: Open,
    calls: u32,
    ending: Ending,
    /// What Gemini says about the end.
    said: Option<String>,
    /// The visible text so far.
    text: String,
}

/// The block that is being written.
enum Open {
    None,
    /// Text or reasoning; `signed` ends it for what follows.
    Text {
        at: At,
        is_thought: bool,
        signed: bool,
    },
    /// A call whose arguments come in pieces.
    Call {
        at: At,
        arguments: PartialArguments,
    },
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Choice")
            .field("index", &self.index)
            .field("blocks", &self.blocks)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl Choice {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            blocks: 0,
            open: Open::None,
            calls: 0,
            ending: Ending::None,
            said: None,
            text: String::new(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ending != Ending::None
    }

    /// Reads what a document says about the candidate; `answer` is the answer's id.
    pub(super) fn read(
        &mut self,
        node: &Node<'_>,
        answer: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        let content = node.get("content");
        for part in content.and_then(|content| content.get("parts")).map(Node::items).unwrap_or_default() {
            self.part(part, answer, events)?;
        }
        if let Open::Text { at, is_thought: false, .. } = self.open {
            let citations = grounding::read(node, &self.text);
            events.extend(citations.into_iter().map(|citation| Event::Citation(at, citation)));
        }
        if let Some(logprobs) = node.get("logprobsResult").and_then(logprobs::read) {
            events.push(Event::Logprobs(self.index, logprobs));
        }
        match node.get("finishReason").map(finish::read) {
            None | Some(Ending::None) => {}
            Some(ending) => {
                self.ending = ending;
                self.said = node.filled("finishMessage");
            }
        }
        Ok(())
    }

    /// Ends the candidate.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        self.close(events);
        let reason = match self.ending {
            Ending::Reason(FinishReason::Other) if self.blocks == 0 => {
                return Err(self.broken("the provider ended the answer without a word"));
            }
            Ending::Reason(reason) => reason,
            Ending::Broken => return Err(self.broken("the provider could not read the model's answer")),
            Ending::None => FinishReason::Other,
        };
        let reason = derived_finish(reason, self.calls > 0, false);
        events.push(Event::Finish { choice: self.index, reason, stop_sequence: None });
        Ok(())
    }

    fn broken(&self, message: &'static str) -> GatewayError {
        let error = malformed(message);
        match &self.said {
            Some(said) => error.with_detail(UpstreamDetail::new(said)),
            None => error,
        }
    }

    fn part(&mut self, part: &Node<'_>, answer: &str, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let signature = part.filled("thoughtSignature").map(|data| Signature::new(Origin::Gemini, data));
        if let Some(call) = part.get("functionCall") {
            return self.call(call, signature, answer, events);
        }
        if let Some(text) = part.get("text").and_then(Node::as_str) {
            let is_thought = part.get("thought").and_then(Node::as_bool) == Some(true);
            return self.text(&text, is_thought, signature, events);
        }
        // Code that Gemini ran, pictures, and whatever comes next: whole, for its own provider.
        let Some(value) = RawJson::new(part.raw).filter(|value| value.is_object() && value.as_str() != "{}")
        else {
            return Ok(());
        };
        self.close(events);
        let at = self.next_block()?;
        events.push(Event::BlockStart(at, BlockKind::Opaque(Origin::Gemini, value)));
        events.push(Event::BlockStop(at));
        Ok(())
    }

    /// Adds text. An empty one may exist only to carry the signature of the text before it.
    fn text(
        &mut self,
        text: &str,
        is_thought: bool,
        signature: Option<Signature>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        let at = match self.open {
            Open::Text { at, is_thought: own, signed: false } if own == is_thought => at,
            Open::None | Open::Text { .. } | Open::Call { .. } => {
                self.close(events);
                let at = self.next_block()?;
                let kind = if is_thought { BlockKind::Thinking } else { BlockKind::Text };
                events.push(Event::BlockStart(at, kind));
                at
            }
        };
        if !text.is_empty() {
            let text = text.to_owned();
            if !is_thought && self.text.len().saturating_add(text.len()) <= TEXT_BYTES_MAX {
                self.text.push_str(&text);
            }
            let delta = if is_thought { Event::ThinkingDelta } else { Event::TextDelta };
            events.push(delta(at, text));
        }
        self.open = Open::Text { at, is_thought, signed: signature.is_some() };
        events.extend(signature.map(|signature| Event::SignatureDelta(at, signature)));
        Ok(())
    }

    /// Adds a call, or more of one whose arguments come in pieces. Without a name it goes on with the call before.
    fn call(
        &mut self,
        call: &Node<'_>,
        signature: Option<Signature>,
        answer: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        if let Some(name) = call.filled("name") {
            self.close(events);
            let at = self.next_block()?;
            let id = call.filled("id").unwrap_or_else(|| self.call_id(answer, &name, call));
            self.calls += 1;
            events.push(Event::BlockStart(at, BlockKind::ToolUse { id, name, signature }));
            self.open = Open::Call { at, arguments: PartialArguments::default() };
        }
        let Open::Call { arguments, .. } = &mut self.open else { return Ok(()) };
        if let Some(whole) = call.get("args") {
            arguments.set_whole(whole.raw);
        }
        for piece in call.get("partialArgs").map(Node::items).unwrap_or_default() {
            arguments.add(piece).map_err(malformed)?;
        }
        if call.get("willContinue").and_then(Node::as_bool) != Some(true) {
            self.close(events);
        }
        Ok(())
    }

    /// Returns an id for a call without one: the same for the same answer, and different for every call of it.
    fn call_id(&self, answer: &str, name: &str, call: &Node<'_>) -> String {
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let mut answer: String = answer.chars().filter(plain).take(ID_BYTES_MAX).collect();
        if answer.is_empty() {
            let digest = crc32fast::hash(name.as_bytes()) ^ crc32fast::hash(call.raw.as_bytes());
            answer = format!("{digest:08x}");
        }
        format!("call_{answer}_{}_{}", self.index, self.calls)
    }

    /// Ends the open block, if there is one.
    fn close(&mut self, events: &mut Vec<Event>) {
        match std::mem::replace(&mut self.open, Open::None) {
            Open::None => {}
            Open::Text { at, .. } => events.push(Event::BlockStop(at)),
            Open::Call { at, arguments } => {
                events.push(Event::ArgumentsDelta(at, arguments.into_json()));
                events.push(Event::BlockStop(at));
            }
        }
    }

    fn next_block(&mut self) -> Result<At, GatewayError> {
        if self.blocks >= BLOCKS_MAX {
            return Err(malformed("the provider's answer holds too many parts"));
        }
        let at = At { choice: self.index, block: self.blocks };
        self.blocks += 1;
        Ok(at)
    }
}
