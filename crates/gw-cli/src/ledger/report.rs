//! `gw ledger report`.

use gw_config::{GroupBy, RecordGroup, RecordSums, ReportRow, Sums, record_sums};
use gw_types::Money;
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
    let (by, period, savings) = (&options.by, period(&options.period), options.savings);
    let summed: Option<Vec<GroupBy>> = by.iter().map(summed).collect();
    let rows = match summed.filter(|_| !savings) {
        // The ledger's own sums: quicker, and what was deleted by age still counts.
        Some(by) => file.report(period, &by).map(|rows| rows.into_iter().map(unsaved).collect()),
        None => record_sums(&file, period, by),
    };
    let rows: Vec<RecordSums> = rows.map_err(|error| ledger::failed(&error))?;
    match options.format {
        Format::Text => output::line(table(by, &rows, savings)),
        Format::Json => {
            let rows: Vec<JsonRow<'_>> = rows.iter().map(|row| JsonRow { by, row, savings }).collect();
            let json = serde_json::to_string(&Report { rows });
            output::line(json.map_err(|_| "error: the report cannot be written as JSON".to_owned())?)
        }
    }
}

fn summed(group: &RecordGroup) -> Option<GroupBy> {
    match group {
        RecordGroup::Summed(group) => Some(*group),
        RecordGroup::User | RecordGroup::Tag(_) => None,
    }
}

fn unsaved(ReportRow { groups, sums }: ReportRow) -> RecordSums {
    RecordSums { groups, sums, saved: Money::ZERO }
}

/// Returns the rows as columns of text: names to the left, numbers to the right.
fn table(by: &[RecordGroup], rows: &[RecordSums], savings: bool) -> String {
    let saved = savings.then_some("saved").into_iter();
    let columns = COLUMNS.into_iter().chain(saved).map(str::to_owned);
    let head: Vec<String> = by.iter().map(RecordGroup::name).chain(columns).collect();
    let count = head.len();
    let rows = rows.iter().map(|row| cells(row, savings));
    let cells: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| {
        cells.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if at < by.len() { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    cells.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cells(row: &RecordSums, savings: bool) -> Vec<String> {
    let Sums { requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent } = &row.sums;
    let named = row.groups.iter().map(|name| if name.is_empty() { "-".to_owned() } else { name.clone() });
    let counts = [requests, failed, fallbacks, cache_hits, input_tokens, output_tokens];
    let money = std::iter::once(*spent).chain(savings.then_some(row.saved)).map(|money| money.to_string());
    named.chain(counts.map(u64::to_string)).chain(money).collect()
}

#[derive(Serialize)]
struct Report<'a> {
    rows: Vec<JsonRow<'a>>,
}

/// A row as an object: a field for each group, `null` where a request had none, then the sums.
struct JsonRow<'a> {
    by: &'a [RecordGroup],
    row: &'a RecordSums,
    savings: bool,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Sums { requests, failed, fallbacks, cache_hits, input_tokens, output_tokens, spent } =
            &self.row.sums;
        let mut map = to.serialize_map(None)?;
        for (group, name) in self.by.iter().zip(&self.row.groups) {
            map.serialize_entry(&group.name(), &Some(name).filter(|name| !name.is_empty()))?;
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
        if self.savings {
            map.serialize_entry("saved_pico", &self.row.saved.pico())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use gw_config::{GroupBy, RecordGroup, RecordSums, Sums};
    use gw_types::Money;

    use super::{JsonRow, Report, table};

    const TENANT: RecordGroup = RecordGroup::Summed(GroupBy::Tenant);

    fn rows() -> Vec<RecordSums> {
        let row = |name: &str, requests, pico| RecordSums {
            groups: vec![name.to_owned()],
            sums: Sums { requests, spent: Money::from_pico(pico), ..Sums::default() },
            saved: Money::from_pico(pico),
        };
        vec![row("", 2, 0), row("wholesale", 1_000, 1_500_000_000_000)]
    }

    #[test]
    fn names_stand_to_the_left_and_numbers_to_the_right() {
        let table = table(&[TENANT], &rows(), false);
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
        let table = super::table(&[TENANT], &rows(), true);
        assert!(table.lines().next().unwrap().ends_with("spent  saved"), "{table}");
        assert!(table.ends_with("$1.5   $1.5"), "{table}");
    }

    #[test]
    fn a_program_gets_exact_sums() {
        let (by, rows) = ([TENANT], rows());
        let rows = rows.iter().map(|row| JsonRow { by: &by, row, savings: true }).collect();
        let json: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&Report { rows }).unwrap()).unwrap();
        assert_eq!(json["rows"][0]["tenant"], serde_json::Value::Null);
        assert_eq!(json["rows"][1]["tenant"], "wholesale");
        assert_eq!(json["rows"][1]["spent_pico"], 1_500_000_000_000_u64);
        assert_eq!(json["rows"][1]["saved_pico"], 1_500_000_000_000_u64);
    }
}
