//! Puts the fragments of streamed tool calls together.

use crate::{
    json::{Node, Value},
    neutral::{At, BlockKind, Event, Signature},
    openai::{answer, content::CallFragment, repair::CallList},
};

/// Says that a stream holds more tool calls than gw keeps, or goes on with one that was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenCalls;

/// The tool calls of a stream so far, of all choices.
#[derive(Debug, Default)]
pub(super) struct Calls {
    list: CallList,
    calls: Vec<Call>,
}

struct Call {
    choice: u32,
    id: Option<String>,
    signature: Option<Signature>,
    /// What came before the name.
    held: String,
    state: State,
    depth: Depth,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({:?}, {} bytes held)", self.state, self.held.len())
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The name has not come.
    Unnamed,
    Open(At),
    Stopped,
}

impl Calls {
    /// Adds one fragment, of a call or of the older form that is the function alone; `blocks` is the number of blocks of its
    /// choice.
    pub(super) fn add(
        &mut self,
        choice: u32,
        node: &Node<'_>,
        function: Option<&Node<'_>>,
        blocks: &mut u32,
        events: &mut Vec<Event>,
    ) -> Result<(), BrokenCalls> {
        let place = self.place(choice, node, function)?;
        let call = &mut self.calls[place];
        call.id = call.id.take().or_else(|| node.filled("id"));
        call.signature = call.signature.take().or_else(|| answer::signature(node));
        if let Some(name) = function.and_then(|function| function.filled("name"))
            && let State::Unnamed = call.state
        {
            self.start(place, choice, name, blocks, events);
        }
        let call = &mut self.calls[place];
        let Some(arguments) = function.and_then(answer::arguments).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        match call.state {
            State::Unnamed => call.held.push_str(&arguments),
            State::Open(at) => {
                call.depth.add(&arguments);
                events.push(Event::ArgumentsDelta(at, arguments));
            }
            State::Stopped if arguments.trim().is_empty() => {}
            State::Stopped => return Err(BrokenCalls),
        }
        Ok(())
    }

    /// Stops the calls that are still open, in order.
    pub(super) fn stop_all(&mut self, events: &mut Vec<Event>) {
        for call in &mut self.calls {
            call.stop(events);
        }
    }

    /// Returns the place of the fragment's call.
    fn place(
        &mut self,
        choice: u32,
        node: &Node<'_>,
        function: Option<&Node<'_>>,
    ) -> Result<usize, BrokenCalls> {
        let fragment = CallFragment {
            choice,
            index: node.count("index"),
            id: text(node.get("id")).map(|id| (id, 0..0)),
            name: text(function.and_then(|function| function.get("name"))).map(|name| (name, 0..0)),
            ..CallFragment::default()
        };
        let place = self.list.assign(&fragment).map_err(|_| BrokenCalls)?;
        while self.calls.len() <= place {
            self.calls.push(Call {
                choice,
                id: None,
                signature: None,
                held: String::new(),
                state: State::Unnamed,
                depth: Depth::default(),
            });
        }
        Ok(place)
    }

    fn start(&mut self, place: usize, choice: u32, name: String, blocks: &mut u32, events: &mut Vec<Event>) {
        // Servers send one call after the other; one whose arguments are whole gets no more of them. Interleaved calls
        // stay open, side by side.
        for earlier in self.calls[..place].iter_mut().filter(|call| call.choice == choice) {
            if earlier.depth.is_whole() {
                earlier.stop(events);
            }
        }
        let at = At { choice, block: *blocks };
        *blocks += 1;
        let call = &mut self.calls[place];
        call.state = State::Open(at);
        let id = call.id.clone().unwrap_or_else(|| format!("call_{choice}_{place}"));
        let signature = call.signature.take();
        events.push(Event::BlockStart(at, BlockKind::ToolUse { id, name, signature }));
        if !call.held.is_empty() {
            let held = std::mem::take(&mut call.held);
            call.depth.add(&held);
            events.push(Event::ArgumentsDelta(at, held));
        }
    }
}

impl Call {
    fn stop(&mut self, events: &mut Vec<Event>) {
        if let State::Open(at) = self.state {
            self.state = State::Stopped;
            events.push(Event::BlockStop(at));
        }
    }
}

fn text<'a>(node: Option<&Node<'a>>) -> Option<crate::json::Text<'a>> {
    match node?.value {
        Value::String(text) if !text.raw().is_empty() => Some(text),
        Value::Object(_)
        | Value::Array(_)
        | Value::String(_)
        | Value::Number
        | Value::Bool(_)
        | Value::Null => None,
    }
}

/// Follows JSON text as it comes, to know when its object is whole.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    levels: u32,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Depth {
    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.levels += 1;
                    self.begun = true;
                }
                b'}' | b']' if !self.in_string => self.levels = self.levels.saturating_sub(1),
                _ => {}
            }
        }
    }

    const fn is_whole(self) -> bool {
        self.begun && self.levels == 0
    }
}
