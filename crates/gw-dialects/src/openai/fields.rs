//! Reads the outermost object of a request body, field by field.

use std::sync::Arc;

use gw_types::{CapabilitySet, RequestFacts, Temperature, TextClasses};

use super::{
    facts::span,
    refusal::{Refusal, field_name},
};
use crate::json::{Kind, Reader, Text};

/// Reads the object that a body is; calls `each` with every field that is in `known`, which must read its value.
///
/// Other fields are passed over, whatever they hold. Returns one past the opening brace. At most 64 fields can be known.
///
/// # Errors
/// A refusal for a body that is no JSON object, for a known field that stands in it twice, and what `each` refuses, with
/// the field's name in the path.
pub(crate) fn read<'a>(
    text: &'a str,
    known: &[&'static str],
    mut each: impl FnMut(&'static str, &mut Reader<'a>) -> Result<(), Refusal>,
) -> Result<usize, Refusal> {
    let mut reader = Reader::new(text);
    if reader.kind()? != Kind::Object {
        return Err(Refusal::new(reader.at(), "expected the body to be a JSON object"));
    }
    let object_start = reader.at() + 1;
    let mut seen = 0_u64;
    reader.object::<Refusal>(|reader, key| {
        let name = field_name(key)?;
        let Some(place) = known.iter().position(|known| *known == name) else {
            reader.skip()?;
            return Ok(());
        };
        let bit = 1 << place;
        if seen & bit != 0 {
            let refusal = Refusal::new(key.span().start, "a field stands in the body more than once");
            return Err(refusal.within(known[place]));
        }
        seen |= bit;
        each(known[place], reader).map_err(|refusal| refusal.within(known[place]))
    })?;
    reader.end()?;
    Ok(object_start)
}

/// Returns the refusal of a body that lacks a field.
pub(crate) fn missing(object_start: usize, field: &'static str, message: &'static str) -> Refusal {
    Refusal::new(object_start - 1, message).within(field)
}

/// Returns the facts of a request that names a model and nothing else: one answer, no text, no stream, no needs.
pub(crate) fn bare_facts(model: Text<'_>, object_start: usize) -> RequestFacts {
    RequestFacts {
        model: Arc::from(model.decoded()),
        model_span: span(model.span()),
        object_start,
        stream: false,
        include_usage: false,
        stream_options: None,
        output: None,
        choices: 1,
        text_bytes: 0,
        text_classes: TextClasses::default(),
        messages: 0,
        tool_bytes: 0,
        images: 0,
        audio: false,
        needs: CapabilitySet::EMPTY,
        temperature: Temperature::Absent,
        user: None,
    }
}
