//! A request's `metadata`: the same object of texts in every format that has one.

use gw_types::Metadata;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

/// Returns the pairs of the body's `metadata`; none where it has none, or where the body cannot be read.
///
/// Values that are no text are left out, since no route matches one. Reads the whole body once more, so it is for those
/// policies only that go by metadata.
pub fn read(body: &[u8]) -> Metadata {
    let head: Head = serde_json::from_slice(body).unwrap_or_default();
    Metadata::new(head.metadata.unwrap_or_default().0)
}

#[derive(Default, Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Option<Pairs>,
}

#[derive(Default)]
struct Pairs(Vec<(String, String)>);

/// A value that counts, and one that does not.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Other(IgnoredAny),
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry()? {
                    match value {
                        Value::Text(text) if pairs.len() < Metadata::PAIRS_MAX => pairs.push((key, text)),
                        Value::Text(_) | Value::Other(IgnoredAny) => {}
                    }
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    fn check(body: &str, expected: &[(&str, &str)]) {
        assert_eq!(read(body.as_bytes()).pairs(), expected, "{body}");
    }

    #[test]
    fn texts_are_kept_in_their_order() {
        check(
            r#"{"metadata": {"team": "a", "n": 1, "b": null, "stage": "x"}}"#,
            &[("team", "a"), ("stage", "x")],
        );
        check(r#"{"model": "m", "messages": [{"metadata": {"no": "no"}}]}"#, &[]);
        check(r#"{"metadata": null}"#, &[]);
        check(r#"{"metadata": "x"}"#, &[]);
        check("{", &[]);
    }
}
