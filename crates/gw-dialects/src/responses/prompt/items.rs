//! Reads the items of the input into turns.

use crate::{
    json::{Node, Value},
    members::Members,
    neutral::{
        Audio, Block, Content, Document, DocumentSource, Image, Instruction, InstructionRole, MediaSource,
        Opaque, Origin, Place, Prompt, RawJson, Role, Signature, Thinking, ToolResult, ToolUse, Unknown,
    },
    openai::{answer, prompt::media, refusal::Refusal},
};

/// Reads the items. Neighbours of one role become one turn; what tools brought back belongs to the user's.
pub(super) fn read(items: Vec<Node<'_>>, prompt: &mut Prompt) -> Result<(), Refusal> {
    for (index, node) in items.into_iter().enumerate() {
        let place = Place::item("input", index);
        item(node, place, prompt).map_err(|refusal| refusal.within_item(index))?;
    }
    prompt.put_results_first();
    Ok(())
}

fn item(node: Node<'_>, place: Place, prompt: &mut Prompt) -> Result<(), Refusal> {
    let raw = node.raw;
    let signature = answer::signature(&node);
    let mut item = Members::of(node)?;
    let kind = item.string("type")?;
    match kind.as_deref() {
        None | Some("message") => return message(item, place, prompt),
        Some("function_call") => {
            let call = Content::ToolUse(call(&mut item, signature)?);
            prompt.say(Role::Assistant, vec![Block::at(place, call)]);
        }
        Some("function_call_output") => {
            let id = item.required_string("call_id")?;
            let output = item.take("output")?.ok_or_else(|| item.missing("output"))?;
            let blocks = content(output, place, "output", &mut prompt.rest)?;
            let result = Content::ToolResult(ToolResult { id, blocks, is_error: false });
            prompt.say(Role::User, vec![Block::at(place, result)]);
        }
        Some("reasoning") => {
            let Some(thought) = reasoning(&mut item)? else {
                // All that it says is the id of what the provider keeps.
                let value = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
                prompt.rest.push(Unknown { path: place.to_string(), value });
                return Ok(());
            };
            prompt.say(Role::Assistant, vec![Block::at(place, thought)]);
        }
        Some("item_reference") => {
            let message = "what it names is kept by one provider, and this deployment is another's";
            return Err(Refusal::new(item.at, message));
        }
        Some(other) => {
            let value = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
            let role = if other.ends_with("_output") { Role::User } else { Role::Assistant };
            let block = Content::Opaque(Opaque { origin: Origin::OpenAi, value });
            prompt.say(role, vec![Block::at(place, block)]);
            return Ok(());
        }
    }
    // Ids and states of items say nothing to anybody but the provider that made them.
    for field in ["id", "status"] {
        item.take(field)?;
    }
    item.leave(&place.to_string(), &mut prompt.rest);
    Ok(())
}

fn message(mut message: Members<'_>, place: Place, prompt: &mut Prompt) -> Result<(), Refusal> {
    let role = message.required_string("role")?;
    let node = message.take("content")?.ok_or_else(|| message.missing("content"))?;
    let blocks = content(node, place, "content", &mut prompt.rest)?;
    match role.as_str() {
        "user" => prompt.say(Role::User, blocks),
        "assistant" => prompt.say(Role::Assistant, blocks),
        "system" | "developer" => {
            if blocks.iter().any(|block| block.content.as_text().is_none()) {
                let text = "expected text alone in a system or developer message";
                return Err(Refusal::new(message.at, text).within("content"));
            }
            let role = if role == "system" { InstructionRole::System } else { InstructionRole::Developer };
            prompt.instructions.push(Instruction { role, blocks, before_turn: prompt.turns.len() });
        }
        _ => {
            let text = "expected the role `user`, `assistant`, `system` or `developer`";
            return Err(Refusal::new(message.at, text).within("role"));
        }
    }
    for field in ["id", "status", "phase"] {
        message.take(field)?;
    }
    message.leave(&place.to_string(), &mut prompt.rest);
    Ok(())
}

fn call(item: &mut Members<'_>, signature: Option<Signature>) -> Result<ToolUse, Refusal> {
    item.take("extra_content")?;
    let id = item.required_string("call_id")?;
    let name = item.required_string("name")?;
    let written = item.string("arguments")?.unwrap_or_default();
    let arguments = if written.trim().is_empty() { "{}".to_owned() } else { written };
    if !RawJson::new(&arguments).is_some_and(|value| value.is_object()) {
        return Err(Refusal::new(item.at, "expected a JSON object as text").within("arguments"));
    }
    Ok(ToolUse { id, name, arguments, signature })
}

/// Reads reasoning that a caller gives back; `None` where it is not in the request itself.
fn reasoning(item: &mut Members<'_>) -> Result<Option<Content>, Refusal> {
    let summary = item.array("summary")?.unwrap_or_default();
    let content = item.array("content")?.unwrap_or_default();
    let encrypted = item.string("encrypted_content")?.filter(|text| !text.is_empty());
    let signature = encrypted.map(|text| Signature::from_wire(&text, Origin::OpenAi));
    Ok(thought(&content, &summary, signature))
}

/// Returns reasoning in neutral parts: the text itself where a provider shows it, else its summary.
pub(in crate::responses) fn thought(
    content: &[Node<'_>],
    summary: &[Node<'_>],
    signature: Option<Signature>,
) -> Option<Content> {
    let said = |parts: &[Node<'_>]| {
        let parts: Vec<String> = parts.iter().filter_map(|part| part.filled("text")).collect();
        parts.join("\n\n")
    };
    let text = if content.is_empty() { said(summary) } else { said(content) };
    match (text.is_empty(), signature) {
        (true, Some(signature)) => Some(Content::RedactedThinking(signature)),
        (true, None) => None,
        (false, signature) => Some(Content::Thinking(Thinking { text, signature })),
    }
}

/// Reads a string or parts, in the field `field` of the item at `place`.
fn content(
    node: Node<'_>,
    place: Place,
    field: &'static str,
    rest: &mut Vec<Unknown>,
) -> Result<Vec<Block>, Refusal> {
    let at = node.at;
    match node.value {
        Value::String(text) => {
            Ok(vec![Block::at(place.in_field(field), Content::text(text.decoded().into_owned()))])
        }
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                part(item, place.in_part(field, index), rest).map_err(|refusal| refusal.within_item(index))
            })
            .collect::<Result<_, _>>()
            .map_err(|refusal: Refusal| refusal.within(field)),
        Value::Object(_) | Value::Number | Value::Bool(_) | Value::Null => {
            Err(Refusal::new(at, "expected a string or an array of parts").within(field))
        }
    }
}

fn part(node: Node<'_>, place: Place, rest: &mut Vec<Unknown>) -> Result<Block, Refusal> {
    let raw = node.raw;
    let mut part = Members::of(node)?;
    let kind = part.required_string("type")?;
    let content = match kind.as_str() {
        "input_text" | "output_text" | "text" => Content::text(part.required_string("text")?),
        "refusal" => Content::Refusal(part.required_string("refusal")?),
        "input_image" => Content::Image(image(&mut part)?),
        "input_file" => Content::Document(file(&mut part)?),
        "input_audio" => Content::Audio(audio(&mut part)?),
        _ => {
            let value = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
            return Ok(Block::at(place, Content::Opaque(Opaque { origin: Origin::OpenAi, value })));
        }
    };
    part.leave(&place.to_string(), rest);
    Ok(Block::at(place, content))
}

fn audio(part: &mut Members<'_>) -> Result<Audio, Refusal> {
    const FIELD: &str = "input_audio";
    let mut audio = part.object(FIELD)?.ok_or_else(|| part.missing(FIELD))?;
    Ok(Audio {
        format: audio.required_string("format").map_err(|refusal| refusal.within(FIELD))?,
        base64: audio.required_string("data").map_err(|refusal| refusal.within(FIELD))?,
    })
}

fn image(part: &mut Members<'_>) -> Result<Image, Refusal> {
    let detail = part.string("detail")?;
    let source = match (part.string("image_url")?, part.string("file_id")?) {
        (Some(url), _) => media(url),
        (None, Some(id)) => MediaSource::File(Origin::OpenAi, id),
        (None, None) => return Err(part.missing("image_url")),
    };
    Ok(Image { source, detail })
}

fn file(part: &mut Members<'_>) -> Result<Document, Refusal> {
    let title = part.string("filename")?;
    let data = part.string("file_data")?;
    let source = match (data, part.string("file_url")?, part.string("file_id")?) {
        (Some(data), ..) => match media(data) {
            // The field is meant for a `data:` URL, and known to be filled with bare base64.
            MediaSource::Url(text) => {
                MediaSource::Data { media_type: "application/pdf".to_owned(), base64: text }
            }
            source => source,
        },
        (None, Some(url), _) => MediaSource::Url(url),
        (None, None, Some(id)) => MediaSource::File(Origin::OpenAi, id),
        (None, None, None) => return Err(part.missing("file_data")),
    };
    Ok(Document { source: DocumentSource::Media(source), title, context: None, citations: false })
}
