//! Outside crates: which member may name which, and with which features.

use super::{
    TABLE_FILE,
    edges::section,
    list, row_hint,
    table::{self, FORBIDDEN_FEATURES, ROOMS, Room, Row, TEST_CRATES},
};
use crate::{
    finding::Finding,
    workspace::{Dependency, Package},
};

/// Checks the outside dependencies of one member against the rooms and against its row.
pub(super) fn check(package: &Package, manifest: &str, row: &Row) -> Vec<Finding> {
    let judge = |dependency: &Dependency| {
        let features: Vec<&str> = package.features_of(dependency).collect();
        let violation = forbidden_feature(dependency, &features, row)
            .or_else(|| outside_its_room(dependency, &features, row))
            .or_else(|| off_the_list(dependency, &features, row))?;
        Some(Finding {
            place: manifest.to_owned(),
            offender: format!("`{}` names {} ({})", row.name, violation.offender, section(dependency)),
            rule: violation.rule,
            allowed: violation.allowed,
            edit: Some(violation.edit),
        })
    };
    package.dependencies.iter().filter_map(judge).collect()
}

struct Violation {
    offender: String,
    rule: String,
    allowed: String,
    edit: String,
}

fn forbidden_feature(dependency: &Dependency, features: &[&str], row: &Row) -> Option<Violation> {
    let (name, feature) = FORBIDDEN_FEATURES
        .iter()
        .find(|(name, feature)| *name == dependency.name && features.contains(feature))?;
    Some(Violation {
        offender: format!("`{name}` with feature `{feature}`"),
        rule: format!("`{name}` \"{feature}\" stands nowhere"),
        allowed: "the features that are used, one by one".to_owned(),
        edit: format!("FORBIDDEN_FEATURES and row `{}` in {TABLE_FILE}", row.name),
    })
}

fn outside_its_room(dependency: &Dependency, features: &[&str], row: &Row) -> Option<Violation> {
    if dependency.is_for_tests() {
        return None;
    }
    let room =
        ROOMS.iter().find(|room| !room.only.contains(&row.name) && room.holds(&dependency.name, features))?;
    Some(Violation {
        offender: described(dependency, features),
        rule: format!("{} only in {}: {}", room.what, list(room.only), room.why),
        allowed: in_row(row),
        edit: format!("room \"{}\" and row `{}` in {TABLE_FILE}", room.what, row.name),
    })
}

fn off_the_list(dependency: &Dependency, features: &[&str], row: &Row) -> Option<Violation> {
    let name = dependency.name.as_str();
    let for_tests = dependency.is_for_tests() && TEST_CRATES.contains(&name);
    if table::row(name).is_some() || for_tests || row.outside.contains(&name) {
        return None;
    }
    let limit = row.limited.iter().find(|(limited, _)| *limited == name).map(|(_, limit)| *limit);
    let Some(limit) = limit else {
        return Some(Violation {
            offender: described(dependency, features),
            rule: "a member names only the outside crates of its row".to_owned(),
            allowed: in_row(row),
            edit: row_hint(row),
        });
    };
    let excess: Vec<&str> = features.iter().copied().filter(|feature| !limit.contains(feature)).collect();
    (!excess.is_empty()).then(|| Violation {
        offender: described(dependency, &excess),
        rule: format!("`{}` takes `{name}` only with the features of its row", row.name),
        allowed: list(limit),
        edit: row_hint(row),
    })
}

impl Room {
    /// Says whether a crate belongs here, by itself or because of one of its features.
    pub(super) fn holds(&self, name: &str, features: &[&str]) -> bool {
        let touched = |owner: &str, wanted: &str| {
            let matches = |feature: &&str| {
                *feature == "full"
                    || feature
                        .strip_prefix(wanted)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            owner == name && features.iter().any(matches)
        };
        self.crates.contains(&name) || self.features.iter().any(|(owner, wanted)| touched(owner, wanted))
    }
}

fn described(dependency: &Dependency, features: &[&str]) -> String {
    match features {
        [] => format!("`{}`", dependency.name),
        _ => format!("`{}` with {}", dependency.name, list(features)),
    }
}

fn in_row(row: &Row) -> String {
    let limited = row.limited.iter().map(|(name, _)| name);
    format!("{}; in tests also {}", list(row.outside.iter().chain(limited)), list(TEST_CRATES))
}
