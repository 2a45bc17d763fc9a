//! A writer of canonical JSON: objects with sorted keys, integers, plain text.

/// A key as it stands in an object: a comma, the name in quotes, a colon. One literal, so that it is one copy; the first
/// key's comma becomes the brace.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(crate) use key;

/// An object that is being written; its keys are made by [`key!`] and must come in ascending order.
#[derive(Debug)]
pub(crate) struct JsonObject<'a> {
    into: &'a mut Vec<u8>,
    start: usize,
    /// The last key, to check the order.
    #[cfg(debug_assertions)]
    last: &'static str,
}

/// One value that is being written into a list.
#[derive(Debug)]
pub(crate) struct JsonElement<'a> {
    into: &'a mut Vec<u8>,
}

// === impl JsonObject ===

impl<'a> JsonObject<'a> {
    #[inline]
    pub(crate) fn open(into: &'a mut Vec<u8>) -> Self {
        let start = into.len();
        Self {
            into,
            start,
            #[cfg(debug_assertions)]
            last: "",
        }
    }

    #[inline]
    pub(crate) fn close(self) {
        match self.into.get_mut(self.start) {
            Some(comma) => *comma = b'{',
            None => self.into.push(b'{'),
        }
        self.into.push(b'}');
    }

    /// Writes text that needs no escape: a checked name, or a name of gw's own.
    #[inline]
    pub(crate) fn name(&mut self, key: &'static str, name: &str) {
        self.key(key);
        write_name(self.into, name);
    }

    #[inline]
    pub(crate) fn text(&mut self, key: &'static str, text: &str) {
        self.key(key);
        write_text(self.into, text);
    }

    #[inline]
    pub(crate) fn number(&mut self, key: &'static str, number: u64) {
        self.key(key);
        write_number(self.into, number);
    }

    #[inline]
    pub(crate) fn unless_zero(&mut self, key: &'static str, number: u64) {
        if number != 0 {
            self.number(key, number);
        }
    }

    #[inline]
    pub(crate) fn signed(&mut self, key: &'static str, number: i64) {
        self.key(key);
        if number < 0 {
            self.into.push(b'-');
        }
        write_number(self.into, number.unsigned_abs());
    }

    #[inline]
    pub(crate) fn wide(&mut self, key: &'static str, number: u128) {
        self.key(key);
        write_wide(self.into, number);
    }

    #[inline]
    pub(crate) fn unless_zero_wide(&mut self, key: &'static str, number: u128) {
        if number != 0 {
            self.wide(key, number);
        }
    }

    #[inline]
    pub(crate) fn truth(&mut self, key: &'static str, truth: bool) {
        self.key(key);
        self.into.extend_from_slice(if truth { b"true" } else { b"false" });
    }

    /// Writes `true`, and nothing for `false`.
    #[inline]
    pub(crate) fn flag(&mut self, key: &'static str, truth: bool) {
        if truth {
            self.truth(key, true);
        }
    }

    #[inline]
    pub(crate) fn nested(&mut self, key: &'static str, write: impl FnOnce(&mut JsonObject<'_>)) {
        self.key(key);
        let mut nested = JsonObject::open(self.into);
        write(&mut nested);
        nested.close();
    }

    #[inline]
    pub(crate) fn list<I: IntoIterator>(
        &mut self,
        key: &'static str,
        elements: I,
        write: impl Fn(JsonElement<'_>, I::Item),
    ) {
        self.key(key);
        self.into.push(b'[');
        for (at, element) in elements.into_iter().enumerate() {
            if at > 0 {
                self.into.push(b',');
            }
            write(JsonElement { into: self.into }, element);
        }
        self.into.push(b']');
    }

    #[inline]
    fn key(&mut self, key: &'static str) {
        #[cfg(debug_assertions)]
        {
            // Without the comma and what follows the name, which sorts differently.
            let name = |key: &'static str| key.trim_start_matches(",\"").trim_end_matches("\":");
            debug_assert!(self.last.is_empty() || name(self.last) < name(key), "canonical keys are sorted");
            self.last = key;
        }
        self.into.extend_from_slice(key.as_bytes());
    }
}

// === impl JsonElement ===

impl JsonElement<'_> {
    #[inline]
    pub(crate) fn name(self, name: &str) {
        write_name(self.into, name);
    }

    #[inline]
    pub(crate) fn text(self, text: &str) {
        write_text(self.into, text);
    }

    #[inline]
    pub(crate) fn number(self, number: u64) {
        write_number(self.into, number);
    }

    #[inline]
    pub(crate) fn object(self, write: impl FnOnce(&mut JsonObject<'_>)) {
        let mut object = JsonObject::open(self.into);
        write(&mut object);
        object.close();
    }
}

#[inline]
fn write_name(into: &mut Vec<u8>, name: &str) {
    debug_assert!(!name.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')));
    into.reserve(name.len() + 2);
    into.push(b'"');
    into.extend_from_slice(name.as_bytes());
    into.push(b'"');
}

/// Writes text with the escapes that `serde_json` writes for it. Bounded text has no control characters.
fn write_text(into: &mut Vec<u8>, text: &str) {
    // Without an early end, so that many bytes are looked at in one step.
    if !text.bytes().fold(false, |found, byte| found | matches!(byte, b'"' | b'\\')) {
        return write_name(into, text);
    }
    into.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            into.push(b'\\');
        }
        into.push(byte);
    }
    into.push(b'"');
}

/// The decimal digits of 0 to 99, two each.
const PAIRS: [[u8; 2]; 100] = pairs();

#[expect(clippy::cast_possible_truncation, reason = "both digits are below ten")]
const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
}

/// Writes a number in decimal, two digits a step.
#[expect(clippy::cast_possible_truncation, reason = "a remainder of 100 fits, and so does one digit")]
fn write_number(into: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    into.extend_from_slice(&digits[at..]);
}

/// Writes a number that rarely needs more than 64 bits.
fn write_wide(into: &mut Vec<u8>, number: u128) {
    match u64::try_from(number) {
        Ok(number) => write_number(into, number),
        Err(_) => into.extend_from_slice(number.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::{JsonObject, write_number, write_text, write_wide};

    fn check(write: impl FnOnce(&mut Vec<u8>), expected: &str) {
        let mut into = Vec::new();
        write(&mut into);
        assert_eq!(String::from_utf8(into).unwrap(), expected);
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 99, 100, 101, 12_345, u64::MAX - 1, u64::MAX] {
            check(|into| write_number(into, number), &number.to_string());
            check(|into| write_wide(into, u128::from(number) << 7), &(u128::from(number) << 7).to_string());
        }
        check(|into| JsonObject::open(into).signed(key!("at"), i64::MIN), ",\"at\":-9223372036854775808");
    }

    #[test]
    fn text_is_escaped() {
        check(|into| write_text(into, r#"a "b" \c"#), r#""a \"b\" \\c""#);
    }

    #[test]
    fn objects_and_lists_nest() {
        let write = |into: &mut Vec<u8>| {
            let mut to = JsonObject::open(into);
            to.list(key!("a"), [1, 2], |to, number| to.number(number));
            to.list(key!("b"), [(); 0], |_, ()| {});
            to.nested(key!("c"), |to| to.flag(key!("d"), false));
            to.list(key!("e"), [true, false], |to, truth| to.object(|to| to.flag(key!("f"), truth)));
            to.close();
        };
        check(write, r#"{"a":[1,2],"b":[],"c":{},"e":[{"f":true},{}]}"#);
    }
}
