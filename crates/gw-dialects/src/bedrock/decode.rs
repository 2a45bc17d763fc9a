//! From a whole answer to neutral parts.

use gw_types::{FinishReason, GatewayError};

use super::{
    citation,
    finish::{self, Ending},
    usage,
};
use crate::{
    failure::{malformed, tree_of},
    json::{Node, Value},
    neutral::{
        Citation, Content, Image, MediaSource, Message, MessageChoice, Opaque, Origin, RawJson, Signature,
        Text, Thinking, ToolUse, UnreadFields,
    },
};

/// Reads the body of a 2xx answer of `Converse`.
///
/// Bedrock says neither an id nor the model: the id of the call stands in a header.
///
/// # Errors
/// `MalformedResponse`, if there is no whole answer, also where Bedrock says that it could not read what the model wrote.
///
/// ```
/// use gw_dialects::bedrock::read_message;
/// use gw_types::FinishReason;
///
/// let body = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn"}"#;
/// let message = read_message(body).unwrap();
/// assert_eq!(message.choices[0].blocks[0].as_text(), Some("Hi"));
/// assert_eq!(message.choices[0].finish, FinishReason::Stop);
/// ```
pub fn read_message(body: &[u8]) -> Result<Message, GatewayError> {
    let node = tree_of(body)?;
    let content =
        node.get("output").and_then(|output| output.get("message")).and_then(|said| said.get("content"));
    let (Some(content), Some(reason)) = (content, node.text("stopReason")) else {
        return Err(malformed("the provider's answer holds no message"));
    };
    let mut blocks = Vec::new();
    content.items().iter().for_each(|block| read_block(block, &mut blocks));
    let reason = ending(&reason, blocks.len())?;
    let mut unread = UnreadFields::default();
    look_for_unread(&node, &mut unread);
    let mut choice = MessageChoice::new(blocks, reason);
    choice.stop_sequence = stop_sequence(&node);
    Ok(Message {
        choices: vec![choice],
        usage: node.get("usage").and_then(usage::read),
        service_tier: node.get("serviceTier").and_then(|tier| tier.filled("type")),
        unread: unread.into_paths(),
        ..Message::default()
    })
}

/// Returns why an answer of so many blocks ended.
///
/// # Errors
/// `MalformedResponse`, if there is no answer.
pub(super) fn ending(reason: &str, blocks: usize) -> Result<FinishReason, GatewayError> {
    match finish::read(reason) {
        Ending::Reason(FinishReason::Other) if blocks == 0 => {
            Err(malformed("the provider ended the answer without a word"))
        }
        Ending::Reason(reason) => Ok(reason),
        Ending::Broken => Err(malformed("the provider could not read the model's answer")),
    }
}

/// Looks for what is not read of an answer, or of the last event of a streamed one: a guardrail's trace above all.
pub(super) fn look_for_unread(node: &Node<'_>, fields: &mut UnreadFields) {
    fields.look(node, "", |name| match name {
        "output" | "stopReason" | "usage" | "serviceTier" | "additionalModelResponseFields" => true,
        // How the answer was made, and what keeps its length from being guessed.
        "metrics" | "performanceConfig" | "p" => true,
        _ => false,
    });
}

/// Returns the stop sequence that was met, where the model's own fields say so.
pub(super) fn stop_sequence(node: &Node<'_>) -> Option<String> {
    let fields = node.get("additionalModelResponseFields")?;
    fields.filled("stop_sequence").or_else(|| fields.get("delta")?.filled("stop_sequence"))
}

fn read_block(block: &Node<'_>, blocks: &mut Vec<Content>) {
    let Value::Object(members) = &block.value else { return };
    if let Some(text) = block.get("text").and_then(Node::as_str) {
        blocks.push(Content::text(text));
    } else if let Some(call) = block.get("toolUse").filter(|call| !is_server_call(call)) {
        blocks.push(Content::ToolUse(read_call(call)));
    } else if let Some(reasoning) = block.get("reasoningContent") {
        blocks.extend(read_reasoning(reasoning));
    } else if let Some(cited) = block.get("citationsContent") {
        read_cited(cited, blocks);
    } else if let Some(image) = block.get("image").and_then(read_image) {
        blocks.push(Content::Image(image));
    } else if !members.is_empty()
        && let Some(value) = RawJson::new(block.raw)
    {
        // A server's tool, and whatever comes next: whole, for its own provider.
        blocks.push(Content::Opaque(Opaque { origin: Origin::Bedrock, value }));
    }
}

/// Returns whether a call is of a tool that Bedrock runs itself.
pub(super) fn is_server_call(call: &Node<'_>) -> bool {
    call.text("type").as_deref() == Some("server_tool_use")
}

fn read_call(call: &Node<'_>) -> ToolUse {
    ToolUse {
        id: call.text("toolUseId").unwrap_or_default(),
        name: call.text("name").unwrap_or_default(),
        arguments: call.get("input").map_or("{}", |input| input.raw).to_owned(),
        signature: None,
    }
}

fn read_reasoning(reasoning: &Node<'_>) -> Option<Content> {
    if let Some(data) = reasoning.filled("redactedContent") {
        return Some(Content::RedactedThinking(Signature::new(Origin::Bedrock, data)));
    }
    let shown = reasoning.get("reasoningText")?;
    let signature = shown.filled("signature").map(|data| Signature::new(Origin::Bedrock, data));
    Some(Content::Thinking(Thinking { text: shown.text("text").unwrap_or_default(), signature }))
}

/// Reads text with citations. Citations without text belong to the text before them.
fn read_cited(cited: &Node<'_>, blocks: &mut Vec<Content>) {
    let contents = cited.get("content").map(Node::items).unwrap_or_default();
    let text: String = contents.iter().filter_map(|content| content.text("text")).collect();
    let citations = cited.get("citations").map(Node::items).unwrap_or_default();
    let citations: Vec<Citation> = citations.iter().map(citation::read).collect();
    match blocks.last_mut() {
        Some(Content::Text(last)) if text.is_empty() => last.citations.extend(citations),
        Some(_) | None => blocks.push(Content::Text(Text { text, citations, signature: None })),
    }
}

fn read_image(image: &Node<'_>) -> Option<Image> {
    let base64 = image.get("source")?.filled("bytes")?;
    let media_type = format!("image/{}", image.filled("format")?);
    Some(Image { source: MediaSource::Data { media_type, base64 }, detail: None })
}

#[cfg(test)]
mod tests {
    use gw_types::{ErrorKind, FinishReason};

    use super::read_message;
    use crate::neutral::{Content, MessageChoice};

    fn answer(content: &str, reason: &str) -> String {
        format!(
            r#"{{"output":{{"message":{{"role":"assistant","content":[{content}]}}}},"stopReason":"{reason}"}}"#
        )
    }

    fn read(content: &str, reason: &str) -> MessageChoice {
        read_message(answer(content, reason).as_bytes()).unwrap().choices.remove(0)
    }

    #[track_caller]
    fn fails(body: &str) {
        assert_eq!(read_message(body.as_bytes()).unwrap_err().kind(), ErrorKind::MalformedResponse, "{body}");
    }

    #[test]
    fn every_block_is_read() {
        let content = r#"{"reasoningContent":{"reasoningText":{"text":"hm","signature":"S"}}},
            {"reasoningContent":{"redactedContent":"R"}},{"text":"a"},
            {"citationsContent":{"citations":[{"title":"t","location":{"web":{"url":"u","domain":"d"}}}]}},
            {"citationsContent":{"content":[{"text":"b"}],"citations":[{"sourceContent":[{"text":"q"}]}]}},
            {"toolUse":{"toolUseId":"c","name":"f","input":{"x":1}}},
            {"toolUse":{"toolUseId":"s","name":"web","input":{},"type":"server_tool_use"}},
            {"image":{"format":"png","source":{"bytes":"QQ=="}}},{},7"#;
        let blocks = read(content, "tool_use").blocks;
        assert_eq!(blocks.len(), 7);
        assert!(matches!(&blocks[0], Content::Thinking(t) if t.text == "hm" && t.signature.is_some()));
        assert!(matches!(&blocks[1], Content::RedactedThinking(signature) if signature.data == "R"));
        assert!(matches!(&blocks[2], Content::Text(t) if t.citations[0].url.as_deref() == Some("u")));
        assert!(
            matches!(&blocks[3], Content::Text(t) if t.text == "b" && t.citations[0].quote.as_deref() == Some("q"))
        );
        assert!(
            matches!(&blocks[4], Content::ToolUse(call) if call.id == "c" && call.arguments == "{\"x\":1}")
        );
        assert!(matches!(&blocks[5], Content::Opaque(_)));
        assert!(matches!(&blocks[6], Content::Image(_)));
    }

    #[test]
    fn finish_reasons_follow_content_and_truncation() {
        let call = r#"{"toolUse":{"toolUseId":"c","name":"f","input":{}}}"#;
        assert_eq!(read(call, "end_turn").finish, FinishReason::ToolCalls);
        assert_eq!(read(call, "max_tokens").finish, FinishReason::Length);
        assert_eq!(read(r#"{"text":"a"}"#, "guardrail_intervened").finish, FinishReason::ContentFilter);
        fails(&answer("", "malformed_tool_use"));
        fails(&answer("", "new_reason"));
    }

    #[test]
    fn the_stop_sequence_is_said_by_the_model() {
        let with = |fields: &str| {
            let body = answer(r#"{"text":"a"}"#, "stop_sequence").replacen(
                '{',
                &format!("{{\"additionalModelResponseFields\":{fields},"),
                1,
            );
            read_message(body.as_bytes()).unwrap().choices.remove(0).stop_sequence
        };
        assert_eq!(with(r#"{"stop_sequence":"|"}"#).as_deref(), Some("|"));
        assert_eq!(with(r#"{"delta":{"stop_sequence":"|"}}"#).as_deref(), Some("|"));
        assert_eq!(with(r#"{"delta":{"stop_sequence":null}}"#), None);
    }

    #[test]
    fn what_is_no_answer_is_malformed() {
        fails("");
        fails("{}");
        fails(r#"{"message":"m"}"#);
        fails(r#"{"output":{"message":{"content":[{"text":"a"}]}}}"#);
    }
}
