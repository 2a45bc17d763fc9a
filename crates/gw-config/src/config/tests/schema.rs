//! Keys and structure: unknown, missing, twice, not available, and what is no TOML.

use super::{SOUND, accepts, check, parse};

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    check(
        "requests_per_minute = 600",
        "requests_per_minut = 600",
        "28:1: unknown key `requests_per_minut` in `tenants.t`; did you mean `requests_per_minute`?",
    );
    check(
        "api_key = {",
        "api_ky = {",
        "10:1: unknown key `api_ky` in `providers.up`; did you mean `api_key`?",
    );
    check("[server]", "[sever]", "2:2: unknown key `sever` in the file; did you mean `server`?");
    check(
        "exact = true",
        "colour = true",
        "24:11: unknown key `colour` in `routes[0].cache`; known: `exact`, `semantic`, `ttl_s`, `temperature`, \
         `cache_ceiling`, `tools`, `epoch`",
    );
    check(
        "env = \"UP_KEY\"",
        "var = \"UP_KEY\"",
        "10:11: `providers.up.api_key` must name one place of the secret; write `{ env = \"NAME\" }` or \
         `{ file = \"PATH\" }`
         10:13: unknown key `var` in `providers.up.api_key`; known: `env`, `file`",
    );
}

#[test]
fn missing_keys_are_named_with_an_example() {
    check("version = 1", "", "1:1: missing `version` in the file; write `version = 1`");
    check(
        "kind = \"openai-compatible\"",
        "",
        "7:12: missing `kind` in `providers.up`; write `kind = \"openai\"`",
    );
    check("model = \"m\"", "", "12:14: missing `model` in `deployments.a`; write `model = \"gpt-4.1\"`");
    check("name = \"r\"", "", "20:1: missing `name` in `routes[0]`; write `name = \"NAME\"`");
    check("name = \"k\", ", "", "30:9: missing `name` in `tenants.t.keys[0]`; write `name = \"NAME\"`");
    check(
        "base_url = \"http://127.0.0.1:9/v1\"",
        "",
        "7:12: missing `base_url` in `providers.up`; write `base_url = \"http://127.0.0.1:8000/v1\"`",
    );
    check(
        "price = { input = 1, output = 2 }",
        "",
        "12:14: missing `price` in `deployments.a`; write `price = { input = 2_000_000, output = 8_000_000 }`, \
         `price = \"free\"` or `price = \"unpriced\"`",
    );
    check(
        "keys = [{ name = \"k\", secret = { env = \"T_KEY\" } }]",
        "",
        "25:10: no tenant has a key, so nobody could call; write `keys = [{ name = \"NAME\", secret = \
         { env = \"NAME\" } }]`, or take a line from `gw keys create`",
    );
}

#[test]
fn an_empty_file_misses_everything_at_once() {
    let faults = parse("").unwrap_err();
    let missing: Vec<_> = faults.iter().map(|fault| fault.message().to_owned()).collect();
    let expected = ["deployments", "providers", "routes", "tenants", "version"];
    assert_eq!(missing, expected.map(|key| format!("missing `{key}` in the file")));
}

#[test]
fn what_stands_twice_is_refused() {
    check(
        "max_attempts = 2",
        "max_attempts = 2\nmax_attempts = 3",
        "20:1: key `max_attempts` stands twice; write it once",
    );
    check("[tenants.t]", "[tenants.t]\n[tenants.t]", "26:10: key `t` stands twice; write it once");
    check("input = 1,", "input = 1, input = 1,", "18:22: key `input` stands twice; write it once");
    check(
        "[\"a\"]",
        "[\"a\", \"a\"]",
        "23:21: deployment `a` stands twice in `routes[0].deployments`; write it once",
    );
    check(
        "[ledger]",
        "[[routes]]\nname = \"r\"\ndeployments = [\"a\"]\n[ledger]",
        "32:8: route `r` stands twice; write another name",
    );
    check(
        "[\"uk-south\"]",
        "[\"uk-south\", \"uk-south\"]",
        "6:24: region `uk-south` stands twice in `residency.onshore`; write it once",
    );
    check(
        "keys = [",
        "keys = [{ name = \"k\", secret = { env = \"UP_KEY\" } }, ",
        "30:63: key `k` stands twice; write another name",
    );
    check(
        "http2 = false",
        "headers = { X-A = \"1\", x-a = \"2\" }",
        "11:24: header `x-a` stands twice; write it once, header names ignore case",
    );
}

#[cfg(feature = "postgres")]
#[test]
fn a_database_is_named_without_its_password() {
    const REMEDY: &str = "write it as `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
    let check = |store: &str, expected: &str| check("\"none\"", store, expected);
    check(
        "{ env = \"GW_DATABASE_URL\" }",
        "32:17: environment variable `GW_DATABASE_URL` is not set; set `GW_DATABASE_URL`, or name another variable",
    );
    for store in ["{ env = \"UP_KEY\" }", "\"postgres://db\""] {
        let said = "32:9: what `ledger.store` names is not the address of a PostgreSQL database";
        check(store, &format!("{said}; {REMEDY}"));
    }
    check(
        "\"postgres://gw:secret@db/gw\"",
        "32:9: `ledger.store` must not hold the password itself; put the whole address elsewhere and write \
         `{ env = \"NAME\" }` or `{ file = \"PATH\" }`",
    );
    check(
        "\"none\"\nca_file = \"ca.pem\"",
        "33:11: `ledger.ca_file` has no meaning without a PostgreSQL server; leave it out",
    );
}

#[cfg(not(feature = "postgres"))]
#[test]
fn what_is_not_built_is_refused() {
    const LATER: &str = "is not available in this version";
    for store in ["{ env = \"GW_DATABASE_URL\" }", "\"postgres://db\""] {
        check(
            "\"none\"",
            store,
            &format!("32:9: `ledger.store`: PostgreSQL {LATER}; write `\"sqlite:PATH\"` or `\"none\"`"),
        );
    }
}

#[test]
fn a_cluster_says_where_its_store_is_and_shares_only_what_the_store_can_keep() {
    check(
        "[ledger]",
        "[cluster]\n[ledger]",
        "31:2: missing `redis` in `cluster`; write `redis = { env = \"GW_REDIS_URL\" }`",
    );
    check(
        "[ledger]",
        "[cluster]\nredis = { env = \"UP_KEY\" }\n[ledger]",
        "32:9: what `cluster.redis` names is not the address of a Redis server, as in `redis://HOST:PORT` or \
         `redis://USER:PASSWORD@HOST:PORT/DATABASE`; correct it; TLS is not available in this version",
    );
    check(
        "[ledger]",
        "[cluster]\nredis = { env = \"UP_KEY\" }\non_loss = { budget = \"open\" }\n[ledger]",
        "32:9: what `cluster.redis` names is not the address of a Redis server, as in `redis://HOST:PORT` or \
         `redis://USER:PASSWORD@HOST:PORT/DATABASE`; correct it; TLS is not available in this version\n\
         33:22: unknown budget `open` in `cluster.on_loss.budget`; known: `closed`, `local`",
    );
}

#[test]
fn what_is_built_is_accepted() {
    accepts("requests_per_minute = 600", "max_queue = 7", "\"max_queue\": 7");
    for durability in ["process", "power", "none"] {
        let shown = format!("\"durability\": \"{durability}\"");
        accepts("store = \"none\"", &format!("durability = \"{durability}\""), &shown);
    }
    accepts("store = \"none\"", "", "\"durability\": \"process\"");
    accepts("\"none\"", "\"sqlite:x/y.db\"", "\"sqlite\": \"x/y.db\"");
    accepts("cache = {", "strategy = \"ordered\"\ncache = {", "\"exact\": true");
    accepts("\"day\"", "\"hour\"", "\"window\": \"hour\"");
}

#[test]
fn what_is_no_toml_is_placed_and_hides_no_other_fault() {
    check("[server]", "[server", "2:8: no TOML: unclosed table; expected `]`");
    check("http2 = false", "http2 = flase", "11:9: no TOML: invalid boolean; expected `false`");
    check(
        "http2 = false",
        "http2 = flase\nhttpp2 = 1",
        "11:9: no TOML: invalid boolean; expected `false`
         12:1: unknown key `httpp2` in `providers.up`; did you mean `http2`?",
    );
}

#[test]
fn a_byte_order_mark_and_other_line_ends_are_no_fault() {
    assert!(parse(&format!("\u{feff}{SOUND}")).is_ok());
    assert!(parse(&SOUND.replace('\n', "\r\n")).is_ok());
    let faults = parse(&SOUND.replace('\n', "\r\n").replace("version = 1", "versoin = 1")).unwrap_err();
    assert!(faults.to_string().contains("gw.toml:1:1: unknown key `versoin`"), "{faults}");
}
