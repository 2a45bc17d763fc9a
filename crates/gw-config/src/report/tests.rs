//! Tables, changes and decisions over one small policy.

use gw_types::Operation;

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
        "request: model `m`, tenant `t`, internal, needs `chat`\nroute `any`: answers\n  `us`: candidate 1\n  `ptu`: \
         candidate 2\nserved by route `any`: us, ptu",
    );
    let restricted = Question {
        classification: Some("restricted".to_owned()),
        residency: vec!["onshore".to_owned()],
        ..Question::default()
    };
    explains(
        &restricted,
        true,
        "request: model `m`, tenant `t`, restricted, residency `onshore`, needs `chat`\nroute `any`: answers\n  `us`: \
         out: residency: `us` is not in `onshore`\n  `ptu`: candidate 1\nserved by route `any`: ptu",
    );
    let tools = Question { needs: vec!["tools".to_owned()], stream: true, ..Question::default() };
    explains(
        &tools,
        false,
        "request: model `m`, tenant `t`, internal, needs `chat` and `streaming` and `tools`\nroute `any`: matches, and \
         nobody may answer; the next is asked\n  `us`: out: capability: it lacks `tools`\n  `ptu`: out: capability: it \
         lacks `tools`\nrefused: no deployment may answer",
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

#[test]
fn a_body_says_what_its_request_needs() {
    let text = POLICY.replace(
        "price = \"free\" }\nus",
        "price = \"free\", capabilities = [\"chat\", \"tools\"], context_window = 1_000 }\nus",
    );
    let ask = |body: &str| {
        let question = Question { share_key: Some("u".to_owned()), ..Question::default() };
        policy(&text)
            .explain(&question.with_body(Operation::Chat, body.as_bytes()).unwrap())
            .unwrap()
            .to_string()
    };
    let tools = r#"{"model": "m", "messages": [{"role": "user", "content": "x"}],
                    "tools": [{"type": "function", "function": {"name": "f"}}]}"#;
    assert!(ask(tools).ends_with(
        "`us`: out: capability: it lacks `tools`\n  `ptu`: candidate 1\nserved by route `any`: ptu"
    ));
    let long =
        format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": "{}"}}]}}"#, "x".repeat(9_000));
    assert!(ask(&long).contains("`ptu`: out: context_window"));
    let bounded = r#"{"model": "m", "max_tokens": 1001, "messages": [{"role": "user", "content": "x"}]}"#;
    assert!(ask(bounded).contains("`ptu`: out: context_window"));
}

#[test]
fn a_body_of_another_operation_is_read_as_one() {
    let with = |operation, body: &str| Question::default().with_body(operation, body.as_bytes());
    let messages = r#"{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}"#;
    let question = with(Operation::Messages, messages).unwrap();
    assert_eq!((question.model.as_str(), question.output_tokens), ("m", Some(5)));
    let unknown = Question::operation("chats").unwrap_err();
    assert_eq!(unknown, "unknown operation `chats`; did you mean `chat`?");
    assert!(with(Operation::Chat, "{").is_err());
    let pinned = "match = { models = [\"m\"], metadata = { team = [\"a\"] } }";
    let text = POLICY.replace("match = { models = [\"m\"] }", pinned);
    let asked = |metadata: &str| {
        let body = format!(r#"{{"model": "m", "messages": [], "metadata": {metadata}}}"#);
        let body = body.replace("[]", r#"[{"role": "user", "content": "x"}]"#);
        policy(&text).explain(&with(Operation::Chat, &body).unwrap()).unwrap().is_served()
    };
    assert_eq!((asked(r#"{"team": "a"}"#), asked(r#"{"team": "b"}"#), asked("null")), (true, false, false));
}

#[test]
fn a_record_is_decided_again() {
    let mut record = gw_testkit::sample_record(1);
    record.tenant = "t".parse().unwrap();
    let facts = record.facts.as_mut().unwrap();
    facts.model = gw_types::BoundedText::new("m");
    facts.classification = gw_types::Classification::Restricted;
    facts.residency = vec!["onshore".parse().unwrap()];
    facts.needs = [gw_types::Capability::Chat].into_iter().collect();
    let checked = policy(POLICY);
    let explained = checked.explain_record(&record).unwrap();
    let said = explained.to_string();
    assert!(explained.is_served(), "{said}");
    assert!(said.starts_with("then: route `restricted-reasoning`, candidates ["), "{said}");
    assert!(said.contains("the configuration was another one then: sha256:0f1e2d, and is "), "{said}");
    assert!(
        said.ends_with(
            "`us`: out: residency: `us` is not in `onshore`\n  `ptu`: candidate 1\nserved by route `any`: ptu"
        ),
        "{said}"
    );
    record.tenant = "gone".parse().unwrap();
    assert_eq!(checked.explain_record(&record).unwrap_err(), "unknown tenant `gone`; known: `t`");
    record.facts = None;
    assert!(checked.explain_record(&record).is_err());
}

#[test]
fn what_is_declared_refused_is_said() {
    let text = POLICY.replace("[tenants.t]", "[[refused]]\nclassifications = [\"restricted\"]\n[tenants.t]");
    let question = Question {
        model: "m".to_owned(),
        classification: Some("restricted".to_owned()),
        ..Question::default()
    };
    let explained = policy(&text).explain(&question).unwrap();
    assert_eq!(
        explained.to_string(),
        "request: model `m`, tenant `t`, restricted, needs `chat`\ndeclaration 1 refuses such requests\nroute `any`: not asked\nrefused: such requests are declared refused"
    );
    let json: serde_json::Value = serde_json::from_str(&explained.to_json()).unwrap();
    assert_eq!((json["served"].as_bool(), json["declared_refused"].as_u64()), (Some(false), Some(0)));
}

/// One deployment has a price and the other has none; the budgets come from `scopes`.
fn budgets(scopes: &str, keys: &str) -> String {
    let text = POLICY.replace("region = \"us\", price = \"free\"", "region = \"us\", price = \"unpriced\"");
    text.replace("[tenants.t]\n", &format!("{scopes}[tenants.t]\n")).replace("\"T_KEY\" } }]", keys)
}

const BUDGET: &str = "budget = { limit_micros = 1, window = \"day\" }";

#[test]
fn i20_the_budget_of_a_key_keeps_out_what_has_no_price() {
    let keys =
        format!("\"T_KEY\" }} }}, {{ name = \"capped\", secret = {{ env = \"UP_KEY\" }}, {BUDGET} }}]");
    let checked = policy(&budgets("", &keys));
    let table = checked.table().unwrap();
    let said = table.to_string();
    assert!(said.starts_with("m | t | internal\n  -> any: us ptu\n"), "{said}");
    assert!(
        said.contains("m | t | internal, key t/capped\n  -> any: ptu\n     us is out: unpriced\n"),
        "{said}"
    );
    let json: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
    let keys = json["rows"].as_array().unwrap().iter().filter(|row| row["keys"][0]["key"] == "capped");
    assert_eq!(keys.count(), 4);
    let ask = |key: Option<&str>| {
        let key = key.map(ToOwned::to_owned);
        checked.explain(&Question { model: "m".to_owned(), key, ..Question::default() })
    };
    assert!(ask(None).unwrap().to_string().ends_with("any`: us, ptu"));
    assert!(ask(Some("k")).unwrap().to_string().ends_with("any`: us, ptu"));
    assert!(ask(Some("capped")).unwrap().to_string().ends_with("any`: ptu"));
    assert_eq!(ask(Some("caped")).unwrap_err(), "unknown key `caped`; did you mean `capped`?");
    let shown = checked.warnings.iter().find(|one| one.code() == Some("price_missing")).unwrap();
    assert!(shown.message().contains("model `m`, tenant `t`, internal, key `capped`"), "{shown}");
    assert_eq!(checked.changes_to(&checked).unwrap().to_string(), "0 of 8 classes change");
}

#[test]
fn i20_the_budget_of_a_model_keeps_out_what_has_no_price() {
    let text = budgets(&format!("[models.m]\n{BUDGET}\n"), "\"T_KEY\" } }]");
    let refused = check(&text, "gw.toml", &environment()).unwrap_err().to_string();
    assert!(refused.contains("no request that route `any` takes may use `us`: `unpriced`"), "{refused}");
    // Under a pattern the model is one among others that have no budget.
    let checked = policy(&text.replace("models = [\"m\"]", "models = [\"m*\"]"));
    let said = checked.table().unwrap().to_string();
    assert!(said.starts_with("m | t | internal\n  -> any: ptu\n     us is out: unpriced\n"), "{said}");
    assert!(said.contains("m* | t | internal\n  -> any: us ptu\n"), "{said}");
    let ask = |model: &str| {
        let question = Question { model: model.to_owned(), ..Question::default() };
        checked.explain(&question).unwrap().to_string()
    };
    assert!(ask("m").ends_with("any`: ptu") && ask("m2").ends_with("any`: us, ptu"));
}

#[test]
fn a_budget_of_a_deployment_without_a_price_refuses_the_start() {
    let text = POLICY.replace(
        "region = \"us\", price = \"free\"",
        &format!("region = \"us\", price = \"unpriced\", {BUDGET}"),
    );
    let refused = check(&text, "gw.toml", &environment()).unwrap_err().to_string();
    assert!(refused.contains("no request that route `any` takes may use `us`: `unpriced`"), "{refused}");
}

#[test]
fn programs_get_the_request_that_shows_a_finding() {
    let text = POLICY.replace("models = [\"m\"]", "models = [\"m\"], metadata = { team = [\"a\"] }");
    let checked = policy(&text);
    let shown = checked.warnings.to_values();
    let partly = shown.iter().find(|one| one["code"] == "partly_usable").unwrap();
    assert_eq!(partly["witness"]["model"], "m");
    assert_eq!(partly["witness"]["metadata"]["team"], "a");
}

#[test]
fn what_chance_decides_is_said() {
    let canary = "[[routes]]\nname = \"canary\"\npriority = -1\nmatch = { models = [\"m\"], share_percent = 5 }\n\
                  deployments = [\"ptu\"]\n[tenants.t]";
    let text = POLICY
        .replace("[tenants.t]", canary)
        .replace("name = \"any\"", "name = \"any\"\nstrategy = \"least-busy\"");
    let ask = |share_key: Option<&str>| {
        let share_key = share_key.map(ToOwned::to_owned);
        let question = Question { model: "m".to_owned(), share_key, ..Question::default() };
        policy(&text).explain(&question).unwrap()
    };
    let said = ask(None).to_string();
    assert!(
        said.starts_with(
            "the request names no end user, so in the running gateway chance decides whether it is in the share of \
             route `canary`\nrequest: "
        ),
        "{said}"
    );
    assert!(
        said.ends_with("`any`: us, ptu; which of them comes first `least-busy` decides at each request"),
        "{said}"
    );
    assert!(!ask(Some("u")).to_string().contains("chance"));
    let json: serde_json::Value = serde_json::from_str(&ask(None).to_json()).unwrap();
    assert_eq!(
        (json["strategy"].as_str(), json["request"]["model"].as_str()),
        (Some("least-busy"), Some("m"))
    );
}

#[test]
fn what_stands_against_a_deployment_is_said_with_its_figures() {
    let facts = "price = \"unpriced\", context_window = 1_000, max_output_tokens = 100 }\n[[routes]]";
    let text = POLICY.replace("price = \"free\" }\n[[routes]]", facts);
    let against = |text: &str, question: &Question| {
        let question = Question { model: "m".to_owned(), ..question.clone() };
        let said = policy(text).explain(&question).unwrap().to_string();
        let line = said.lines().find(|line| line.starts_with("  `us`: out: ")).map(ToOwned::to_owned);
        line.unwrap_or(said)
    };
    let question = Question::default();
    let restricted = Question { classification: Some("restricted".to_owned()), ..question.clone() };
    let expected = "  `us`: out: classification_ceiling: it may see `internal` at most";
    assert_eq!(against(&text, &restricted), expected);
    let long = Question { input_tokens: 950, output_tokens: Some(60), ..question.clone() };
    let expected =
        "  `us`: out: context_window: at least 950 input tokens and 60 output tokens, and a window of 1000";
    assert_eq!(against(&text, &long), expected);
    let expected = "  `us`: out: max_output: 101 output tokens, and it answers with 100 at most";
    assert_eq!(against(&text, &Question { output_tokens: Some(101), ..question.clone() }), expected);
}
