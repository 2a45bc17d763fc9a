//! The published schemas, judged by an independent validator: what gw reads and writes keeps to them, and what is
//! wrong does not.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use gw_testkit::{FakeProvider, FaultScript, ok, sample_record, status};
use serde_json::{Value, json};

use crate::support::Program;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn gw(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(Program::path()).current_dir(folder).args(arguments).output().unwrap()
}

/// Returns the schema as the program prints it, which is the one of the documentation.
fn schema(name: &str) -> jsonschema::Validator {
    let printed = gw(&workspace(), &["schema", name]).stdout;
    let documented = std::fs::read(workspace().join("docs/schemas").join(format!("{name}.json"))).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), String::from_utf8_lossy(&documented));
    let schema: Value = serde_json::from_slice(&printed).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn keeps(schema: &jsonschema::Validator, value: &Value) {
    let faults: Vec<_> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{value}: {faults:?}");
}

fn lines(text: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(text).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the fenced blocks of a language in every page of the documentation and in the README.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let pages = std::fs::read_dir(workspace().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.chain([workspace().join("README.md")]);
    let texts = pages
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| std::fs::read_to_string(path).unwrap());
    let of = |text: String| -> Vec<String> {
        let parts = text.split(&fence).skip(1);
        parts.filter_map(|part| part.split("```").next()).map(str::to_owned).collect()
    };
    texts.flat_map(of).collect()
}

#[test]
fn every_configuration_of_the_documentation_keeps_to_the_schema() {
    let config = schema("config");
    let whole = blocks("toml").into_iter().filter(|block| block.trim_start().starts_with("version = 1"));
    let read: Vec<Value> = whole.map(|block| toml::from_str(&block).unwrap()).collect();
    assert!(read.len() > 3, "{}", read.len());
    for value in &read {
        keeps(&config, value);
    }
    let wrong = |pointer: &str, value: Value| {
        let mut changed = read[0].clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!config.is_valid(&changed), "{pointer}");
    };
    wrong("/version", json!(2));
    wrong("/providers", json!({"p": {"kind": "nobody"}}));
    wrong("/providers", json!({"p": {"kind": "openai", "script": ["ok"]}}));
    wrong("/providers", json!({"p": {"kind": "openai", "api_key": "sk-the-key-itself"}}));
    wrong("/routes", json!([]));
    wrong("/routes", json!([{"name": "r", "deployments": ["d"], "stratgy": "ordered"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn items_results_and_records_keep_to_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let items: String = blocks("json")
        .iter()
        .flat_map(|block| block.lines())
        .filter(|line| line.starts_with("{\"request_id\""))
        .map(|line| format!("{line}\n"))
        .collect();
    let request = schema("request");
    assert_eq!(lines(items.as_bytes()).len(), 2);
    lines(items.as_bytes()).iter().for_each(|item| keeps(&request, item));
    for wrong in [
        json!({"prompt": "x"}),
        json!({"request_id": "a"}),
        json!({"request_id": "a", "prompt": "x", "messages": []}),
        json!({"request_id": "a", "prompt": "x", "promt": "x"}),
        json!({"request_id": "a", "prompt": "x", "sampling": {"max_tokens": 0}}),
    ] {
        assert!(!request.is_valid(&wrong), "{wrong}");
    }
    std::fs::write(folder.path().join("in.jsonl"), items).unwrap();
    let provider = FakeProvider::start(FaultScript::of(ok("a")).then(status(400))).await.unwrap();
    let config = format!(
        "version = 1\n\n[providers.p]\nkind = \"openai-compatible\"\nbase_url = \"{}\"\n\n[deployments.d]\nprovider = \"p\"\n\
         model = \"m\"\nprice = \"free\"\n\n[[routes]]\nname = \"r\"\ndeployments = [\"d\"]\n\n[tenants.a]\n\
         keys = [{{ name = \"k\", secret = {{ env = \"PATH\" }} }}]\n\n[ledger]\nstore = \"sqlite:gw.db\"\n",
        provider.base_url()
    );
    std::fs::write(folder.path().join("gw.toml"), config).unwrap();
    let at = folder.path().to_owned();
    let arguments = "generate --input in.jsonl --output out.jsonl --model m --max-concurrency 1".split(' ');
    let arguments: Vec<_> = arguments.collect();
    let output = tokio::task::spawn_blocking(move || gw(&at, &arguments)).await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let results = lines(&std::fs::read(folder.path().join("out.jsonl")).unwrap());
    assert_eq!(results.len(), 2);
    results.iter().for_each(|result| keeps(&schema("result"), result));
    let exported = lines(&gw(folder.path(), &["ledger", "export", "--store", "sqlite:gw.db"]).stdout);
    assert_eq!(exported.len(), 2);
    let filled = serde_json::to_value(sample_record(7)).unwrap();
    let records = exported.iter().map(|line| &line["record"]).chain([&filled]);
    records.for_each(|record| keeps(&schema("record"), record));
    let mut wrong = filled.clone();
    wrong["prompt"] = json!("hello");
    assert!(!schema("record").is_valid(&wrong));
}
