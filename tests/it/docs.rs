//! The examples of the documentation, run.

use std::path::{Path, PathBuf};

use gw_config::{Environment, FixedEnvironment};
use http::Method;

use crate::support::Gw;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        open = match (open, line.strip_prefix("```")) {
            (None, Some(named)) => Some((named.trim() == language, String::new())),
            (None, None) => None,
            (Some((wanted, block)), Some(_)) => {
                if wanted {
                    blocks.push(block);
                }
                None
            }
            (Some((wanted, block)), None) => Some((wanted, format!("{block}{line}\n"))),
        };
    }
    blocks
}

/// Returns a value of the form that is asked of the variable.
fn value_of(name: &str) -> String {
    match name {
        "GW_CHECKPOINT_KEY" => "5a".repeat(32),
        "GW_REDIS_URL" => "redis://localhost:6379".to_owned(),
        _ => format!("value-of-{name}"),
    }
}

/// An environment in which every variable that the text names is set and every file that it names is there.
fn everything_named(text: &str) -> impl Environment {
    let named = |key: &str| -> Vec<String> {
        let before = format!("{key} = \"");
        let after = text.split(&before).skip(1);
        after.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    let environment = named("env")
        .iter()
        .fold(FixedEnvironment::new(), |environment, name| environment.with_var(name, &value_of(name)));
    named("file")
        .iter()
        .fold(environment, |environment, path| environment.with_file(path, b"value-of-a-file"))
}

/// Checks every whole configuration in the text; returns how many there were.
fn check(place: &str, text: &str) -> usize {
    let configurations: Vec<_> = blocks(text, "toml")
        .into_iter()
        .filter(|block| block.trim_start().starts_with("version = 1"))
        .collect();
    for block in &configurations {
        match gw_config::check(block, place, &everything_named(block)) {
            Ok(checked) => assert!(checked.warnings.is_empty(), "{place}: {}\n{block}", checked.warnings),
            Err(faults) => panic!("an example of {place} does not check: {faults}\n{block}"),
        }
    }
    configurations.len()
}

#[test]
fn the_configuration_of_the_readme_checks() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    assert_eq!(check("README.md", &readme), 1);
}

#[test]
fn the_configurations_of_the_documentation_check() {
    for entry in std::fs::read_dir(workspace().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            check(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[tokio::test]
async fn the_request_of_the_readme_is_answered() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    let request = blocks(&readme, "sh").into_iter().find(|block| block.contains("demo-echo")).unwrap();
    let body = request.split("-d '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let gw = Gw::start_without_a_file().await;
    let answer = gw.call(Method::POST, "/v1/chat/completions").bytes(body.to_owned()).send().await;
    assert_eq!((answer.said().as_str(), answer.header("x-gw-deployment")), ("echo: hello", "demo-echo"));
}

#[test]
fn blocks_are_found() {
    let text = "a\n```toml\nversion = 1\n```\n```sh\nls\n```\n```toml\nx = 1\n```\n";
    assert_eq!(blocks(text, "toml"), ["version = 1\n", "x = 1\n"]);
    assert_eq!(blocks(text, "sh"), ["ls\n"]);
}
