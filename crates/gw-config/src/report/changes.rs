//! Which classes of requests go elsewhere under another configuration.

use std::fmt;

use gw_routing::analysis::{CLASSES_MAX, Change, Diff, diff};
use serde_json::{Value, json};

use super::{outcome_json, texts, too_many, witness_json};
use crate::{Checked, Diagnostics};

/// What changes between two configurations. `Display` is for people.
#[derive(Clone, Debug)]
pub struct PolicyChanges(Diff);

impl Checked {
    /// Returns which classes of requests go elsewhere under a newer configuration: to another route, another chain, or
    /// nowhere.
    ///
    /// # Errors
    /// Every fault of the policies' names; checked configurations have none.
    pub fn changes_to(&self, new: &Self) -> Result<PolicyChanges, Diagnostics> {
        diff(&self.facts, &new.facts).map(PolicyChanges).map_err(|errors| self.diagnose(&errors))
    }
}

impl PolicyChanges {
    /// Returns the changes for programs: `{"classes", "changes": [{"classes", "models", "tenants", "old", "new",
    /// "example"}]}`.
    pub fn to_json(&self) -> String {
        let change = |change: &Change| {
            json!({
                "classes": change.classes,
                "models": change.models,
                "tenants": texts(&change.tenants),
                "old": outcome_json(&change.old),
                "new": outcome_json(&change.new),
                "example": witness_json(&change.witness),
            })
        };
        let changes: Vec<Value> = self.0.changes.iter().map(change).collect();
        json!({"classes": self.0.classes.to_string(), "changes": changes}).to_string()
    }
}

impl fmt::Display for PolicyChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diff { changes, classes } = &self.0;
        if *classes > CLASSES_MAX {
            return too_many(f);
        }
        for Change { old, new, classes, models, tenants, witness } in changes {
            writeln!(f, "{} | {}", models.join(" "), texts(tenants).join(" "))?;
            writeln!(f, "  was {old}\n  now {new}")?;
            let plural = if *classes == 1 { "class" } else { "classes" };
            writeln!(f, "  {classes} {plural}, such as: {witness}")?;
        }
        let changed: u64 = changes.iter().map(|change| change.classes).sum();
        write!(f, "{changed} of {classes} classes change")
    }
}
