//! Reads of a whole answer what the pipeline acts on.

use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, GatewayError};

use super::{classify, finish, usage::WireUsage};
use crate::{
    failure::{malformed, text_of},
    json::Node,
};

/// Reads the facts of a 2xx answer's body.
///
/// # Errors
/// An error object in the body is classified like an HTTP error of the status that its type stands for. A body that is no
/// message is `MalformedResponse`.
pub fn read_answer(raw: &Bytes) -> Result<AnswerFacts, GatewayError> {
    facts(&read(raw)?)
}

/// Reads a whole answer as a tree.
pub(super) fn read(raw: &Bytes) -> Result<Node<'_>, GatewayError> {
    let text = text_of(raw)?;
    let node = Node::read(text).map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    if node.text("type").as_deref() == Some("error") || node.get("error").is_some() {
        return Err(classify::in_band(raw));
    }
    if node.get("content").is_none() {
        return Err(malformed("the provider's answer holds no content"));
    }
    Ok(node)
}

pub(super) fn facts(node: &Node<'_>) -> Result<AnswerFacts, GatewayError> {
    let mut facts = AnswerFacts {
        usage: node.get("usage").and_then(|usage| WireUsage::read(usage).classes()),
        finish: node.filled("stop_reason").map(|reason| finish::read(&reason)),
        served_model: node.filled("model").map(|model| BoundedText::new(&model)),
        ..AnswerFacts::default()
    };
    for block in node.get("content").map(Node::items).unwrap_or_default() {
        facts.content_bytes += block_bytes(block);
        facts.tool_calls |= block.text("type").as_deref() == Some("tool_use");
    }
    Ok(facts)
}

/// Returns the UTF-8 bytes of a block's text, reasoning and tool arguments.
fn block_bytes(block: &Node<'_>) -> u64 {
    let text = ["text", "thinking"].iter().filter_map(|field| block.get(field)?.as_str());
    let input = block.get("input").map_or(0, |input| input.raw.len());
    text.map(|text| text.len() as u64).sum::<u64>() + input as u64
}

/// Reads the answer to a request to count tokens.
///
/// # Errors
/// Those of [`read_answer`].
pub fn read_token_count(raw: &Bytes) -> Result<u64, GatewayError> {
    let text = text_of(raw)?;
    let node = Node::read(text).map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    match node.count("input_tokens") {
        Some(count) => Ok(count),
        None if node.get("error").is_some() => Err(classify::in_band(raw)),
        None => Err(malformed("the provider's answer holds no count")),
    }
}

/// Returns the answer to a request to count tokens.
pub fn token_count_body(count: u64) -> Bytes {
    Bytes::from(format!(r#"{{"input_tokens":{count}}}"#))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{ErrorKind, FinishReason};

    use super::{read_answer, read_token_count, token_count_body};

    #[test]
    fn facts_of_an_answer() {
        let raw = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[
            {"type":"thinking","thinking":"Hm","signature":"S"},{"type":"text","text":"\u00e9"},
            {"type":"tool_use","id":"t","name":"f","input":{"a":1}}],
            "stop_reason":"tool_use","usage":{"input_tokens":2,"output_tokens":3}}"#;
        let facts = read_answer(&Bytes::from_static(raw.as_bytes())).unwrap();
        assert_eq!((facts.content_bytes, facts.tool_calls), (2 + 2 + 7, true));
        assert_eq!(facts.finish, Some(FinishReason::ToolCalls));
        assert_eq!(facts.served_model.unwrap().as_str(), "claude");
        assert_eq!(facts.usage.unwrap().total().get(), 5);
    }

    #[test]
    fn what_is_no_message_fails_with_its_reason() {
        let kind = |raw: &'static str| read_answer(&Bytes::from_static(raw.as_bytes())).unwrap_err().kind();
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
        assert_eq!(kind(error), ErrorKind::ProviderUnavailable);
        for raw in ["", "[]", "{}", "{\"content\":null}", "<html>"] {
            assert_eq!(kind(raw), ErrorKind::MalformedResponse, "{raw}");
        }
    }

    #[test]
    fn counts_read_back() {
        assert_eq!(read_token_count(&token_count_body(588)), Ok(588));
        assert!(read_token_count(&Bytes::from_static(b"{}")).is_err());
    }
}
