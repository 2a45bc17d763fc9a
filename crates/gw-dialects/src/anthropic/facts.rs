//! Reads of a messages request what decisions need.

mod contents;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{
    BoundedText, Capability, GatewayError, OutputField, RequestFacts, RequestedOutput, Temperature,
};

use self::contents::Contents;
use crate::{
    json::{Kind, Reader, Text},
    openai::{
        facts::{body_text, model, object_start, output, temperature},
        fields::{self, bare_facts, missing},
        refusal::{Refusal, field_name, optional_boolean, optional_string},
    },
};

/// Reads the facts of a messages request.
///
/// One pass over the body, which is validated as JSON on the way; no text is copied but the model name and the user
/// label. Fields that gw does not read may hold anything. The format always reports usage, so it counts as asked for.
///
/// # Errors
/// `InvalidRequest`, with the line and column and, where a field is at fault, its path as parameter: for a body that is
/// no UTF-8, no JSON object or nested deeper than 100 levels; for a field that gw reads and that is missing, repeated, of
/// the wrong type or out of range. `max_tokens` is required.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::anthropic::read_messages;
///
/// let body = br#"{"model":"claude","max_tokens":64,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let facts = read_messages(&Bytes::from_static(body)).unwrap();
/// assert_eq!((&*facts.model, facts.messages, facts.text_bytes), ("claude", 1, 2));
/// assert_eq!(facts.output.unwrap().tokens.get(), 64);
/// ```
pub fn read_messages(body: &Bytes) -> Result<RequestFacts, GatewayError> {
    let text = body_text(body)?;
    read(text, true).map_err(|refusal| refusal.into_error(text))
}

/// Reads the facts of a request to count tokens: a messages request that names no output bound.
///
/// # Errors
/// Those of [`read_messages`].
pub fn read_count_tokens(body: &Bytes) -> Result<RequestFacts, GatewayError> {
    let text = body_text(body)?;
    read(text, false).map_err(|refusal| refusal.into_error(text))
}

/// The fields of the body that gw reads.
const FIELDS: [&str; 11] = [
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "output_config",
    "output_format",
    "thinking",
    "temperature",
    "metadata",
];

/// What was read of the body so far.
#[derive(Default)]
struct Body<'a> {
    model: Option<Text<'a>>,
    contents: Contents,
    has_messages: bool,
    output: Option<RequestedOutput>,
    stream: bool,
    tools: bool,
    tool_bytes: u64,
    json_schema: bool,
    temperature: Option<Temperature>,
    user: Option<Text<'a>>,
}

fn read(text: &str, is_bounded: bool) -> Result<RequestFacts, Refusal> {
    let mut body = Body::default();
    let object_start = fields::read(text, &FIELDS, |field, reader| body.field(field, reader))?;
    let Some(model) = body.model else {
        return Err(missing(object_start, "model", "the field `model` is missing"));
    };
    if !body.has_messages {
        return Err(missing(object_start, "messages", "the field `messages` is missing"));
    }
    if is_bounded && body.output.is_none() {
        return Err(missing(object_start, "max_tokens", "the field `max_tokens` is missing"));
    }
    let needs = [
        (true, Capability::Chat),
        (body.stream, Capability::Streaming),
        (body.tools, Capability::Tools),
        (body.json_schema, Capability::JsonSchema),
        (body.contents.images > 0, Capability::Vision),
        (body.contents.documents, Capability::Documents),
    ];
    Ok(RequestFacts {
        stream: body.stream,
        include_usage: true,
        output: body.output,
        text_bytes: body.contents.text_bytes,
        text_classes: body.contents.text_classes,
        messages: body.contents.messages,
        tool_bytes: body.tool_bytes,
        images: body.contents.images,
        needs: needs.into_iter().filter_map(|(needed, capability)| needed.then_some(capability)).collect(),
        temperature: body.temperature.unwrap_or(Temperature::Absent),
        user: body.user.map(|user| BoundedText::new(&user.decoded())),
        ..bare_facts(model, object_start)
    })
}

impl<'a> Body<'a> {
    fn field(&mut self, field: &str, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        match field {
            "model" => self.model = Some(model(reader)?),
            "messages" => {
                self.contents.messages(reader)?;
                self.has_messages = true;
            }
            "max_tokens" => self.output = output(reader, OutputField::MaxTokens)?,
            "stream" => self.stream = optional_boolean(reader)?,
            "system" => self.contents.system(reader)?,
            "tools" => self.tools(reader)?,
            "output_config" => self.output_config(reader)?,
            "output_format" => self.output_format(reader)?,
            "thinking" => {
                if !reader.null()? {
                    object_start(reader)?;
                    reader.skip()?;
                }
            }
            "temperature" => self.temperature = temperature(reader)?,
            "metadata" => self.metadata(reader)?,
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    fn tools(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        if reader.kind()? != Kind::Array {
            return Err(Refusal::new(reader.at(), "expected an array of objects"));
        }
        let start = reader.at();
        reader.array::<Refusal>(|reader, index| {
            self.tools = true;
            object_start(reader).map_err(|refusal| refusal.within_item(index))?;
            reader.skip()?;
            Ok(())
        })?;
        self.tool_bytes += (reader.at() - start) as u64;
        Ok(())
    }

    fn output_config(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        object_start(reader)?;
        reader.object::<Refusal>(|reader, key| {
            if field_name(key)? == "format" {
                return self.output_format(reader).map_err(|refusal| refusal.within("format"));
            }
            reader.skip()?;
            Ok(())
        })
    }

    /// Reads the schema that the answer must keep to, which older clients put at the top of the body.
    fn output_format(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        object_start(reader)?;
        self.json_schema = true;
        self.tool_bytes += reader.skip()?.len() as u64;
        Ok(())
    }

    fn metadata(&mut self, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        if reader.null()? {
            return Ok(());
        }
        object_start(reader)?;
        reader.object::<Refusal>(|reader, key| {
            if field_name(key)? == "user_id" {
                self.user = optional_string(reader).map_err(|refusal| refusal.within("user_id"))?;
            } else {
                reader.skip()?;
            }
            Ok(())
        })
    }
}
