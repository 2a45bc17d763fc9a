//! `gw ledger report`.

use gw_config::{GroupBy, ReportRow, Sums};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::export::period;
use crate::{
    arguments::{Format, ReportOptions},
    ledger, output,
};

/// The columns after the groups.
const COLUMNS: [&str; 7] =
    ["requests", "failed", "fallbacks", "cache hits", "input tokens", "output tokens", "spent"];

/// Adds up.
pub(crate) fn run(options: &ReportOptions) -> Result<(), String> {
    let file = ledger::open(&ledger::source(&options.ledger)?)?;
    let rows = file.report(period(&options.period), &options.by).map_err(|error| ledger::failed(&error))?;
    match options.format {
        Format::Text => output::line(table(&options.by, &rows)),
        Format::Json => {
            let rows: Vec<JsonRow<'_>> = rows.iter().map(|row| JsonRow { by: &options.by, row }).collect();
            let json = serde_json::to_string(&Report { rows });
            output::line(json.map_err(|_| "error: the report cannot be written as JSON".to_owned())?)
        }
    }
}

/// Returns the rows as columns of text: names to the left, numbers to the right.
fn table(by: &[GroupBy], rows: &[ReportRow]) -> String {
    let head = by.iter().map(|group| group.as_str()).chain(COLUMNS).map(str::to_owned).collect();
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let width = |at: usize| {
        cells.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..by.len() + COLUMNS.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at < by.len() { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    cells.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cells(row: &ReportRow) -> Vec<String> {
    let Sums { requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent } = &row.sums;
    let named = row.groups.iter().map(|name| if name.is_empty() { "-".to_owned() } else { name.clone() });
    let counts = [requests, failed, fallbacks, cache_hits, input_tokens, output_tokens];
    named.chain(counts.map(u64::to_string)).chain([spent.to_string()]).collect()
}

#[derive(Serialize)]
struct Report<'a> {
    rows: Vec<JsonRow<'a>>,
}

/// A row as an object: a field for each group, `null` where a request had none, then the sums.
struct JsonRow<'a> {
    by: &'a [GroupBy],
    row: &'a ReportRow,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Sums { requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent } =
            &self.row.sums;
        let mut map = to.serialize_map(None)?;
        for (group, name) in self.by.iter().zip(&self.row.groups) {
            map.serialize_entry(group.as_str(), &Some(name).filter(|name| !name.is_empty()))?;
        }
        for (name, count) in [
            ("requests", requests),
            ("failed", failed),
            ("fallbacks", fallbacks),
            ("cache_hits", cache_hits),
            ("input_tokens", input_tokens),
            ("output_tokens", output_tokens),
        ] {
            map.serialize_entry(name, count)?;
        }
        map.serialize_entry("spent_pico", &spent.pico())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use gw_config::{GroupBy, ReportRow, Sums};
    use gw_types::Money;

    use super::{JsonRow, Report, table};

    fn rows() -> Vec<ReportRow> {
        let row = |name: &str, requests, pico| ReportRow {
            groups: vec![name.to_owned()],
            sums: Sums { requests, spent: Money::from_pico(pico), ..Sums::default() },
        };
        vec![row("", 2, 0), row("wholesale", 1_000, 1_500_000_000_000)]
    }

    #[test]
    fn names_stand_to_the_left_and_numbers_to_the_right() {
        let table = table(&[GroupBy::Tenant], &rows());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[0],
            "tenant     requests  failed  fallbacks  cache hits  input tokens  output tokens  spent"
        );
        assert_eq!(
            lines[1],
            "-                 2       0          0           0             0              0     $0"
        );
        assert_eq!(
            lines[2],
            "wholesale      1000       0          0           0             0              0   $1.5"
        );
    }

    #[test]
    fn a_program_gets_exact_sums() {
        let (by, rows) = ([GroupBy::Tenant], rows());
        let rows = rows.iter().map(|row| JsonRow { by: &by, row }).collect();
        let json: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&Report { rows }).unwrap()).unwrap();
        assert_eq!(json["rows"][0]["tenant"], serde_json::Value::Null);
        assert_eq!(json["rows"][1]["tenant"], "wholesale");
        assert_eq!(json["rows"][1]["spent_pico"], 1_500_000_000_000_u64);
    }
}
