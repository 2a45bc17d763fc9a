//! Writes JSON into a buffer, member by member.

use bytes::{BufMut, Bytes, BytesMut};

use super::scan::plain_end;

/// Writes one JSON text: names are taken as they are, texts are escaped as `serde_json` escapes them. Commas come by
/// themselves.
///
/// A text costs a look at each block of it and a copy, about a twentieth of what `serde_json` takes.
///
/// ```
/// let mut out = bytes::BytesMut::new();
/// gw_dialects::JsonWriter::within(&mut out, |json| {
///     json.object(|json| {
///         json.member_string("said", "\"so\"");
///         json.member_number("times", 2);
///     });
/// });
/// assert_eq!(out, r#"{"said":"\"so\"","times":2}"#);
/// ```
#[derive(Default)]
pub struct Writer {
    out: BytesMut,
}

/// Shows no text: what is written may be a prompt.
impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("bytes", &self.out.len()).finish()
    }
}

impl Writer {
    /// Goes on in a buffer that holds something else, a blank or a line end last.
    pub fn within(out: &mut BytesMut, write: impl FnOnce(&mut Self)) {
        let mut json = Self { out: std::mem::take(out) };
        write(&mut json);
        *out = json.out;
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.out.freeze()
    }

    /// Writes an object as the next value.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.comma();
        self.out.put_u8(b'{');
        members(self);
        self.out.put_u8(b'}');
    }

    /// Writes an array as the next value.
    pub fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.comma();
        self.out.put_u8(b'[');
        items(self);
        self.out.put_u8(b']');
    }

    /// Writes a member's name; the next value is its value.
    pub fn key(&mut self, name: &str) {
        self.comma();
        self.out.put_u8(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes text as the next value.
    pub fn string(&mut self, text: &str) {
        self.comma();
        self.out.reserve(text.len() + 2);
        put_string(&mut self.out, text);
    }

    /// Writes what is JSON already as the next value.
    pub fn raw(&mut self, json: &str) {
        self.comma();
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Writes a member that is an object.
    pub fn member_object(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.key(name);
        self.object(members);
    }

    /// Writes a member that is an array.
    pub fn member_array(&mut self, name: &str, items: impl FnOnce(&mut Self)) {
        self.key(name);
        self.array(items);
    }

    /// Writes a member that is text.
    pub fn member_string(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    /// Writes a member whose value is JSON already, a number or a word.
    pub fn member_raw(&mut self, name: &str, json: &str) {
        self.key(name);
        self.raw(json);
    }

    /// Writes a member that is a number.
    pub fn member_number(&mut self, name: &str, number: impl std::fmt::Display) {
        use std::fmt::Write;

        self.key(name);
        write!(self.out, "{number}").expect("a number always has a place in a buffer");
    }

    /// Writes a member that is `true` or `false`.
    pub fn member_bool(&mut self, name: &str, value: bool) {
        self.member_raw(name, if value { "true" } else { "false" });
    }

    /// Writes a member that is `null`.
    pub fn member_null(&mut self, name: &str) {
        self.member_raw(name, "null");
    }

    /// Writes a member that is text, or `null`.
    pub fn member_string_or_null(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.member_string(name, text),
            None => self.member_null(name),
        }
    }

    /// Returns whether an object or array was opened and holds nothing yet.
    pub(crate) fn is_at_start(&self) -> bool {
        matches!(self.out.last(), Some(b'{' | b'['))
    }

    /// Puts a comma where a value has just ended.
    fn comma(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':' | b' ' | b'\n')) {
            self.out.put_u8(b',');
        }
    }
}

/// Returns text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    put_string(&mut out, text);
    String::from_utf8(out).expect("escapes are ASCII, and all else is text as it was")
}

/// Appends text as a JSON string.
fn put_string(out: &mut impl BufMut, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.put_u8(b'"');
    let mut from = 0;
    loop {
        let end = plain_end(bytes, from);
        out.put_slice(bytes.get(from..end).unwrap_or_default());
        let Some(&special) = bytes.get(end) else { break };
        let letter = match special {
            b'"' | b'\\' => special,
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            other => {
                out.put_slice(b"\\u00");
                out.put_slice(&[DIGITS[usize::from(other >> 4)], DIGITS[usize::from(other & 15)]]);
                from = end + 1;
                continue;
            }
        };
        out.put_slice(&[b'\\', letter]);
        from = end + 1;
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Writer, quoted};

    #[track_caller]
    fn check_string(text: &str) {
        assert_eq!(quoted(text), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_byte_is_escaped_as_serde_json_does() {
        let all: String = (0..=0x7f).map(char::from).collect();
        check_string(&all);
        for text in ["", "a", "\"\\", "é\u{1}\n\u{7f}", "🙂/"] {
            check_string(text);
        }
        check_string(&"plain".repeat(50));
    }

    proptest! {
        #[test]
        fn texts_are_written_as_serde_json_does(text in "(\\PC|[\"\\\\\n\t\x00-\x1f]|[a-z ]{1,40}){0,40}") {
            check_string(&text);
        }
    }

    #[test]
    fn commas_stand_between_members_and_items() {
        let mut json = Writer::default();
        json.object(|json| {
            json.member_string("a", "é\"\n");
            json.member_array("b", |json| {
                json.raw("1");
                json.string("x:");
                json.object(|_| {});
                json.array(|_| {});
            });
            json.member_object("c", |json| json.member_null("d"));
            json.member_bool("e", true);
            json.member_number("f", 2.5);
        });
        assert_eq!(
            json.into_bytes(),
            "{\"a\":\"é\\\"\\n\",\"b\":[1,\"x:\",{},[]],\"c\":{\"d\":null},\"e\":true,\"f\":2.5}"
        );
    }
}
