//! What routes match by, how they choose, and classes of requests that are meant to be refused.

use super::{accepts, check};

const CACHE: &str = "cache = { exact = true, ttl_s = 300 }";
const MATCH: &str = "models = [\"m\"],";
const GROUPS: &str = "residency = \"onshore\"\nrequests_per_minute";

/// Checks what is said about one more condition of the route.
#[track_caller]
fn refuses(condition: &str, expected: &str) {
    check(MATCH, &format!("{MATCH} {condition},"), expected);
}

#[test]
fn metadata_lists_values_by_key() {
    let models = "models = [\"m\"],";
    let matching = |metadata: &str| format!("{models} metadata = {metadata},");
    accepts(models, &matching("{ team = [\"x\", \"y\"], stage = \"prod\" }"), "\"stage\": [");
    check(models, &matching("{}"), "22:38: `routes[0].match.metadata` is empty; write at least one key");
    check(
        models,
        &matching("{ team = [] }"),
        "22:47: `routes[0].match.metadata.team` is empty; write at least one item",
    );
    check(
        models,
        &matching("{ team = 1 }"),
        "22:47: `routes[0].match.metadata.team` is a whole number, not a string; write it in quotes",
    );
    check(
        models,
        &matching(&format!("{{ team = \"{}\" }}", "x".repeat(129))),
        "22:47: `routes[0].match.metadata.team` is too long for a value of metadata; write at most 128 bytes",
    );
}

#[test]
fn every_strategy_has_its_name() {
    for strategy in ["ordered", "weighted", "cheapest", "fastest", "least-busy", "sticky"] {
        accepts(CACHE, &format!("strategy = \"{strategy}\""), &format!("\"strategy\": \"{strategy}\""));
    }
    check(
        CACHE,
        "strategy = \"least_busy\"",
        "24:12: unknown strategy `least_busy` in `routes[0].strategy`; did you mean `least-busy`?",
    );
}

#[test]
fn what_a_route_says_shows() {
    accepts(CACHE, "strategy = \"weighted\"\nweights = { a = 3 }", "\"a\": 3");
    accepts(CACHE, "on_unavailable = \"fail\"", "\"on_unavailable\": \"fail\"");
    accepts(CACHE, "on_unavailable = \"fall-through\"", "\"on_unavailable\": \"fall-through\"");
    accepts(CACHE, "allow_fallback = false", "\"allow_fallback\": false");
    accepts(CACHE, "allow_other_models = true", "\"allow_other_models\": true");
    accepts("region = \"uk-south\"", "region = \"uk-south\"\nfamily = \"gpt\"", "\"family\": \"gpt\"");
}

#[test]
fn what_a_route_says_wrongly_is_refused() {
    check(CACHE, "weights = { b = 3 }", "24:13: `b` is not among the deployments of the route; known: `a`");
    check(
        CACHE,
        "weights = { a = -1 }",
        "24:17: `routes[0].weights.a` is out of range: `-1`; write a whole number from 0 to 1_000_000",
    );
    check(
        CACHE,
        "on_unavailable = \"fall_through\"",
        "24:18: unknown outcome `fall_through` in `routes[0].on_unavailable`; did you mean `fall-through`?",
    );
    check(
        CACHE,
        "allow_fallback = \"false\"",
        "24:18: `routes[0].allow_fallback` is a string, not a boolean; write `false` without quotes",
    );
}

#[test]
fn conditions_show() {
    for (condition, shown) in [
        ("classification_at_most = \"internal\"", "\"classification_at_most\": \"internal\""),
        ("residency = [\"onshore\"]", "\"onshore\""),
        ("needs = [\"streaming\"]", "\"needs\": [\n"),
        ("input_tokens_at_least = 5", "\"input_tokens_at_least\": 5"),
        ("input_tokens_at_most = 9", "\"input_tokens_at_most\": 9"),
        ("streaming = false", "\"streaming\": false"),
        ("share_percent = 0", "\"share_percent\": 0"),
        ("share_percent = 100", "\"share_percent\": 100"),
    ] {
        accepts(MATCH, &format!("{MATCH} {condition},"), shown);
    }
}

#[test]
fn faulty_conditions_are_refused() {
    refuses(
        "classification_at_most = \"internl\"",
        "22:52: unknown classification `internl` in `routes[0].match.classification_at_most`; did you mean \
         `internal`?",
    );
    refuses(
        "residency = [\"onshor\"]",
        "22:40: unknown residency `onshor` in `routes[0].match.residency[0]`; did you mean `onshore`?",
    );
    refuses(
        "needs = [\"tool\"]",
        "22:36: unknown capability `tool` in `routes[0].match.needs[0]`; did you mean `tools`?",
    );
    refuses(
        "input_tokens_at_least = 9, input_tokens_at_most = 8",
        "22:77: `routes[0].match.input_tokens_at_most` is below `input_tokens_at_least`: `8`; write at least 9",
    );
    refuses(
        "share_percent = 101",
        "22:43: `routes[0].match.share_percent` is out of range: `101`; write a whole number from 0 to 100",
    );
    refuses(
        "tenant_groups = [\"gold\"]",
        "22:44: unknown tenant group `gold` in `routes[0].match.tenant_groups[0]`; none is known",
    );
}

#[test]
fn groups_of_tenants_are_what_tenants_say() {
    accepts(GROUPS, &format!("groups = [\"gold\", \"eu\"]\n{GROUPS}"), "\"gold\"");
    let text = super::changed(GROUPS, &format!("groups = [\"gold\"]\n{GROUPS}"));
    let matched = |group: &str| text.replacen(MATCH, &format!("{MATCH} tenant_groups = [\"{group}\"],"), 1);
    assert!(super::parse(&matched("gold")).is_ok());
    let faults = super::parse(&matched("golden")).unwrap_err().to_string();
    let expected = "gw.toml:22:44: unknown tenant group `golden` in `routes[0].match.tenant_groups[0]`; did you \
                    mean `gold`?";
    assert_eq!(faults, expected);
}

#[test]
fn refused_classes_are_shaped_like_a_match() {
    accepts("[ledger]", "[[refused]]\nmodels = [\"x-*\"]\nstreaming = true\n[ledger]", "\"x-*\"");
    let refused = |fields: &str, expected: &str| {
        check("[ledger]", &format!("[[refused]]\n{fields}\n[ledger]"), expected);
    };
    refused("", "31:1: `refused[0]` declares every request refused; write at least one condition");
    refused(
        "models = [\"m\"]\nshare_percent = 5",
        "33:1: `share_percent` divides what is refused; remove `share_percent`",
    );
    refused("tenants = [\"u\"]", "32:12: unknown tenant `u` in `refused[0].tenants[0]`; known: `t`");
    refused("model = [\"m\"]", "32:1: unknown key `model` in `refused[0]`; did you mean `models`?");
}

#[test]
fn a_hedge_needs_a_second_deployment() {
    check(
        "deployments = [\"a\"]",
        "deployments = [\"a\"]\nhedge = true",
        "24:9: `routes[0].hedge` has no second deployment to ask; name another one in `deployments`, or remove `hedge`",
    );
    accepts("deployments = [\"a\"]", "deployments = [\"a\"]\nhedge = false", "\"hedge\": false");
}
