//! Why a request body is refused: fixed text, the field's path, the place.

use gw_types::{ErrorKind, GatewayError};

use crate::json::{Fault, Kind, Reader, Text, line_column};

/// Says why a request body is refused. The path holds gw's own field names and numbers, nothing of the caller's.
#[derive(Debug)]
pub(crate) struct Refusal {
    message: &'static str,
    at: usize,
    path: String,
}

impl Refusal {
    pub(crate) fn new(at: usize, message: &'static str) -> Self {
        Self { message, at, path: String::new() }
    }

    /// Puts a field or index in front of the path.
    pub(crate) fn within(mut self, parent: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{joint}{}", self.path);
        self
    }

    pub(crate) fn within_item(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    pub(crate) fn into_error(self, body: &str) -> GatewayError {
        let (line, column) = line_column(body, self.at);
        let error = GatewayError::new(ErrorKind::InvalidRequest, self.message)
            .with_position(line, column)
            .with_status(400);
        if self.path.is_empty() { error } else { error.with_param(&self.path) }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::new(fault.at, fault.what)
    }
}

/// Returns the name of a field that gw may have to read.
///
/// A known name spelt with escapes would be read by the provider and not by gw, so such a spelling is refused.
pub(crate) fn field_name<'a>(key: Text<'a>) -> Result<&'a str, Refusal> {
    if key.is_escaped() {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if key.decoded().bytes().all(plain) {
            return Err(Refusal::new(key.span().start, "a field name is spelt with needless escapes"));
        }
    }
    Ok(key.raw())
}

/// Reads a string, or `null` as none.
pub(crate) fn optional_string<'a>(reader: &mut Reader<'a>) -> Result<Option<Text<'a>>, Refusal> {
    match reader.kind()? {
        Kind::String => Ok(Some(reader.string()?)),
        Kind::Null => {
            reader.null()?;
            Ok(None)
        }
        Kind::Object | Kind::Array | Kind::Number | Kind::Bool => {
            Err(Refusal::new(reader.at(), "expected a string"))
        }
    }
}

/// Reads a boolean, or `null` as `false`.
pub(crate) fn optional_boolean(reader: &mut Reader<'_>) -> Result<bool, Refusal> {
    match reader.kind()? {
        Kind::Bool => Ok(reader.boolean()?),
        Kind::Null => {
            reader.null()?;
            Ok(false)
        }
        Kind::Object | Kind::Array | Kind::Number | Kind::String => {
            Err(Refusal::new(reader.at(), "expected `true` or `false`"))
        }
    }
}
