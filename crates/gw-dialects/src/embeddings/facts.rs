//! Reads of an embeddings request what decisions need.

use bytes::Bytes;
use gw_types::{BoundedText, Capability, CapabilitySet, GatewayError, RequestFacts, TextClasses};

use crate::{
    json::{Fault, Kind, Reader, Text},
    openai::{
        encode::find_field,
        facts::{body_text, model, whole},
        fields::{self, bare_facts, missing},
        refusal::{Refusal, optional_string},
    },
};

/// Says how vectors travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As arrays of numbers: what a request without `encoding_format` asks for.
    Float,
    /// As base64 of 32-bit floats, little-endian.
    Base64,
    /// In a form of one provider's own, which gw leaves alone.
    Other,
}

impl Encoding {
    fn named(name: &str) -> Self {
        match name {
            "float" => Self::Float,
            "base64" => Self::Base64,
            _ => Self::Other,
        }
    }
}

/// Reads the facts of an embeddings request.
///
/// `messages` counts the inputs and `text_bytes` their text; an input of token numbers counts one byte a token, since
/// that is what it is billed as. The request needs [`Capability::Embeddings`] and nothing else, and has no output.
///
/// # Errors
/// `InvalidRequest`, with the place and the field at fault: for a body that is no JSON object, for `model` or `input`
/// missing, repeated or of another type than OpenAI's, for an empty list of inputs, for `dimensions` that is no whole number
/// of at least 1.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::embeddings::read_request;
///
/// let body = Bytes::from_static(br#"{"model":"m","input":["caf\u00e9",[1,2,3]]}"#);
/// let facts = read_request(&body).unwrap();
/// assert_eq!((facts.messages, facts.text_bytes), (2, 8));
/// ```
pub fn read_request(body: &Bytes) -> Result<RequestFacts, GatewayError> {
    let text = body_text(body)?;
    read(text).map_err(|refusal| refusal.into_error(text))
}

/// Returns what the request asks vectors to be sent as. A cheap second look at a body that [`read_request`] took.
pub fn wanted_encoding(body: &Bytes) -> Encoding {
    let name = || -> Option<Text<'_>> {
        let text = std::str::from_utf8(body).ok()?;
        let value = find_field(text, "encoding_format")?;
        Reader::starting_at(text, value.start).string().ok()
    };
    name().map_or(Encoding::Float, |name| Encoding::named(&name.decoded()))
}

fn read(text: &str) -> Result<RequestFacts, Refusal> {
    let mut name = None;
    let mut inputs = None;
    let mut user = None;
    let known = ["model", "input", "encoding_format", "dimensions", "user"];
    let object_start = fields::read(text, &known, |field, reader| {
        match field {
            "model" => name = Some(model(reader)?),
            "input" => inputs = Some(Inputs::read(reader)?),
            "encoding_format" => {
                optional_string(reader)?;
            }
            "dimensions" => dimensions(reader)?,
            _ => user = optional_string(reader)?,
        }
        Ok(())
    })?;
    let Some(name) = name else {
        return Err(missing(object_start, "model", "the field `model` is missing"));
    };
    let Some(inputs) = inputs else {
        return Err(missing(object_start, "input", "the field `input` is missing"));
    };
    Ok(RequestFacts {
        text_bytes: inputs.text_bytes,
        text_classes: inputs.text_classes,
        messages: inputs.count,
        needs: CapabilitySet::EMPTY.with(Capability::Embeddings),
        user: user.map(|user| BoundedText::new(&user.decoded())),
        ..bare_facts(name, object_start)
    })
}

fn dimensions(reader: &mut Reader<'_>) -> Result<(), Refusal> {
    const MESSAGE: &str = "expected a whole number of at least 1";
    match whole(reader, MESSAGE)? {
        Some((0, range)) => Err(Refusal::new(range.start, MESSAGE)),
        Some(_) | None => Ok(()),
    }
}

/// What is to be turned into vectors, or what a legacy completion goes on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inputs {
    pub(crate) count: u32,
    pub(crate) text_bytes: u64,
    /// What the text is made of; a token number counts as a word.
    pub(crate) text_classes: TextClasses,
}

impl Inputs {
    /// Reads text, token numbers, or an array of one of these.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let start = reader.at();
        let mut inputs = Self::default();
        if reader.kind()? != Kind::Array {
            inputs.add(reader)?;
            return Ok(inputs);
        }
        let mut tokens = 0_u32;
        reader.array::<Refusal>(|reader, index| {
            if reader.kind()? == Kind::Number {
                tokens = tokens.saturating_add(1);
                return token(reader).map_err(|refusal| refusal.within_item(index));
            }
            inputs.add(reader).map_err(|refusal| refusal.within_item(index))
        })?;
        if tokens > 0 && inputs.count > 0 {
            return Err(Refusal::new(
                start,
                "expected an array of strings or of token arrays, not both kinds",
            ));
        }
        if tokens > 0 {
            inputs = Self { count: 1, ..Self::default() };
            inputs.tokens(tokens);
        }
        if inputs.count == 0 {
            return Err(Refusal::new(start, "expected at least one input"));
        }
        Ok(inputs)
    }

    fn add(&mut self, reader: &mut Reader<'_>) -> Result<(), Refusal> {
        self.count = self.count.saturating_add(1);
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?;
                let (bytes, classes) = text.measured();
                self.text_bytes += bytes;
                self.text_classes = self.text_classes + classes;
            }
            Kind::Array => reader.array::<Refusal>(|reader, index| {
                self.tokens(1);
                token(reader).map_err(|refusal| refusal.within_item(index))
            })?,
            Kind::Object | Kind::Number | Kind::Bool | Kind::Null => {
                return Err(Refusal::new(reader.at(), "expected a string or an array of tokens"));
            }
        }
        Ok(())
    }
}

impl Inputs {
    fn tokens(&mut self, count: u32) {
        self.text_bytes += u64::from(count);
        self.text_classes.words = self.text_classes.words.saturating_add(count);
    }
}

fn token(reader: &mut Reader<'_>) -> Result<(), Refusal> {
    let start = reader.at();
    let number = reader.number().map_err(|fault: Fault| Refusal::new(fault.at, "expected a token number"))?;
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(())
    } else {
        Err(Refusal::new(start, "expected a token number"))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{Capability, CapabilitySet};

    use super::{Encoding, read_request, wanted_encoding};

    fn body(fields: &str) -> Bytes {
        Bytes::from(format!("{{\"model\":\"m\",{fields}}}"))
    }

    #[track_caller]
    fn check(input: &str, count: u32, text_bytes: u64) {
        let facts = read_request(&body(&format!("\"input\":{input}"))).unwrap();
        assert_eq!((facts.messages, facts.text_bytes), (count, text_bytes));
        assert_eq!(facts.needs, CapabilitySet::EMPTY.with(Capability::Embeddings));
        assert_eq!((facts.choices, facts.stream, facts.output), (1, false, None));
    }

    #[track_caller]
    fn refused(body: &str, param: Option<&str>) {
        let error = read_request(&Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
        assert_eq!((error.kind(), error.param()), (gw_types::ErrorKind::InvalidRequest, param), "{error}");
    }

    #[test]
    fn every_form_of_input_is_counted() {
        check(r#""caf\u00e9""#, 1, 5);
        check(r#""""#, 1, 0);
        check(r#"["ab","c"]"#, 2, 3);
        check("[1,2,3]", 1, 3);
        check("[[1,2],[3]]", 2, 3);
        check(r#"["ab",[1,2]]"#, 2, 4);
    }

    #[test]
    fn what_is_no_input_is_refused() {
        for (input, param) in [
            ("null", "input"),
            ("7", "input"),
            ("[]", "input"),
            ("{}", "input"),
            (r#"["a",null]"#, "input[1]"),
            ("[[1.5]]", "input[0][0]"),
            ("[-1]", "input[0]"),
            (r#"[1,"a"]"#, "input"),
            (r#"[["a"]]"#, "input[0][0]"),
        ] {
            refused(&format!(r#"{{"model":"m","input":{input}}}"#), Some(param));
        }
        refused(r#"{"model":"m"}"#, Some("input"));
        refused(r#"{"input":"a"}"#, Some("model"));
        refused(r#"{"model":"m","model":"m","input":"a"}"#, Some("model"));
        refused(r#"{"model":"","input":"a"}"#, Some("model"));
        refused(r#"{"model":"m","input":"a","dimensions":0}"#, Some("dimensions"));
        refused(r#"{"model":"m","input":"a","dimensions":1.5}"#, Some("dimensions"));
        refused(r#"{"model":"m","input":"a","encoding_format":7}"#, Some("encoding_format"));
        refused(r#"["model"]"#, None);
        refused("", None);
        refused(r#"{"model":"m","input":"a"} x"#, None);
    }

    #[test]
    fn the_encoding_is_read_beside_the_facts() {
        for (fields, expected) in [
            (r#""input":"encoding_format""#, Encoding::Float),
            (r#""input":"a","encoding_format":null"#, Encoding::Float),
            (r#""input":"a","encoding_format":"float""#, Encoding::Float),
            (r#""encoding_format":"base64","input":"a""#, Encoding::Base64),
            (r#""input":"a","encoding_format":"ubinary""#, Encoding::Other),
        ] {
            assert_eq!(wanted_encoding(&body(fields)), expected, "{fields}");
        }
        assert_eq!(wanted_encoding(&Bytes::from_static(b"\xff")), Encoding::Float);
    }

    #[test]
    fn the_user_label_is_kept() {
        let facts = read_request(&body(r#""input":"a","user":"u-1","dimensions":256"#)).unwrap();
        assert_eq!(facts.user.unwrap().as_str(), "u-1");
    }
}
