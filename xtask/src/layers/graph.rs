//! Cycles between members, named member by member.
//!
//! A cycle always holds an edge that runs upwards, which is reported as well; the path tells which edge to cut. Edges of
//! tests are left out: cargo allows them to turn back, and the test kit does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{TABLE_FILE, list};
use crate::{finding::Finding, workspace::Package};

/// Reports the shortest cycle through each member, each cycle once.
pub(super) fn check_cycles(packages: &[Package], place_of: impl Fn(&Package) -> String) -> Vec<Finding> {
    let edges: BTreeMap<&str, Vec<&str>> =
        packages.iter().map(|package| (package.name.as_str(), below(package))).collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for package in packages {
        let Some(path) = shortest_cycle(&edges, &package.name) else { continue };
        let members: BTreeSet<&str> = path.iter().copied().collect();
        if seen.insert(members.clone()) {
            findings.push(Finding {
                place: place_of(package),
                offender: format!("cycle {}", path.join(" -> ")),
                rule: "members do not depend on each other in a circle".to_owned(),
                allowed: "edges from a later crate to an earlier one".to_owned(),
                edit: Some(format!("rows {} in {TABLE_FILE}, or the manifests", list(members))),
            });
        }
    }
    findings
}

fn below(package: &Package) -> Vec<&str> {
    let normal = package.dependencies.iter().filter(|dependency| !dependency.is_for_tests());
    normal.map(|dependency| dependency.name.as_str()).collect()
}

/// Breadth-first search from `start` back to itself; the path begins and ends with it.
fn shortest_cycle<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for &next in edges.get(at).into_iter().flatten() {
            if next == start {
                let mut path = vec![start, at];
                while let Some(&before) = path.last().and_then(|last| came_from.get(last)) {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}
