//! Tables, changes and decisions over one small policy.

use super::Question;
use crate::{Checked, check, config::tests::environment};

/// Restricted data stays onshore at `ptu`; the rest may also go to `us`.
const POLICY: &str = r#"version = 1
[residency]
onshore = ["uk-south"]
[providers.p]
kind = "scripted"
behaviour = "echo"
[deployments]
ptu = { provider = "p", model = "m", region = "uk-south", classification_ceiling = "restricted", price = "free" }
us = { provider = "p", model = "m", region = "us", price = "free" }
[[routes]]
name = "any"
match = { models = ["m"] }
deployments = ["us", "ptu"]
[tenants.t]
keys = [{ name = "k", secret = { env = "T_KEY" } }]
"#;

fn policy(text: &str) -> Checked {
    check(text, "gw.toml", &environment()).unwrap()
}

/// Checks what is said about a question.
#[track_caller]
fn explains(question: &Question, is_served: bool, expected: &str) {
    let question = Question { model: "m".to_owned(), ..question.clone() };
    let explained = policy(POLICY).explain(&question).unwrap();
    assert_eq!((explained.is_served(), explained.to_string()), (is_served, expected.to_owned()));
    let json: serde_json::Value = serde_json::from_str(&explained.to_json()).unwrap();
    assert_eq!(json["served"], is_served);
}

#[track_caller]
fn misasked(question: &Question, expected: &str) {
    assert_eq!(policy(POLICY).explain(question).unwrap_err(), expected);
}

#[test]
fn i02_a_restricted_request_demanding_onshore_finds_the_offshore_deployment_out() {
    explains(
        &Question::default(),
        true,
        "route `any`: answers\n  `us`: candidate 1\n  `ptu`: candidate 2\nserved by route `any`: us, ptu",
    );
    let restricted = Question {
        classification: Some("restricted".to_owned()),
        residency: vec!["onshore".to_owned()],
        ..Question::default()
    };
    explains(
        &restricted,
        true,
        "route `any`: answers\n  `us`: out: residency\n  `ptu`: candidate 1\nserved by route `any`: ptu",
    );
    let tools = Question { needs: vec!["tools".to_owned()], stream: true, ..Question::default() };
    explains(
        &tools,
        false,
        "route `any`: matches, and nobody may answer; the next is asked\n  `us`: out: capability\n  `ptu`: out: \
         capability\nrefused: no deployment may answer",
    );
}

#[test]
fn a_question_that_cannot_be_asked_says_what_to_write() {
    let of = |text: &str| Some(text.to_owned());
    misasked(&Question { tenant: of("u"), ..Question::default() }, "unknown tenant `u`; known: `t`");
    misasked(
        &Question { classification: of("public"), ..Question::default() },
        "`public` is below the tenant's default; write `internal` or above",
    );
    misasked(
        &Question { classification: of("secret"), ..Question::default() },
        "unknown classification `secret`; known: `public`, `internal`, `confidential`, `restricted`",
    );
    misasked(
        &Question { residency: vec!["onshor".to_owned()], ..Question::default() },
        "unknown residency `onshor`; did you mean `onshore`?",
    );
    misasked(
        &Question { needs: vec!["tool".to_owned()], ..Question::default() },
        "unknown capability `tool`; did you mean `tools`?",
    );
}

#[test]
fn the_table_says_who_serves_what_and_why_not_the_others() {
    let table = policy(POLICY).table().unwrap();
    let expected = "m | t | internal\n  -> any: us ptu\n\
                    m | t | internal, residency onshore\n  -> any: ptu\n     us is out: residency\n\
                    m | t | confidential restricted\n  -> any: ptu\n     us is out: classification_ceiling\n\
                    m | t | confidential restricted, residency onshore\n  -> any: ptu\n     us is out: residency\n\
                    4 classes";
    assert_eq!(table.to_string(), expected);
    let json: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
    assert_eq!(json["rows"][0]["outcome"]["chain"], serde_json::json!(["us", "ptu"]));
}

#[test]
fn changes_name_the_requests_that_go_elsewhere() {
    let changes = |new: &str| policy(POLICY).changes_to(&policy(new)).unwrap();
    assert_eq!(changes(POLICY).to_string(), "0 of 4 classes change");
    let other = changes(&POLICY.replace("[\"us\", \"ptu\"]", "[\"ptu\"]"));
    let expected = "m | t\n  was any: us ptu\n  now any: ptu\n  1 class, such as: model `m`, tenant `t`, internal\n\
                    1 of 4 classes change";
    assert_eq!(other.to_string(), expected);
    let json: serde_json::Value = serde_json::from_str(&other.to_json()).unwrap();
    assert_eq!(json["changes"][0]["new"]["chain"], serde_json::json!(["ptu"]));
}
