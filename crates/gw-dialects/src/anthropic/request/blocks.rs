//! Writes blocks.

use gw_types::LossKind;

use crate::{
    json::Writer,
    neutral::{
        Block, Citation, Content, Document, DocumentSource, LossReport, MediaSource, Origin, Signature, Text,
        ToolResult, ToolUse,
    },
    openai::thoughts::cache_mark,
};

const OTHER_FILE: &str = "the file is one that only another provider knows";

/// Returns whether a block has a place in the format; says in the report why not.
pub(super) fn is_written(block: &Block, loss: &mut LossReport) -> bool {
    let mut lost = |why| {
        loss.block(block.place, LossKind::Dropped, why);
        false
    };
    match &block.content {
        // Blocks of blanks alone are refused, and say nothing.
        Content::Text(text) => {
            let is_own = |citation: &Citation| {
                citation.native.as_ref().is_some_and(|(origin, _)| *origin == Origin::Anthropic)
            };
            if !text.citations.iter().all(is_own) {
                loss.dropped(&block.place.below("citations"), "the citations are another provider's");
            }
            report_signature(block, text.signature.as_ref(), loss);
            !text.text.trim().is_empty()
        }
        Content::Refusal(text) => {
            loss.block(block.place, LossKind::Approximated, "the refusal stands as text");
            !text.trim().is_empty()
        }
        Content::Image(image) => {
            if let MediaSource::File(origin, _) = &image.source
                && *origin != Origin::Anthropic
            {
                return lost(OTHER_FILE);
            }
            if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
                loss.detail(block.place, "the provider's format has no such setting");
            }
            true
        }
        Content::Document(document) => match &document.source {
            DocumentSource::Media(MediaSource::File(origin, _)) if *origin != Origin::Anthropic => {
                lost(OTHER_FILE)
            }
            DocumentSource::Media(MediaSource::Data { media_type, .. })
                if media_type != "application/pdf" =>
            {
                lost("of files in the request the provider reads PDF alone")
            }
            DocumentSource::Media(_) | DocumentSource::Text(_) | DocumentSource::Blocks(_) => true,
        },
        Content::Audio(_) => lost("the provider hears no sound"),
        Content::ToolUse(call) => {
            report_signature(block, call.signature.as_ref(), loss);
            true
        }
        Content::ToolResult(result) => {
            for inner in &result.blocks {
                is_written(inner, loss);
            }
            true
        }
        Content::Thinking(thinking) => match &thinking.signature {
            Some(signature) if signature.origin == Origin::Anthropic => true,
            Some(_) => lost("reasoning goes back to its own provider alone"),
            None => lost("reasoning without a signature is refused"),
        },
        Content::RedactedThinking(data) if data.origin == Origin::Anthropic => true,
        Content::RedactedThinking(_) => lost("reasoning goes back to its own provider alone"),
        Content::Opaque(opaque) if opaque.origin == Origin::Anthropic => true,
        Content::Opaque(_) => lost("the block is one of another provider's own"),
    }
}

/// Reports a signature that stands on text or on a call, where the format has no place for one.
fn report_signature(block: &Block, signature: Option<&Signature>, loss: &mut LossReport) {
    if signature.is_some() {
        let why = "signed reasoning goes back to its own provider only";
        loss.block(block.place, LossKind::Dropped, why);
    }
}

/// Writes blocks that have a place in the format: text alone as a string, anything else as a list.
pub(super) fn write_list(json: &mut Writer, blocks: &[&Block]) {
    if let [Block { content: Content::Text(Text { text, citations, .. }), cache: None, .. }] = blocks
        && citations.is_empty()
    {
        return json.string(text);
    }
    json.array(|json| blocks.iter().for_each(|block| write(json, block)));
}

fn write(json: &mut Writer, block: &Block) {
    let typed = |json: &mut Writer, kind: &str, members: &dyn Fn(&mut Writer)| {
        json.object(|json| {
            json.member_string("type", kind);
            members(json);
            cache_mark(json, block.cache);
        });
    };
    match &block.content {
        Content::Text(text) => typed(json, "text", &|json| self::text(json, text)),
        Content::Refusal(text) => typed(json, "text", &|json| json.member_string("text", text)),
        Content::Image(image) => typed(json, "image", &|json| media(json, &image.source)),
        Content::Document(document) => typed(json, "document", &|json| self::document(json, document)),
        Content::ToolUse(call) => typed(json, "tool_use", &|json| tool_use(json, call)),
        Content::ToolResult(result) => typed(json, "tool_result", &|json| tool_result(json, result)),
        Content::Thinking(thinking) => json.object(|json| {
            json.member_string("type", "thinking");
            json.member_string("thinking", &thinking.text);
            if let Some(signature) = &thinking.signature {
                json.member_string("signature", &signature.data);
            }
        }),
        Content::RedactedThinking(data) => json.object(|json| {
            json.member_string("type", "redacted_thinking");
            json.member_string("data", &data.data);
        }),
        Content::Opaque(opaque) => json.raw(opaque.value.as_str()),
        // Sorted out before.
        Content::Audio(_) => {}
    }
}

fn text(json: &mut Writer, text: &Text) {
    json.member_string("text", &text.text);
    let native = text.citations.iter().filter_map(|citation| citation.native.as_ref());
    let own: Vec<&str> =
        native.filter(|(origin, _)| *origin == Origin::Anthropic).map(|(_, raw)| raw.as_str()).collect();
    if !own.is_empty() {
        json.member_array("citations", |json| own.iter().for_each(|raw| json.raw(raw)));
    }
}

fn media(json: &mut Writer, source: &MediaSource) {
    json.member_object("source", |json| match source {
        MediaSource::Url(url) => {
            json.member_string("type", "url");
            json.member_string("url", url);
        }
        MediaSource::Data { media_type, base64 } => {
            json.member_string("type", "base64");
            json.member_string("media_type", media_type);
            json.member_string("data", base64);
        }
        MediaSource::File(_, id) => {
            json.member_string("type", "file");
            json.member_string("file_id", id);
        }
    });
}

fn document(json: &mut Writer, document: &Document) {
    match &document.source {
        DocumentSource::Media(source) => media(json, source),
        DocumentSource::Text(text) => json.member_object("source", |json| {
            json.member_string("type", "text");
            json.member_string("media_type", "text/plain");
            json.member_string("data", text);
        }),
        DocumentSource::Blocks(blocks) => json.member_object("source", |json| {
            json.member_string("type", "content");
            json.member_array("content", |json| blocks.iter().for_each(|block| write(json, block)));
        }),
    }
    if let Some(title) = &document.title {
        json.member_string("title", title);
    }
    if let Some(context) = &document.context {
        json.member_string("context", context);
    }
    if document.citations {
        json.member_object("citations", |json| json.member_bool("enabled", true));
    }
}

fn tool_use(json: &mut Writer, call: &ToolUse) {
    json.member_string("id", &known_id(&call.id));
    json.member_string("name", &call.name);
    json.member_raw("input", call.arguments_object().as_str());
}

fn tool_result(json: &mut Writer, result: &ToolResult) {
    json.member_string("tool_use_id", &known_id(&result.id));
    // What is lost was said before.
    let mut unheard = LossReport::new(gw_types::Operation::Messages);
    let blocks: Vec<&Block> = result.blocks.iter().filter(|block| is_written(block, &mut unheard)).collect();
    if !blocks.is_empty() {
        json.key("content");
        write_list(json, &blocks);
    }
    if result.is_error {
        json.member_bool("is_error", true);
    }
}

/// Returns an id of the characters that the format takes; calls and results get the same.
fn known_id(id: &str) -> String {
    let known = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    id.chars().map(|character| if known(character) { character } else { '_' }).collect()
}
