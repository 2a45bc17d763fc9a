//! Validators: compiled once a schema, kept, bounded.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use foldhash::fast::RandomState;
use gw_types::{AnswerSchema, Completion, FinishReason};
use jsonschema::{PatternOptions, Validator};
use parking_lot::Mutex;
use serde_json::Value;

use super::work;

/// The longest schema that is checked, in bytes as it stands in the request.
const SCHEMA_BYTES_MAX: usize = 64 * 1_024;
/// The most schemas kept compiled.
const SCHEMAS_MAX: usize = 128;
/// The most memory that a pattern may compile to, in bytes.
const PATTERN_BYTES_MAX: usize = 1_024 * 1_024;

/// The schemas seen last, compiled.
#[derive(Default)]
pub(crate) struct Schemas {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By the schema's own bytes: equal text, equal schema, whoever sent it.
    by_text: HashMap<Bytes, (Check, u64), RandomState>,
    uses: u64,
}

/// What checks answers by one schema.
#[derive(Clone)]
pub(crate) struct Check {
    /// `None`: the schema cannot be checked.
    compiled: Option<Arc<Compiled>>,
}

struct Compiled {
    schema: Value,
    validator: Validator,
}

impl Schemas {
    /// Returns what checks answers by a schema.
    ///
    /// Compiles it where it is not kept: up to some milliseconds for a long one. A schema that is too long, no schema, or
    /// one that points outside of itself gives a check that cannot say anything.
    pub(super) fn check(&self, schema: &Bytes) -> Option<Check> {
        if schema.len() > SCHEMA_BYTES_MAX {
            return Some(Check { compiled: None });
        }
        if let Some(check) = self.kept.lock().get(schema) {
            return Some(check);
        }
        // Without the lock: others need not wait for this schema.
        let check = Check { compiled: compile(schema).map(Arc::new) };
        // A copy, so that what is kept does not hold a whole request's body.
        self.kept.lock().put(Bytes::copy_from_slice(schema), check.clone());
        Some(check)
    }
}

impl Kept {
    fn get(&mut self, schema: &Bytes) -> Option<Check> {
        self.uses += 1;
        let (check, used) = self.by_text.get_mut(schema)?;
        *used = self.uses;
        Some(check.clone())
    }

    /// Keeps a check; where there are too many, the one used least recently goes.
    fn put(&mut self, schema: Bytes, check: Check) {
        if self.by_text.len() >= SCHEMAS_MAX {
            let oldest = self.by_text.iter().min_by_key(|(_, (_, used))| *used).map(|(text, _)| text.clone());
            oldest.and_then(|text| self.by_text.remove(&text));
        }
        self.by_text.insert(schema, (check, self.uses));
    }
}

fn compile(schema: &[u8]) -> Option<Compiled> {
    let schema: Value = serde_json::from_slice(schema).ok()?;
    // Before anything follows a reference: one that leads back to where it stands has no end.
    work::at_most(&schema, 0)?;
    // Patterns that run in linear time, in bounded memory. `format` says what a text means, which providers do not promise.
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    let validator = jsonschema::options()
        .should_validate_formats(false)
        .with_pattern_options(patterns)
        .offline()
        .build(&schema)
        .ok()?;
    Some(Compiled { schema, validator })
}

impl Check {
    /// Judges an answer. Only texts that came to their own end are judged: what was cut, refused or given up for a call of a
    /// tool is not what the schema is about.
    pub(super) fn judge(&self, completion: &Completion) -> AnswerSchema {
        let Some(compiled) = &self.compiled else { return AnswerSchema::Unchecked };
        let mut verdict = AnswerSchema::Unchecked;
        for choice in &completion.choices {
            if choice.finish != FinishReason::Stop
                || choice.refusal.is_some()
                || !choice.tool_calls.is_empty()
            {
                continue;
            }
            match compiled.judge(&choice.text) {
                AnswerSchema::Broken => return AnswerSchema::Broken,
                AnswerSchema::Kept => verdict = AnswerSchema::Kept,
                AnswerSchema::Unchecked => {}
            }
        }
        verdict
    }
}

impl Compiled {
    fn judge(&self, text: &str) -> AnswerSchema {
        let Ok(answer) = serde_json::from_str::<Value>(text) else { return AnswerSchema::Broken };
        if !work::is_affordable(&self.schema, &answer) {
            return AnswerSchema::Unchecked;
        }
        if self.validator.is_valid(&answer) { AnswerSchema::Kept } else { AnswerSchema::Broken }
    }
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schemas([{} redacted])", self.kept.lock().by_text.len())
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Check([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{AnswerSchema, Choice, Completion, FinishReason};

    use super::{SCHEMA_BYTES_MAX, SCHEMAS_MAX, Schemas};

    const PERSON: &str = r##"{"type":"object","properties":{"name":{"type":"string"},"boss":{"$ref":"#"}},
        "required":["name"],"additionalProperties":false}"##;

    fn said(text: &str, finish: FinishReason) -> Completion {
        let choice = Choice {
            text: text.to_owned(),
            reasoning: String::new(),
            refusal: None,
            tool_calls: Vec::new(),
            finish,
        };
        Completion { choices: vec![choice], served_model: None, usage: None }
    }

    #[track_caller]
    fn check(schema: &str, text: &str, expected: AnswerSchema) {
        let check = Schemas::default().check(&Bytes::from(schema.to_owned())).unwrap();
        assert_eq!(check.judge(&said(text, FinishReason::Stop)), expected, "{schema}: {text}");
    }

    #[test]
    fn an_answer_is_judged_by_its_schema() {
        check(PERSON, r#"{"name":"a"}"#, AnswerSchema::Kept);
        check(PERSON, r#" {"name":"a","boss":{"name":"b"}} "#, AnswerSchema::Kept);
        check(PERSON, r#"{"name":"a","boss":{"name":1}}"#, AnswerSchema::Broken);
        check(PERSON, r#"{"name":"a","age":1}"#, AnswerSchema::Broken);
        check(PERSON, r#"{"name":"a""#, AnswerSchema::Broken);
        check(PERSON, "", AnswerSchema::Broken);
        check(r#"{"pattern":"^a+$"}"#, r#""aab""#, AnswerSchema::Broken);
    }

    #[test]
    fn a_text_that_was_cut_is_not_judged() {
        let check = Schemas::default().check(&Bytes::from(PERSON)).unwrap();
        assert_eq!(check.judge(&said("{", FinishReason::Length)), AnswerSchema::Unchecked);
    }

    #[test]
    fn a_schema_that_cannot_be_checked_says_nothing() {
        check("{", "1", AnswerSchema::Unchecked);
        check(r#"{"type":1}"#, "1", AnswerSchema::Unchecked);
        check(r##"{"$ref":"#"}"##, "1", AnswerSchema::Unchecked);
        check(r#"{"$ref":"http://127.0.0.1:1/s.json"}"#, "1", AnswerSchema::Unchecked);
        check(r#"{"$ref":"file:///etc/passwd"}"#, "1", AnswerSchema::Unchecked);
        check(r#"{"pattern":"(a{1000}){1000}"}"#, "1", AnswerSchema::Unchecked);
        let long = format!(r#"{{"title":"{}"}}"#, "a".repeat(SCHEMA_BYTES_MAX));
        check(&long, "1", AnswerSchema::Unchecked);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let schemas = Schemas::default();
        for number in 0..=SCHEMAS_MAX {
            schemas.check(&Bytes::from(format!(r#"{{"const":{number}}}"#)));
            schemas.check(&Bytes::from_static(br#"{"const":0}"#));
        }
        let kept = schemas.kept.lock();
        assert_eq!(kept.by_text.len(), SCHEMAS_MAX);
        assert!(kept.by_text.contains_key(&br#"{"const":0}"#[..]));
        assert!(!kept.by_text.contains_key(&br#"{"const":1}"#[..]));
    }
}
