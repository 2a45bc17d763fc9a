//! JSON schemas as Gemini takes them.
//!
//! The fields `parametersJsonSchema` and `responseJsonSchema` take a part of JSON Schema (Gemini API reference, type
//! `GenerationConfig`). What stands outside of it is rewritten where something else says the same, and left out
//! otherwise; notes that check nothing are left out in silence.

use crate::json::{Node, Text, Value, Writer};

/// A converted schema.
pub(super) struct Converted {
    /// The schema as JSON text.
    pub(super) text: String,
    /// Whether something that checks values was left out or loosened.
    pub(super) lossy: bool,
}

/// Converts a schema. Members keep their order, which models follow when they answer. One pass; text that is no JSON is
/// sent as it is, for the provider to refuse.
pub(super) fn convert(schema: &str) -> Converted {
    let Ok(node) = Node::read(schema) else {
        return Converted { text: schema.to_owned(), lossy: false };
    };
    let mut json = Writer::default();
    let mut lossy = false;
    write_schema(&mut json, &node, &mut lossy);
    let text = std::str::from_utf8(&json.into_bytes()).unwrap_or(schema).to_owned();
    Converted { text, lossy }
}

type Members<'a> = [(Text<'a>, Node<'a>)];

/// How a member of a schema is taken.
enum Keyword {
    /// As it stands.
    Plain,
    /// As a schema.
    Schema,
    /// As a list of schemas.
    Schemas,
    /// As an object whose members are schemas.
    Named,
    /// Not at all; it checks nothing.
    Note,
    /// Not at all.
    Unknown,
}

impl Keyword {
    fn of(name: &str) -> Self {
        match name {
            "type" | "format" | "title" | "description" | "enum" | "required" | "minItems" | "maxItems"
            | "minimum" | "maximum" | "propertyOrdering" | "$id" | "$anchor" => Self::Plain,
            "items" | "additionalProperties" => Self::Schema,
            "prefixItems" | "anyOf" | "oneOf" => Self::Schemas,
            "properties" | "$defs" => Self::Named,
            "$schema" | "$comment" | "default" | "example" | "examples" | "deprecated" | "readOnly"
            | "writeOnly" | "strict" => Self::Note,
            _ => Self::Unknown,
        }
    }
}

/// Writes a schema. The recursion is bounded by the reader's bound on depth.
fn write_schema(json: &mut Writer, node: &Node<'_>, lossy: &mut bool) {
    match &node.value {
        Value::Object(members) => json.object(|json| write_members(json, members, lossy)),
        // `true` and `false` stand for any value and none.
        Value::Bool(_) | Value::Array(_) | Value::String(_) | Value::Number | Value::Null => {
            json.raw(node.raw);
        }
    }
}

fn write_members(json: &mut Writer, members: &Members<'_>, lossy: &mut bool) {
    let has = |name: &str| members.iter().any(|(key, _)| key.is(name));
    let is_reference = has("$ref");
    for (key, node) in members {
        let name = key.decoded();
        // Beside a reference only `$` members may stand.
        if is_reference && !name.starts_with('$') && name != "definitions" {
            *lossy |= !matches!(&*name, "title" | "description" | "default" | "examples");
            continue;
        }
        match &*name {
            "$ref" => write_reference(json, node),
            "definitions" if !has("$defs") => write_named(json, "$defs", node, lossy),
            "const" if !has("enum") => {
                json.key("enum");
                json.raw(&format!("[{}]", node.raw));
            }
            // One schema that must hold is that schema, if it does not say again what is said already.
            "allOf" => match node.items() {
                [Node { value: Value::Object(only), .. }]
                    if !only.iter().any(|(key, _)| has(&key.decoded())) =>
                {
                    write_members(json, only, lossy);
                }
                _ => *lossy = true,
            },
            _ => write_keyword(json, &name, node, lossy),
        }
    }
}

fn write_keyword(json: &mut Writer, name: &str, node: &Node<'_>, lossy: &mut bool) {
    match Keyword::of(name) {
        Keyword::Plain => json.member_raw(name, node.raw),
        Keyword::Schema => {
            json.key(name);
            write_schema(json, node, lossy);
        }
        Keyword::Schemas => {
            // Gemini takes `oneOf` for `anyOf`.
            *lossy |= name == "oneOf";
            json.member_array(name, |json| {
                node.items().iter().for_each(|item| write_schema(json, item, lossy));
            });
        }
        Keyword::Named => write_named(json, name, node, lossy),
        Keyword::Note => {}
        Keyword::Unknown => *lossy = true,
    }
}

fn write_named(json: &mut Writer, name: &str, node: &Node<'_>, lossy: &mut bool) {
    let Value::Object(members) = &node.value else {
        json.member_raw(name, node.raw);
        return;
    };
    json.member_object(name, |json| {
        for (key, node) in members {
            // As it is written: its escapes are escapes there too.
            json.key(key.raw());
            write_schema(json, node, lossy);
        }
    });
}

fn write_reference(json: &mut Writer, node: &Node<'_>) {
    let target = node.as_str().unwrap_or_default();
    match target.strip_prefix("#/definitions/") {
        Some(name) => json.member_string("$ref", &format!("#/$defs/{name}")),
        None => json.member_raw("$ref", node.raw),
    }
}

#[cfg(test)]
mod tests {
    use super::convert;

    #[track_caller]
    fn check(schema: &str, expected: &str, lossy: bool) {
        let converted = convert(schema);
        assert_eq!((&*converted.text, converted.lossy), (expected, lossy), "{schema}");
    }

    #[test]
    fn what_gemini_takes_stays_in_its_order() {
        let schema = r#"{"type":"object","properties":{"z":{"type":["string","null"]},"a":{"type":"array","items":{"enum":["x",1]},"minItems":1}},"required":["z"],"additionalProperties":false}"#;
        check(schema, schema, false);
        let nested =
            r##"{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"$ref":"#/$defs/n"}"##;
        check(nested, nested, false);
        check(
            r#"{"additionalProperties":{"type":"string"}}"#,
            r#"{"additionalProperties":{"type":"string"}}"#,
            false,
        );
    }

    #[test]
    fn what_can_be_said_otherwise_is_rewritten() {
        check(r#"{"const":"x"}"#, r#"{"enum":["x"]}"#, false);
        check(r#"{"allOf":[{"type":"string"}],"title":"t"}"#, r#"{"type":"string","title":"t"}"#, false);
        check(
            r##"{"definitions":{"a":{"type":"string"}},"$ref":"#/definitions/a"}"##,
            r##"{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"}"##,
            false,
        );
        check(
            r#"{"$schema":"x","default":1,"examples":[1],"type":"integer"}"#,
            r#"{"type":"integer"}"#,
            false,
        );
    }

    #[test]
    fn what_gemini_does_not_check_is_a_loss() {
        check(r#"{"type":"string","pattern":"^a$"}"#, r#"{"type":"string"}"#, true);
        check(r#"{"allOf":[{"a":1},{"b":2}]}"#, "{}", true);
        check(r#"{"type":"object","allOf":[{"type":"object"}]}"#, r#"{"type":"object"}"#, true);
        check(r#"{"oneOf":[{"type":"string"}]}"#, r#"{"oneOf":[{"type":"string"}]}"#, true);
        check(r#"{"properties":{"a":{"minLength":2}}}"#, r#"{"properties":{"a":{}}}"#, true);
        check(r##"{"$ref":"#/$defs/a","minimum":1}"##, r##"{"$ref":"#/$defs/a"}"##, true);
        check(r##"{"description":"d","$ref":"#/$defs/a"}"##, r##"{"$ref":"#/$defs/a"}"##, false);
    }

    #[test]
    fn names_of_properties_are_no_keywords() {
        check(
            r#"{"properties":{"pattern":{"type":"string"},"de\"f":true}}"#,
            r#"{"properties":{"pattern":{"type":"string"},"de\"f":true}}"#,
            false,
        );
    }

    #[test]
    fn other_values_pass() {
        check("true", "true", false);
        check("{broken", "{broken", false);
    }
}
