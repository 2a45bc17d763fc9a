//! What the parts find, brought back to its place in the file.

pub(crate) mod analysis;
mod limits;

use crate::{
    FixedEnvironment, check,
    config::tests::{SOUND, changed, environment},
    keys::NewKey,
};

/// Checks what the parts say; `expected` is `line:column: message; remedy`, one line a fault.
#[track_caller]
fn refuses_in(text: &str, environment: &FixedEnvironment, expected: &str) {
    let found =
        check(text, "gw.toml", environment).map_or_else(|faults| faults.to_string(), |_| "ok".to_owned());
    let expected: Vec<String> = expected.lines().map(|line| format!("gw.toml:{}", line.trim())).collect();
    assert_eq!(found, expected.join("\n"));
}

/// Checks that nothing is found.
#[track_caller]
fn accepts_with(text: &str, environment: &FixedEnvironment) {
    let found =
        check(text, "gw.toml", environment).map_or_else(|faults| faults.to_string(), |_| String::new());
    assert_eq!(found, "");
}

#[track_caller]
fn refuses(from: &str, to: &str, expected: &str) {
    refuses_in(&changed(from, to), &environment(), expected);
}

#[test]
fn the_sound_file_makes_a_gateway() {
    let checked = check(SOUND, "gw.toml", &environment()).unwrap();
    assert_eq!(checked.counts, [("providers", 1), ("deployments", 1), ("routes", 1), ("tenants", 1)]);
}

#[test]
fn providers_are_refused_at_the_setting() {
    let base_url = "base_url = \"http://127.0.0.1:9/v1\"";
    refuses(base_url, "base_url = \"ftp://x\"", "9:12: `base_url` must begin with `http://` or `https://`");
    refuses(
        base_url,
        "base_url = \"http://me:pass@x/v1\"",
        "9:12: `base_url` carries a user or password; the key has its own setting",
    );
    refuses(
        "http2 = false",
        "headers = { Host = \"x\" }",
        "11:20: header `host` cannot be set; a name that does not steer the connection is expected",
    );
    refuses(
        "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"UP_KEY\" }",
        "kind = \"openai\"",
        "7:12: missing `api_key` in `providers.up`; write `api_key = { env = \"NAME\" }`",
    );
    refuses_in(
        &changed("http2 = false", "ca_file = \"ca.pem\"").replace("http://", "https://"),
        &environment(),
        "11:11: `ca_file` holds no certificate that can be read; PEM is expected",
    );
}

#[test]
fn scripts_are_refused_at_the_step() {
    refuses(
        "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"UP_KEY\" }\nhttp2 = false",
        "kind = \"scripted\"\nscript = [\"ok\", \"429 soon\", \"okay\"]",
        "9:17: the step, `429 soon`, has an option that cannot be read; expected: `ok`, `ok text=...`, a status from 400 \
         to 599 with `retry-after=S` and `code=...`, `hang`, `reset` or `truncate`, after an optional `delay=MS`
         9:29: the step, `okay`, begins with a word that is no step; expected: `ok`, `ok text=...`, a status from 400 to \
         599 with `retry-after=S` and `code=...`, `hang`, `reset` or `truncate`, after an optional `delay=MS`",
    );
}

#[test]
fn i02_a_residency_group_without_a_deployment_is_refused() {
    refuses(
        "onshore = [\"uk-south\"]",
        "onshore = [\"uk-suoth\"]",
        "6:1: no deployment runs in a region of `onshore`; did you mean `uk-south`?",
    );
    refuses(
        "onshore = [\"uk-south\"]",
        "onshore = [\"somewhere-else\"]",
        "6:1: no deployment runs in a region of `onshore`; known: `uk-south`",
    );
}

#[test]
fn routes_are_refused_at_the_pattern() {
    let found = check(&changed("models = [\"m\"]", "models = [\"m\", \"g*t\"]"), "gw.toml", &environment());
    let found = found.unwrap_err().to_string();
    assert!(found.starts_with("gw.toml:22:26: `g*t` is no model name or pattern; "), "{found}");
    refuses(
        "max_attempts = 2\n[[routes]]",
        "max_output_tokens = 10\n[[routes]]\ndefault_max_output_tokens = 11",
        "21:29: `routes[0].default_max_output_tokens` is above what any of its deployments may answer: `11`; write at \
         most 10",
    );
    refuses(
        "cache = { exact = true, ttl_s = 300 }",
        "cache = { semantic = { threshold = 0.9, embedder = { deployment = \"a\" } } }",
        "24:67: deployment `a` in `routes[0].cache.semantic.embedder.deployment` makes no vectors; name one with the \
         capability `embeddings`, or write `\"hashing\"`",
    );
}

#[test]
fn shares_must_fit_in_the_pool() {
    let text = SOUND.replace("max_body_bytes = 1_048_576", "max_concurrency = 4");
    let five = text.replace("requests_per_minute = 600", "reserved_concurrency = 5");
    refuses_in(
        &five,
        &environment(),
        "25:10: `reserved_concurrency` of all tenants adds up to 5, above `server.max_concurrency` of 4; raise \
         `server.max_concurrency`, or lower a share; the largest is 5, of tenant `t`",
    );
    let four = text.replace("requests_per_minute = 600", "reserved_concurrency = 4") + "[tenants.u]\n";
    refuses_in(
        &four,
        &environment(),
        "33:10: the shares of other tenants leave nothing of `server.max_concurrency` to tenant `u`; write \
         `reserved_concurrency`, or raise `server.max_concurrency` above 4",
    );
}

#[test]
fn one_key_belongs_to_one_tenant() {
    let key = NewKey::from_entropy([4; NewKey::ENTROPY_BYTES]);
    let other = format!("{SOUND}[tenants.u]\nkeys = [{{ name = \"a\", hash = \"{}\" }}]\n", key.line());
    assert!(check(&other, "gw.toml", &environment()).is_ok());
    let twice = other.replace(
        "store = \"none\"",
        &format!("store = \"none\"\n[tenants.w]\nkeys = [{{ name = \"b\", hash = \"{}\" }}]", key.line()),
    );
    refuses_in(
        &twice,
        &environment(),
        "34:30: `tenants.w.keys[0]` is the same key as `a` of tenant `u`; take another key",
    );
    let as_itself = environment().with_var("T_KEY", key.shown().expose());
    refuses_in(
        &other,
        &as_itself,
        "30:32: `tenants.t.keys[0]` is the same key as `a` of tenant `u`; take another key",
    );
    refuses(
        "[server]",
        "[server]\nadmin_keys = [{ env = \"T_KEY\" }]",
        "3:15: `server.admin_keys[0]` is the same key as `k` of tenant `t`; take another key",
    );
}

#[test]
fn faults_of_different_parts_are_found_in_one_run() {
    let text = changed("http://127.0.0.1:9/v1", "ftp://x")
        .replace("uk-south\"]", "nowhere\"]")
        .replace("models = [\"m\"]", "models = [\"*x\"]")
        .replace("requests_per_minute = 600", "reserved_concurrency = 5000");
    let found = check(&text, "gw.toml", &environment()).unwrap_err();
    let lines: Vec<_> = found.iter().map(|fault| fault.line().unwrap()).collect();
    assert_eq!(lines, [6, 9, 22, 25]);
}

#[test]
fn faults_of_the_text_hide_no_fault_of_a_part() {
    let text = changed("http://127.0.0.1:9/v1", "ftp://x")
        .replace("models = [\"m\"]", "models = [\"*x\"]")
        .replace("requests_per_minute = 600", "requests_per_minute = 0");
    let found = check(&text, "gw.toml", &environment()).unwrap_err();
    assert_eq!(found.iter().map(|fault| fault.line().unwrap()).collect::<Vec<_>>(), [9, 22, 28]);
}

#[test]
fn a_fault_of_the_text_makes_no_further_one() {
    let openai = "kind = \"openai\"\napi_key = { env = \"NOT_SET\" }\nhttp2 = false";
    refuses(
        "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"UP_KEY\" }\nhttp2 = false",
        openai,
        "9:19: environment variable `NOT_SET` is not set; set `NOT_SET`, or name another variable",
    );
}

#[test]
fn any_model_is_for_providers_that_take_the_name_in_the_body() {
    assert!(check(&changed("model = \"m\"", "model = \"*\""), "gw.toml", &environment()).is_ok());
    let azure = changed("model = \"m\"", "model = \"*\"").replace("openai-compatible", "azure-openai");
    refuses_in(
        &azure,
        &environment(),
        "12:14: `deployments.a.model` is `*`, which `azure-openai` cannot pass on; write the name of the deployment at \
         Azure",
    );
}
