//! Limits of keys, tenants, organisations, models, deployments and the whole, as they are written.

use super::{SOUND, accepts, check, parse};

const BUDGET: &str = "budget = { limit_micros = 50_000_000, window = \"day\" }";

#[test]
fn budgets_count_in_calendar_and_rolling_windows() {
    for window in ["hour", "day", "week", "month"] {
        accepts("\"day\"", &format!("\"{window}\""), &format!("\"window\": \"{window}\""));
    }
    accepts("window = \"day\"", "window = { rolling_s = 3_600 }", "\"rolling_s\": 3600");
    accepts("\"day\"", "\"day\", estimate = \"calibrated\"", "\"estimate\": \"calibrated\"");
    accepts("\"day\"", "\"day\", estimate = \"bound\"", "\"estimate\": \"bound\"");
    accepts(
        BUDGET,
        "budget = [{ limit_micros = 1, window = \"hour\" }, { limit_micros = 5, window = { rolling_s = 60 } }]",
        "\"rolling_s\": 60",
    );
    let window = |to: &str, expected: &str| check("window = \"day\"", to, expected);
    window("window = \"dy\"", "29:48: unknown window `dy` in `tenants.t.budget.window`; did you mean `day`?");
    window(
        "window = { rolling_s = 0 }",
        "29:62: `tenants.t.budget.window.rolling_s` is out of range: `0`; write a whole number from 1 to 315_576_000",
    );
    window(
        "window = {}",
        "29:39: missing `rolling_s` in `tenants.t.budget.window`; write `rolling_s = 86_400`",
    );
    window(
        "window = \"day\", estimate = \"exact\"",
        "29:66: unknown estimate `exact` in `tenants.t.budget.estimate`; known: `bound`, `calibrated`",
    );
    check(
        "limit_micros = 50_000_000",
        "limit_micros = 0",
        "29:27: `tenants.t.budget.limit_micros` is out of range: `0`; write a whole number from 1 to \
         1_000_000_000_000_000",
    );
    let one = "{ limit_micros = 1, window = \"day\" }";
    check(
        BUDGET,
        &format!("budget = [{}]", [one; 5].join(", ")),
        "29:10: `tenants.t.budget` has 5 budgets; write at most 4",
    );
    check(BUDGET, "budget = []", "29:10: `tenants.t.budget` is empty; write at least one item");
}

#[test]
fn a_time_zone_is_one_of_the_database() {
    let zone = |name: &str| format!("time_zone = \"{name}\"\n{BUDGET}");
    accepts(BUDGET, &zone("Europe/London"), "\"time_zone\": \"Europe/London\"");
    accepts(BUDGET, &zone("UTC"), "\"window\": \"day\"");
    check(
        BUDGET,
        &zone("Europe/Londn"),
        "29:13: unknown time zone `Europe/Londn` in `tenants.t.time_zone`; did you mean `Europe/London`?",
    );
    check(
        BUDGET,
        &zone("GMT plus one or so"),
        "29:13: unknown time zone `GMT plus one or so` in `tenants.t.time_zone`; write a name of the IANA database, \
         such as `Europe/London` or `UTC`",
    );
}

#[test]
fn keys_have_limits_of_their_own_in_the_time_zone_of_their_tenant() {
    let key = "secret = { env = \"T_KEY\" }";
    let config = parse(
        &SOUND
            .replace(BUDGET, "time_zone = \"Asia/Tokyo\"")
            .replace(key, &format!("{key}, requests_per_minute = 7, {BUDGET}")),
    )
    .unwrap();
    let effective = config.effective();
    assert!(effective.contains("\"requests_per_minute\": 7"), "{effective}");
    assert!(effective.contains("\"time_zone\": \"Asia/Tokyo\""), "{effective}");
    check(
        key,
        &format!("{key}, tokens_per_minut = 7"),
        "30:51: unknown key `tokens_per_minut` in `tenants.t.keys[0]`; did you mean `tokens_per_minute`?",
    );
    check(
        key,
        &format!("{key}, max_concurrency = 0"),
        "30:69: `tenants.t.keys[0].max_concurrency` is out of range: `0`; write a whole number from 1 to 1_000_000",
    );
}

#[test]
fn who_waits_says_how() {
    accepts(
        "requests_per_minute = 600",
        "weight = 3\npriority = \"low\"\nmax_queue = 9",
        "\"priority\": \"low\"",
    );
    let tenant = |to: &str, expected: &str| check("requests_per_minute = 600", to, expected);
    tenant(
        "priority = \"hgih\"",
        "28:12: unknown priority `hgih` in `tenants.t.priority`; did you mean `high`?",
    );
    tenant(
        "weight = 0",
        "28:10: `tenants.t.weight` is out of range: `0`; write a whole number from 1 to 1_000",
    );
    tenant(
        "max_queue = 10_001",
        "28:13: `tenants.t.max_queue` is out of range: `10001`; write a whole number from 0 to 10_000",
    );
    let key = "secret = { env = \"T_KEY\" }";
    accepts(key, &format!("{key}, priority = \"high\""), "\"priority\": \"high\"");
}

#[test]
fn organisations_models_and_the_whole_are_scopes() {
    let more = "[organisations.acme]\nparent = \"holding\"\ntokens_per_minute = 5\n[organisations.holding]\n\
                budget = { limit_micros = 1, window = \"month\" }\n[models.m]\nmax_concurrency = 3\n\
                [limits]\npool_capacity = 9\nrequests_per_minute = 11\n[ledger]";
    let text = SOUND
        .replace("[ledger]", more)
        .replace("residency = \"onshore\"", "residency = \"onshore\"\norganisation = \"acme\"");
    let effective = parse(&text).unwrap().effective();
    for shown in ["\"parent\": \"holding\"", "\"pool_capacity\": 9", "\"requests_per_minute\": 11"] {
        assert!(effective.contains(shown), "{shown}: {effective}");
    }
    check(
        "residency = \"onshore\"",
        "residency = \"onshore\"\norganisation = \"acme\"",
        "28:16: unknown organisation `acme` in `tenants.t.organisation`; none is known",
    );
    check(
        "[ledger]",
        "[organisations.acme]\nparent = \"acmee\"\n[ledger]",
        "32:10: unknown organisation `acmee` in `organisations.acme.parent`; did you mean `acme`?",
    );
    check(
        "[ledger]",
        "[limits]\nrequest_per_minute = 1\n[ledger]",
        "32:1: unknown key `request_per_minute` in `limits`; did you mean `requests_per_minute`?",
    );
    check(
        "[ledger]",
        "[limits]\npool_capacity = 0\n[ledger]",
        "32:17: `limits.pool_capacity` is out of range: `0`; write a whole number from 1 to 1_000_000",
    );
}

#[test]
fn deployments_have_a_pace_and_tokens_in_flight() {
    let deployment = |to: &str, shown: &str| accepts("max_attempts = 2", to, shown);
    deployment("requests_per_second = 2.5", "\"requests_per_second_milli\": 2500");
    deployment("requests_per_second = 40", "\"requests_per_second_milli\": 40000");
    deployment("in_flight_tokens = 100_000", "\"in_flight_tokens\": 100000");
    deployment("tokens_per_minute = 8", "\"tokens_per_minute\": 8");
    deployment("tokens = { per_image = 765, vocabulary = \"cl100k\" }", "\"per_image\": 765");
    check(
        "max_attempts = 2",
        "tokens = { per_image = 765, vocabulary = \"p50k\" }",
        "19:42: unknown vocabulary `p50k` in `deployments.a.tokens.vocabulary`; known: `o200k`, `cl100k`",
    );
    check(
        "max_attempts = 2",
        "requests_per_second = 0",
        "19:23: `deployments.a.requests_per_second` is out of range; write a number from 0.001 to 1_000_000 with at \
         most three decimals, such as `2.5`",
    );
    check(
        "max_attempts = 2",
        "in_flight_tokens = 0",
        "19:20: `deployments.a.in_flight_tokens` is out of range: `0`; write a whole number from 1 to 1_000_000_000",
    );
}
