//! Edges between members: they run downwards, and they stand in the table.

use super::{
    list, row_hint,
    table::{self, Row, TEST_KIT},
};
use crate::{
    finding::Finding,
    workspace::{Dependency, Package},
};

/// Checks the edges of one member, which stands at `place` in the build order.
pub(super) fn check(package: &Package, manifest: &str, place: usize, row: &Row) -> Vec<Finding> {
    let judge = |dependency: &Dependency| {
        let (target_place, target) = table::row(&dependency.name)?;
        let free = dependency.is_for_tests() && (target.name == row.name || target.name == TEST_KIT);
        // A normal edge to the test kit is judged with the rooms, which say the rule more plainly.
        if free || target.name == TEST_KIT {
            return None;
        }
        let (rule, offender) = if target_place >= place {
            ("every edge runs from a later crate to an earlier one", "runs upwards to")
        } else if !row.names.contains(&target.name) {
            ("every edge stands in the table; siblings do not name each other", "names")
        } else {
            return None;
        };
        Some(Finding {
            place: manifest.to_owned(),
            offender: format!("{} {offender} {} ({})", titled(row), titled(target), section(dependency)),
            rule: rule.to_owned(),
            allowed: list(row.names),
            edit: Some(row_hint(row)),
        })
    };
    package.dependencies.iter().filter_map(judge).collect()
}

/// Returns the table in which a dependency stands.
pub(super) fn section(dependency: &Dependency) -> &'static str {
    match dependency.kind.as_deref() {
        Some("dev") => "[dev-dependencies]",
        Some("build") => "[build-dependencies]",
        _ => "[dependencies]",
    }
}

fn titled(row: &Row) -> String {
    match row.order {
        Some(order) => format!("`{}` (order {order})", row.name),
        None => format!("`{}`", row.name),
    }
}
