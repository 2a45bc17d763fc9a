//! Text from outside that may stand in a record: bounded, printable, one line.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Text of a caller or provider that is kept for evidence: a model name, a request id, a version label.
///
/// At most [`BoundedText::BYTES_MAX`] bytes of visible ASCII and blanks; every other character becomes `?`. Never use
/// it for prompts or completions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct BoundedText(Arc<str>);

impl BoundedText {
    /// The longest text kept, in bytes; the rest is cut.
    pub const BYTES_MAX: usize = 128;

    /// Returns the text, cut and cleaned.
    pub fn new(text: &str) -> Self {
        // Without an early end, so that many bytes are looked at in one step.
        let is_plain = |plain: bool, byte: u8| plain & (byte.is_ascii_graphic() | (byte == b' '));
        if text.len() <= Self::BYTES_MAX && text.bytes().fold(true, is_plain) {
            return Self(Arc::from(text));
        }
        let kept: String = text
            .chars()
            .take(Self::BYTES_MAX)
            .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
            .collect();
        Self(Arc::from(kept))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for BoundedText {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl std::fmt::Display for BoundedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BoundedText;

    #[test]
    fn keeps_one_printable_line() {
        assert_eq!(BoundedText::new("gpt-4.1").as_str(), "gpt-4.1");
        assert_eq!(BoundedText::new("a\nbé").as_str(), "a?b?");
        assert_eq!(BoundedText::new(&"é".repeat(500)).as_str().len(), BoundedText::BYTES_MAX);
    }
}
