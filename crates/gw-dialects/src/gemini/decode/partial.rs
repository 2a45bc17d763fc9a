//! The arguments of a call that come in pieces, each with its place (`streamFunctionCallArguments` of Vertex AI).

use serde_json::{Map, Value};

use crate::json::{self, Node};

/// The most bytes of text that one call's pieces may bring.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most steps of a place, and the most items of one array.
const STEPS_MAX: usize = 64;
const ITEMS_MAX: usize = 65_536;

/// The arguments of a call so far.
#[derive(Default)]
pub(super) struct PartialArguments {
    /// Arguments that came as a whole, as they were written.
    whole: Option<String>,
    /// What the pieces say.
    pieces: Map<String, Value>,
    bytes: usize,
}

/// One step of a place.
enum Step {
    Name(String),
    Item(usize),
}

impl PartialArguments {
    /// Takes the arguments as a whole.
    pub(super) fn set_whole(&mut self, arguments: &str) {
        self.whole = Some(arguments.to_owned());
    }

    /// Adds a piece: text is added to the text at its place, everything else is put there.
    ///
    /// # Errors
    /// What is wrong with the piece, in fixed words.
    pub(super) fn add(&mut self, piece: &Node<'_>) -> Result<(), &'static str> {
        let place = piece.text("jsonPath").unwrap_or_default();
        let mut steps = steps(&place)?.into_iter();
        let Some(Step::Name(first)) = steps.next() else {
            return Err("the provider's stream holds an argument without a place");
        };
        let value = value(piece);
        self.bytes += place.len() + value.as_ref().map_or(0, |value| value.as_str().map_or(8, str::len));
        if self.bytes > BYTES_MAX {
            return Err("the arguments of a tool call are too long");
        }
        let mut at = self.pieces.entry(first).or_insert(Value::Null);
        for step in steps {
            at = step_into(at, step)?;
        }
        match (at, value) {
            (Value::String(text), Some(Value::String(more))) => text.push_str(&more),
            (at, Some(value)) => *at = value,
            (_, None) => {}
        }
        Ok(())
    }

    /// Returns the arguments as JSON text: an object, if Gemini wrote one.
    pub(super) fn into_json(self) -> String {
        self.whole.unwrap_or_else(|| Value::Object(self.pieces).to_string())
    }
}

/// Goes one step down, and makes what is not there yet.
fn step_into(at: &mut Value, step: Step) -> Result<&mut Value, &'static str> {
    match step {
        Step::Name(name) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let object =
                at.as_object_mut().ok_or("the places of a tool call's arguments contradict each other")?;
            Ok(object.entry(name).or_insert(Value::Null))
        }
        Step::Item(index) => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let items =
                at.as_array_mut().ok_or("the places of a tool call's arguments contradict each other")?;
            // Items come one after the other, so a gap is a fault and no reason to make room.
            if index == items.len() && index < ITEMS_MAX {
                items.push(Value::Null);
            }
            items.get_mut(index).ok_or("the places of a tool call's arguments have a gap")
        }
    }
}

/// Reads the value of a piece; `None`: it only says that more may come.
fn value(piece: &Node<'_>) -> Option<Value> {
    if let Some(text) = piece.text("stringValue") {
        return Some(Value::String(text));
    }
    if let Some(number) = piece.get("numberValue") {
        return serde_json::from_str(number.raw).ok();
    }
    if let Some(word) = piece.get("boolValue").and_then(Node::as_bool) {
        return Some(Value::Bool(word));
    }
    // `null` is told by a member that is null itself, or the word for it.
    let json::Value::Object(members) = &piece.value else { return None };
    members.iter().any(|(key, _)| key.is("nullValue")).then_some(Value::Null)
}

/// Reads a place such as `$.recipe.steps[2]` or `$['a b'].c` (RFC 9535, names and indexes only).
fn steps(place: &str) -> Result<Vec<Step>, &'static str> {
    const FAULT: &str = "the provider's stream holds an argument at an unreadable place";
    let mut rest = place.strip_prefix('$').ok_or(FAULT)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= STEPS_MAX {
            return Err(FAULT);
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            steps.push(Step::Name(Some(name).filter(|name| !name.is_empty()).ok_or(FAULT)?.to_owned()));
            rest = tail;
        } else {
            let inside = rest.strip_prefix('[').ok_or(FAULT)?;
            let (step, tail) = bracket(inside).ok_or(FAULT)?;
            steps.push(step);
            rest = tail;
        }
    }
    Ok(steps)
}

/// Reads what stands between brackets: a number, or a name in quotes.
fn bracket(inside: &str) -> Option<(Step, &str)> {
    let quote = inside.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let (number, tail) = inside.split_once(']')?;
        return Some((Step::Item(number.parse().ok()?), tail));
    };
    let mut name = String::new();
    let mut characters = inside[1..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            end if end == quote => {
                let tail = inside[1 + at + end.len_utf8()..].strip_prefix(']')?;
                return Some((Step::Name(name), tail));
            }
            other => name.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::PartialArguments;
    use crate::json::Node;

    fn put(pieces: &[&str]) -> Result<String, &'static str> {
        let mut arguments = PartialArguments::default();
        for piece in pieces {
            arguments.add(&Node::read(piece).unwrap())?;
        }
        Ok(arguments.into_json())
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        assert_eq!(put(pieces).unwrap(), expected);
    }

    #[test]
    fn pieces_are_put_together_by_their_places() {
        check(&[], "{}");
        check(
            &[
                r#"{"jsonPath":"$.a[0].b","stringValue":"x","willContinue":true}"#,
                r#"{"jsonPath":"$.a[0].b","stringValue":"y"}"#,
                r#"{"jsonPath":"$.a[0].b","stringValue":""}"#,
                r#"{"jsonPath":"$.a[1]","numberValue":0.5}"#,
                r#"{"jsonPath":"$.c","boolValue":true}"#,
                r#"{"jsonPath":"$.d","nullValue":null}"#,
                r#"{"jsonPath":"$['e \\'f'][\"g\"]","stringValue":"é"}"#,
            ],
            r#"{"a":[{"b":"xy"},0.5],"c":true,"d":null,"e 'f":{"g":"é"}}"#,
        );
    }

    #[test]
    fn impossible_places_are_faults() {
        for place in
            ["", "a", "$", "$.", "$.a..b", "$[0]", "$.a[", "$.a[x]", "$.a['x", "$.a[1]", "$.a[99999999999]"]
        {
            let piece = format!(r#"{{"jsonPath":"{place}","stringValue":"x"}}"#);
            assert!(put(&[&piece]).is_err(), "{place}");
        }
        let deep = format!(r#"{{"jsonPath":"$.a{}","stringValue":"x"}}"#, "[0]".repeat(65));
        assert!(put(&[&deep]).is_err());
        let first = r#"{"jsonPath":"$.a","stringValue":"x"}"#;
        assert!(put(&[first, r#"{"jsonPath":"$.a.b","stringValue":"x"}"#]).is_err());
        assert!(put(&[first, r#"{"jsonPath":"$.a[0]","stringValue":"x"}"#]).is_err());
    }

    #[test]
    fn length_is_bounded() {
        let piece = format!(r#"{{"jsonPath":"$.a","stringValue":"{}"}}"#, "x".repeat(1024 * 1024));
        assert!(put(&[piece.as_str(); 3]).is_ok());
        assert!(put(&[piece.as_str(); 4]).is_err());
    }
}
