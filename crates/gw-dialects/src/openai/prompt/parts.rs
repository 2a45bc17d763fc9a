//! Reads what messages are made of.

use super::super::refusal::Refusal;
use crate::{
    json::{Node, Value},
    members::{Members, string},
    neutral::{
        Audio, Block, CacheMark, Content, Document, DocumentSource, Image, MediaSource, Opaque, Origin,
        Place, RawJson, Unknown,
    },
};

/// Reads `content`: a string, parts, or nothing. `place` is the message's.
pub(super) fn content(
    node: Option<Node<'_>>,
    place: Place,
    rest: &mut Vec<Unknown>,
) -> Result<Vec<Block>, Refusal> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let at = node.at;
    match node.value {
        Value::String(text) => {
            let text = text.decoded().into_owned();
            Ok(vec![Block::at(place.in_field("content"), Content::text(text))])
        }
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                part(item, place.in_part("content", index), rest)
                    .map_err(|refusal| refusal.within_item(index))
            })
            .collect::<Result<_, _>>()
            .map_err(|refusal: Refusal| refusal.within("content")),
        Value::Object(_) | Value::Number | Value::Bool(_) | Value::Null => {
            Err(Refusal::new(at, "expected a string, an array of parts or null").within("content"))
        }
    }
}

fn part(node: Node<'_>, place: Place, rest: &mut Vec<Unknown>) -> Result<Block, Refusal> {
    let raw = node.raw;
    let mut part = Members::of(node)?;
    let kind = part.required_string("type")?;
    let content = match kind.as_str() {
        "text" => Content::text(part.required_string("text")?),
        "refusal" => Content::Refusal(part.required_string("refusal")?),
        "image_url" => Content::Image(image(&mut part)?),
        "input_audio" => {
            let mut audio = part.object(&kind)?.ok_or_else(|| part.missing("input_audio"))?;
            Content::Audio(Audio {
                format: audio.required_string("format").map_err(|refusal| refusal.within(&kind))?,
                base64: audio.required_string("data").map_err(|refusal| refusal.within(&kind))?,
            })
        }
        "file" => {
            let mut file = part.object(&kind)?.ok_or_else(|| part.missing("file"))?;
            Content::Document(document(&mut file).map_err(|refusal| refusal.within(&kind))?)
        }
        _ => Content::Opaque(Opaque {
            origin: Origin::OpenAi,
            value: RawJson::new(raw).unwrap_or_else(RawJson::empty_object),
        }),
    };
    let cache = cache_mark(&mut part)?;
    if !matches!(content, Content::Opaque(_)) {
        part.leave(&place.to_string(), rest);
    }
    Ok(Block { content, cache, place })
}

fn image(part: &mut Members<'_>) -> Result<Image, Refusal> {
    let Some(node) = part.take("image_url")? else { return Err(part.missing("image_url")) };
    if matches!(node.value, Value::String(_)) {
        // Mistral takes the address alone.
        return Ok(Image { source: media(string(&node)?), detail: None });
    }
    let read = |node| {
        let mut image = Members::of(node)?;
        Ok(Image { source: media(image.required_string("url")?), detail: image.string("detail")? })
    };
    read(node).map_err(|refusal: Refusal| refusal.within("image_url"))
}

/// Reads an address: a `data:` URL holds the file itself (RFC 2397), without parameters but `base64`.
pub(crate) fn media(url: String) -> MediaSource {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    match data.and_then(|(head, base64)| Some((head.strip_suffix(";base64")?, base64))) {
        Some((head, base64)) => MediaSource::Data {
            media_type: head.split(';').next().unwrap_or_default().to_owned(),
            base64: base64.to_owned(),
        },
        None => MediaSource::Url(url),
    }
}

fn document(file: &mut Members<'_>) -> Result<Document, Refusal> {
    let title = file.string("filename")?;
    let source = match (file.string("file_data")?, file.string("file_id")?) {
        (Some(data), _) => match media(data) {
            // The field is meant for a `data:` URL, and known to be filled with bare base64.
            MediaSource::Url(text) if !text.starts_with("http") => {
                MediaSource::Data { media_type: "application/pdf".to_owned(), base64: text }
            }
            source => source,
        },
        (None, Some(id)) => MediaSource::File(Origin::OpenAi, id),
        (None, None) => return Err(file.missing("file_data")),
    };
    Ok(Document { source: DocumentSource::Media(source), title, context: None, citations: false })
}

/// Reads the mark at which a prompt cache ends; OpenRouter has taken it over from Anthropic.
pub(crate) fn cache_mark(object: &mut Members<'_>) -> Result<Option<CacheMark>, Refusal> {
    let Some(mut mark) = object.object("cache_control")? else { return Ok(None) };
    let long = mark.string("ttl").map_err(|refusal| refusal.within("cache_control"))?;
    Ok(Some(if long.as_deref() == Some("1h") { CacheMark::Long } else { CacheMark::Short }))
}
