//! Whether an answer keeps to the JSON schema that its request carries.
//!
//! A whole answer that does not is `MalformedResponse`, paid for, and may fall over. A streamed one has gone out when its
//! end is here: the record says what it was, and the cache does not keep it. Without the feature `schema` nothing is checked
//! and records are silent about it.

#[cfg(feature = "schema")]
mod check;
#[cfg(feature = "schema")]
mod work;

use bytes::Bytes;
use gw_types::{AnswerSchema, Completion, ErrorKind, GatewayError, NormalizedRequest};

#[cfg(feature = "schema")]
pub(crate) use self::check::{Check, Schemas};
use crate::flight::Flight;

/// Nothing is checked.
#[cfg(not(feature = "schema"))]
#[derive(Debug, Default)]
pub(crate) struct Schemas {}

/// Never there.
#[cfg(not(feature = "schema"))]
#[derive(Debug)]
pub(crate) enum Check {}

#[cfg(not(feature = "schema"))]
impl Schemas {
    fn check(&self, _schema: &Bytes) -> Option<Check> {
        None
    }
}

#[cfg(not(feature = "schema"))]
impl Check {
    fn judge(&self, _completion: &Completion) -> AnswerSchema {
        match *self {}
    }
}

/// Makes ready what checks the answer, where the request carries a schema.
pub(crate) fn prepare(flight: &mut Flight, request: &NormalizedRequest) {
    if !request.facts.needs.contains(gw_types::Capability::JsonSchema) {
        return;
    }
    let schema = flight.state.codec(request.operation).and_then(|codec| codec.answer_schema(request));
    flight.check = schema.and_then(|schema| flight.state.schemas.check(&schema));
    if flight.check.is_some() {
        flight.record().answer_schema = Some(AnswerSchema::Unchecked);
    }
}

/// Checks a whole answer.
///
/// # Errors
/// `MalformedResponse`, if it does not keep to the schema.
pub(crate) fn judge_answer(
    flight: &mut Flight,
    request: &NormalizedRequest,
    raw: &Bytes,
) -> Result<(), GatewayError> {
    let Some(check) = flight.check.take() else { return Ok(()) };
    let completion = flight.state.codec(request.operation).and_then(|codec| codec.completion(raw));
    let broken = note(Some(flight), Some(&check), completion.as_ref());
    flight.check = Some(check);
    if broken {
        let message = "the answer does not keep to the JSON schema of the request";
        return Err(GatewayError::new(ErrorKind::MalformedResponse, message));
    }
    Ok(())
}

/// Notes in the record what an answer is; returns whether it breaks the schema. An answer that has no neutral form is
/// not judged.
pub(crate) fn note(
    flight: Option<&mut Flight>,
    check: Option<&Check>,
    completion: Option<&Completion>,
) -> bool {
    let (Some(flight), Some(check)) = (flight, check) else { return false };
    let verdict = completion.map_or(AnswerSchema::Unchecked, |completion| check.judge(completion));
    flight.record().answer_schema = Some(verdict);
    verdict == AnswerSchema::Broken
}
