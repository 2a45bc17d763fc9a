//! Reads the blocks of which messages are made.

use crate::{
    json::{Node, Value},
    members::Members,
    neutral::{
        Block, Citation, Content, Document, DocumentSource, Image, MediaSource, Opaque, Origin, Place,
        RawJson, Signature, Text, Thinking, ToolResult, ToolUse, Unknown,
    },
    openai::{prompt::cache_mark, refusal::Refusal},
};

/// Reads the system prompt: a string, or text blocks.
pub(super) fn system(node: Node<'_>, rest: &mut Vec<Unknown>) -> Result<Vec<Block>, Refusal> {
    list(node, Place::field("system"), |index| Place::item("system", index), rest)
}

/// Reads `content`: a string, or blocks. `place` is the message's.
pub(super) fn content(node: Node<'_>, place: Place, rest: &mut Vec<Unknown>) -> Result<Vec<Block>, Refusal> {
    list(node, place.in_field("content"), |index| place.in_part("content", index), rest)
}

fn list(
    node: Node<'_>,
    whole: Place,
    part: impl Fn(usize) -> Place,
    rest: &mut Vec<Unknown>,
) -> Result<Vec<Block>, Refusal> {
    let at = node.at;
    match node.value {
        Value::String(text) => Ok(vec![Block::at(whole, Content::text(text.decoded()))]),
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| block(item, part(index), rest).map_err(|refusal| refusal.within_item(index)))
            .collect(),
        Value::Object(_) | Value::Number | Value::Bool(_) | Value::Null => {
            Err(Refusal::new(at, "expected a string or an array of blocks"))
        }
    }
}

/// Gives signatures of Gemini's back to the calls and texts that they belong to: the format has no place for them there,
/// so that gw writes them as blocks of their own, before a call and behind a text.
pub(super) fn reattach(blocks: Vec<Block>) -> Vec<Block> {
    let mut kept: Vec<Block> = Vec::with_capacity(blocks.len());
    let mut blocks = blocks.into_iter().peekable();
    while let Some(block) = blocks.next() {
        let signature = match &block.content {
            Content::RedactedThinking(data) if data.origin == Origin::Gemini => data.clone(),
            _ => {
                kept.push(block);
                continue;
            }
        };
        let next = blocks.peek_mut().map(|block| &mut block.content);
        let last = kept.last_mut().map(|block| &mut block.content);
        match (next, last) {
            (Some(Content::ToolUse(call)), _) if call.signature.is_none() => call.signature = Some(signature),
            (_, Some(Content::Text(text))) if text.signature.is_none() => text.signature = Some(signature),
            _ => kept.push(block),
        }
    }
    kept
}

/// Reads one block; the recursion is bounded by the reader's bound on depth. Blocks inside of a block have its place.
fn block(node: Node<'_>, place: Place, rest: &mut Vec<Unknown>) -> Result<Block, Refusal> {
    let raw = node.raw;
    let mut members = Members::of(node)?;
    let kind = members.required_string("type")?;
    let content = match kind.as_str() {
        "text" => Content::Text(text(&mut members)?),
        "image" => Content::Image(Image { source: media(&mut members)?, detail: None }),
        "document" => Content::Document(document(&mut members, place, rest)?),
        "tool_use" => Content::ToolUse(tool_use(&mut members)?),
        "tool_result" => Content::ToolResult(tool_result(&mut members, place, rest)?),
        "thinking" => Content::Thinking(Thinking {
            text: members.required_string("thinking")?,
            signature: signature(&mut members, "signature")?,
        }),
        "redacted_thinking" => {
            let data = signature(&mut members, "data")?;
            Content::RedactedThinking(data.ok_or_else(|| members.missing("data"))?)
        }
        _ => {
            let value = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
            return Ok(Block::at(place, Content::Opaque(Opaque { origin: Origin::Anthropic, value })));
        }
    };
    let cache = cache_mark(&mut members)?;
    members.leave(&place.to_string(), rest);
    Ok(Block { content, cache, place })
}

fn text(members: &mut Members<'_>) -> Result<Text, Refusal> {
    let text = members.required_string("text")?;
    let cited = members.array("citations")?.unwrap_or_default();
    Ok(Text { text, citations: cited.iter().map(citation).collect(), signature: None })
}

/// Reads what a text is taken from, of whichever kind.
pub(crate) fn citation(node: &Node<'_>) -> Citation {
    Citation {
        url: node.filled("url"),
        title: node.filled("title").or_else(|| node.filled("document_title")),
        quote: node.filled("cited_text"),
        span: None,
        native: RawJson::new(node.raw).map(|raw| (Origin::Anthropic, raw)),
    }
}

fn signature(members: &mut Members<'_>, name: &'static str) -> Result<Option<Signature>, Refusal> {
    let text = members.string(name)?.filter(|text| !text.is_empty());
    Ok(text.map(|text| Signature::from_wire(&text, Origin::Anthropic)))
}

/// Reads `source` where it names a file.
fn media(members: &mut Members<'_>) -> Result<MediaSource, Refusal> {
    let mut source = members.object("source")?.ok_or_else(|| members.missing("source"))?;
    let kind = source.required_string("type").map_err(|refusal| refusal.within("source"))?;
    file(&kind, &mut source)
        .and_then(|file| {
            file.ok_or_else(|| Refusal::new(source.at, "expected `base64`, `url` or `file`").within("type"))
        })
        .map_err(|refusal| refusal.within("source"))
}

fn file(kind: &str, source: &mut Members<'_>) -> Result<Option<MediaSource>, Refusal> {
    Ok(Some(match kind {
        "base64" => MediaSource::Data {
            media_type: source.required_string("media_type")?,
            base64: source.required_string("data")?,
        },
        "url" => MediaSource::Url(source.required_string("url")?),
        "file" => MediaSource::File(Origin::Anthropic, source.required_string("file_id")?),
        _ => return Ok(None),
    }))
}

fn document(members: &mut Members<'_>, place: Place, rest: &mut Vec<Unknown>) -> Result<Document, Refusal> {
    let mut source = members.object("source")?.ok_or_else(|| members.missing("source"))?;
    let mut read = || {
        let kind = source.required_string("type")?;
        if let Some(file) = file(&kind, &mut source)? {
            return Ok(DocumentSource::Media(file));
        }
        match kind.as_str() {
            "text" => {
                source.take("media_type")?;
                Ok(DocumentSource::Text(source.required_string("data")?))
            }
            "content" => {
                let node = source.take("content")?.ok_or_else(|| source.missing("content"))?;
                let blocks =
                    list(node, place, |_| place, rest).map_err(|refusal| refusal.within("content"))?;
                Ok(DocumentSource::Blocks(blocks))
            }
            _ => Err(Refusal::new(source.at, "unknown type of source").within("type")),
        }
    };
    let source = read().map_err(|refusal: Refusal| refusal.within("source"))?;
    let citations = match members.object("citations")? {
        Some(mut config) => config.boolean("enabled")?.unwrap_or(false),
        None => false,
    };
    Ok(Document { source, title: members.string("title")?, context: members.string("context")?, citations })
}

fn tool_use(members: &mut Members<'_>) -> Result<ToolUse, Refusal> {
    let input = members.raw_object("input")?.unwrap_or_else(RawJson::empty_object);
    Ok(ToolUse {
        id: members.required_string("id")?,
        name: members.required_string("name")?,
        arguments: input.as_str().to_owned(),
        signature: None,
    })
}

fn tool_result(
    members: &mut Members<'_>,
    place: Place,
    rest: &mut Vec<Unknown>,
) -> Result<ToolResult, Refusal> {
    let blocks = match members.take("content")? {
        Some(node) => list(node, place, |_| place, rest).map_err(|refusal| refusal.within("content"))?,
        None => Vec::new(),
    };
    Ok(ToolResult {
        id: members.required_string("tool_use_id")?,
        blocks,
        is_error: members.boolean("is_error")?.unwrap_or(false),
    })
}
