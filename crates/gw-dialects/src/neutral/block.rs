//! What a turn or an answer is made of.

use super::{Place, RawJson, Signature, redacted};

/// One block of a turn. Prints as redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    /// What it holds.
    pub content: Content,
    /// Whether a prompt cache shall end here.
    pub cache: Option<CacheMark>,
    /// Where it stands in the caller's body.
    pub place: Place,
}

/// What a block holds. Prints as redacted.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(Text),
    /// An image.
    Image(Image),
    /// A document.
    Document(Document),
    /// Sound.
    Audio(Audio),
    /// A call of a tool.
    ToolUse(ToolUse),
    /// What a tool brought back; in user turns only.
    ToolResult(ToolResult),
    /// Reasoning that is shown.
    Thinking(Thinking),
    /// Reasoning that only its provider can read.
    RedactedThinking(Signature),
    /// The model declined, and said so.
    Refusal(String),
    /// A block that only one provider knows: a server tool and what it found.
    Opaque(Opaque),
}

/// Says that a prompt cache shall end at a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMark {
    /// Kept for the provider's usual time, 5 minutes at Anthropic.
    Short,
    /// Kept for an hour.
    Long,
}

/// Text, and what it is taken from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// What it is taken from, in order.
    pub citations: Vec<Citation>,
    /// Opaque state that belongs to the text (Gemini).
    pub signature: Option<Signature>,
}

/// Says what a text is taken from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Citation {
    /// The address of the source.
    pub url: Option<String>,
    /// The title of the source.
    pub title: Option<String>,
    /// The words of the source.
    pub quote: Option<String>,
    /// Which part of the answer's text it supports: first character, one past the last.
    pub span: Option<(u64, u64)>,
    /// The citation as its own format writes it.
    pub native: Option<(super::Origin, RawJson)>,
}

/// An image.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it is.
    pub source: MediaSource,
    /// How closely to look: `low`, `high`, `auto`.
    pub detail: Option<String>,
}

/// Where an image or a file is.
#[derive(Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// At an address that the provider fetches.
    Url(String),
    /// In the request.
    Data {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes, as base64 text.
        base64: String,
    },
    /// At the provider, under an id that only it knows.
    File(super::Origin, String),
}

/// A document.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it is.
    pub source: DocumentSource,
    /// Its title or file name.
    pub title: Option<String>,
    /// What the caller says about it.
    pub context: Option<String>,
    /// Whether the answer shall cite it.
    pub citations: bool,
}

/// Where a document is.
#[derive(Clone, PartialEq, Eq)]
pub enum DocumentSource {
    /// A file.
    Media(MediaSource),
    /// Plain text in the request.
    Text(String),
    /// Blocks in the request, text and images.
    Blocks(Vec<Block>),
}

/// Sound.
#[derive(Clone, PartialEq, Eq)]
pub struct Audio {
    /// The format, such as `wav` or `mp3`.
    pub format: String,
    /// The bytes, as base64 text.
    pub base64: String,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text. In a request always an object; in an answer what the model wrote, which may be cut.
    pub arguments: String,
    /// Opaque state that belongs to the call (Gemini).
    pub signature: Option<Signature>,
}

impl ToolUse {
    /// Returns the arguments as an object: what the model wrote where that is one, else the empty object.
    pub fn arguments_object(&self) -> RawJson {
        RawJson::new(&self.arguments).filter(RawJson::is_object).unwrap_or_else(RawJson::empty_object)
    }
}

/// What a tool brought back.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// Text, images, documents.
    pub blocks: Vec<Block>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Reasoning that is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Thinking {
    /// The reasoning; may be empty where only the signature counts.
    pub text: String,
    /// What lets the provider trust it when it comes back.
    pub signature: Option<Signature>,
}

/// A block that only one provider knows.
#[derive(Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Whose it is.
    pub origin: super::Origin,
    /// The whole block as it was written.
    pub value: RawJson,
}

redacted!(
    Block,
    Content,
    Text,
    Citation,
    Image,
    MediaSource,
    Document,
    DocumentSource,
    Audio,
    ToolUse,
    ToolResult,
    Thinking,
    Opaque,
);

impl MediaSource {
    /// Returns an address that holds or names the file: a `data:` URL for one in the request (RFC 2397); `None` for a file
    /// that only a provider knows.
    pub fn to_url(&self) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Data { media_type, base64 } => Some(format!("data:{media_type};base64,{base64}")),
            Self::File(..) => None,
        }
    }
}

impl Block {
    /// Returns a block that no caller wrote.
    pub fn new(content: Content) -> Self {
        Self { content, cache: None, place: Place::default() }
    }

    /// Returns a block of the caller's body.
    pub fn at(place: Place, content: Content) -> Self {
        Self { content, cache: None, place }
    }
}

impl Content {
    /// Returns a text without citations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), ..Text::default() })
    }

    /// Returns the text if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            Self::Image(_)
            | Self::Document(_)
            | Self::Audio(_)
            | Self::ToolUse(_)
            | Self::ToolResult(_)
            | Self::Thinking(_)
            | Self::RedactedThinking(_)
            | Self::Refusal(_)
            | Self::Opaque(_) => None,
        }
    }
}
