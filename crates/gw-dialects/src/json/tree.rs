//! A whole JSON text as a borrowed tree: one pass, no text copied, an allocation a container.

use std::borrow::Cow;

use super::{Fault, Kind, Reader, Text};

/// One value of a JSON text, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    /// The value as it is written.
    pub(crate) raw: &'a str,
    /// Where it begins.
    pub(crate) at: usize,
    pub(crate) value: Value<'a>,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Object(Vec<(Text<'a>, Node<'a>)>),
    Array(Vec<Node<'a>>),
    String(Text<'a>),
    Number,
    Bool(bool),
    Null,
}

impl<'a> Node<'a> {
    /// Reads a text that is exactly one value.
    pub(crate) fn read(text: &'a str) -> Result<Self, Fault> {
        let mut reader = Reader::new(text);
        let node = Self::next(&mut reader, text)?;
        reader.end()?;
        Ok(node)
    }

    /// Reads the next value. The recursion is bounded by the reader's bound on depth.
    fn next(reader: &mut Reader<'a>, text: &'a str) -> Result<Self, Fault> {
        let kind = reader.kind()?;
        let at = reader.at();
        let value = match kind {
            Kind::Object => {
                let mut members = Vec::new();
                reader.object::<Fault>(|reader, key| {
                    members.push((key, Self::next(reader, text)?));
                    Ok(())
                })?;
                Value::Object(members)
            }
            Kind::Array => {
                let mut items = Vec::new();
                reader.array::<Fault>(|reader, _| {
                    items.push(Self::next(reader, text)?);
                    Ok(())
                })?;
                Value::Array(items)
            }
            Kind::String => Value::String(reader.string()?),
            Kind::Number => {
                reader.number()?;
                Value::Number
            }
            Kind::Bool => Value::Bool(reader.boolean()?),
            Kind::Null => {
                reader.null()?;
                Value::Null
            }
        };
        Ok(Self { raw: text.get(at..reader.at()).unwrap_or_default(), at, value })
    }

    /// Returns the member of an object, unless it is `null`; of equal names the last.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else { return None };
        let found = members.iter().rev().find(|(key, _)| key.is(name));
        found.map(|(_, node)| node).filter(|node| !matches!(node.value, Value::Null))
    }

    /// Returns the items of an array; nothing else has any.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::Array(items) => items,
            Value::Object(_) | Value::String(_) | Value::Number | Value::Bool(_) | Value::Null => &[],
        }
    }

    /// Returns what a string says.
    pub(crate) fn as_str(&self) -> Option<Cow<'a, str>> {
        match &self.value {
            Value::String(text) => Some(text.decoded()),
            Value::Object(_) | Value::Array(_) | Value::Number | Value::Bool(_) | Value::Null => None,
        }
    }

    /// Returns a number that is whole and not negative.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        matches!(self.value, Value::Number).then(|| self.raw.parse().ok()).flatten()
    }

    /// Returns a boolean.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            Value::Object(_) | Value::Array(_) | Value::String(_) | Value::Number | Value::Null => None,
        }
    }

    /// Returns the text of a member.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(Cow::into_owned)
    }

    /// Returns whether a member is this text.
    pub(crate) fn says(&self, name: &str, said: &str) -> bool {
        match self.get(name).map(|node| &node.value) {
            Some(Value::String(text)) => text.is(said),
            Some(Value::Object(_) | Value::Array(_) | Value::Number | Value::Bool(_) | Value::Null)
            | None => false,
        }
    }

    /// Returns the text of a member, unless it is empty.
    pub(crate) fn filled(&self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// Returns the whole number of a member; `12.0` is one.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let node = self.get(name)?;
        matches!(node.value, Value::Number).then(|| whole(node.raw)).flatten()
    }

    /// Returns whether a number below zero stands anywhere in the value: no count that a server can mean.
    pub(crate) fn holds_a_negative(&self) -> bool {
        match &self.value {
            Value::Object(members) => members.iter().any(|(_, member)| member.holds_a_negative()),
            Value::Array(items) => items.iter().any(Self::holds_a_negative),
            Value::Number => {
                self.raw.starts_with('-') && self.raw.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
            }
            Value::String(_) | Value::Bool(_) | Value::Null => false,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }
}

/// Returns what a number means that counts something: some servers write whole numbers with a point.
pub(crate) fn whole(number: &str) -> Option<u64> {
    let (digits, fraction) = number.split_once('.').unwrap_or((number, ""));
    fraction.bytes().all(|digit| digit == b'0').then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Node, whole};

    #[test]
    fn whole_numbers_may_have_a_point() {
        for (number, expected) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("12.00", Some(12)),
            ("0.0", Some(0)),
            ("12.5", None),
            ("-1.0", None),
            ("1e3", None),
            ("1.0e3", None),
        ] {
            assert_eq!(whole(number), expected, "{number}");
        }
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let text = r#" {"a":[1,{"b":"\u00e9"}],"c":null,"d":true,"d":false} "#;
        let node = Node::read(text).unwrap();
        assert_eq!(node.get("a").unwrap().raw, r#"[1,{"b":"\u00e9"}]"#);
        assert_eq!(node.get("a").unwrap().items()[1].text("b").as_deref(), Some("é"));
        assert_eq!(node.get("a").unwrap().items()[0].as_u64(), Some(1));
        assert!(node.get("c").is_none() && node.get("x").is_none());
        assert_eq!(node.get("d").unwrap().as_bool(), Some(false));
        assert_eq!(node.at, 1);
        assert!(Node::read("{} {}").is_err());
    }
}
