//! What a statement is given.

use gw_types::Money;
use rusqlite::{
    ToSql,
    types::{self, ToSqlOutput, ValueRef},
};

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A number.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// A text whose bytes are known to be UTF-8, so that nobody checks them again.
    Utf8(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An amount. SQLite holds it as an INTEGER up to 9.2 million USD and as decimal TEXT above, PostgreSQL as NUMERIC.
    Money(Money),
}

impl<'a> Value<'a> {
    /// Returns a count or number as a database holds it; what does not fit is the largest.
    pub(crate) fn count<N>(number: N) -> Self
    where
        i64: TryFrom<N>,
    {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match *self {
            Self::Int(number) => ToSqlOutput::Owned(types::Value::Integer(number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Utf8(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Money(money) => ToSqlOutput::Owned(match i64::try_from(money.pico()) {
                Ok(fits) => types::Value::Integer(fits),
                Err(_) => types::Value::Text(money.pico().to_string()),
            }),
        })
    }
}
