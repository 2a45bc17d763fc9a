//! Reads of a whole answer what the pipeline acts on.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, GatewayError, Loss};

use super::{
    classify,
    content::{Choices, Part, filled},
    usage::WireUsage,
};
use crate::{
    failure::{malformed, text_of},
    json::{Fault, Kind, Reader},
};

/// Reads the facts of a 2xx answer's body. Blanks before the JSON are allowed: some servers send them while they work.
///
/// # Errors
/// An error object in the body is classified like an HTTP error of the status that it names or implies. A body that is
/// no JSON object with at least one choice is `MalformedResponse`.
pub fn read_answer(raw: &Bytes) -> Result<AnswerFacts, GatewayError> {
    read_choices(raw, Part::Message)
}

/// Reads an answer whose choices hold their content in the field of `part`.
pub(crate) fn read_choices(raw: &Bytes, part: Part) -> Result<AnswerFacts, GatewayError> {
    let text = text_of(raw)?;
    let answer = read(text, part).map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    if answer.error {
        return Err(classify::in_band(raw));
    }
    if answer.choices.count == 0 {
        return Err(malformed("the provider's answer holds no choices"));
    }
    Ok(AnswerFacts {
        usage: answer.usage.and_then(|usage| usage.classes()),
        finish: answer.choices.finish,
        served_model: answer.model,
        content_bytes: answer.choices.content_bytes,
        tool_calls: answer.choices.tool_calls,
        loss: Loss::default(),
    })
}

#[derive(Default)]
struct Answer<'a> {
    choices: Choices<'a>,
    usage: Option<WireUsage>,
    model: Option<BoundedText>,
    error: bool,
}

fn read(text: &str, part: Part) -> Result<Answer<'_>, Fault> {
    let mut answer = Answer::default();
    let mut reader = Reader::new(text);
    let mut says_error = false;
    let mut has_message = false;
    reader.object::<Fault>(|reader, key| {
        match key.raw() {
            "choices" if reader.kind()? == Kind::Array => answer.choices.read(reader, part)?,
            "usage" => answer.usage = WireUsage::read(reader)?,
            "model" => answer.model = filled(reader)?.map(|model| BoundedText::new(&model.decoded())),
            "error" => {
                answer.error = reader.kind()? != Kind::Null;
                reader.skip()?;
            }
            "object" => {
                says_error = filled(reader)?.is_some_and(|kind| kind.raw().eq_ignore_ascii_case("error"));
            }
            "message" | "detail" => {
                has_message = true;
                reader.skip()?;
            }
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    })?;
    reader.end()?;
    // Servers without an `error` object: `{"object": "error", "message": ...}`, `{"detail": ...}`.
    answer.error |= answer.choices.count == 0 && (says_error || has_message) || answer.choices.error;
    Ok(answer)
}
