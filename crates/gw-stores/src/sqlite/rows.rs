//! Between gw's values and columns.

use gw_types::{Money, SealHash};
use rusqlite::{
    Row, ToSql,
    types::{ToSqlOutput, Value, ValueRef},
};

use crate::sums::{SumNames, Sums};

/// An amount of money as a `spent_pico` column holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spend(pub(crate) Money);

impl Spend {
    /// Reads the column; `None` if it holds no amount.
    pub(crate) fn read(value: ValueRef<'_>) -> Option<Self> {
        let pico = match value {
            ValueRef::Integer(pico) => u128::try_from(pico).ok(),
            ValueRef::Text(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
        };
        pico.map(|pico| Self(Money::from_pico(pico)))
    }
}

impl ToSql for Spend {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let pico = self.0.pico();
        Ok(match i64::try_from(pico) {
            Ok(fits) => ToSqlOutput::Owned(Value::Integer(fits)),
            Err(_) => ToSqlOutput::Owned(Value::Text(pico.to_string())),
        })
    }
}

/// Text whose bytes are known to be UTF-8, so that binding does not check them again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// Returns a count or number as SQLite holds it; what does not fit is the largest.
pub(crate) fn column<N>(number: N) -> i64
where
    i64: TryFrom<N>,
{
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a count or number; what is negative is zero.
pub(crate) fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
}

/// Reads a hash; one of another length than a hash has is nobody's.
pub(crate) fn hash(row: &Row<'_>, at: usize) -> rusqlite::Result<SealHash> {
    Ok(row.get_ref(at)?.as_blob().ok().and_then(SealHash::from_slice).unwrap_or_default())
}

/// The columns of a sum, as [`sum`] reads them.
pub(crate) const SUM_COLUMNS: &str = "bucket, tenant, key, model, deployment, route, requests, failed, fallbacks, cache_hits, \
    input_tokens, output_tokens, spent_pico";

/// Reads [`SUM_COLUMNS`]; `None` if the row is not what gw wrote.
pub(crate) fn sum<'a>(row: &'a Row<'_>) -> rusqlite::Result<Option<(i64, SumNames<'a>, Sums)>> {
    let text = |at: usize| row.get_ref(at).map(|value| value.as_str().unwrap_or_default());
    let names =
        SumNames { tenant: text(1)?, key: text(2)?, model: text(3)?, deployment: text(4)?, route: text(5)? };
    let Some(Spend(spent)) = Spend::read(row.get_ref(12)?) else { return Ok(None) };
    let sums = Sums {
        requests: count(row, 6)?,
        failed: count(row, 7)?,
        fallbacks: count(row, 8)?,
        cache_hits: count(row, 9)?,
        input_tokens: count(row, 10)?,
        output_tokens: count(row, 11)?,
        spent,
    };
    Ok(Some((row.get(0)?, names, sums)))
}

#[cfg(test)]
mod tests {
    use gw_types::Money;
    use rusqlite::Connection;

    use super::Spend;

    fn check(pico: u128, stored_as: &str) {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE amounts (amount ANY NOT NULL) STRICT").unwrap();
        let amount = Spend(Money::from_pico(pico));
        connection.execute("INSERT INTO amounts VALUES (?1)", [amount]).unwrap();
        let (kind, back) = connection
            .query_row("SELECT typeof(amount), amount FROM amounts", [], |row| {
                Ok((row.get::<_, String>(0)?, Spend::read(row.get_ref(1)?)))
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
