//! How much work a check can be, known before it is begun: schemas come from callers and answers may be written to their
//! order, and a few references that branch and meet again cost more than the age of the world.

use std::collections::HashMap;

use serde_json::Value;

/// The most applications of a subschema to a value in one check: a second at worst, and far less for what is not made to be slow.
const WORK_MAX: u64 = 20_000_000;
/// The most references and branches that stand for one and the same value, one within the other.
const CHAIN_MAX: u32 = 64;

/// Keywords whose subschemas apply to the value itself.
const IN_PLACE: [(&str, Holds); 8] = [
    ("allOf", Holds::List),
    ("anyOf", Holds::List),
    ("oneOf", Holds::List),
    ("not", Holds::One),
    ("if", Holds::One),
    ("then", Holds::One),
    ("else", Holds::One),
    ("dependentSchemas", Holds::Map),
];
/// Keywords whose subschemas apply to what the value holds.
const INSIDE: [(&str, Holds); 9] = [
    ("properties", Holds::Map),
    ("patternProperties", Holds::Map),
    ("additionalProperties", Holds::One),
    ("items", Holds::One),
    ("items", Holds::List),
    ("prefixItems", Holds::List),
    ("additionalItems", Holds::One),
    ("contains", Holds::One),
    ("propertyNames", Holds::One),
];
/// Keywords whose subschemas wait for a reference.
const ASIDE: [(&str, Holds); 2] = [("$defs", Holds::Map), ("definitions", Holds::Map)];
/// Keywords that apply subschemas in ways that are not counted here.
const UNCOUNTED: [&str; 5] =
    ["$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "dependencies"];

/// Returns whether an answer can be checked in bounded time.
pub(super) fn is_affordable(schema: &Value, answer: &Value) -> bool {
    let (depth, values) = size(answer);
    at_most(schema, depth).is_some_and(|each| each.saturating_mul(values) <= WORK_MAX)
}

/// Returns how often at most subschemas apply to one path through a value of some depth; `None` where that has no bound or
/// one beyond all use.
///
/// Quadratic at worst: the subschemas times the depth.
pub(super) fn at_most(schema: &Value, depth: u32) -> Option<u64> {
    let mut below = None;
    for _ in 0..depth {
        let mut level = Level { root: schema, below: below.as_ref(), known: HashMap::new() };
        level.all(schema)?;
        below = Some(level.known);
    }
    Level { root: schema, below: below.as_ref(), known: HashMap::new() }.of(schema, 0)
}

/// Returns the depth of a value and how many values it holds. A parser's bound on depth bounds the recursion.
fn size(value: &Value) -> (u32, u64) {
    let sum = |(depth, count): (u32, u64), (below, more): (u32, u64)| (depth.max(below + 1), count + more);
    match value {
        Value::Array(items) => items.iter().map(size).fold((0, 1), sum),
        Value::Object(members) => members.values().map(size).fold((0, 1), sum),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (0, 1),
    }
}

/// The work of every subschema at one depth of the value. Subschemas are told apart by where they lie.
struct Level<'a> {
    root: &'a Value,
    /// The work one level further in.
    below: Option<&'a HashMap<*const Value, u64>>,
    known: HashMap<*const Value, u64>,
}

impl<'a> Level<'a> {
    /// Counts every subschema that `of` may ask for from a level further out.
    fn all(&mut self, schema: &'a Value) -> Option<()> {
        self.of(schema, 0)?;
        let keywords = IN_PLACE.iter().chain(&INSIDE).chain(&ASIDE);
        keywords.flat_map(|keyword| subschemas(schema, keyword)).try_for_each(|subschema| self.all(subschema))
    }

    fn of(&mut self, schema: &'a Value, chain: u32) -> Option<u64> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Some(*known);
        }
        let Value::Object(members) = schema else {
            self.known.insert(std::ptr::from_ref(schema), 1);
            return Some(1);
        };
        if chain > CHAIN_MAX || UNCOUNTED.iter().any(|keyword| members.contains_key(*keyword)) {
            return None;
        }
        let mut work = 1_u64;
        if let Some(target) = members.get("$ref") {
            let target = target.as_str()?.strip_prefix('#')?;
            work = work.saturating_add(self.of(self.root.pointer(target)?, chain + 1)?);
        }
        for subschema in IN_PLACE.iter().flat_map(|keyword| subschemas(schema, keyword)) {
            work = work.saturating_add(self.of(subschema, chain + 1)?);
        }
        for subschema in INSIDE.iter().flat_map(|keyword| subschemas(schema, keyword)) {
            // What a reference finds where no schema belongs was not counted, and has no known bound.
            let inside = match self.below {
                Some(below) => *below.get(&std::ptr::from_ref(subschema))?,
                None => 1,
            };
            work = work.saturating_add(inside);
        }
        self.known.insert(std::ptr::from_ref(schema), work);
        Some(work)
    }
}

/// What a keyword holds.
#[derive(Clone, Copy)]
enum Holds {
    One,
    List,
    Map,
}

fn subschemas<'a>(schema: &'a Value, (keyword, holds): &(&str, Holds)) -> Vec<&'a Value> {
    match (schema.get(keyword), holds) {
        (Some(Value::Array(items)), Holds::List) => items.iter().collect(),
        (Some(Value::Object(members)), Holds::Map) => members.values().collect(),
        (Some(one @ (Value::Object(_) | Value::Bool(_))), Holds::One) => vec![one],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{at_most, is_affordable};

    /// Returns a value with `depth` objects around it.
    fn nested(depth: u32) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn ordinary_schemas_are_affordable() {
        let person = json!({
            "$defs": {"name": {"type": "string"}},
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/name"}, "friends": {"type": "array", "items": {"$ref": "#"}}},
        });
        let friends = json!({"name": "a", "friends": vec![json!({"name": "b", "friends": []}); 100]});
        assert!(is_affordable(&person, &friends));
        let list = json!({"properties": {"a": {"$ref": "#"}}});
        assert!(is_affordable(&list, &nested(100)));
    }

    #[test]
    fn references_that_branch_and_meet_again_are_not() {
        let mut defs = serde_json::Map::new();
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            defs.insert(number.to_string(), json!({"anyOf": [next, next]}));
        }
        defs.insert("40".to_owned(), json!({"const": 1}));
        let schema = json!({"$defs": defs, "$ref": "#/$defs/0"});
        assert!(!is_affordable(&schema, &json!(2)));
    }

    #[test]
    fn branches_at_every_depth_are_not() {
        let schema =
            json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        assert!(is_affordable(&schema, &nested(3)));
        assert!(!is_affordable(&schema, &nested(60)));
    }

    #[test]
    fn a_reference_without_an_end_or_out_of_the_schema_has_no_bound() {
        assert_eq!(at_most(&json!({"$ref": "#"}), 0), None);
        assert_eq!(at_most(&json!({"$ref": "#/$defs/none"}), 0), None);
        assert_eq!(at_most(&json!({"$ref": "other.json"}), 0), None);
        assert_eq!(at_most(&json!({"unevaluatedProperties": false}), 0), None);
    }
}
