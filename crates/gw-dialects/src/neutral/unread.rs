//! Fields of a provider's answer that the neutral form has no place for.

use crate::json::{Node, Value};

/// The most fields that one answer reports; more are not told apart.
const FIELDS_MAX: usize = 64;
/// The longest name of a field that is reported as it is, in bytes: a name is the provider's own text.
const NAME_BYTES_MAX: usize = 64;

/// Collects the fields of an answer that its reader does not read, each once.
#[derive(Debug, Default)]
pub(crate) struct UnreadFields {
    paths: Vec<String>,
    told: usize,
}

impl UnreadFields {
    /// Looks at the members of an object at `place`, which is a path that ends in a dot, or nothing. What `known` names is
    /// read, or its loss does no harm; what says nothing (`null`, `false`, empty) is nothing to lose.
    pub(crate) fn look(&mut self, node: &Node<'_>, place: &str, known: fn(&str) -> bool) {
        let Value::Object(members) = &node.value else { return };
        for (name, value) in members {
            if !known(name.raw()) && says_something(value) {
                self.add(place, name.raw());
            }
        }
    }

    /// Adds a field.
    pub(crate) fn add(&mut self, place: &str, name: &str) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let shown = if name.len() <= NAME_BYTES_MAX && name.bytes().all(plain) { name } else { "?" };
        let is_known = |path: &String| path.strip_prefix(place) == Some(shown);
        if self.paths.len() < FIELDS_MAX && !self.paths.iter().any(is_known) {
            self.paths.push(format!("{place}{shown}"));
        }
    }

    /// Returns the fields that were added since the last time.
    pub(crate) fn news(&mut self) -> impl Iterator<Item = String> {
        let told = std::mem::replace(&mut self.told, self.paths.len());
        self.paths[told..].iter().cloned()
    }

    /// Returns all fields.
    pub(crate) fn into_paths(self) -> Vec<String> {
        self.paths
    }
}

fn says_something(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number => true,
        Value::String(text) => !text.raw().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::UnreadFields;
    use crate::json::Node;

    #[test]
    fn what_is_not_known_and_says_something_is_told_once() {
        let mut fields = UnreadFields::default();
        let node = Node::read(r#"{"a":1,"b":null,"c":[],"d":{},"e":"","f":false,"g":true,"h i":0,"k":[0]}"#)
            .unwrap();
        fields.look(&node, "x.", |name| name == "a");
        assert_eq!(fields.news().collect::<Vec<_>>(), ["x.g", "x.?", "x.k"]);
        fields.look(&node, "x.", |name| name == "a");
        fields.look(&node, "", |name| name != "g");
        assert_eq!(fields.news().collect::<Vec<_>>(), ["g"]);
        assert_eq!(fields.into_paths(), ["x.g", "x.?", "x.k", "g"]);
    }

    #[test]
    fn names_and_their_number_are_bounded() {
        let mut fields = UnreadFields::default();
        fields.add("", &"n".repeat(65));
        (0..100).for_each(|number| fields.add("x.", &number.to_string()));
        let paths = fields.into_paths();
        assert_eq!((paths.len(), &*paths[0]), (64, "?"));
    }
}
