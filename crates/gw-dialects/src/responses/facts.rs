//! Reads of a responses request what decisions need.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{
    BoundedText, Capability, CapabilitySet, GatewayError, OutputField, RequestFacts, RequestedOutput,
    Temperature, TextClasses,
};

use crate::{
    json::{Kind, Reader, Text},
    openai::{
        facts::{body_text, model, object_start, output, temperature},
        fields::{self, bare_facts, missing},
        refusal::{Refusal, field_name, optional_boolean, optional_string},
    },
};

/// What was read of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponsesRequest {
    /// What a decision needs.
    pub facts: RequestFacts,
    /// What of the conversation lives at the provider.
    pub state: ProviderState,
}

/// What a request wants the provider to know or to keep beyond the call.
///
/// gw keeps no conversations: a request that goes on from something can only be answered where that something lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderState {
    /// `previous_response_id`: the answer that the request goes on from.
    pub previous_response_id: Option<BoundedText>,
    /// Whether it names a `conversation`.
    pub conversation: bool,
    /// Whether it names a stored `prompt`.
    pub stored_prompt: bool,
    /// Whether the input refers to items by id, which only the provider can look up.
    pub item_reference: bool,
    /// `background: true`: the answer is fetched later.
    pub background: bool,
    /// `store`; absent means that the provider keeps the answer.
    pub store: Option<bool>,
}

impl ProviderState {
    /// Returns whether any provider can answer the request from its body alone.
    pub const fn is_self_contained(&self) -> bool {
        self.previous_response_id.is_none()
            && !self.conversation
            && !self.stored_prompt
            && !self.item_reference
            && !self.background
    }
}

/// Reads the facts of a responses request, and what of it lives at the provider.
///
/// `messages` counts the input items and `text_bytes` every text in them, whatever the item, but for images, files and
/// sound. Usage comes with the last event of every stream, so it counts as asked for.
///
/// # Errors
/// `InvalidRequest`, with the place and the field at fault: for a body that is no JSON object; for `model` missing; for
/// `input` missing where nothing else says what to go on from; for a field that gw reads and that is repeated, of the wrong
/// type or out of range.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::responses::read_request;
///
/// let body = Bytes::from_static(br#"{"model":"m","input":"Hi","instructions":"Be brief."}"#);
/// let read = read_request(&body).unwrap();
/// assert_eq!((read.facts.messages, read.facts.text_bytes), (1, 11));
/// assert!(read.state.is_self_contained());
/// ```
pub fn read_request(body: &Bytes) -> Result<ResponsesRequest, GatewayError> {
    let text = body_text(body)?;
    read(text).map_err(|refusal| refusal.into_error(text))
}

const FIELDS: [&str; 14] = [
    "model",
    "input",
    "instructions",
    "stream",
    "max_output_tokens",
    "tools",
    "text",
    "temperature",
    "user",
    "previous_response_id",
    "conversation",
    "prompt",
    "background",
    "store",
];

/// What was read of the body so far.
#[derive(Default)]
struct Body<'a> {
    model: Option<Text<'a>>,
    contents: Contents,
    has_input: bool,
    stream: bool,
    output: Option<RequestedOutput>,
    tool_bytes: u64,
    tools: bool,
    json_schema: bool,
    temperature: Option<Temperature>,
    user: Option<Text<'a>>,
    state: ProviderState,
}

fn read(text: &str) -> Result<ResponsesRequest, Refusal> {
    let mut body = Body::default();
    let object_start = fields::read(text, &FIELDS, |field, reader| body.read(field, reader))?;
    let Some(name) = body.model else {
        return Err(missing(object_start, "model", "the field `model` is missing"));
    };
    let state = body.state();
    if !body.has_input && state.is_self_contained() {
        return Err(missing(object_start, "input", "the field `input` is missing"));
    }
    let facts = RequestFacts {
        stream: body.stream,
        include_usage: true,
        output: body.output,
        text_bytes: body.contents.text_bytes,
        text_classes: body.contents.text_classes,
        messages: body.contents.items,
        tool_bytes: body.tool_bytes,
        images: body.contents.images,
        audio: body.contents.audio,
        needs: body.needs(),
        temperature: body.temperature.unwrap_or(Temperature::Absent),
        user: body.user.map(|user| BoundedText::new(&user.decoded())),
        ..bare_facts(name, object_start)
    };
    Ok(ResponsesRequest { facts, state })
}

impl<'a> Body<'a> {
    fn read(&mut self, field: &str, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        match field {
            "model" => self.model = Some(model(reader)?),
            "input" => self.has_input = self.contents.input(reader)?,
            "instructions" => {
                if let Some(text) = optional_string(reader)? {
                    self.contents.text(text);
                }
            }
            "stream" => self.stream = optional_boolean(reader)?,
            "max_output_tokens" => self.output = output(reader, OutputField::MaxOutputTokens)?,
            "tools" => self.tools(reader)?,
            "text" => self.format(reader)?,
            "temperature" => self.temperature = temperature(reader)?,
            "user" => self.user = optional_string(reader)?,
            "previous_response_id" => {
                let id = optional_string(reader)?;
                self.state.previous_response_id = id.map(|id| BoundedText::new(&id.decoded()));
            }
            "conversation" => self.state.conversation = given(reader)?,
            "prompt" => self.state.stored_prompt = given(reader)?,
            "background" => self.state.background = optional_boolean(reader)?,
            _ => {
                let absent = reader.kind()? == Kind::Null;
                let store = optional_boolean(reader)?;
                self.state.store = (!absent).then_some(store);
            }
        }
        Ok(())
    }

    fn tools(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        let start = reader.at();
        if reader.kind()? != Kind::Array {
            return Err(Refusal::new(start, "expected an array of objects"));
        }
        reader.array::<Refusal>(|reader, index| {
            self.tools = true;
            object_start(reader).map_err(|refusal| refusal.within_item(index))?;
            reader.skip()?;
            Ok(())
        })?;
        self.tool_bytes += (reader.at() - start) as u64;
        Ok(())
    }

    /// Reads `text`, whose `format` may hold a schema.
    fn format(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        object_start(reader)?;
        reader.object::<Refusal>(|reader, key| {
            if field_name(key)? != "format" {
                reader.skip()?;
                return Ok(());
            }
            if reader.null()? {
                return Ok(());
            }
            let start = object_start(reader).map_err(|refusal| refusal.within("format"))?;
            reader.object::<Refusal>(|reader, key| {
                if field_name(key)? == "type" {
                    let kind = optional_string(reader).map_err(|refusal| refusal.within("format.type"))?;
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
        })
    }

    fn state(&self) -> ProviderState {
        ProviderState { item_reference: self.contents.item_reference, ..self.state.clone() }
    }

    fn needs(&self) -> CapabilitySet {
        let needs = [
            (true, Capability::Chat),
            (self.stream, Capability::Streaming),
            (self.tools, Capability::Tools),
            (self.json_schema, Capability::JsonSchema),
            (self.contents.images > 0, Capability::Vision),
            (self.contents.audio, Capability::Audio),
            (self.contents.documents, Capability::Documents),
        ];
        needs.into_iter().filter_map(|(needed, capability)| needed.then_some(capability)).collect()
    }
}

/// Reads a value that is text or an object; returns whether it is there.
fn given(reader: &mut Reader<'_>) -> Result<bool, Refusal> {
    match reader.kind()? {
        Kind::Null => {
            reader.null()?;
            Ok(false)
        }
        Kind::String | Kind::Object => {
            reader.skip()?;
            Ok(true)
        }
        Kind::Array | Kind::Number | Kind::Bool => Err(Refusal::new(reader.at(), "expected an object")),
    }
}

/// What the input holds.
#[derive(Default)]
struct Contents {
    items: u32,
    text_bytes: u64,
    text_classes: TextClasses,
    images: u32,
    audio: bool,
    documents: bool,
    item_reference: bool,
}

impl Contents {
    /// Reads `input`; returns whether there is any.
    fn input(&mut self, reader: &mut Reader<'_>) -> Result<bool, Refusal> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                self.text(text);
                self.items = 1;
                Ok(true)
            }
            Kind::Null => {
                reader.null()?;
                Ok(false)
            }
            Kind::Array => {
                reader.array::<Refusal>(|reader, index| {
                    self.items = self.items.saturating_add(1);
                    self.item(reader).map_err(|refusal| refusal.within_item(index))
                })?;
                Ok(self.items > 0)
            }
            Kind::Object | Kind::Number | Kind::Bool => {
                Err(Refusal::new(reader.at(), "expected a string or an array of items"))
            }
        }
    }

    fn item(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        object_start(reader)?;
        self.value(reader)
    }

    fn text(&mut self, text: Text<'_>) {
        let (bytes, classes) = text.measured();
        self.text_bytes += bytes;
        self.text_classes = self.text_classes + classes;
    }

    /// Counts the text of a value, whatever it is: what a provider can read out of an item is never more. The recursion is
    /// bounded by the reader's bound on depth.
    fn value(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        match reader.kind()? {
            Kind::Object => self.object(reader),
            Kind::Array => reader.array::<Refusal>(|reader, _| self.value(reader)),
            Kind::String => {
                let text = reader.string()?;
                self.text(text);
                Ok(())
            }
            Kind::Number | Kind::Bool | Kind::Null => {
                reader.skip()?;
                Ok(())
            }
        }
    }

    /// Reads an object; what it is shows in its fields and in its `type`, whichever comes first.
    fn object(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        let mut image = false;
        reader.object::<Refusal>(|reader, key| {
            let name = field_name(key)?;
            let is_null = reader.kind()? == Kind::Null;
            match name {
                "type" if reader.kind()? == Kind::String => match &*reader.string()?.decoded() {
                    "input_image" => image = true,
                    "input_file" => self.documents = true,
                    "input_audio" => self.audio = true,
                    "item_reference" => self.item_reference = true,
                    _ => {}
                },
                "image_url" => {
                    image |= !is_null;
                    reader.skip()?;
                }
                "file_data" | "file_url" => {
                    self.documents |= !is_null;
                    reader.skip()?;
                }
                "input_audio" => {
                    self.audio |= !is_null;
                    reader.skip()?;
                }
                _ => self.value(reader)?,
            }
            Ok(())
        })?;
        self.images = self.images.saturating_add(u32::from(image));
        Ok(())
    }
}
