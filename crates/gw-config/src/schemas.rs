//! The JSON Schemas (draft 2020-12) of what gw reads and writes, as text. All are closed: unknown fields are refused.

/// Of `gw.toml`, read as JSON.
pub const CONFIG: &str = include_str!("schemas/config.json");

/// Of an item of a batch: one line of the input of `gw generate`.
pub const REQUEST: &str = include_str!("schemas/request.json");

/// Of a result of a batch: one line of the output of `gw generate`.
pub const RESULT: &str = include_str!("schemas/result.json");

/// Of the record that a request leaves in the ledger.
pub const RECORD: &str = include_str!("schemas/record.json");

#[cfg(test)]
mod tests;
