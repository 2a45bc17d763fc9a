//! Writes JSON into a buffer, member by member.

use bytes::{BufMut, Bytes, BytesMut};

/// Writes one JSON text. Commas come by themselves; the caller closes what it opens.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: BytesMut,
}

impl Writer {
    /// Goes on in a buffer that holds something else, a blank or a line end last.
    pub(crate) fn within(out: &mut BytesMut, write: impl FnOnce(&mut Self)) {
        let mut json = Self { out: std::mem::take(out) };
        write(&mut json);
        *out = json.out;
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.out.freeze()
    }

    /// Writes an object as the next value.
    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.comma();
        self.out.put_u8(b'{');
        members(self);
        self.out.put_u8(b'}');
    }

    /// Writes an array as the next value.
    pub(crate) fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.comma();
        self.out.put_u8(b'[');
        items(self);
        self.out.put_u8(b']');
    }

    /// Writes a member's name; the next value is its value.
    pub(crate) fn key(&mut self, name: &str) {
        self.comma();
        self.out.put_u8(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes text as the next value.
    pub(crate) fn string(&mut self, text: &str) {
        self.comma();
        serde_json::to_writer((&mut self.out).writer(), text).expect("text always serialises into a buffer");
    }

    /// Writes what is JSON already as the next value.
    pub(crate) fn raw(&mut self, json: &str) {
        self.comma();
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn member_object(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.key(name);
        self.object(members);
    }

    pub(crate) fn member_array(&mut self, name: &str, items: impl FnOnce(&mut Self)) {
        self.key(name);
        self.array(items);
    }

    pub(crate) fn member_string(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    /// Writes a member whose value is JSON already, a number or a word.
    pub(crate) fn member_raw(&mut self, name: &str, json: &str) {
        self.key(name);
        self.raw(json);
    }

    pub(crate) fn member_number(&mut self, name: &str, number: impl std::fmt::Display) {
        use std::fmt::Write;

        self.key(name);
        write!(self.out, "{number}").expect("a number always has a place in a buffer");
    }

    pub(crate) fn member_bool(&mut self, name: &str, value: bool) {
        self.member_raw(name, if value { "true" } else { "false" });
    }

    pub(crate) fn member_null(&mut self, name: &str) {
        self.member_raw(name, "null");
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

#[cfg(test)]
mod tests {
    use super::Writer;

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
