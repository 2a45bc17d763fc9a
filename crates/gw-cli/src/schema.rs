//! `gw schema`: the JSON Schemas of what gw reads and writes.

use gw_config::schemas;

use crate::{arguments::SchemaName, output};

/// Of the report of `gw smoke`.
const REPORT: &str = include_str!("schemas/report.json");

/// Prints one schema, as `docs/schemas/` has it.
pub(crate) fn run(name: SchemaName) -> Result<(), String> {
    let text = match name {
        SchemaName::Config => schemas::CONFIG,
        SchemaName::Request => schemas::REQUEST,
        SchemaName::Result => schemas::RESULT,
        SchemaName::Record => schemas::RECORD,
        SchemaName::Report => REPORT,
    };
    output::line(text.trim_end())
}
