//! Sums as rows.

use crate::{
    sql::{Row, SqlError},
    sums::{SumNames, Sums},
};

/// The columns of a sum, as [`sum`] reads them.
pub(crate) const SUM_COLUMNS: &str = "bucket, tenant, key, model, deployment, route, requests, failed, fallbacks, cache_hits, \
    input_tokens, output_tokens, spent_pico";

/// Reads [`SUM_COLUMNS`]; `None` if the row is not what gw wrote.
pub(crate) fn sum<'a>(row: &'a Row<'_>) -> Result<Option<(i64, SumNames<'a>, Sums)>, SqlError> {
    let names = SumNames {
        tenant: row.text(1)?,
        key: row.text(2)?,
        model: row.text(3)?,
        deployment: row.text(4)?,
        route: row.text(5)?,
    };
    let Some(spent) = row.money(12)? else { return Ok(None) };
    let sums = Sums {
        requests: row.count(6)?,
        failed: row.count(7)?,
        fallbacks: row.count(8)?,
        cache_hits: row.count(9)?,
        input_tokens: row.count(10)?,
        output_tokens: row.count(11)?,
        spent,
    };
    Ok(Some((row.int(0)?, names, sums)))
}
