//! Between gw's values and the server's.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::numeric;
use crate::sql::Value;

/// The bytes of a value as the server sends them: those of a text, of a BYTEA, or a NUMERIC's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBytes<'a>(pub(crate) &'a [u8]);

impl<'a> FromSql<'a> for RawBytes<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(kind: &Type) -> bool {
        [Type::TEXT, Type::VARCHAR, Type::BYTEA, Type::NUMERIC].contains(kind)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *self {
            Self::Int(number) => return number.to_sql(kind, out),
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Utf8(bytes) | Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Money(money) => numeric::write(money.pico(), out),
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::VARCHAR, Type::BYTEA, Type::NUMERIC].contains(kind)
    }

    to_sql_checked!();
}
