//! Values: types, ranges, words, names and what contradicts itself.

use super::{accepts, check};

#[test]
fn a_quoted_or_other_value_is_no_boolean() {
    let flag = |value: &str, expected: &str| {
        let expected = format!("11:9: `providers.up.http2` is {expected}");
        check("http2 = false", &format!("http2 = {value}"), &expected);
    };
    flag("\"true\"", "a string, not a boolean; write `true` without quotes");
    flag("\"on\"", "a string, not a boolean; write `true` or `false`");
    flag("1", "a whole number, not a boolean; write `true` or `false`");
}

#[test]
fn numbers_are_whole_and_in_range() {
    let number = |value: &str, expected: &str| {
        let expected = format!("28:23: `tenants.t.requests_per_minute` is {expected}");
        check("requests_per_minute = 600", &format!("requests_per_minute = {value}"), &expected);
    };
    let range = "write a whole number from 1 to 1_000_000_000_000";
    for value in ["nan", "inf", "-inf", "1e99", "1.0", "0.5"] {
        number(value, &format!("a number with a fraction, not a whole number; {range}"));
    }
    for value in ["0", "-1", "99999999999999999999999", "0x7fffffffffffffff", "-9223372036854775808"] {
        number(value, &format!("out of range: `{value}`; {range}"));
    }
    number("\"600\"", "a string, not a whole number; write `600` without quotes");
    number("\"many\"", &format!("a string, not a whole number; {range}"));
    number("true", &format!("a boolean, not a whole number; {range}"));
    number("1979-05-27", &format!("a date or time, not a whole number; {range}"));
    number("[]", &format!("a list, not a whole number; {range}"));
    number("{}", &format!("a table, not a whole number; {range}"));
    accepts("= 600", "= 6_0_0", "\"requests_per_minute\": 600");
    accepts("50_000_000", "1_000_000_000_000_000", "\"limit_pico\": 1000000000000000000000");
    accepts("= 600", "= 0b11", "\"requests_per_minute\": 3");
}

#[test]
fn durations_are_milliseconds() {
    let path = "11:22: `providers.up.connect_timeout_ms` is";
    let range = "write a whole number from 1 to 86_400_000";
    let change = |to: &str, expected: &str| check("http2 = false", to, expected);
    change("connect_timeout_ms = \"5s\"", &format!("{path} a string, not a whole number; {range}"));
    change("connect_timeout_ms = 0", &format!("{path} out of range: `0`; {range}"));
    change(
        "connect_timeout = 5",
        "11:1: unknown key `connect_timeout` in `providers.up`; did you mean `connect_timeout_ms`?",
    );
    accepts("http2 = false", "connect_timeout_ms = 7", "\"connect_timeout_ms\": 7");
}

#[test]
fn words_are_of_their_closed_set() {
    let word = |from: &str, to: &str, at: &str, unknown: &str, remedy: &str| {
        check(&format!("\"{from}\""), &format!("\"{to}\""), &format!("{at}: unknown {unknown}; {remedy}"));
    };
    word(
        "restricted",
        "restrcited",
        "16:26",
        "classification `restrcited` in `deployments.a.classification_ceiling`",
        "did you mean `restricted`?",
    );
    word(
        "internal",
        "secret",
        "22:46",
        "classification `secret` in `routes[0].match.classifications[0]`",
        "known: `public`, `internal`, `confidential`, `restricted`",
    );
    word(
        "streaming",
        "steaming",
        "17:25",
        "capability `steaming` in `deployments.a.capabilities[1]`",
        "did you mean `streaming`?",
    );
    word(
        "openai-compatible",
        "opnai",
        "8:8",
        "provider kind `opnai` in `providers.up.kind`",
        "did you mean `openai`?",
    );
    word(
        "day",
        "fortnight",
        "29:48",
        "window `fortnight` in `tenants.t.budget.window`",
        "known: `hour`, `day`, `week`, `month`",
    );
    word(
        "none",
        "sqlte:gw.db",
        "32:9",
        "store `sqlte:gw.db` in `ledger.store`",
        "write `\"sqlite:PATH\"`, `\"postgres://USER@HOST/DATABASE\"` or `\"none\"`",
    );
    check(
        "cache = {",
        "strategy = \"orderd\"\ncache = {",
        "24:12: unknown strategy `orderd` in `routes[0].strategy`; did you mean `ordered`?",
    );
    check(
        "exact = true",
        "temperature = \"hot\"",
        "24:25: unknown temperature `hot` in `routes[0].cache.temperature`; known: `any`, `zero`",
    );
    check("version = 1", "version = 2", "1:11: version `2` of the schema is not known; write `1`");
}

#[test]
fn i02_names_must_be_defined() {
    check(
        "deployments = [\"a\"]",
        "deployments = [\"b\"]",
        "23:16: unknown deployment `b` in `routes[0].deployments[0]`; known: `a`",
    );
    check(
        "provider = \"up\"",
        "provider = \"op\"",
        "13:12: unknown provider `op` in `deployments.a.provider`; did you mean `up`?",
    );
    check(
        "residency = \"onshore\"",
        "residency = \"onshor\"",
        "27:13: unknown residency `onshor` in `tenants.t.residency`; did you mean `onshore`?",
    );
    check(
        "tenants = [\"t\"]",
        "tenants = [\"u\"]",
        "22:70: unknown tenant `u` in `routes[0].match.tenants[0]`; known: `t`",
    );
}

#[test]
fn a_fault_in_a_definition_is_not_repeated_where_its_name_is_used() {
    check(
        "model = \"m\"",
        "modl = \"m\"",
        "12:14: missing `model` in `deployments.a`; write `model = \"gpt-4.1\"`
         14:1: unknown key `modl` in `deployments.a`; did you mean `model`?",
    );
}

#[test]
fn texts_are_names_or_lines() {
    let model = |value: &str, expected: &str| {
        check("model = \"m\"", &format!("model = {value}"), &format!("14:9: {expected}"));
    };
    model(
        "\"a b\"",
        "`a b` is no name; a name must be visible ASCII without quotes, commas and backslashes; byte 1 is not",
    );
    model("\"  \"", "`deployments.a.model` is empty; write a text");
    model("4", "`deployments.a.model` is a whole number, not a string; write it in quotes");
    model(
        "\"a\\u0007\"",
        "`deployments.a.model` is too long or holds a control character; write one line of at most 4096 bytes",
    );
    check(
        "deployments = [\"a\"]",
        "deployments = \"a\"",
        "23:15: `routes[0].deployments` is a string, not a list; write `[...]` around the items",
    );
    check(
        "deployments = [\"a\"]",
        "deployments = []",
        "23:15: `routes[0].deployments` is empty; write at least one item",
    );
    check(
        "budget = { limit_micros = 50_000_000, window = \"day\" }",
        "budget = 5",
        "29:10: `tenants.t.budget` is a whole number, not a table; write `{ ... }` or a `[...]` heading",
    );
}

#[test]
fn prices_are_never_guessed() {
    let price = |value: &str, expected: &str| {
        check("price = { input = 1, output = 2 }", &format!("price = {value}"), expected);
    };
    price(
        "0",
        "18:9: `deployments.a.price` is no price; write `{ input = 2_000_000, output = 8_000_000 }`, `\"free\"` or \
         `\"unpriced\"`",
    );
    price("\"fre\"", "18:9: unknown price `fre` in `deployments.a.price`; did you mean `free`?");
    price("{ input = 1 }", "18:1: missing `output` in `deployments.a.price`; write `output = 2_000_000`");
    price(
        "{ input = 0, output = 0 }",
        "18:9: `deployments.a.price` is zero; write `\"free\"` if it costs nothing",
    );
    price(
        "{ input = 1, output = 2, inptu = 1 }",
        "18:34: unknown key `inptu` in `deployments.a.price`; did you mean `input`?",
    );
    price(
        "{ input = 1, output = 2, tier = { threshold = 9, input = 2, output = 4 } }",
        "18:34: missing `inclusive` in `deployments.a.price.tier`; write `inclusive = false`
         18:34: missing `scope` in `deployments.a.price.tier`; write `scope = \"whole_request\"`",
    );
    accepts("price = { input = 1, output = 2 }", "price = \"free\"", "\"price\": \"Free\"");
    accepts(
        "output = 2 }",
        "output = 2, tier = { threshold = 9, inclusive = true, scope = \"marginal\", input = 2, output = 4 } }",
        "\"scope\": \"marginal\"",
    );
}

#[test]
fn contradictions_are_refused() {
    check(
        "max_attempts = 2",
        "max_output_tokens = 9\ncontext_window = 8",
        "19:21: `deployments.a.max_output_tokens` is above `context_window`: `9`; write at most 8",
    );
    check(
        "max_attempts = 2",
        "min_attempt_ms = 9\nattempt_timeout_ms = 8",
        "19:18: `deployments.a.min_attempt_ms` is above `attempt_timeout_ms`: `9`; write at most 8",
    );
    check(
        "exact = true",
        "exact = false",
        "24:9: `routes[0].cache` remembers nothing; write `exact = true`, or remove `cache`",
    );
    check(
        "requests_per_minute = 600",
        "max_concurrency = 2\nreserved_concurrency = 3",
        "29:24: `tenants.t.reserved_concurrency` is above `max_concurrency`: `3`; write at most 2",
    );
    check(
        "http2 = false",
        "ca_file = \"ca.pem\"",
        "11:11: `ca_file` has no meaning for a `base_url` without TLS; write `https://`, or remove `ca_file`",
    );
    check(
        "http2 = false",
        "api_version = \"v1\"",
        "11:1: `api_version` is for `kind = \"azure-openai\"` only; remove `api_version`",
    );
    check(
        "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"",
        "kind = \"scripted\"",
        "7:12: missing `behaviour` or `script` in `providers.up`; write `behaviour = \"echo\"`, or \
         `script = [\"429\", \"ok\"]`
         9:1: `api_key` has no meaning for `kind = \"scripted\"`; remove `api_key`
         10:1: `http2` has no meaning for `kind = \"scripted\"`; remove `http2`",
    );
}

#[test]
fn addresses_and_deadlines_fit_together() {
    let server = |to: &str, expected: &str| check("listen = \"127.0.0.1:8080\"", to, expected);
    server(
        "listen = \"127.0.0.1:8081\"",
        "3:10: `listen` and `admin_listen` are both `127.0.0.1:8081`; write another port",
    );
    server(
        "default_deadline_ms = 20\nmax_deadline_ms = 10",
        "3:23: `server.default_deadline_ms` is above `max_deadline_ms`: `20`; write at most 10, or raise \
         `max_deadline_ms`",
    );
    server(
        "admin_listen = \"0.0.0.0:1\"",
        "3:16: the admin address `0.0.0.0:1` is not loopback, and there are no `admin_keys`; write \
         `admin_keys = [{ env = \"NAME\" }]`, or a loopback address",
    );
    server(
        "listen = \"localhost\"",
        "3:10: `server.listen` is no address: `localhost`; write an IP address and a port, such as \
         `\"127.0.0.1:8080\"`",
    );
    accepts("\"127.0.0.1:8080\"", "\"[::1]:8080\"", "\"listen\": \"[::1]:8080\"");
    accepts(
        "listen = \"127.0.0.1:8080\"",
        "admin_listen = \"0.0.0.0:1\"\nadmin_keys = [{ env = \"UP_KEY\" }]",
        "\"admin_listen\": \"0.0.0.0:1\"",
    );
}

#[test]
fn thresholds_are_exact() {
    let semantic = |value: &str, expected: &str| {
        check("ttl_s = 300", &format!("semantic = {{ threshold = {value} }}"), &format!("24:50: {expected}"));
    };
    let path = "`routes[0].cache.semantic.threshold` is";
    let remedy = "write a number from 0.001 to 1 with at most three decimals, such as `0.92`";
    semantic("1.5", &format!("{path} out of range; {remedy}"));
    semantic("\"0.9\"", &format!("{path} a string, not a number; {remedy}"));
    accepts("ttl_s = 300", "semantic = { threshold = 0.92 }", "\"threshold_milli\": 920");
}

#[test]
fn embedders_are_names_or_deployments_that_make_vectors() {
    let path = "routes[0].cache.semantic.embedder";
    let refused = |value: &str, expected: &str| {
        let semantic = format!("semantic = {{ threshold = 0.9, embedder = {value} }}");
        check("ttl_s = 300", &semantic, &expected.replace("PATH", path));
    };
    refused("\"word\"", "24:66: unknown embedder `word` in `PATH`; did you mean `words`?");
    refused(
        "7",
        "24:66: `PATH` is no embedder; write `\"hashing\"`, `\"words\"` or `{ deployment = \"NAME\" }`",
    );
    refused("{ deployment = \"dd\" }", "24:81: unknown deployment `dd` in `PATH.deployment`; known: `a`");
    let words = "semantic = { threshold = 0.9, embedder = \"words\" }";
    accepts("ttl_s = 300", words, "\"built_in\": \"words\"");
}

#[test]
fn the_caches_have_bounds_of_their_own() {
    accepts(
        "[ledger]",
        "[cache]\nexact = { max_bytes = 1_000_000, max_entries = 10 }\nsemantic = { max_partitions = 7 }\n[ledger]",
        "\"max_partitions\": 7",
    );
    check(
        "[ledger]",
        "[cache]\nexact = { max_bytes = 0 }\n[ledger]",
        "32:23: `cache.exact.max_bytes` is out of range: `0`; write a whole number from 1 to 1_099_511_627_776",
    );
    check(
        "[ledger]",
        "[cache]\nsemantic = { entries = 7 }\n[ledger]",
        "32:14: unknown key `entries` in `cache.semantic`; known: `max_bytes`, `max_partitions`, \
         `max_partition_bytes`, `max_partition_entries`",
    );
}
