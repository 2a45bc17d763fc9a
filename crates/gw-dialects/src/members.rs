//! The members of an object of a request, taken one by one: strict types, exact paths, and what is left at the end.

use serde_json::Number;

use crate::{
    json::{Node, Value},
    neutral::{RawJson, Unknown},
    openai::refusal::Refusal,
};

/// The longest name of an unknown field that a path shows, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The members of an object that were not taken yet. `null` counts as absent.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    /// Where the object begins.
    pub(crate) at: usize,
    members: Vec<(crate::json::Text<'a>, Node<'a>)>,
}

impl<'a> Members<'a> {
    /// Takes an object apart.
    pub(crate) fn of(node: Node<'a>) -> Result<Self, Refusal> {
        match node.value {
            Value::Object(members) => Ok(Self { at: node.at, members }),
            Value::Array(_) | Value::String(_) | Value::Number | Value::Bool(_) | Value::Null => {
                Err(Refusal::new(node.at, "expected an object"))
            }
        }
    }

    /// Takes a member. A name that stands twice is refused, because readers differ in which one they heed.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<Node<'a>>, Refusal> {
        let Some(place) = self.members.iter().position(|(key, _)| key.is(name)) else { return Ok(None) };
        let (_, node) = self.members.swap_remove(place);
        if self.members.iter().any(|(key, _)| key.is(name)) {
            return Err(Refusal::new(node.at, "a field stands in an object more than once").within(name));
        }
        Ok(Some(node).filter(|node| !matches!(node.value, Value::Null)))
    }

    pub(crate) fn string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.take(name)?.map(|node| string(&node).map_err(|refusal| refusal.within(name))).transpose()
    }

    pub(crate) fn required_string(&mut self, name: &'static str) -> Result<String, Refusal> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn boolean(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        let Some(node) = self.take(name)? else { return Ok(None) };
        match node.as_bool() {
            Some(value) => Ok(Some(value)),
            None => Err(Refusal::new(node.at, "expected `true` or `false`").within(name)),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<Number>, Refusal> {
        let Some(node) = self.take(name)? else { return Ok(None) };
        let number = matches!(node.value, Value::Number).then(|| serde_json::from_str(node.raw).ok());
        match number.flatten() {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::new(node.at, "expected a number").within(name)),
        }
    }

    pub(crate) fn whole(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(node) = self.take(name)? else { return Ok(None) };
        match node.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::new(node.at, "expected a whole number").within(name)),
        }
    }

    /// Takes a member that is an object, as it was written.
    pub(crate) fn raw_object(&mut self, name: &str) -> Result<Option<RawJson>, Refusal> {
        let Some(node) = self.take(name)? else { return Ok(None) };
        if !node.is_object() {
            return Err(Refusal::new(node.at, "expected an object").within(name));
        }
        Ok(RawJson::new(node.raw))
    }

    /// Takes a member that is an object.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, Refusal> {
        let node = self.take(name)?;
        node.map(|node| Self::of(node).map_err(|refusal| refusal.within(name))).transpose()
    }

    /// Takes a member that is an array.
    pub(crate) fn array(&mut self, name: &str) -> Result<Option<Vec<Node<'a>>>, Refusal> {
        let Some(node) = self.take(name)? else { return Ok(None) };
        match node.value {
            Value::Array(items) => Ok(Some(items)),
            Value::Object(_) | Value::String(_) | Value::Number | Value::Bool(_) | Value::Null => {
                Err(Refusal::new(node.at, "expected an array").within(name))
            }
        }
    }

    pub(crate) fn missing(&self, name: &'static str) -> Refusal {
        Refusal::new(self.at, "a required field is missing").within(name)
    }

    /// Puts what was not taken into the list of the unknown; `prefix` is the object's own path.
    pub(crate) fn leave(self, prefix: &str, rest: &mut Vec<Unknown>) {
        for (key, node) in self.members {
            // A list of nothing says nothing; clients send the empty lists of earlier answers back.
            let is_empty = matches!(&node.value, Value::Array(items) if items.is_empty());
            if is_empty || matches!(node.value, Value::Null) {
                continue;
            }
            let name = key.decoded();
            let is_plain = name.len() <= NAME_BYTES_MAX
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
            // A name that is no name may be anything, so no path shows it.
            let shown = if is_plain { &*name } else { "?" };
            let path = if prefix.is_empty() { shown.to_owned() } else { format!("{prefix}.{shown}") };
            if let Some(value) = RawJson::new(node.raw) {
                rest.push(Unknown { path, value });
            }
        }
    }
}

/// Returns what a string says.
pub(crate) fn string(node: &Node<'_>) -> Result<String, Refusal> {
    match &node.value {
        Value::String(text) => Ok(text.decoded().into_owned()),
        Value::Object(_) | Value::Array(_) | Value::Number | Value::Bool(_) | Value::Null => {
            Err(Refusal::new(node.at, "expected a string"))
        }
    }
}
