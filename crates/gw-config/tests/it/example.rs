//! The example of the design, as far as it is built.

use gw_config::{FixedEnvironment, NewKey, check};

/// The design's example; what it leaves out for a second deployment is filled in.
fn example() -> String {
    let line = NewKey::from_entropy([1; NewKey::ENTROPY_BYTES]).line().to_owned();
    EXAMPLE.replace("gwk1:...", &line)
}

const EXAMPLE: &str = r#"version = 1

[server]
listen = "127.0.0.1:8080"            # data plane
admin_listen = "127.0.0.1:8081"      # metrics, admin, dashboard; without admin_keys: loopback only, no key asked
max_body_bytes = 10_485_760
default_deadline_ms = 600_000

[residency]                          # named groups of regions that a request may demand
onshore = ["uk-south", "uk-west"]
eu = ["uk-south", "west-europe"]

[providers.azure-uk]
kind = "azure-openai"
base_url = "https://example.openai.azure.com"
api_key = { env = "AZURE_UK_KEY" }

[deployments.gpt-ptu]
provider = "azure-uk"
model = "gpt-4.1"
model_version = "2025-04-14"
region = "uk-south"
classification_ceiling = "restricted"     # public < internal < confidential < restricted
capabilities = ["chat", "streaming", "tools", "json_schema", "vision"]
context_window = 128_000
max_output_tokens = 16_384
price = { input = 2_000_000, output = 8_000_000, cached_input = 500_000 }   # micro-USD per million tokens
expected_latency_ms = 900
min_attempt_ms = 300
attempt_timeout_ms = 20_000
max_attempts = 2
max_concurrency = 64

[deployments.gpt-eu]
provider = "azure-uk"
model = "gpt-4.1"
region = "uk-west"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming", "tools", "json_schema", "vision"]
price = { input = 2_000_000, output = 8_000_000 }

[[routes]]
name = "restricted-reasoning"
priority = 10                             # lower first; ties by name
match = { models = ["reasoner"], task_classes = ["reasoning"], classifications = ["restricted"], tenants = ["wholesale"] }
deployments = ["gpt-ptu", "gpt-eu"]
strategy = "ordered"
cache = { exact = true, ttl_s = 300 }
default_max_output_tokens = 1_024         # for requests that name no max_tokens

[tenants.wholesale]
default_classification = "internal"
residency = "onshore"                     # a floor: a request may tighten it, never loosen it
requests_per_minute = 600
tokens_per_minute = 400_000
max_concurrency = 40
reserved_concurrency = 10
max_queue = 0                             # 0: over the cap is refused at once
budget = { limit_micros = 50_000_000, window = "day" }
keys = [{ name = "batch", hash = "gwk1:..." }, { name = "dev", secret = { env = "GW_DEV_KEY" } }]

[ledger]
store = "sqlite:gw.db"
"#;

fn environment() -> FixedEnvironment {
    FixedEnvironment::new().with_var("AZURE_UK_KEY", "canary-azure").with_var("GW_DEV_KEY", "canary-dev")
}

#[test]
fn the_example_of_the_design_is_accepted() {
    let checked = check(&example(), "gw.toml", &environment()).unwrap();
    assert_eq!(checked.counts.map(|(_, count)| count), [1, 2, 1, 1]);
    assert!(!checked.config.effective().contains("canary"));
}

#[test]
fn unknown_or_mistyped_setting_is_an_error() {
    let environment = environment();
    let refused = |from: &str, to: &str, expected: &str| {
        let text = example();
        assert!(text.contains(from), "{from}");
        let faults = check(&text.replacen(from, to, 1), "gw.toml", &environment).unwrap_err().to_string();
        assert!(faults.starts_with("gw.toml:") && faults.contains(expected), "{faults}");
    };
    // V1, V2: near misses of a limit key and of the auth key.
    refused("tokens_per_minute", "token_per_minute", "did you mean `tokens_per_minute`?");
    refused("keys = [", "kesy = [", "did you mean `keys`?");
    // V3: a boolean as text.
    refused("exact = true", "exact = \"true\"", "write `true` without quotes");
    // V4: numbers that are none, or out of range.
    for number in ["nan", "-1", "0", "1e99"] {
        let remedy = "write a whole number from 1 to 1_000_000_000_000";
        refused("tokens_per_minute = 400_000", &format!("tokens_per_minute = {number}"), remedy);
    }
    // V5: a duration's unit stands in its key, and one without it is no key.
    refused("expected_latency_ms = 900", "expected_latency = 5", "did you mean `expected_latency_ms`?");
    // V6: one key twice.
    refused("max_queue = 0", "max_queue = 0\nmax_queue = 0", "key `max_queue` stands twice");
    // V7: a route to an unknown deployment.
    refused("\"gpt-ptu\", \"gpt-eu\"", "\"gpt-put\"", "unknown deployment `gpt-put`");
    // V8: a misspelt classification.
    refused("\"internal\"", "\"internl\"", "did you mean `internal`?");
}
