//! From Ollama's answers to neutral events.
//!
//! A whole answer is read as a stream of one line, so that both forms of an answer give the same parts.

use gw_types::{FinishReason, GatewayError, TokenCount, Usage};

use crate::{
    collect::Collector,
    failure::{malformed, tree_of},
    json::Node,
    neutral::{At, BlockKind, Event, Message, UnreadFields, derived_finish},
    openai::classify,
    responses::as_chat,
};

/// The most blocks of one answer.
const BLOCKS_MAX: u32 = 4_096;

/// Reads the body of a 2xx answer of `/api/chat`.
///
/// Calls without an id get one that depends on the answer alone.
///
/// # Errors
/// What an error inside of the body says; `MalformedResponse`, if there is no whole answer.
///
/// ```
/// use gw_dialects::ollama::read_message;
/// use gw_types::FinishReason;
///
/// let body = br#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}"#;
/// let message = read_message(body).unwrap();
/// assert_eq!(message.choices[0].blocks[0].as_text(), Some("Hi"));
/// assert_eq!(message.choices[0].finish, FinishReason::Stop);
/// ```
pub fn read_message(body: &[u8]) -> Result<Message, GatewayError> {
    let node = tree_of(body)?;
    let mut reading = Reading::default();
    let mut events = Vec::new();
    reading.line(&node, &mut events)?;
    if !reading.done {
        return Err(malformed("the provider's answer is not whole"));
    }
    let mut collector = Collector::default();
    collector.extend(events);
    Ok(collector.finish())
}

/// What is known of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    started: bool,
    blocks: u32,
    calls: u32,
    /// The block that text or reasoning goes into.
    open: Option<(Kind, At)>,
    unread: UnreadFields,
    /// Whether the answer is complete.
    pub(super) done: bool,
}

/// Names the blocks that a line goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Reading {
    /// Reads one line: the whole answer, or the next piece of it.
    ///
    /// # Errors
    /// What the line says went wrong. Nothing can be read after it.
    pub(super) fn line(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        if !node.is_object() {
            return Err(malformed("the provider's answer is not a JSON object"));
        }
        if node.get("error").is_some() {
            return Err(classify::in_band(node.raw.as_bytes()));
        }
        if !std::mem::replace(&mut self.started, true) {
            events.push(Event::Start { id: None, model: node.filled("model") });
        }
        if let Some(message) = node.get("message") {
            self.message(node, message, events)?;
        }
        let tokens = node.get("logprobs").map(Node::items).unwrap_or_default();
        let logprobs = as_chat(tokens.iter().map(|token| token.raw));
        events.extend(logprobs.map(|logprobs| Event::Logprobs(0, logprobs)));
        look(node, &mut self.unread);
        events.extend(self.unread.news().map(Event::Unread));
        if node.get("done").and_then(Node::as_bool) == Some(true) {
            self.finish(node, events);
        }
        Ok(())
    }

    fn message(
        &mut self,
        line: &Node<'_>,
        message: &Node<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        if let Some(text) = message.filled("thinking") {
            self.say(Kind::Thinking, text, events)?;
        }
        if let Some(text) = message.filled("content") {
            self.say(Kind::Text, text, events)?;
        }
        for call in message.get("tool_calls").map(Node::items).unwrap_or_default() {
            let Some(function) = call.get("function") else { continue };
            self.close(events);
            let at = self.next()?;
            let id = call.filled("id").unwrap_or_else(|| self.call_id(line, call));
            let name = function.text("name").unwrap_or_default();
            self.calls += 1;
            events.push(Event::BlockStart(at, BlockKind::ToolUse { id, name, signature: None }));
            let arguments = function.get("arguments").map_or("{}", |arguments| arguments.raw);
            events.push(Event::ArgumentsDelta(at, arguments.to_owned()));
            events.push(Event::BlockStop(at));
        }
        Ok(())
    }

    fn finish(&mut self, line: &Node<'_>, events: &mut Vec<Event>) {
        self.done = true;
        self.close(events);
        let reason = match line.text("done_reason").as_deref() {
            Some("stop") => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            // Older servers do not say why.
            Some(_) | None => FinishReason::Other,
        };
        events.extend(usage(line).map(Event::Usage));
        let reason = derived_finish(reason, self.calls > 0, false);
        events.push(Event::Finish { choice: 0, reason, stop_sequence: None });
    }

    fn say(&mut self, kind: Kind, text: String, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        let at = match self.open {
            Some((open, at)) if open == kind => at,
            Some(_) | None => {
                self.close(events);
                let at = self.next()?;
                self.open = Some((kind, at));
                let block = match kind {
                    Kind::Text => BlockKind::Text,
                    Kind::Thinking => BlockKind::Thinking,
                };
                events.push(Event::BlockStart(at, block));
                at
            }
        };
        events.push(match kind {
            Kind::Text => Event::TextDelta(at, text),
            Kind::Thinking => Event::ThinkingDelta(at, text),
        });
        Ok(())
    }

    fn close(&mut self, events: &mut Vec<Event>) {
        events.extend(self.open.take().map(|(_, at)| Event::BlockStop(at)));
    }

    fn next(&mut self) -> Result<At, GatewayError> {
        if self.blocks >= BLOCKS_MAX {
            return Err(malformed("the provider's answer holds too many parts"));
        }
        let at = At { choice: 0, block: self.blocks };
        self.blocks += 1;
        Ok(at)
    }

    /// Returns an id for a call without one: the same for the same answer, and different for every call of it.
    fn call_id(&self, line: &Node<'_>, call: &Node<'_>) -> String {
        let when = line.text("created_at").unwrap_or_default();
        let digest = crc32fast::hash(when.as_bytes()) ^ crc32fast::hash(call.raw.as_bytes());
        format!("call_{digest:08x}_{}", self.calls)
    }
}

/// Reads what was used. A prompt that is not counted is one that the server had read before: then nothing is known of it.
fn usage(line: &Node<'_>) -> Option<Usage> {
    let (input, output) = (line.count("prompt_eval_count")?, line.count("eval_count").unwrap_or(0));
    (input > 0).then(|| Usage {
        input: TokenCount::new(input),
        output: TokenCount::new(output),
        ..Usage::default()
    })
}

/// Looks for what is not read of a line.
fn look(line: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(line, "", |name| match name {
        "model" | "message" | "done" | "done_reason" | "error" | "logprobs" => true,
        "prompt_eval_count" | "eval_count" => true,
        // When and where the answer was made, and how long that took.
        "created_at" | "remote_model" | "remote_host" => true,
        "total_duration" | "load_duration" | "prompt_eval_duration" | "eval_duration" => true,
        _ => false,
    });
    if let Some(message) = line.get("message") {
        fields
            .look(message, "message.", |name| matches!(name, "role" | "content" | "thinking" | "tool_calls"));
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{ErrorKind, FinishReason};

    use super::read_message;
    use crate::neutral::{Content, Message};

    fn read(message: &str, end: &str) -> Message {
        let body = format!(r#"{{"model":"m","created_at":"t","message":{message},"done":true{end}}}"#);
        read_message(body.as_bytes()).unwrap()
    }

    #[test]
    fn blocks_usage_and_reason() {
        let calls = r#"[{"function":{"name":"f","arguments":{"a":1}}},{"id":"own","function":{"name":"g"}},
            {"function":{"name":"f","arguments":{"a":1}}}]"#;
        let message = format!(r#"{{"thinking":"hm","content":"a","tool_calls":{calls},"images":["QQ=="]}}"#);
        let read = read(&message, r#","done_reason":"stop","prompt_eval_count":7,"eval_count":3"#);
        let choice = &read.choices[0];
        assert_eq!(choice.finish, FinishReason::ToolCalls);
        assert!(matches!(&choice.blocks[0], Content::Thinking(thinking) if thinking.text == "hm"));
        assert_eq!(choice.blocks[1].as_text(), Some("a"));
        let calls: Vec<_> = choice.blocks[2..]
            .iter()
            .map(|block| match block {
                Content::ToolUse(call) => (call.id.as_str(), call.name.as_str(), call.arguments.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((calls[0].1, calls[0].2, calls[1]), ("f", r#"{"a":1}"#, ("own", "g", "{}")));
        assert_ne!(calls[0].0, calls[2].0, "equal calls are two calls");
        let usage = read.usage.unwrap();
        assert_eq!((usage.input.get(), usage.output.get()), (7, 3));
        assert_eq!(read.unread, ["message.images"]);
    }

    #[test]
    fn why_it_ended() {
        for (end, expected) in [
            (r#","done_reason":"stop""#, FinishReason::Stop),
            (r#","done_reason":"length""#, FinishReason::Length),
            (r#","done_reason":"load""#, FinishReason::Other),
            ("", FinishReason::Other),
        ] {
            let read = read(r#"{"content":"a"}"#, end);
            assert_eq!((read.choices[0].finish, read.usage), (expected, None), "{end}");
        }
    }

    #[test]
    fn what_is_no_answer_fails_with_its_reason() {
        let kind = |body: &str| read_message(body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind(r#"{"error":"model 'x' not found"}"#), ErrorKind::ProviderUnavailable);
        for body in ["", "[]", "{}", r#"{"message":{"content":"a"},"done":false}"#] {
            assert_eq!(kind(body), ErrorKind::MalformedResponse, "{body}");
        }
    }
}
