//! The typed headers of a frame.

/// The value of a header, in the types that the format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    /// Types 0 and 1.
    Bool(bool),
    /// Type 2.
    Byte(i8),
    /// Type 3.
    Short(i16),
    /// Type 4.
    Integer(i32),
    /// Type 5.
    Long(i64),
    /// Type 6, at most 65,535 bytes.
    Bytes(&'a [u8]),
    /// Type 7, at most 65,535 bytes of UTF-8.
    Text(&'a str),
    /// Type 8: milliseconds since the Unix epoch.
    Timestamp(i64),
    /// Type 9.
    Uuid([u8; 16]),
}

/// The headers of a frame, in the order of the wire.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    pub(super) fn new(headers: &'a [u8]) -> Self {
        Self { rest: headers }
    }

    /// Reads the next header, or returns `None` where there is none or it cannot be read.
    fn read(&mut self) -> Option<(&'a str, HeaderValue<'a>)> {
        let length = usize::from(self.take::<1>()?[0]);
        let name = std::str::from_utf8(self.take_slice(length)?).ok().filter(|name| !name.is_empty())?;
        let value = match self.take::<1>()?[0] {
            0 => HeaderValue::Bool(true),
            1 => HeaderValue::Bool(false),
            2 => HeaderValue::Byte(i8::from_be_bytes(self.take()?)),
            3 => HeaderValue::Short(i16::from_be_bytes(self.take()?)),
            4 => HeaderValue::Integer(i32::from_be_bytes(self.take()?)),
            5 => HeaderValue::Long(i64::from_be_bytes(self.take()?)),
            6 => HeaderValue::Bytes(self.take_counted()?),
            7 => HeaderValue::Text(std::str::from_utf8(self.take_counted()?).ok()?),
            8 => HeaderValue::Timestamp(i64::from_be_bytes(self.take()?)),
            9 => HeaderValue::Uuid(self.take()?),
            _ => return None,
        };
        Some((name, value))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn take_slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_counted(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_be_bytes(self.take()?);
        self.take_slice(usize::from(length))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, HeaderValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.read()
    }
}

/// Returns whether the bytes are headers up to their end.
pub(super) fn are_sound(headers: &[u8]) -> bool {
    let mut headers = Headers::new(headers);
    while !headers.rest.is_empty() {
        if headers.read().is_none() {
            return false;
        }
    }
    true
}

/// Writes one header.
pub(super) fn write(name: &str, value: HeaderValue<'_>, out: &mut Vec<u8>) {
    let name = cut(name, usize::from(u8::MAX));
    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(name.as_bytes());
    match value {
        HeaderValue::Bool(value) => out.push(u8::from(!value)),
        HeaderValue::Byte(value) => typed(2, &value.to_be_bytes(), out),
        HeaderValue::Short(value) => typed(3, &value.to_be_bytes(), out),
        HeaderValue::Integer(value) => typed(4, &value.to_be_bytes(), out),
        HeaderValue::Long(value) => typed(5, &value.to_be_bytes(), out),
        HeaderValue::Bytes(value) => counted(6, &value[..value.len().min(usize::from(u16::MAX))], out),
        HeaderValue::Text(value) => counted(7, cut(value, usize::from(u16::MAX)).as_bytes(), out),
        HeaderValue::Timestamp(value) => typed(8, &value.to_be_bytes(), out),
        HeaderValue::Uuid(value) => typed(9, &value, out),
    }
}

fn typed(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(value);
}

fn counted(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(value);
}

/// Cuts text at a character boundary.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
