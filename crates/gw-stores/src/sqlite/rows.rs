//! Between records and rows.

use gw_types::{AccountingRecord, Money};
use rusqlite::{
    Connection, ToSql, named_params,
    types::{ToSqlOutput, Value, ValueRef},
};

/// A row whose id is already there is a repeat of a write that was thought to have failed: ids are never given twice.
const INSERT: &str = "
    INSERT INTO records (id, tenant, key, started, route, serving, outcome, spent_pico, record)
    VALUES (:id, :tenant, :key, :started, :route, :serving, :outcome, :spent, :record)
    ON CONFLICT (id) DO NOTHING
";

/// Writes batches; keeps its buffer from one to the next.
#[derive(Debug, Default)]
pub(super) struct RowWriter {
    json: Vec<u8>,
}

impl RowWriter {
    /// Writes the records in one transaction: all of them, or none.
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        batch: &[Box<AccountingRecord>],
    ) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for record in batch {
                let Some(json) = self.json(record) else {
                    tracing::error!(id = %record.id, "a record cannot be written as JSON and is left out");
                    continue;
                };
                let inserted = insert.execute(named_params! {
                    ":id": record.id.as_str(),
                    ":tenant": record.tenant.as_str(),
                    ":key": record.key.as_str(),
                    ":started": record.started.micros(),
                    ":route": record.route.as_ref().map(|route| route.as_str()),
                    ":serving": record.serving.as_ref().map(|serving| serving.as_str()),
                    ":outcome": record.outcome.as_str(),
                    ":spent": Spend::of(record),
                    ":record": json,
                })?;
                if inserted == 0 {
                    tracing::error!(id = %record.id, "a record with this id is stored already");
                }
            }
        }
        transaction.commit()
    }

    fn json(&mut self, record: &AccountingRecord) -> Option<&str> {
        self.json.clear();
        serde_json::to_writer(&mut self.json, record).ok()?;
        std::str::from_utf8(&self.json).ok()
    }
}

/// An amount of money as the `spent_pico` column holds it; also a sum of such amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spend(pub(crate) Money);

impl Spend {
    /// Returns cost and side costs of a record.
    pub(crate) fn of(record: &AccountingRecord) -> Self {
        let side: Money = record.side_costs.iter().map(|side| side.cost).sum();
        Self(record.cost.saturating_add(side))
    }

    /// Adds what a record has cost.
    pub(crate) fn add(&mut self, record: &AccountingRecord) {
        self.0 = self.0.saturating_add(Self::of(record).0);
    }

    /// Reads the column; `None` if it holds no amount.
    pub(super) fn read(value: ValueRef<'_>) -> Option<Self> {
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
