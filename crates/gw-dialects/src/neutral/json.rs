//! JSON that gw carries and does not look into.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::redacted;

/// One JSON value as it was written. Equal if written alike. Prints as redacted.
///
/// Reads and writes through `serde_json` only, and not below `#[serde(flatten)]`, `untagged` or `tag`, which go through a
/// buffer that keeps no text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

redacted!(RawJson);

impl RawJson {
    /// Returns the value, or `None` if the text is not exactly one JSON value. Takes one pass over the text.
    pub fn new(text: &str) -> Option<Self> {
        RawValue::from_string(text.trim_ascii().to_owned()).ok().map(Self)
    }

    /// Returns the empty object.
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).expect("an empty object is JSON"))
    }

    /// Returns the value as JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Returns what the value says if it is a string.
    pub fn to_text(&self) -> Option<String> {
        serde_json::from_str(self.as_str()).ok()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

#[cfg(test)]
mod tests {
    use super::RawJson;

    #[test]
    fn holds_one_value_as_written() {
        assert_eq!(RawJson::new(" {\"a\": 1e400} ").unwrap().as_str(), "{\"a\": 1e400}");
        assert!(RawJson::new("{} {}").is_none() && RawJson::new("").is_none());
        assert_eq!(RawJson::new("\"é\"").unwrap().to_text().as_deref(), Some("é"));
        assert_eq!(format!("{:?}", RawJson::empty_object()), "RawJson([redacted])");
    }
}
