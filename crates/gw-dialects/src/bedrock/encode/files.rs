//! Files: pictures and documents.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use gw_types::LossKind;

use super::parts::Part;
use crate::{
    json::Writer,
    neutral::{Block, Document, DocumentSource, Image, LossReport, MediaSource, Origin},
};

/// The longest name of a document, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Where a file is.
pub(super) enum File<'a> {
    Bytes(Cow<'a, str>),
    S3(&'a str),
    Texts(Vec<&'a str>),
}

impl File<'_> {
    pub(super) fn write(&self, json: &mut Writer) {
        json.member_object("source", |json| match self {
            Self::Bytes(base64) => json.member_string("bytes", base64),
            Self::S3(address) => {
                json.member_object("s3Location", |json| json.member_string("uri", address));
            }
            Self::Texts(texts) => json.member_array("content", |json| {
                texts.iter().for_each(|text| json.object(|json| json.member_string("text", text)));
            }),
        });
    }
}

/// The names of a request's documents so far.
#[derive(Default)]
pub(super) struct Names {
    used: BTreeSet<String>,
    /// How often each name was asked for, so that the next free number is found at once.
    asked: BTreeMap<String, u32>,
}

impl Names {
    /// Returns a name for a document: the title, in the characters that Bedrock takes, and different from all others.
    fn name(&mut self, title: Option<&str>) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-()[] ".contains(c);
        let title: String =
            title.unwrap_or("Document").chars().map(|c| if plain(c) { c } else { ' ' }).collect();
        let words = title.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let name = if words.is_empty() { "Document" } else { &words[..words.len().min(NAME_BYTES_MAX)] };
        let name = name.trim_end();
        let number = self.asked.entry(name.to_owned()).or_default();
        let mut unique = name.to_owned();
        while !self.used.insert(unique.clone()) {
            *number += 1;
            unique = format!("{name} {}", *number + 1);
        }
        unique
    }
}

/// Returns a document as a block, if Bedrock takes its type.
pub(super) fn document_part<'a>(
    block: &Block,
    document: &'a Document,
    names: &mut Names,
    loss: &mut LossReport,
) -> Option<Part<'a>> {
    let (format, file) = match &document.source {
        DocumentSource::Text(text) => ("txt", File::Bytes(Cow::Owned(STANDARD.encode(text)))),
        DocumentSource::Blocks(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block.content.as_text()).collect();
            if texts.len() < blocks.len() {
                loss.block(block.place, LossKind::Approximated, "of the document only the text is sent");
            }
            ("txt", File::Texts(texts))
        }
        DocumentSource::Media(source) => {
            let file = file(block, source, loss)?;
            let format = format_of(source, &DOCUMENT_FORMATS);
            let Some(format) = format else {
                loss.block(block.place, LossKind::Dropped, "Bedrock takes no documents of this type");
                return None;
            };
            (format, file)
        }
    };
    let name = names.name(document.title.as_deref());
    let context = document.context.as_deref();
    Some(Part::Document { format, name, context, cited: document.citations, file })
}

/// Returns a picture as a block, if Bedrock takes its type.
pub(super) fn image_part<'a>(block: &Block, image: &'a Image, loss: &mut LossReport) -> Option<Part<'a>> {
    if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
        loss.detail(block.place, "the model decides how closely it looks");
    }
    let file = file(block, &image.source, loss)?;
    let Some(format) = format_of(&image.source, &IMAGE_FORMATS) else {
        loss.block(block.place, LossKind::Dropped, "Bedrock takes no pictures of this type");
        return None;
    };
    Some(Part::Image { format, file })
}

fn file<'a>(block: &Block, source: &'a MediaSource, loss: &mut LossReport) -> Option<File<'a>> {
    let why = match source {
        MediaSource::Data { base64, .. } => return Some(File::Bytes(Cow::Borrowed(base64))),
        MediaSource::Url(address) | MediaSource::File(Origin::Bedrock, address)
            if address.starts_with("s3://") =>
        {
            return Some(File::S3(address));
        }
        MediaSource::Url(_) => "Bedrock fetches nothing from an address outside of S3",
        MediaSource::File(..) => "the file is kept by another provider",
    };
    loss.block(block.place, LossKind::Dropped, why);
    None
}

/// Formats by what media types and addresses end with.
const IMAGE_FORMATS: [(&str, &str); 5] =
    [("png", "png"), ("jpeg", "jpeg"), ("jpg", "jpeg"), ("gif", "gif"), ("webp", "webp")];
const DOCUMENT_FORMATS: [(&str, &str); 16] = [
    ("pdf", "pdf"),
    ("csv", "csv"),
    ("html", "html"),
    ("plain", "txt"),
    ("txt", "txt"),
    ("markdown", "md"),
    ("md", "md"),
    ("msword", "doc"),
    ("doc", "doc"),
    ("vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("docx", "docx"),
    ("vnd.ms-excel", "xls"),
    ("xls", "xls"),
    ("vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("xlsx", "xlsx"),
    ("json", "txt"),
];

fn format_of(source: &MediaSource, formats: &[(&str, &'static str)]) -> Option<&'static str> {
    let end = match source {
        MediaSource::Data { media_type, .. } => {
            let kind = media_type.split(';').next().unwrap_or(media_type);
            kind.rsplit('/').next()
        }
        MediaSource::Url(address) | MediaSource::File(_, address) => address.rsplit('.').next(),
    }?;
    let end = end.trim();
    formats.iter().find(|(known, _)| end.eq_ignore_ascii_case(known)).map(|(_, format)| *format)
}
