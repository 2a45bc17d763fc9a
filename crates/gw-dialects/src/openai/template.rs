//! Recognises chunks that differ from the one before in their text alone.
//!
//! Of the chunks of a stream almost all are the same but for a few characters of text and, at OpenAI and Mistral, a padding
//! string. A chunk that was read in full and means nothing but text leaves a template: what stands before the text, between
//! text and padding, and behind. A later chunk that has the same bytes around two well-formed strings is then well-formed
//! and means the same; only its text need be counted. This takes a tenth of the time of reading it.

use super::chunk::{ChoicesField, Chunk, ErrorField};
use crate::json::{Reader, Text};

/// The longest template kept, in bytes.
const BYTES_MAX: usize = 4 * 1024;

/// What stands around the text of a chunk.
#[derive(Debug)]
pub(super) struct Template {
    head: Box<str>,
    middle: Box<str>,
    /// What stands behind the padding, if there is any.
    tail: Option<Box<str>>,
}

impl Template {
    /// Returns the template of a chunk whose facts are taken, if it holds one text and means nothing else.
    pub(super) fn of(text: &str, chunk: &Chunk<'_>) -> Option<Self> {
        let choices = &chunk.choices;
        let is_plain = choices.count == 1
            && choices.texts == 1
            && choices.finish.is_none()
            && !choices.refusal
            && !choices.tool_calls
            && !choices.sound
            && chunk.usage.is_none()
            && chunk.choices_field == ChoicesField::Array
            && chunk.error == ErrorField::Absent;
        if !is_plain || text.len() > BYTES_MAX {
            return None;
        }
        let head = text.get(..choices.last_text.start)?;
        let after = choices.last_text.end;
        let (middle, tail) = match &chunk.padding {
            Some(padding) if padding.start > after => {
                (text.get(after..padding.start)?, Some(text.get(padding.end..)?))
            }
            Some(_) | None => (text.get(after..)?, None),
        };
        Some(Self { head: head.into(), middle: middle.into(), tail: tail.map(Into::into) })
    }

    /// Returns the text of the chunk, if the chunk has this template.
    pub(super) fn text<'a>(&self, chunk: &'a str) -> Option<Text<'a>> {
        if !chunk.starts_with(&*self.head) {
            return None;
        }
        let said = Reader::starting_at(chunk, self.head.len()).string().ok()?;
        let after = said.span().end;
        let rest = chunk.get(after..)?.strip_prefix(&*self.middle)?;
        let Some(tail) = &self.tail else {
            return rest.is_empty().then_some(said);
        };
        let padding = Reader::starting_at(chunk, after + self.middle.len()).string().ok()?;
        (chunk.get(padding.span().end..)? == &**tail).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::Template;
    use crate::openai::{chunk::Chunk, content::Part};

    const PLAIN: &str =
        r#"{"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}],"obfuscation":"xyz"}"#;

    fn template(text: &str) -> Option<Template> {
        Template::of(text, &Chunk::read(text, Part::Delta).unwrap())
    }

    #[track_caller]
    fn check(chunk: &str, expected: Option<u64>) {
        let found = template(PLAIN).unwrap().text(chunk).map(|text| text.decoded_len());
        assert_eq!(found, expected, "{chunk}");
        if let Some(bytes) = expected {
            assert_eq!(Chunk::read(chunk, Part::Delta).unwrap().choices.content_bytes, bytes);
        }
    }

    #[test]
    fn text_and_padding_may_differ() {
        check(PLAIN, Some(1));
        check(&PLAIN.replace("\"A\"", "\"\""), Some(0));
        check(&PLAIN.replace("\"A\"", r#""\u00e9\n🙂""#), Some(7));
        check(&PLAIN.replace("xyz", ""), Some(1));
    }

    #[test]
    fn nothing_else_may() {
        check(&PLAIN.replace("\"A\"", "null"), None);
        check(&PLAIN.replace("\"A\"", "\"A\" "), None);
        check(&PLAIN.replace("\"A\"", "\"A\",\"x\":\"B\""), None);
        check(&PLAIN.replace("null", "\"stop\""), None);
        check(&PLAIN.replace("\"xyz\"", "7"), None);
        check(&PLAIN.replace("\"xyz\"", "\"x\"y\""), None);
        check(&PLAIN.replace("\"A\"", "\"A\\x\""), None);
        check(&format!("{PLAIN} "), None);
        check(&PLAIN[..PLAIN.len() - 1], None);
        check("", None);
    }

    #[test]
    fn only_chunks_that_mean_text_alone_leave_a_template() {
        assert!(template(&PLAIN.replace(",\"obfuscation\":\"xyz\"", "")).is_some());
        assert!(template(&PLAIN.replace("content", "reasoning_content")).is_some());
        for (from, to) in [
            ("null", "\"stop\""),
            ("\"content\"", "\"refusal\""),
            ("\"content\":\"A\"", "\"refusal\":\"\""),
            ("\"content\":\"A\"", "\"content\":null"),
            ("\"content\"", "\"reasoning\":\"B\",\"content\""),
            ("\"content\"", "\"tool_calls\":[{\"index\":0}],\"content\""),
            ("\"content\"", "\"audio\":{\"data\":\"A\"},\"content\""),
            ("}],", "}],\"usage\":{\"prompt_tokens\":1},"),
            ("{\"choices", "{\"error\":null,\"choices"),
        ] {
            assert!(template(&PLAIN.replacen(from, to, 1)).is_none(), "{to}");
        }
        assert!(template(&PLAIN.replace("xyz", &"x".repeat(super::BYTES_MAX))).is_none());
    }
}
