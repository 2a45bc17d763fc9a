//! The blocks of a streamed answer: from the wire's indexes to places without gaps.

use gw_types::GatewayError;

use super::super::{citation, decode::is_server_call};
use crate::{
    failure::malformed,
    json::{Node, Writer},
    neutral::{At, BlockKind, Event, Origin, RawJson, Signature},
};

/// The most blocks of one answer.
const BLOCKS_MAX: u32 = 4_096;
/// The most bytes of what a server's tool says that are kept.
const SERVER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The blocks so far.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Those that are open; few, as Bedrock sends one after the other.
    open: Vec<Open>,
    count: u32,
    calls: bool,
}

/// A block that has begun.
#[derive(Debug)]
struct Open {
    /// The index that the wire uses for it.
    index: u64,
    state: State,
}

enum State {
    Text(At),
    Thinking(At),
    /// A call; whether arguments have come.
    Call(At, bool),
    /// A call of a server's tool: its head, and the input as text.
    ServerCall {
        id: String,
        name: String,
        input: String,
    },
    /// What a server's tool brought back: the head as it was written, and the pieces.
    ServerResult {
        id: String,
        status: String,
        kind: String,
        content: Vec<String>,
    },
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Thinking(_) => "Thinking",
            Self::Call(..) => "Call",
            Self::ServerCall { .. } => "ServerCall",
            Self::ServerResult { .. } => "ServerResult",
        })
    }
}

impl Blocks {
    /// Returns how many blocks there were.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns whether the caller's tools were called.
    pub(super) fn has_calls(&self) -> bool {
        self.calls
    }

    /// Reads a `contentBlockStart`, which only some kinds of blocks have.
    pub(super) fn start(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let index = node.count("contentBlockIndex").unwrap_or(0);
        let Some(start) = node.get("start") else { return Ok(()) };
        if let Some(call) = start.get("toolUse") {
            self.stop_all(events);
            let id = call.text("toolUseId").unwrap_or_default();
            let name = call.text("name").unwrap_or_default();
            let state = if is_server_call(call) {
                State::ServerCall { id, name, input: String::new() }
            } else {
                self.calls = true;
                State::Call(self.begin(BlockKind::ToolUse { id, name, signature: None }, events)?, false)
            };
            self.open.push(Open { index, state });
        } else if let Some(result) = start.get("toolResult") {
            self.stop_all(events);
            let text = |name| result.text(name).unwrap_or_default();
            let (id, status, kind) = (text("toolUseId"), text("status"), text("type"));
            let state = State::ServerResult { id, status, kind, content: Vec::new() };
            self.open.push(Open { index, state });
        }
        Ok(())
    }

    /// Reads a `contentBlockDelta`. Text and reasoning begin with their first piece.
    pub(super) fn delta(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let index = node.count("contentBlockIndex").unwrap_or(0);
        let Some(delta) = node.get("delta") else { return Ok(()) };
        if let Some(text) = delta.text("text") {
            let at = self.text_block(index, events)?;
            events.extend((!text.is_empty()).then_some(Event::TextDelta(at, text)));
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            self.reasoning(index, reasoning, events)?;
        } else if let Some(call) = delta.get("toolUse") {
            self.input(index, &call.text("input").unwrap_or_default(), events)?;
        } else if let Some(cited) = delta.get("citation") {
            let at = self.text_block(index, events)?;
            events.push(Event::Citation(at, citation::read(cited)));
        } else if let Some(result) = delta.get("toolResult") {
            self.result(index, result)?;
        }
        Ok(())
    }

    /// Reads a `contentBlockStop`.
    pub(super) fn stop(&mut self, node: &Node<'_>, events: &mut Vec<Event>) {
        let index = node.count("contentBlockIndex").unwrap_or(0);
        if let Some(place) = self.open.iter().rposition(|open| open.index == index) {
            let open = self.open.remove(place);
            self.close(&open.state, events);
        }
    }

    /// Ends every open block.
    pub(super) fn stop_all(&mut self, events: &mut Vec<Event>) {
        for open in std::mem::take(&mut self.open) {
            self.close(&open.state, events);
        }
    }

    fn text_block(&mut self, index: u64, events: &mut Vec<Event>) -> Result<At, GatewayError> {
        if let Some(State::Text(at)) = self.state(index) {
            return Ok(*at);
        }
        self.stop_all(events);
        let at = self.begin(BlockKind::Text, events)?;
        self.open.push(Open { index, state: State::Text(at) });
        Ok(at)
    }

    fn thinking_block(&mut self, index: u64, events: &mut Vec<Event>) -> Result<At, GatewayError> {
        if let Some(State::Thinking(at)) = self.state(index) {
            return Ok(*at);
        }
        self.stop_all(events);
        let at = self.begin(BlockKind::Thinking, events)?;
        self.open.push(Open { index, state: State::Thinking(at) });
        Ok(at)
    }

    fn reasoning(
        &mut self,
        index: u64,
        reasoning: &Node<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        if let Some(data) = reasoning.filled("redactedContent") {
            self.stop_all(events);
            let kind = BlockKind::RedactedThinking(Signature::new(Origin::Bedrock, data));
            let at = self.begin(kind, events)?;
            events.push(Event::BlockStop(at));
            return Ok(());
        }
        if let Some(text) = reasoning.filled("text") {
            let at = self.thinking_block(index, events)?;
            events.push(Event::ThinkingDelta(at, text));
        }
        if let Some(data) = reasoning.filled("signature") {
            let at = self.thinking_block(index, events)?;
            events.push(Event::SignatureDelta(at, Signature::new(Origin::Bedrock, data)));
        }
        Ok(())
    }

    /// Adds to the input of a call; input of no call means nothing.
    fn input(&mut self, index: u64, more: &str, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        match self.state(index) {
            Some(State::Call(at, some)) if !more.is_empty() => {
                *some = true;
                events.push(Event::ArgumentsDelta(*at, more.to_owned()));
            }
            Some(State::ServerCall { input, .. }) => {
                input.push_str(more);
                bounded(input.len())?;
            }
            Some(State::Call(..) | State::Text(_) | State::Thinking(_) | State::ServerResult { .. })
            | None => {}
        }
        Ok(())
    }

    fn result(&mut self, index: u64, pieces: &Node<'_>) -> Result<(), GatewayError> {
        if let Some(State::ServerResult { content, .. }) = self.state(index) {
            content.extend(pieces.items().iter().map(|piece| piece.raw.to_owned()));
            bounded(content.iter().map(String::len).sum())?;
        }
        Ok(())
    }

    fn state(&mut self, index: u64) -> Option<&mut State> {
        self.open.iter_mut().rev().find(|open| open.index == index).map(|open| &mut open.state)
    }

    fn begin(&mut self, kind: BlockKind, events: &mut Vec<Event>) -> Result<At, GatewayError> {
        if self.count >= BLOCKS_MAX {
            return Err(malformed("the provider's stream holds too many blocks"));
        }
        let at = At { choice: 0, block: self.count };
        self.count += 1;
        events.push(Event::BlockStart(at, kind));
        Ok(at)
    }

    fn close(&mut self, state: &State, events: &mut Vec<Event>) {
        match state {
            State::Text(at) | State::Thinking(at) | State::Call(at, true) => {
                events.push(Event::BlockStop(*at));
            }
            // A tool without arguments sends none.
            State::Call(at, false) => {
                events.push(Event::ArgumentsDelta(*at, "{}".to_owned()));
                events.push(Event::BlockStop(*at));
            }
            State::ServerCall { .. } | State::ServerResult { .. } => {
                let Some(value) = server_block(state) else { return };
                if let Ok(at) = self.begin(BlockKind::Opaque(Origin::Bedrock, value), events) {
                    events.push(Event::BlockStop(at));
                }
            }
        }
    }
}

fn bounded(bytes: usize) -> Result<(), GatewayError> {
    if bytes > SERVER_BYTES_MAX {
        return Err(malformed("a block of the provider's stream is too long"));
    }
    Ok(())
}

/// Returns a server's block as it would stand in a whole answer.
fn server_block(state: &State) -> Option<RawJson> {
    let mut json = Writer::default();
    match state {
        State::ServerCall { id, name, input } => json.object(|json| {
            json.member_object("toolUse", |json| {
                json.member_string("toolUseId", id);
                json.member_string("name", name);
                let input = RawJson::new(input).unwrap_or_else(RawJson::empty_object);
                json.member_raw("input", input.as_str());
                json.member_string("type", "server_tool_use");
            });
        }),
        State::ServerResult { id, status, kind, content } => json.object(|json| {
            json.member_object("toolResult", |json| {
                json.member_string("toolUseId", id);
                json.member_array("content", |json| content.iter().for_each(|piece| json.raw(piece)));
                for (name, value) in [("status", status), ("type", kind)] {
                    if !value.is_empty() {
                        json.member_string(name, value);
                    }
                }
            });
        }),
        State::Text(_) | State::Thinking(_) | State::Call(..) => return None,
    }
    RawJson::new(std::str::from_utf8(&json.into_bytes()).ok()?)
}
