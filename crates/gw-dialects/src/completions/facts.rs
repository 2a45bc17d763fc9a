//! Reads of a completions request what decisions need.

use bytes::Bytes;
use gw_types::{
    BoundedText, Capability, CapabilitySet, GatewayError, OutputField, RequestFacts, RequestedOutput,
    Temperature,
};

use crate::{
    embeddings::Inputs,
    json::{Kind, Reader, Text},
    openai::{
        facts::{StreamOptionsField, body_text, choices, model, output, span, stream_options, temperature},
        fields::{self, bare_facts, missing},
        refusal::{Refusal, optional_boolean, optional_string},
    },
};

/// Reads the facts of a legacy completions request.
///
/// `messages` counts the prompts, and `choices` what is generated for all of them: the larger of `n` and `best_of` for each.
/// A prompt of token numbers counts one byte a token. The format is named by no capability, so that a request needs nothing
/// but a stream where it asks for one.
///
/// # Errors
/// `InvalidRequest`, with the place and the field at fault.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::completions::read_request;
///
/// let body = Bytes::from_static(br#"{"model":"m","prompt":["ab","c"],"n":2,"max_tokens":16}"#);
/// let facts = read_request(&body).unwrap();
/// assert_eq!((facts.messages, facts.text_bytes, facts.choices), (2, 3, 4));
/// ```
pub fn read_request(body: &Bytes) -> Result<RequestFacts, GatewayError> {
    let text = body_text(body)?;
    read(text).map_err(|refusal| refusal.into_error(text))
}

/// What was read of the body so far.
#[derive(Default)]
struct Body<'a> {
    model: Option<Text<'a>>,
    prompts: Option<Inputs>,
    suffix: Option<Text<'a>>,
    stream: bool,
    stream_options: Option<StreamOptionsField>,
    output: Option<RequestedOutput>,
    choices: u64,
    temperature: Option<Temperature>,
    user: Option<Text<'a>>,
}

const FIELDS: [&str; 10] = [
    "model",
    "prompt",
    "suffix",
    "stream",
    "stream_options",
    "max_tokens",
    "n",
    "best_of",
    "temperature",
    "user",
];

fn read(text: &str) -> Result<RequestFacts, Refusal> {
    let mut body = Body { choices: 1, ..Body::default() };
    let object_start = fields::read(text, &FIELDS, |field, reader| body.read(field, reader))?;
    let Some(name) = body.model else {
        return Err(missing(object_start, "model", "the field `model` is missing"));
    };
    // Without a prompt the model begins from nothing, as at the start of a document.
    let prompts = body.prompts.unwrap_or(Inputs { count: 1, ..Inputs::default() });
    let (suffix_bytes, suffix_classes) = body.suffix.map(|text| text.measured()).unwrap_or_default();
    let generated = body.choices.saturating_mul(u64::from(prompts.count));
    let needs =
        if body.stream { CapabilitySet::EMPTY.with(Capability::Streaming) } else { CapabilitySet::EMPTY };
    Ok(RequestFacts {
        stream: body.stream,
        include_usage: body.stream_options.as_ref().is_some_and(|options| options.include_usage),
        stream_options: body.stream_options.map(|options| span(options.object)),
        output: body.output,
        choices: u32::try_from(generated).unwrap_or(u32::MAX),
        text_bytes: prompts.text_bytes.saturating_add(suffix_bytes),
        text_classes: prompts.text_classes + suffix_classes,
        messages: prompts.count,
        needs,
        temperature: body.temperature.unwrap_or(Temperature::Absent),
        user: body.user.map(|user| BoundedText::new(&user.decoded())),
        ..bare_facts(name, object_start)
    })
}

impl<'a> Body<'a> {
    fn read(&mut self, field: &str, reader: &mut Reader<'a>) -> Result<(), Refusal> {
        match field {
            "model" => self.model = Some(model(reader)?),
            "prompt" => {
                let given = reader.kind()? != Kind::Null;
                self.prompts = if given { Some(Inputs::read(reader)?) } else { None };
                if !given {
                    reader.null()?;
                }
            }
            "suffix" => self.suffix = optional_string(reader)?,
            "stream" => self.stream = optional_boolean(reader)?,
            "stream_options" => self.stream_options = stream_options(reader)?,
            "max_tokens" => self.output = output(reader, OutputField::MaxTokens)?,
            "n" | "best_of" => self.choices = self.choices.max(choices(reader)?.unwrap_or(1)),
            "temperature" => self.temperature = temperature(reader)?,
            _ => self.user = optional_string(reader)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{Capability, CapabilitySet, ErrorKind, RequestFacts, Temperature};

    use super::read_request;

    fn with(fields: &str) -> RequestFacts {
        read_request(&Bytes::from(format!("{{\"model\":\"m\"{fields}}}"))).unwrap()
    }

    #[track_caller]
    fn sizes(fields: &str, prompts: u32, text_bytes: u64, choices: u32) {
        let facts = with(fields);
        assert_eq!((facts.messages, facts.text_bytes, facts.choices), (prompts, text_bytes, choices));
    }

    #[track_caller]
    fn refused(fields: &str, param: &str) {
        let error = read_request(&Bytes::from(format!("{{\"model\":\"m\"{fields}}}"))).unwrap_err();
        assert_eq!((error.kind(), error.param()), (ErrorKind::InvalidRequest, Some(param)), "{error}");
    }

    #[test]
    fn prompts_are_counted_with_what_is_generated_for_them() {
        sizes(r#","prompt":"caf\u00e9""#, 1, 5, 1);
        sizes(r#","prompt":["a","bc"],"n":3"#, 2, 3, 6);
        sizes(r#","prompt":[1,2,3],"best_of":4,"n":2"#, 1, 3, 4);
        sizes(r#","prompt":[[1],[2,3]],"n":null"#, 2, 3, 2);
        sizes(r#","prompt":"a","suffix":"xyz""#, 1, 4, 1);
        sizes(r#","prompt":null"#, 1, 0, 1);
        sizes("", 1, 0, 1);
    }

    #[test]
    fn what_a_decision_needs_is_read() {
        let facts = with(
            r#","prompt":"a","stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"temperature":0,"user":"u""#,
        );
        assert_eq!(facts.needs, CapabilitySet::EMPTY.with(Capability::Streaming));
        assert!(facts.stream && facts.include_usage && facts.stream_options.is_some());
        assert_eq!(facts.output.unwrap().tokens.get(), 7);
        assert_eq!((facts.temperature, facts.user.unwrap().as_str()), (Temperature::Zero, "u"));
        assert_eq!(with("").needs, CapabilitySet::EMPTY);
    }

    #[test]
    fn bad_fields_are_refused_by_name() {
        refused(r#","prompt":7"#, "prompt");
        refused(r#","prompt":[]"#, "prompt");
        refused(r#","prompt":["a",{}]"#, "prompt[1]");
        refused(r#","max_tokens":0"#, "max_tokens");
        refused(r#","n":0"#, "n");
        refused(r#","n":129"#, "n");
        refused(r#","best_of":"2""#, "best_of");
        refused(r#","stream":1"#, "stream");
        refused(r#","suffix":[]"#, "suffix");
        refused(r#","n":1,"n":1"#, "n");
    }
}
