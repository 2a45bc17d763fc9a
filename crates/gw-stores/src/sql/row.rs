//! What a statement gives.

use gw_types::{Money, SealHash};
use rusqlite::types::ValueRef;

use super::SqlError;

/// One row; columns count from 0.
#[derive(Debug)]
pub(crate) enum Row<'a> {
    /// Of a SQLite file.
    Sqlite(&'a rusqlite::Row<'a>),
    /// Of a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// Reads a number.
    pub(crate) fn int(&self, at: usize) -> Result<i64, SqlError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(at)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => Ok(row.try_get(at).map_err(crate::postgres::Trouble::from)?),
        }
    }

    /// Reads a number that may be absent.
    pub(crate) fn optional_int(&self, at: usize) -> Result<Option<i64>, SqlError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(at)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => Ok(row.try_get(at).map_err(crate::postgres::Trouble::from)?),
        }
    }

    /// Reads a count; what is negative is zero.
    pub(crate) fn count(&self, at: usize) -> Result<u64, SqlError> {
        Ok(u64::try_from(self.int(at)?).unwrap_or(0))
    }

    /// Reads the bytes of a text or of bytes; what is neither is empty.
    pub(crate) fn bytes(&self, at: usize) -> Result<&[u8], SqlError> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(at)?.as_bytes().unwrap_or_default()),
            #[cfg(feature = "postgres")]
            Self::Postgres(row) => {
                let bytes = row.try_get::<_, crate::postgres::RawBytes<'_>>(at);
                Ok(bytes.map_err(crate::postgres::Trouble::from)?.0)
            }
        }
    }

    /// Reads a text; what is none is empty.
    pub(crate) fn text(&self, at: usize) -> Result<&str, SqlError> {
        Ok(std::str::from_utf8(self.bytes(at)?).unwrap_or_default())
    }

    /// Reads a hash; one of another length than a hash has is nobody's.
    pub(crate) fn hash(&self, at: usize) -> Result<SealHash, SqlError> {
        Ok(SealHash::from_slice(self.bytes(at)?).unwrap_or_default())
    }

    /// Reads an amount; `None` if the column holds none.
    pub(crate) fn money(&self, at: usize) -> Result<Option<Money>, SqlError> {
        let pico = match self {
            Self::Sqlite(row) => match row.get_ref(at)? {
                ValueRef::Integer(pico) => u128::try_from(pico).ok(),
                ValueRef::Text(digits) => std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()),
                ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
            },
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => crate::postgres::numeric::read(self.bytes(at)?),
        };
        Ok(pico.map(Money::from_pico))
    }
}

#[cfg(test)]
mod tests {
    use gw_types::Money;
    use rusqlite::Connection;

    use super::super::{Db, Value};

    fn check(pico: u128, stored_as: &str) {
        let db = Db::Sqlite(Connection::open_in_memory().unwrap());
        db.execute("CREATE TABLE amounts (amount ANY NOT NULL) STRICT", &[]).unwrap();
        let amount = Money::from_pico(pico);
        db.execute("INSERT INTO amounts VALUES (?1)", &[Value::Money(amount)]).unwrap();
        let (kind, back) = db
            .one("SELECT typeof(amount), amount FROM amounts", &[], |row| {
                Ok((row.text(0)?.to_owned(), row.money(1)?))
            })
            .unwrap();
        assert_eq!((kind.as_str(), back), (stored_as, Some(amount)));
    }

    #[test]
    fn amounts_come_back_exactly() {
        check(0, "integer");
        check(9_223_372_036_854_775_807, "integer");
        check(9_223_372_036_854_775_808, "text");
        check(u128::MAX, "text");
    }
}
