//! Reads the messages of a request into turns.

use super::{super::refusal::Refusal, parts};
use crate::{
    json::Node,
    members::Members,
    neutral::{
        Block, Content, Instruction, InstructionRole, Origin, Place, Prompt, RawJson, Role, Signature,
        Thinking, ToolResult, ToolUse,
    },
};

/// Reads the messages. Neighbours of one role become one turn; tool messages belong to the user's.
pub(super) fn read(messages: Vec<Node<'_>>, prompt: &mut Prompt) -> Result<(), Refusal> {
    for (index, node) in messages.into_iter().enumerate() {
        message(node, Place::item("messages", index), prompt)
            .map_err(|refusal| refusal.within_item(index))?;
    }
    prompt.put_results_first();
    Ok(())
}

fn message(node: Node<'_>, place: Place, prompt: &mut Prompt) -> Result<(), Refusal> {
    let mut message = Members::of(node)?;
    let role = message.required_string("role")?;
    let content = message.take("content")?;
    match role.as_str() {
        "system" | "developer" => {
            let blocks = parts::content(content, place, &mut prompt.rest)?;
            if let Some(other) = blocks.iter().find(|block| block.content.as_text().is_none()) {
                let text = "expected text alone in a system or developer message";
                return Err(Refusal::new(message.at, text).within(&other.place.to_string()));
            }
            let role = if role == "system" { InstructionRole::System } else { InstructionRole::Developer };
            prompt.instructions.push(Instruction { role, blocks, before_turn: prompt.turns.len() });
        }
        "user" => {
            let blocks = parts::content(content, place, &mut prompt.rest)?;
            prompt.say(Role::User, blocks);
        }
        "assistant" => {
            let blocks = assistant(&mut message, content, place, prompt)?;
            prompt.say(Role::Assistant, blocks);
        }
        "tool" => {
            let id = message.required_string("tool_call_id")?;
            let blocks = parts::content(content, place, &mut prompt.rest)?;
            let result = Content::ToolResult(ToolResult { id, blocks, is_error: false });
            prompt.say(Role::User, vec![Block::at(place, result)]);
        }
        _ => {
            let text = "expected the role `system`, `developer`, `user`, `assistant` or `tool`";
            return Err(Refusal::new(message.at, text).within("role"));
        }
    }
    message.leave(&place.to_string(), &mut prompt.rest);
    Ok(())
}

fn assistant(
    message: &mut Members<'_>,
    content: Option<Node<'_>>,
    place: Place,
    prompt: &mut Prompt,
) -> Result<Vec<Block>, Refusal> {
    if let Some(node) = message.take("function_call")? {
        let text = "functions cannot be translated for this provider; use `tools` and `tool_choice`";
        return Err(Refusal::new(node.at, text).within("function_call"));
    }
    let mut blocks = thinking(message, place)?;
    blocks.extend(parts::content(content, place, &mut prompt.rest)?);
    if let Some(refusal) = message.string("refusal")? {
        blocks.push(Block::at(place.in_field("refusal"), Content::Refusal(refusal)));
    }
    for (index, node) in message.array("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
        let place = place.in_part("tool_calls", index);
        let call = tool_call(node, place, prompt)
            .map_err(|refusal| refusal.within_item(index).within("tool_calls"))?;
        blocks.push(Block::at(place, Content::ToolUse(call)));
    }
    Ok(blocks)
}

fn tool_call(node: Node<'_>, place: Place, prompt: &mut Prompt) -> Result<ToolUse, Refusal> {
    let mut call = Members::of(node)?;
    call.take("type")?;
    call.take("index")?;
    let id = call.required_string("id")?;
    let signature = google_signature(&mut call)?;
    let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
    let read = |function: &mut Members<'_>| {
        let name = function.required_string("name")?;
        let written = function.string("arguments")?.unwrap_or_default();
        let arguments = if written.trim().is_empty() { "{}".to_owned() } else { written };
        if !RawJson::new(&arguments).is_some_and(|value| value.is_object()) {
            return Err(Refusal::new(function.at, "expected a JSON object as text").within("arguments"));
        }
        Ok(ToolUse { id, name, arguments, signature })
    };
    let read = read(&mut function).map_err(|refusal| refusal.within("function"))?;
    function.leave(&place.below("function"), &mut prompt.rest);
    call.leave(&place.to_string(), &mut prompt.rest);
    Ok(read)
}

/// Reads the signature that Google's compatible endpoint puts beside a call.
fn google_signature(call: &mut Members<'_>) -> Result<Option<Signature>, Refusal> {
    let Some(extra) = call.take("extra_content")? else { return Ok(None) };
    let signature = extra.get("google").and_then(|google| google.filled("thought_signature"));
    Ok(signature.map(|text| Signature::from_wire(&text, Origin::Gemini)))
}

/// Reads the reasoning that a caller gives back: `reasoning_details` with signatures where there are any (OpenRouter's
/// field, which gw writes too), else the bare text.
fn thinking(message: &mut Members<'_>, place: Place) -> Result<Vec<Block>, Refusal> {
    let content = message.string("reasoning_content")?;
    let reasoning = message.take("reasoning")?.and_then(|node| node.as_str().map(|text| text.into_owned()));
    let details = message.array("reasoning_details")?.unwrap_or_default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut last_index = None;
    for (index, detail) in details.iter().enumerate() {
        let place = place.in_part("reasoning_details", index);
        let signature = detail.filled("signature").map(|text| Signature::from_wire(&text, Origin::Anthropic));
        let said = match detail.text("type").as_deref() {
            Some("reasoning.text") => detail.text("text").unwrap_or_default(),
            Some("reasoning.summary") => detail.text("summary").unwrap_or_default(),
            Some("reasoning.encrypted") => {
                if let Some(data) = detail.filled("data") {
                    let data = Signature::from_wire(&data, Origin::OpenAi);
                    blocks.push(Block::at(place, Content::RedactedThinking(data)));
                }
                continue;
            }
            Some(_) | None => continue,
        };
        if said.is_empty() && signature.is_none() {
            continue;
        }
        // Fragments of a stream that the caller kept apart have one index.
        let number = detail.count("index");
        let same = number.is_some() && number == last_index;
        last_index = number;
        match blocks.last_mut().map(|block| &mut block.content) {
            Some(Content::Thinking(thinking)) if same => {
                thinking.text.push_str(&said);
                thinking.signature = signature.or(thinking.signature.take());
            }
            Some(_) | None => {
                blocks.push(Block::at(place, Content::Thinking(Thinking { text: said, signature })));
            }
        }
    }
    if blocks.is_empty()
        && let Some(text) = content.or(reasoning).filter(|text| !text.is_empty())
    {
        let place = place.in_field("reasoning_content");
        blocks.push(Block::at(place, Content::Thinking(Thinking { text, signature: None })));
    }
    Ok(blocks)
}
