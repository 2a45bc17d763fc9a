//! Reads of a request body what decisions need, in one pass, and leaves the rest alone.

#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use gw_types::{
    BodySpan, BoundedText, Capability, CapabilitySet, ErrorKind, GatewayError, OutputField, RequestFacts,
    RequestedOutput, Temperature, TokenCount,
};

use super::{
    messages::{self, Contents},
    refusal::{Refusal, field_name, optional_boolean, optional_string},
};
use crate::json::{Kind, Reader, Text};

/// The longest model name, in bytes.
const MODEL_BYTES_MAX: usize = 256;
/// The most answers that may be asked for at once.
const CHOICES_MAX: u64 = 128;

/// Reads the facts of a chat-completions request.
///
/// One pass over the body, which is validated as JSON on the way; no text is copied but the model name and the user
/// label. Fields that gw does not read may hold anything.
///
/// # Errors
/// `InvalidRequest`, with the line and column and, where a field is at fault, its path as parameter: for a body that is
/// no UTF-8, no JSON object or nested deeper than 100 levels; for a field that gw reads and that is missing, repeated, of
/// the wrong type or out of range.
pub fn read_chat(body: &Bytes) -> Result<RequestFacts, GatewayError> {
    let text = body_text(body)?;
    read(text).map_err(|refusal| refusal.into_error(text))
}

/// Returns a request body as text.
///
/// # Errors
/// `InvalidRequest`, for a body that is no UTF-8 or holds nothing.
pub(crate) fn body_text(body: &[u8]) -> Result<&str, GatewayError> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => {
            let valid = std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default();
            return Err(Refusal::new(valid.len(), "the body is not valid UTF-8").into_error(valid));
        }
    };
    if text.trim_ascii().is_empty() {
        return Err(GatewayError::new(
            ErrorKind::InvalidRequest,
            "the body is empty; expected a JSON object",
        ));
    }
    Ok(text)
}

fn read(text: &str) -> Result<RequestFacts, Refusal> {
    let mut reader = Reader::new(text);
    if reader.kind()? != Kind::Object {
        return Err(Refusal::new(reader.at(), "expected the body to be a JSON object"));
    }
    let object_start = reader.at() + 1;
    let mut body = Body::default();
    reader.object::<Refusal>(|reader, key| {
        let Some(field) = Field::named(field_name(key)?) else {
            reader.skip()?;
            return Ok(());
        };
        if body.seen & field.bit() != 0 {
            let refusal = Refusal::new(key.span().start, "a field stands in the body more than once");
            return Err(refusal.within(field.as_str()));
        }
        body.seen |= field.bit();
        body.read(field, reader).map_err(|refusal| refusal.within(field.as_str()))
    })?;
    reader.end()?;
    body.into_facts(object_start)
}

/// A field of the body that gw reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Model,
    Messages,
    Stream,
    StreamOptions,
    MaxTokens,
    MaxCompletionTokens,
    Choices,
    Tools,
    Functions,
    ResponseFormat,
    Modalities,
    Audio,
    Temperature,
    User,
}

impl Field {
    const ALL: [Self; 14] = [
        Self::Model,
        Self::Messages,
        Self::Stream,
        Self::StreamOptions,
        Self::MaxTokens,
        Self::MaxCompletionTokens,
        Self::Choices,
        Self::Tools,
        Self::Functions,
        Self::ResponseFormat,
        Self::Modalities,
        Self::Audio,
        Self::Temperature,
        Self::User,
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Messages => "messages",
            Self::Stream => "stream",
            Self::StreamOptions => "stream_options",
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::Choices => "n",
            Self::Tools => "tools",
            Self::Functions => "functions",
            Self::ResponseFormat => "response_format",
            Self::Modalities => "modalities",
            Self::Audio => "audio",
            Self::Temperature => "temperature",
            Self::User => "user",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// What was read of the body so far.
#[derive(Default)]
struct Body<'a> {
    /// One bit a field.
    seen: u32,
    model: Option<Text<'a>>,
    contents: Contents,
    has_messages: bool,
    stream: bool,
    include_usage: bool,
    stream_options: Option<Range<usize>>,
    max_tokens: Option<RequestedOutput>,
    max_completion_tokens: Option<RequestedOutput>,
    choices: Option<u64>,
    tool_bytes: u64,
    tools: bool,
    json_schema: bool,
    audio: bool,
    temperature: Option<Temperature>,
    user: Option<Text<'a>>,
}

impl<'a> Body<'a> {
    fn read(&mut self, field: Field, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        match field {
            Field::Model => self.model = Some(model(reader)?),
            Field::Messages => {
                self.contents = messages::read(reader)?;
                self.has_messages = true;
            }
            Field::Stream => self.stream = optional_boolean(reader)?,
            Field::StreamOptions => {
                if let Some(options) = stream_options(reader)? {
                    self.include_usage = options.include_usage;
                    self.stream_options = Some(options.object);
                }
            }
            Field::MaxTokens => self.max_tokens = output(reader, OutputField::MaxTokens)?,
            Field::MaxCompletionTokens => {
                self.max_completion_tokens = output(reader, OutputField::MaxCompletionTokens)?;
            }
            Field::Choices => self.choices = choices(reader)?,
            Field::Tools | Field::Functions => self.tools(reader)?,
            Field::ResponseFormat => self.response_format(reader)?,
            Field::Modalities => self.modalities(reader)?,
            Field::Audio => {
                self.audio |= reader.kind()? != Kind::Null;
                reader.skip()?;
            }
            Field::Temperature => self.temperature = temperature(reader)?,
            Field::User => self.user = optional_string(reader)?,
        }
        Ok(())
    }

    /// Reads tool or function definitions; a request with an empty list needs no tools.
    fn tools(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        match reader.kind()? {
            Kind::Null => {
                reader.null()?;
            }
            Kind::Array => {
                let start = reader.at();
                reader.array::<Refusal>(|reader, index| {
                    self.tools = true;
                    object_start(reader).map_err(|refusal| refusal.within_item(index))?;
                    reader.skip()?;
                    Ok(())
                })?;
                self.tool_bytes += (reader.at() - start) as u64;
            }
            Kind::Object | Kind::String | Kind::Number | Kind::Bool => {
                return Err(Refusal::new(reader.at(), "expected an array of objects"));
            }
        }
        Ok(())
    }

    fn response_format(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        let start = object_start(reader)?;
        reader.object::<Refusal>(|reader, key| {
            if field_name(key)? == "type" {
                let kind = optional_string(reader).map_err(|refusal| refusal.within("type"))?;
                self.json_schema |= kind.is_some_and(|kind| kind.decoded() == "json_schema");
            } else {
                reader.skip()?;
            }
            Ok(())
        })?;
        if self.json_schema {
            self.tool_bytes += (reader.at() - start) as u64;
        }
        Ok(())
    }

    fn modalities(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        if reader.kind()? != Kind::Array {
            return Err(Refusal::new(reader.at(), "expected an array of strings"));
        }
        reader.array::<Refusal>(|reader, index| {
            let modality = optional_string(reader).map_err(|refusal| refusal.within_item(index))?;
            self.audio |= modality.is_some_and(|modality| modality.decoded() == "audio");
            Ok(())
        })
    }

    fn into_facts(self, object_start: usize) -> Result<RequestFacts, Refusal> {
        let missing = |field: Field, message| Refusal::new(object_start - 1, message).within(field.as_str());
        let Some(model) = self.model else {
            return Err(missing(Field::Model, "the field `model` is missing"));
        };
        if !self.has_messages {
            return Err(missing(Field::Messages, "the field `messages` is missing"));
        }
        let needs = self.needs();
        let audio = self.audio || self.contents.audio;
        Ok(RequestFacts {
            model: Arc::from(model.decoded()),
            model_span: span(model.span()),
            object_start,
            stream: self.stream,
            include_usage: self.include_usage,
            stream_options: self.stream_options.map(span),
            output: output_of(self.max_completion_tokens, self.max_tokens)?,
            choices: u32::try_from(self.choices.unwrap_or(1)).unwrap_or(1),
            text_bytes: self.contents.text_bytes,
            text_classes: self.contents.text_classes,
            messages: self.contents.messages,
            tool_bytes: self.tool_bytes,
            images: self.contents.images,
            audio,
            needs,
            temperature: self.temperature.unwrap_or(Temperature::Absent),
            user: self.user.map(|user| BoundedText::new(&user.decoded())),
        })
    }

    /// Returns what the deployment must be able to do.
    ///
    /// `seed`, `logprobs`, parallel tool calls and reasoning settings are wishes: providers without them ignore them or say
    /// so themselves, and few configurations list them.
    fn needs(&self) -> CapabilitySet {
        let needs = [
            (true, Capability::Chat),
            (self.stream, Capability::Streaming),
            (self.tools, Capability::Tools),
            (self.json_schema, Capability::JsonSchema),
            (self.contents.images > 0, Capability::Vision),
            (self.audio || self.contents.audio, Capability::Audio),
            (self.contents.documents, Capability::Documents),
        ];
        needs.into_iter().filter_map(|(needed, capability)| needed.then_some(capability)).collect()
    }
}

pub(crate) fn span(range: Range<usize>) -> BodySpan {
    BodySpan { start: range.start, end: range.end }
}

pub(crate) fn object_start(reader: &mut Reader<'_>) -> Result<usize, Refusal> {
    match reader.kind()? {
        Kind::Object => Ok(reader.at()),
        Kind::Array | Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
            Err(Refusal::new(reader.at(), "expected an object"))
        }
    }
}

/// What `stream_options` holds, and where it stands.
pub(crate) struct StreamOptionsField {
    pub(crate) object: Range<usize>,
    pub(crate) include_usage: bool,
}

/// Reads `stream_options`, or `null` as none.
pub(crate) fn stream_options(reader: &mut Reader<'_>) -> Result<Option<StreamOptionsField>, Refusal> {
    if reader.null()? {
        return Ok(None);
    }
    let start = object_start(reader)?;
    let mut seen = false;
    let mut include_usage = false;
    reader.object::<Refusal>(|reader, key| {
        if field_name(key)? != "include_usage" {
            reader.skip()?;
            return Ok(());
        }
        if std::mem::replace(&mut seen, true) {
            let refusal = Refusal::new(key.span().start, "a field stands in the body more than once");
            return Err(refusal.within("include_usage"));
        }
        include_usage = optional_boolean(reader).map_err(|refusal| refusal.within("include_usage"))?;
        Ok(())
    })?;
    Ok(Some(StreamOptionsField { object: start..reader.at(), include_usage }))
}

pub(crate) fn model<'a>(reader: &mut Reader<'a>) -> Result<Text<'a>, Refusal> {
    if reader.kind()? != Kind::String {
        return Err(Refusal::new(reader.at(), "expected a string"));
    }
    let model = reader.string()?;
    let refused = |message| Err(Refusal::new(model.span().start, message));
    let name = model.decoded();
    if name.is_empty() {
        return refused("the model name is empty");
    }
    if name.len() > MODEL_BYTES_MAX {
        return refused("the model name is longer than 256 bytes");
    }
    if name.chars().any(char::is_control) {
        return refused("the model name has a control character");
    }
    Ok(model)
}

/// Reads a whole number, or `null` as none; the caller says what the number must be.
pub(crate) fn whole(
    reader: &mut Reader<'_>,
    message: &'static str,
) -> Result<Option<(u64, Range<usize>)>, Refusal> {
    if reader.null()? {
        return Ok(None);
    }
    let start = reader.at();
    if reader.kind()? != Kind::Number {
        return Err(Refusal::new(start, message));
    }
    match reader.number()?.parse() {
        Ok(number) => Ok(Some((number, start..reader.at()))),
        Err(_) => Err(Refusal::new(start, message)),
    }
}

pub(crate) fn output(
    reader: &mut Reader<'_>,
    field: OutputField,
) -> Result<Option<RequestedOutput>, Refusal> {
    const MESSAGE: &str = "expected a whole number of at least 1";
    match whole(reader, MESSAGE)? {
        None => Ok(None),
        Some((0, range)) => Err(Refusal::new(range.start, MESSAGE)),
        Some((tokens, range)) => {
            Ok(Some(RequestedOutput { tokens: TokenCount::new(tokens), span: span(range), field }))
        }
    }
}

/// Returns the bound where one or both fields name it; both must agree.
fn output_of(
    newer: Option<RequestedOutput>,
    older: Option<RequestedOutput>,
) -> Result<Option<RequestedOutput>, Refusal> {
    if let (Some(newer), Some(older)) = (newer, older)
        && newer.tokens != older.tokens
    {
        let message = "`max_tokens` and `max_completion_tokens` are both set and differ; set one";
        return Err(Refusal::new(older.span.start, message).within(Field::MaxTokens.as_str()));
    }
    Ok(newer.or(older))
}

pub(crate) fn choices(reader: &mut Reader<'_>) -> Result<Option<u64>, Refusal> {
    const MESSAGE: &str = "expected a whole number from 1 to 128";
    match whole(reader, MESSAGE)? {
        Some((number, range)) if number == 0 || number > CHOICES_MAX => {
            Err(Refusal::new(range.start, MESSAGE))
        }
        Some((number, _)) => Ok(Some(number)),
        None => Ok(None),
    }
}

pub(crate) fn temperature(reader: &mut Reader<'_>) -> Result<Option<Temperature>, Refusal> {
    if reader.null()? {
        return Ok(None);
    }
    if reader.kind()? != Kind::Number {
        return Err(Refusal::new(reader.at(), "expected a number"));
    }
    // Zero in any spelling: no digit of the mantissa is another one.
    let mantissa = reader.number()?.split(['e', 'E']).next().unwrap_or_default();
    let zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    Ok(Some(if zero { Temperature::Zero } else { Temperature::Above }))
}
