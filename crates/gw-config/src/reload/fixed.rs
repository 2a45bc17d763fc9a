//! What only a restart can change: sockets, bounds of the server, the ledger.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::{config::Config, diagnostics::Diagnostics, reader::Faults, source::Span};

/// The tables that a reload may change. Any other one is fixed, a new one too until it is added here.
const LIVE: [&str; 11] = [
    "version",
    "residency",
    "providers",
    "deployments",
    "routes",
    "refused",
    "tenants",
    "organisations",
    "issuers",
    "models",
    "limits",
];

/// Settings of the server that a reload may change.
const LIVE_OF_SERVER: [&str; 4] = ["default_deadline_ms", "max_deadline_ms", "max_concurrency", "admin_keys"];

/// Refuses every change of a fixed setting.
pub(super) fn check(old: &Config, new: &Config) -> Result<(), Diagnostics> {
    let (Ok(Value::Object(was)), Ok(Value::Object(is))) =
        (serde_json::to_value(&old.file), serde_json::to_value(&new.file))
    else {
        return Ok(());
    };
    let faults = Faults::default();
    let tables = was.iter().filter(|(table, _)| !LIVE.contains(&table.as_str()));
    for (table, was) in tables {
        let is = is.get(table).unwrap_or(&Value::Null);
        let (Value::Object(was), Value::Object(is)) = (was, is) else {
            if was != is {
                report(new, &[table], &faults);
            }
            continue;
        };
        let is_live = |key: &str| match table.as_str() {
            "server" => LIVE_OF_SERVER.contains(&key),
            "ledger" => key == "tags",
            _ => false,
        };
        let changed = was.iter().filter(|(key, value)| is.get(*key) != Some(value));
        for (key, _) in changed.filter(|(key, _)| !is_live(key)) {
            report(new, &[table, key], &faults);
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(new.diagnose(faults.into_list())) }
}

fn report(new: &Config, path: &[&str], faults: &Faults) {
    let name = path.join(".");
    let message = format!("`{name}` cannot change while the gateway runs");
    faults.add(place(new, path), &name, message, "restart to change it, or write what it was");
}

/// Returns the place of a setting: its key, else the table that it would stand in, else the beginning.
fn place(config: &Config, path: &[&str]) -> Span {
    let text = config.source.whole();
    let (root, _) = DeTable::parse_recoverable(text);
    let mut table = root.get_ref();
    let mut found = Span::default();
    for step in path {
        let Some((key, value)) = table.get_key_value(*step) else { break };
        found = Span::from(key.span());
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    found
}
