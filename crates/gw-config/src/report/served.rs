//! The served table: each class of requests with its chain, and why the other deployments are out.

use std::fmt;

use gw_routing::analysis::{CLASSES_MAX, Row, Table, served_table};
use serde_json::{Value, json};

use super::{outcome_json, texts, too_many, witness_json};
use crate::{Checked, Diagnostics};

/// Who serves which requests. `Display` is for people.
#[derive(Clone, Debug)]
pub struct ServedTable(Table);

/// Rows shown; a longer table is cut and says so.
const ROWS_MAX: usize = 10_000;

impl Checked {
    /// Returns the served table.
    ///
    /// # Errors
    /// Every fault of the policy's names; a checked configuration has none.
    pub fn table(&self) -> Result<ServedTable, Diagnostics> {
        served_table(&self.facts, ROWS_MAX).map(ServedTable).map_err(|errors| self.diagnose(&errors))
    }
}

impl ServedTable {
    /// Returns the table for programs: `{"classes", "rows": [{"models", "tenants", "keys", "classifications", "residency",
    /// "task_classes", "shares", "example", "outcome", "out"}]}`.
    pub fn to_json(&self) -> String {
        let rows: Vec<Value> = self.0.rows.iter().map(row_json).collect();
        json!({"classes": self.0.classes.to_string(), "rows": rows}).to_string()
    }
}

impl fmt::Display for ServedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { rows, classes } = &self.0;
        if *classes > CLASSES_MAX {
            return too_many(f);
        }
        for Row { class, outcome, out } in rows {
            writeln!(f, "{class}\n  -> {outcome}")?;
            for (deployment, reason) in out {
                writeln!(f, "     {deployment} is out: {reason}")?;
            }
        }
        write!(f, "{classes} {}", if *classes == 1 { "class" } else { "classes" })?;
        let hidden = classes.saturating_sub(rows.len() as u128);
        if hidden == 0 { Ok(()) } else { write!(f, ", the last {hidden} not shown") }
    }
}

fn row_json(Row { class, outcome, out }: &Row) -> Value {
    let out: Vec<Value> = out
        .iter()
        .map(|(deployment, reason)| json!({"deployment": deployment.as_str(), "reason": reason.to_string()}))
        .collect();
    let shares: Vec<Value> =
        class.shares.iter().map(|(route, is_in)| json!({"route": route.as_str(), "in": is_in})).collect();
    let residency: Vec<Option<String>> =
        class.residency.iter().map(|group| group.as_ref().map(ToString::to_string)).collect();
    let tasks: Vec<Option<String>> =
        class.task_classes.iter().map(|task| task.as_ref().map(ToString::to_string)).collect();
    let keys: Vec<Value> = class
        .keys
        .iter()
        .map(|(tenant, key)| json!({"tenant": tenant.as_str(), "key": key.as_str()}))
        .collect();
    json!({
        "models": class.models,
        "tenants": texts(&class.tenants),
        "keys": keys,
        "classifications": texts(&class.classifications),
        "residency": residency,
        "task_classes": tasks,
        "shares": shares,
        "example": witness_json(&class.example),
        "outcome": outcome_json(outcome),
        "out": out,
    })
}
