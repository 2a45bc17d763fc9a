//! `gw smoke` as its users run it.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::Program;

fn smoke(folder: &Path, name: &str) -> Output {
    let mut command = Command::new(Program::path());
    command.current_dir(folder).args(["smoke", "--output", name]).output().unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Leaves out what belongs to one machine and one moment.
fn without_measures(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("measured");
            members.remove("environment");
            members.values_mut().for_each(|member| *member = without_measures(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_measures(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

fn stripped(line: &str) -> String {
    without_measures(serde_json::from_str(line).unwrap()).to_string()
}

#[test]
fn every_check_passes_and_another_run_repeats_all_but_times() {
    let folder = tempfile::tempdir().unwrap();
    let runs: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let output = smoke(folder.path(), name);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            let at = folder.path().join(name);
            let report: Value = serde_json::from_str(&read(&at, "report.json")).unwrap();
            assert!(report["environment"]["elapsed_ms"].as_u64().unwrap() < 60_000);
            let events: Vec<_> = read(&at, "events.jsonl").lines().map(stripped).collect();
            assert!(events.len() > 100);
            let page = read(&at, "report.md").split("## Measured").next().unwrap().to_owned();
            assert!(page.contains("It says nothing about the speed of any provider"), "{page}");
            assert!(["throughput.svg", "latency.svg"].iter().all(|name| read(&at, name).starts_with("<svg")));
            (report, events, page)
        })
        .collect();
    let schema: Value = serde_json::from_slice(
        &Command::new(Program::path()).args(["schema", "report"]).output().unwrap().stdout,
    )
    .unwrap();
    let faults: Vec<_> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(&runs[0].0)
        .map(|error| error.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    let mut open = runs[0].0.clone();
    open["more"] = Value::Null;
    assert!(!jsonschema::validator_for(&schema).unwrap().is_valid(&open));
    let same = |run: &(Value, Vec<String>, String)| {
        (without_measures(run.0.clone()).to_string(), run.1.clone(), run.2.clone())
    };
    assert_eq!(same(&runs[0]), same(&runs[1]));
}

#[test]
fn a_folder_that_cannot_be_made_is_said_before_anything_is_played() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "x").unwrap();
    let output = smoke(folder.path(), "taken");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`taken` cannot be made a folder"));
}
