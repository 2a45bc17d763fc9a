//! What the analysis of the routes finds, brought back to its place in the file.

use super::refuses_in;
use crate::{FixedEnvironment, check, config::tests::environment};

/// As a new user writes it: restricted data may go to a deployment that may not see it, a route lists a fallback to
/// another model, and another one a deployment without the capability that it is for.
pub(crate) const THREE_MISTAKES: &str = r#"version = 1

[residency]
onshore = ["uk-south"]

[providers.local]
kind = "scripted"
behaviour = "echo"

[deployments]
ptu = { provider = "local", model = "gpt-4.1", family = "gpt", region = "uk-south", classification_ceiling = "restricted", price = "free" }
us = { provider = "local", model = "gpt-4.1", family = "gpt", region = "us", price = "free", capabilities = ["chat", "tools"] }
small = { provider = "local", model = "mini", family = "mini", region = "uk-south", classification_ceiling = "restricted", price = "free" }

[[routes]]
name = "restricted"
match = { models = ["gpt-4.1"], classifications = ["restricted"] }
deployments = ["ptu", "us"]

[[routes]]
name = "tools"
priority = 1
match = { models = ["gpt-4.1"], needs = ["tools"], classification_at_most = "internal" }
deployments = ["us", "ptu"]

[[routes]]
name = "rest"
priority = 2
match = { models = ["gpt-4.1"], classification_at_most = "confidential" }
deployments = ["ptu", "small"]

[tenants.team]
keys = [{ name = "app", secret = { env = "T_KEY" } }]
"#;

#[test]
fn three_mistakes_are_found_at_their_lines_with_the_fix() {
    refuses_in(
        THREE_MISTAKES,
        &environment(),
        "18:23: no request that route `restricted` takes may use `us`: `classification_ceiling`; a request that shows \
         it: model `gpt-4.1`, tenant `team`, restricted; take `us` out of route `restricted`, or change its \
         `classification_ceiling`
         24:22: no request that route `tools` takes may use `ptu`: `capability`; a request that shows it: model \
         `gpt-4.1`, tenant `team`, internal, needs `tools`; take `ptu` out of route `tools`, or change its `capabilities`
         30:23: no request that route `rest` takes may use `small`: `other_model`; a request that shows it: model \
         `gpt-4.1`, tenant `team`, internal, needs `tools`; write `allow_other_models = true` in route `rest`, name \
         the family of `small`, or take it out",
    );
}

/// A file of one route that everything can use, which has nothing to warn of.
const CLEAN: &str = r#"version = 1
[residency]
onshore = ["uk-south"]
[providers.p]
kind = "scripted"
behaviour = "echo"
[deployments.a]
provider = "p"
model = "m"
region = "uk-south"
classification_ceiling = "restricted"
price = "free"
expected_latency_ms = 10
[deployments.b]
provider = "p"
model = "m"
region = "uk-south"
classification_ceiling = "restricted"
price = "free"
expected_latency_ms = 10
[[routes]]
name = "r"
match = { models = ["m"] }
deployments = ["a", "b"]
[tenants.t]
keys = [{ name = "k", secret = { env = "T_KEY" } }]
"#;

/// Checks what one change to the clean file makes gw warn of; `expected` is `line:column: code`, one a line.
#[track_caller]
fn warns(from: &str, to: &str, expected: &str) {
    assert!(CLEAN.contains(from), "`{from}` is not in the clean file");
    let checked = check(&CLEAN.replacen(from, to, 1), "gw.toml", &environment()).unwrap();
    let found: Vec<String> = checked
        .warnings
        .iter()
        .map(|one| format!("{}:{}: {}", one.line().unwrap(), one.column().unwrap(), one.code().unwrap()))
        .collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(found, expected, "{}", checked.warnings);
    let strict = checked.strict();
    assert_eq!(strict.is_ok(), expected.is_empty());
}

#[test]
fn a_clean_file_has_nothing_to_warn_of() {
    warns("version = 1", "version = 1", "");
}

#[test]
fn warnings_stand_at_what_has_to_change() {
    const END: &str = "[tenants.t]";
    let route = |fields: &str| {
        format!(
            "[[routes]]\nname = \"s\"\nmatch = {{ models = [\"m\"] }}\ndeployments = [\"b\"]\n{fields}{END}"
        )
    };
    warns("[\"a\", \"b\"]", "[\"a\"]", "14:14: unreachable_deployment");
    warns(END, &route("priority = 1\n"), "25:1: shadowed_route");
    warns(
        END,
        &route(""),
        "25:1: shadowed_route
         25:1: overlap",
    );
    warns(END, "[[refused]]\nmodels = [\"n\"]\n[tenants.t]", "25:1: refuses_nothing");
    warns(END, "[[refused]]\nmodels = [\"m\"]\nstreaming = true\n[tenants.t]", "");
    warns("region = \"uk-south\"\n", "", "23:16: partly_usable");
    warns("expected_latency_ms = 10\n[[routes]]", "[[routes]]", "14:14: latency_missing");
    warns("models = [\"m\"]", "models = [\"m\"], needs = [\"streaming\"]", "21:1: no_route");
    warns(
        "[tenants.t]\n",
        "[tenants.u]\nkeys = [{ name = \"k\", secret = { env = \"UP_KEY\" } }]\n[tenants.t]\n",
        "",
    );
}

#[test]
fn a_region_that_is_one_letter_from_one_of_a_group_is_warned_of() {
    let unclear = "region = \"uk-suth\"";
    warns("region = \"uk-south\"", unclear, "10:10: region_misspelt\n24:16: partly_usable");
    warns("[\"uk-south\"]", "[\"uk-south\", \"uk-suoth\"]", "");
    let text = CLEAN.replace("[\"uk-south\"]", "[\"uk-south\", \"uk-wset\"]").replacen(
        "uk-south\"\n",
        "uk-west\"\n",
        1,
    );
    let checked = check(&text, "gw.toml", &environment()).unwrap();
    let said = checked.warnings.to_string();
    assert!(
        said.contains(
            "gw.toml:10:10: region `uk-west` of `a` is one letter from `uk-wset`, a region of `onshore`, and not in \
             that group; write the same name in both, or list `uk-west` in `[residency]` beside it"
        ),
        "{said}"
    );
}

#[test]
fn a_fallback_to_a_model_whose_family_nobody_states_is_warned_of() {
    let other = CLEAN.replacen("model = \"m\"", "model = \"n\"", 1);
    let codes = |text: &str| {
        let checked = check(text, "gw.toml", &environment()).unwrap();
        checked.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let expected = "gw.toml:24:21: nobody says whether `b` (`m`) is of the family of `a` (`n`), so route `r` may answer \
                    with another model; write a `family` for both, or `allow_other_models = true` in route `r`";
    assert_eq!(codes(&other), [expected]);
    let none: [&str; 0] = [];
    assert_eq!(codes(&other.replace("provider = \"p\"", "provider = \"p\"\nfamily = \"f\"")), none);
    assert_eq!(codes(&other.replace("name = \"r\"", "name = \"r\"\nallow_other_models = true")), none);
}

#[test]
fn a_tenant_that_reaches_nothing_is_warned_of() {
    let text = CLEAN.replace("models = [\"m\"]", "models = [\"m\"], tenants = [\"t\"]")
        + "[tenants.u]\nkeys = [{ name = \"k\", secret = { env = \"UP_KEY\" } }]\n";
    let checked = check(&text, "gw.toml", &environment()).unwrap();
    let expected = "gw.toml:27:10: no key of tenant `u` can reach any deployment; name the tenant in a route whose \
                    deployments its requests may use";
    assert_eq!(checked.warnings.to_string(), expected);
}

#[test]
fn a_class_that_is_declared_refused_is_no_gap() {
    let ceiling = "classification_ceiling = \"restricted\"\n";
    let codes = |text: &str| {
        let checked = check(text, "gw.toml", &environment()).unwrap();
        checked.warnings.iter().filter_map(crate::Diagnostic::code).collect::<Vec<_>>()
    };
    let text = CLEAN.replace(ceiling, "");
    assert_eq!(codes(&text), ["unserved_demand"]);
    let declared = text + "[[refused]]\nclassifications = [\"confidential\", \"restricted\"]\n";
    assert_eq!(codes(&declared), [""; 0]);
}

#[test]
fn a_fallback_that_nothing_may_reach_refuses_the_start() {
    let text = CLEAN.replace("[\"a\", \"b\"]", "[\"a\", \"b\"]\nallow_fallback = false");
    refuses_in(
        &text,
        &environment(),
        "24:21: no request reaches `b` in route `r`, which allows no fallback; a request that shows it: model `m`, \
         tenant `t`, internal; write `allow_fallback = true` in route `r`, or take `b` out of it",
    );
}

#[test]
fn a_warning_is_an_error_where_the_user_is_strict() {
    let text = CLEAN.replace("[\"a\", \"b\"]", "[\"a\"]");
    let checked = check(&text, "gw.toml", &environment()).unwrap();
    assert!(
        checked.warnings.render(false).starts_with("warning: no route names `b`\n  --> gw.toml:14:14\n"),
        "{}",
        checked.warnings.render(false)
    );
    assert!(checked.warnings.render(false).ends_with("1 warning in gw.toml\n"));
    let faults = checked.strict().unwrap_err();
    assert!(faults.render(false).starts_with("error: no route names `b`\n"));
    assert!(faults.to_json().contains("\"code\":\"unreachable_deployment\""), "{}", faults.to_json());
}

#[test]
fn the_configuration_without_a_file_has_nothing_to_warn_of() {
    for environment in [FixedEnvironment::new(), FixedEnvironment::new().with_var("OPENAI_API_KEY", "canary")]
    {
        let built_in = crate::Config::built_in(&environment).unwrap();
        assert_eq!(crate::Checked::of(built_in.config).unwrap().warnings.to_string(), "");
    }
}
