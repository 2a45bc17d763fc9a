//! The blocks of a message.

use std::borrow::Cow;

use gw_types::LossKind;

use super::{
    super::model::Model,
    files::{self, File, Names},
};
use crate::{
    json::Writer,
    neutral::{Block, CacheMark, Content, LossReport, Origin, Place, RawJson, Role, Signature, ToolResult},
};

/// The most cache marks of one request.
const MARKS_MAX: u32 = 4;
/// The longest id of a call, in bytes.
const ID_BYTES_MAX: usize = 64;

/// The cache marks of a request.
pub(super) struct Marks {
    model: Model,
    written: u32,
}

impl Marks {
    pub(super) fn new(model: Model) -> Self {
        Self { model, written: 0 }
    }

    /// Writes a mark as the next item, if the model and the request have room for it.
    pub(super) fn write(&mut self, json: &mut Writer, mark: CacheMark, place: Place, loss: &mut LossReport) {
        if !self.model.caches() {
            loss.dropped(&place.below("cache_control"), "the model is not known to cache prompts");
            return;
        }
        if self.written >= MARKS_MAX {
            loss.dropped(&place.below("cache_control"), "Bedrock takes four cache marks");
            return;
        }
        self.written += 1;
        let long = mark == CacheMark::Long && self.model.caches_long();
        if mark == CacheMark::Long && !long {
            loss.approximated(&place.below("cache_control"), "the model caches for the usual time only");
        }
        json.object(|json| {
            json.member_object("cachePoint", |json| {
                json.member_string("type", "default");
                if long {
                    json.member_string("ttl", "1h");
                }
            });
        });
    }
}

/// One block of a message.
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    Image {
        format: &'static str,
        file: File<'a>,
    },
    Document {
        format: &'static str,
        name: String,
        context: Option<&'a str>,
        cited: bool,
        file: File<'a>,
    },
    Audio {
        format: &'a str,
        base64: &'a str,
    },
    Call {
        id: Cow<'a, str>,
        name: &'a str,
        input: RawJson,
    },
    Result {
        id: Cow<'a, str>,
        content: Vec<Part<'a>>,
        is_error: bool,
    },
    Thinking {
        text: &'a str,
        signature: &'a str,
    },
    Redacted(&'a str),
    /// A block as Bedrock wrote it.
    Raw(&'a str),
    Mark(CacheMark, Place),
}

impl<'a> Part<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    pub(super) fn write(&self, json: &mut Writer, marks: &mut Marks, loss: &mut LossReport) {
        match self {
            Self::Text(text) => json.object(|json| json.member_string("text", text)),
            Self::Raw(value) => json.raw(value),
            Self::Mark(mark, place) => marks.write(json, *mark, *place, loss),
            Self::Redacted(data) => json.object(|json| {
                json.member_object("reasoningContent", |json| json.member_string("redactedContent", data));
            }),
            Self::Thinking { text, signature } => json.object(|json| {
                json.member_object("reasoningContent", |json| {
                    json.member_object("reasoningText", |json| {
                        json.member_string("text", text);
                        json.member_string("signature", signature);
                    });
                });
            }),
            Self::Call { id, name, input } => json.object(|json| {
                json.member_object("toolUse", |json| {
                    json.member_string("toolUseId", id);
                    json.member_string("name", name);
                    json.member_raw("input", input.as_str());
                });
            }),
            Self::Result { id, content, is_error } => json.object(|json| {
                json.member_object("toolResult", |json| {
                    json.member_string("toolUseId", id);
                    json.member_array("content", |json| {
                        content.iter().for_each(|part| part.write(json, marks, loss));
                    });
                    // Only some models know the mark, and success is what they take for granted.
                    if *is_error {
                        json.member_string("status", "error");
                    }
                });
            }),
            Self::Image { .. } | Self::Document { .. } | Self::Audio { .. } => self.write_file(json),
        }
    }

    fn write_file(&self, json: &mut Writer) {
        match self {
            Self::Image { format, file } => json.object(|json| {
                json.member_object("image", |json| {
                    json.member_string("format", format);
                    file.write(json);
                });
            }),
            Self::Document { format, name, context, cited, file } => json.object(|json| {
                json.member_object("document", |json| {
                    json.member_string("format", format);
                    json.member_string("name", name);
                    file.write(json);
                    if let Some(context) = context {
                        json.member_string("context", context);
                    }
                    if *cited {
                        json.member_object("citations", |json| json.member_bool("enabled", true));
                    }
                });
            }),
            Self::Audio { format, base64 } => json.object(|json| {
                json.member_object("audio", |json| {
                    json.member_string("format", format);
                    File::Bytes(Cow::Borrowed(base64)).write(json);
                });
            }),
            Self::Text(_)
            | Self::Call { .. }
            | Self::Result { .. }
            | Self::Thinking { .. }
            | Self::Redacted(_)
            | Self::Raw(_)
            | Self::Mark(..) => {}
        }
    }
}

/// Makes blocks; remembers the names of documents, which must differ.
#[derive(Default)]
pub(super) struct Parts {
    names: Names,
}

impl Parts {
    /// Returns a block of a turn, if Bedrock has a place for it.
    pub(super) fn part<'a>(
        &mut self,
        block: &'a Block,
        role: Role,
        loss: &mut LossReport,
    ) -> Option<Part<'a>> {
        match &block.content {
            Content::Text(text) => {
                if role == Role::Assistant && !text.citations.is_empty() {
                    loss.dropped(&block.place.below("citations"), "citations are not sent back");
                }
                report_signature(block, text.signature.as_ref(), loss);
                filled(&text.text)
            }
            Content::Refusal(text) => {
                loss.block(block.place, LossKind::Emulated, "Bedrock has no refusals; it is text");
                filled(text)
            }
            Content::Image(image) => files::image_part(block, image, loss),
            Content::Document(document) => files::document_part(block, document, &mut self.names, loss),
            Content::Audio(audio) => Some(Part::Audio { format: &audio.format, base64: &audio.base64 }),
            Content::ToolUse(call) => {
                report_signature(block, call.signature.as_ref(), loss);
                Some(Part::Call { id: plain_id(&call.id), name: &call.name, input: call.arguments_object() })
            }
            Content::ToolResult(result) => Some(self.result_part(result, role, loss)),
            Content::Thinking(thinking) => match own_signature(block, thinking.signature.as_ref(), loss) {
                Some(signature) => Some(Part::Thinking { text: &thinking.text, signature }),
                None => {
                    if thinking.signature.is_none() {
                        let why = "reasoning without a signature is not sent back";
                        loss.block(block.place, LossKind::Dropped, why);
                    }
                    None
                }
            },
            Content::RedactedThinking(signature) => {
                own_signature(block, Some(signature), loss).map(Part::Redacted)
            }
            Content::Opaque(opaque) if opaque.origin == Origin::Bedrock => {
                Some(Part::Raw(opaque.value.as_str()))
            }
            Content::Opaque(_) => {
                loss.block(block.place, LossKind::Dropped, "the block belongs to another provider");
                None
            }
        }
    }

    fn result_part<'a>(&mut self, result: &'a ToolResult, role: Role, loss: &mut LossReport) -> Part<'a> {
        let mut content: Vec<Part<'a>> =
            result.blocks.iter().filter_map(|block| self.part(block, role, loss)).collect();
        if content.is_empty() {
            // Something must stand there, and blank text is refused.
            content.push(Part::Raw(r#"{"json":{}}"#));
        }
        Part::Result { id: plain_id(&result.id), content, is_error: result.is_error }
    }
}

fn filled(text: &str) -> Option<Part<'_>> {
    // Blank text is refused.
    (!text.trim().is_empty()).then(|| Part::text(text))
}

/// Returns an id in the characters and the length that Bedrock takes; equal ids stay equal, and different ones different.
fn plain_id(id: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !id.is_empty() && id.len() <= ID_BYTES_MAX && id.chars().all(plain) {
        return Cow::Borrowed(id);
    }
    let kept: String = id.chars().map(|c| if plain(c) { c } else { '_' }).take(ID_BYTES_MAX - 9).collect();
    Cow::Owned(format!("{kept}_{:08x}", crc32fast::hash(id.as_bytes())))
}

/// Returns a signature of Bedrock's; another provider's is reported and goes nowhere.
fn own_signature<'a>(
    block: &Block,
    signature: Option<&'a Signature>,
    loss: &mut LossReport,
) -> Option<&'a str> {
    let signature = signature?;
    match signature.origin {
        Origin::Bedrock => Some(&signature.data),
        Origin::Anthropic | Origin::Gemini | Origin::OpenAi => {
            let why = "signed reasoning goes back to its own provider only";
            loss.block(block.place, LossKind::Dropped, why);
            None
        }
    }
}

/// Reports a signature that stands on text or on a call, where Bedrock has no place for one.
fn report_signature(block: &Block, signature: Option<&Signature>, loss: &mut LossReport) {
    if signature.is_some() {
        let why = "signed reasoning goes back to its own provider only";
        loss.block(block.place, LossKind::Dropped, why);
    }
}
