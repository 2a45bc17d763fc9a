//! The parts of a content.

use std::borrow::Cow;

use gw_types::LossKind;

use super::super::model::Model;
use crate::{
    json::Writer,
    neutral::{
        Block, Content, Document, DocumentSource, Image, LossReport, MediaSource, Origin, RawJson, Signature,
        Text, Thinking, ToolUse,
    },
};

/// What Google tells clients to send for a call that has no signature, such as one that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// One part of a content.
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        is_thought: bool,
        signature: Option<&'a str>,
    },
    /// Bytes in the request.
    Inline {
        media_type: Cow<'a, str>,
        base64: &'a str,
    },
    /// Bytes at an address or at Google.
    File {
        address: &'a str,
        media_type: Option<&'static str>,
    },
    Call {
        name: &'a str,
        arguments: RawJson,
        signature: Option<&'a str>,
    },
    Response {
        name: &'a str,
        text: String,
        is_error: bool,
    },
    /// A part as Gemini wrote it.
    Raw(&'a str),
}

impl<'a> Part<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text { text: Cow::Borrowed(text), is_thought: false, signature: None }
    }

    pub(super) fn write(&self, json: &mut Writer) {
        match self {
            Self::Text { text, is_thought, signature } => json.object(|json| {
                json.member_string("text", text);
                if *is_thought {
                    json.member_bool("thought", true);
                }
                write_signature(json, *signature);
            }),
            Self::Inline { media_type, base64 } => json.object(|json| {
                json.member_object("inlineData", |json| {
                    json.member_string("mimeType", media_type);
                    json.member_string("data", base64);
                });
            }),
            Self::File { address, media_type } => json.object(|json| {
                json.member_object("fileData", |json| {
                    if let Some(media_type) = media_type {
                        json.member_string("mimeType", media_type);
                    }
                    json.member_string("fileUri", address);
                });
            }),
            // Ids are left out: Vertex AI refuses them.
            Self::Call { name, arguments, signature } => json.object(|json| {
                json.member_object("functionCall", |json| {
                    json.member_string("name", name);
                    json.member_raw("args", arguments.as_str());
                });
                write_signature(json, *signature);
            }),
            Self::Response { name, text, is_error } => json.object(|json| {
                json.member_object("functionResponse", |json| {
                    json.member_string("name", name);
                    json.member_object("response", |json| {
                        json.member_string(if *is_error { "error" } else { "output" }, text);
                    });
                });
            }),
            Self::Raw(value) => json.raw(value),
        }
    }
}

fn write_signature(json: &mut Writer, signature: Option<&str>) {
    if let Some(signature) = signature {
        json.member_string("thoughtSignature", signature);
    }
}

/// The parts of a turn of the model's. Signatures that came apart from their part find the next one.
pub(super) struct TurnParts<'a> {
    parts: Vec<Part<'a>>,
    model: Model,
    /// A signature that stood on reasoning, for the part that follows it.
    pending: Option<&'a str>,
    has_calls: bool,
}

impl<'a> TurnParts<'a> {
    pub(super) fn new(model: Model) -> Self {
        Self { parts: Vec::new(), model, pending: None, has_calls: false }
    }

    pub(super) fn add(&mut self, block: &'a Block, loss: &mut LossReport) {
        match &block.content {
            Content::Text(text) => self.add_text(block, text, loss),
            Content::Thinking(thinking) => self.add_thinking(block, thinking, loss),
            Content::RedactedThinking(signature) => {
                if let Some(own) = own_signature(block, Some(signature), loss) {
                    self.pending = Some(own);
                }
            }
            Content::ToolUse(call) => self.add_call(block, call, loss),
            Content::Refusal(text) => {
                loss.block(block.place, LossKind::Emulated, "Gemini has no refusals; it is text");
                self.parts.extend((!text.is_empty()).then(|| Part::text(text)));
            }
            Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::Opaque(_) => self.parts.extend(user_part(block, &block.content, loss)),
        }
    }

    /// Returns the parts; a signature that found no part gets an empty one, as Gemini itself sends it.
    pub(super) fn finish(mut self) -> Vec<Part<'a>> {
        if let Some(signature) = self.pending.take() {
            self.parts.push(signed_text("", Some(signature)));
        }
        self.parts
    }

    fn add_text(&mut self, block: &'a Block, text: &'a Text, loss: &mut LossReport) {
        if !text.citations.is_empty() {
            loss.dropped(&block.place.below("citations"), "Gemini takes no citations");
        }
        let signature = own_signature(block, text.signature.as_ref(), loss).or(self.pending.take());
        if !text.text.is_empty() || signature.is_some() {
            self.parts.push(signed_text(&text.text, signature));
        }
    }

    fn add_thinking(&mut self, block: &'a Block, thinking: &'a Thinking, loss: &mut LossReport) {
        let Some(signature) = &thinking.signature else {
            let why = "reasoning without a signature is not sent back";
            loss.block(block.place, LossKind::Dropped, why);
            return;
        };
        if let Some(own) = own_signature(block, Some(signature), loss) {
            if !thinking.text.is_empty() {
                let text = Cow::Borrowed(thinking.text.as_str());
                self.parts.push(Part::Text { text, is_thought: true, signature: None });
            }
            self.pending = Some(own);
        }
    }

    fn add_call(&mut self, block: &'a Block, call: &'a ToolUse, loss: &mut LossReport) {
        let own = own_signature(block, call.signature.as_ref(), loss).or(self.pending.take());
        // Of calls at once only the first carries one.
        let is_first = !std::mem::replace(&mut self.has_calls, true);
        let needed = is_first && self.model.demands_signatures();
        let signature = own.or(needed.then_some(NO_SIGNATURE));
        self.parts.push(Part::Call { name: &call.name, arguments: call.arguments_object(), signature });
    }
}

fn signed_text<'a>(text: &'a str, signature: Option<&'a str>) -> Part<'a> {
    Part::Text { text: Cow::Borrowed(text), is_thought: false, signature }
}

/// Returns a signature of Gemini's; another provider's is reported and goes nowhere.
fn own_signature<'a>(
    block: &Block,
    signature: Option<&'a Signature>,
    loss: &mut LossReport,
) -> Option<&'a str> {
    let signature = signature?;
    match signature.origin {
        Origin::Gemini => Some(&signature.data),
        Origin::Anthropic | Origin::Bedrock | Origin::OpenAi => {
            let why = "signed reasoning goes back to its own provider only";
            loss.block(block.place, LossKind::Dropped, why);
            None
        }
    }
}

/// Returns what a user says or shows as a part, if Gemini can be shown it.
pub(super) fn user_part<'a>(
    block: &'a Block,
    content: &'a Content,
    loss: &mut LossReport,
) -> Option<Part<'a>> {
    match content {
        Content::Text(text) => (!text.text.is_empty()).then(|| Part::text(&text.text)),
        Content::Refusal(text) => (!text.is_empty()).then(|| Part::text(text)),
        Content::Image(image) => image_part(block, image, loss),
        Content::Document(document) => document_part(block, document, loss),
        Content::Audio(audio) => {
            let media_type = Cow::Owned(format!("audio/{}", audio.format));
            Some(Part::Inline { media_type, base64: &audio.base64 })
        }
        Content::Opaque(opaque) if opaque.origin == Origin::Gemini => Some(Part::Raw(opaque.value.as_str())),
        Content::Opaque(_) => {
            loss.block(block.place, LossKind::Dropped, "the block belongs to another provider");
            None
        }
        Content::ToolUse(_)
        | Content::ToolResult(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_) => {
            loss.block(block.place, LossKind::Dropped, "Gemini has no place for the block here");
            None
        }
    }
}

fn image_part<'a>(block: &Block, image: &'a Image, loss: &mut LossReport) -> Option<Part<'a>> {
    if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
        loss.detail(block.place, "Gemini decides how closely it looks");
    }
    media_part(block, &image.source, "image/jpeg", loss)
}

fn document_part<'a>(block: &Block, document: &'a Document, loss: &mut LossReport) -> Option<Part<'a>> {
    const WHY: &str = "Gemini takes a document and nothing about it";
    if document.title.is_some() {
        loss.title(block.place, WHY);
    }
    let notes = [("context", document.context.is_some()), ("citations", document.citations)];
    for (field, _) in notes.into_iter().filter(|(_, is_set)| *is_set) {
        loss.dropped(&block.place.below(field), WHY);
    }
    match &document.source {
        DocumentSource::Media(source) => media_part(block, source, "application/pdf", loss),
        DocumentSource::Text(text) => (!text.is_empty()).then(|| Part::text(text)),
        DocumentSource::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.content.as_text()).collect::<Vec<_>>();
            if texts.len() < blocks.len() {
                loss.block(block.place, LossKind::Approximated, "of the document only the text is sent");
            }
            let text: Cow<'a, str> = Cow::Owned(texts.join("\n"));
            (!text.is_empty()).then_some(Part::Text { text, is_thought: false, signature: None })
        }
    }
}

/// Returns a file; where an address does not say what it leads to, `usual` is what such files are.
fn media_part<'a>(
    block: &Block,
    source: &'a MediaSource,
    usual: &'static str,
    loss: &mut LossReport,
) -> Option<Part<'a>> {
    match source {
        MediaSource::Data { media_type, base64 } => {
            Some(Part::Inline { media_type: Cow::Borrowed(media_type), base64 })
        }
        MediaSource::Url(address) => {
            Some(Part::File { address, media_type: Some(media_type_of(address).unwrap_or(usual)) })
        }
        MediaSource::File(Origin::Gemini, address) => Some(Part::File { address, media_type: None }),
        MediaSource::File(Origin::Anthropic | Origin::Bedrock | Origin::OpenAi, _) => {
            loss.block(block.place, LossKind::Dropped, "the file is kept by another provider");
            None
        }
    }
}

/// Returns the media type that the end of an address says.
fn media_type_of(address: &str) -> Option<&'static str> {
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let (_, end) = path.rsplit_once('.')?;
    let types = [
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("webp", "image/webp"),
        ("gif", "image/gif"),
        ("heic", "image/heic"),
        ("heif", "image/heif"),
        ("pdf", "application/pdf"),
        ("txt", "text/plain"),
        ("md", "text/markdown"),
        ("csv", "text/csv"),
        ("html", "text/html"),
        ("mp4", "video/mp4"),
        ("mp3", "audio/mp3"),
        ("wav", "audio/wav"),
    ];
    types.iter().find(|(known, _)| end.eq_ignore_ascii_case(known)).map(|(_, media_type)| *media_type)
}
