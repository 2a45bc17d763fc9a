//! What the reader says about one change to a sound file: place, fault and remedy.

mod catalogue;
mod credentials;
mod environment;
mod kinds;
mod limits;
mod providers;
mod routes;
mod schema;
mod without_callers;

use crate::{Config, Diagnostics, FixedEnvironment};

/// A sound file that uses most of the schema.
pub(crate) const SOUND: &str = r#"version = 1
[server]
listen = "127.0.0.1:8080"
max_body_bytes = 1_048_576
[residency]
onshore = ["uk-south"]
[providers.up]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
api_key = { env = "UP_KEY" }
http2 = false
[deployments.a]
provider = "up"
model = "m"
region = "uk-south"
classification_ceiling = "restricted"
capabilities = ["chat", "streaming"]
price = { input = 1, output = 2 }
max_attempts = 2
[[routes]]
name = "r"
match = { models = ["m"], classifications = ["internal"], tenants = ["t"] }
deployments = ["a"]
cache = { exact = true, ttl_s = 300 }
[tenants.t]
default_classification = "internal"
residency = "onshore"
requests_per_minute = 600
budget = { limit_micros = 50_000_000, window = "day" }
keys = [{ name = "k", secret = { env = "T_KEY" } }]
[ledger]
store = "none"
"#;

pub(crate) fn environment() -> FixedEnvironment {
    FixedEnvironment::new()
        .with_var("UP_KEY", "canary-up")
        .with_var("T_KEY", "canary-t")
        .with_file("ca.pem", b"no certificate")
}

/// Returns the sound file with one change.
#[track_caller]
pub(crate) fn changed(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "`{from}` is not in the sound file");
    SOUND.replacen(from, to, 1)
}

pub(crate) fn parse(text: &str) -> Result<Config, Diagnostics> {
    Config::parse(text, "gw.toml", &environment())
}

/// Checks what is said about one change; `expected` is `line:column: message; remedy`, one line a fault.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    let found = parse(&changed(from, to)).map_or_else(|faults| faults.to_string(), |_| "accepted".to_owned());
    let expected: Vec<String> = expected.lines().map(|line| format!("gw.toml:{}", line.trim())).collect();
    assert_eq!(found, expected.join("\n"));
}

/// Checks that one change is accepted and shows in the effective configuration.
#[track_caller]
fn accepts(from: &str, to: &str, shown: &str) {
    let config = parse(&changed(from, to)).unwrap();
    assert!(config.effective().contains(shown), "{}", config.effective());
}

#[test]
fn the_sound_file_is_accepted() {
    assert!(parse(SOUND).is_ok());
}

#[test]
fn every_fault_of_a_file_is_found_in_one_run() {
    let text = SOUND
        .replace("max_body_bytes = 1_048_576", "max_bdy_bytes = 1")
        .replace("http2 = false", "http2 = \"true\"")
        .replace("deployments = [\"a\"]", "deployments = [\"b\"]")
        .replace("requests_per_minute = 600", "requests_per_minute = -1")
        .replace("[ledger]", "[cluster]\nredis = 1\n[ledger]");
    let faults = parse(&text).unwrap_err();
    let lines: Vec<_> =
        faults.iter().map(|fault| (fault.line().unwrap(), fault.found().to_owned())).collect();
    let expected = [(4, "max_bdy_bytes"), (11, "\"true\""), (23, "\"b\""), (28, "-1"), (32, "1")];
    assert_eq!(lines, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn the_digest_ignores_layout_and_secrets_and_nothing_else() {
    let digest = |text: &str| parse(text).unwrap().digest();
    let same = changed("requests_per_minute = 600", "# a comment\nrequests_per_minute   =   0x258");
    assert_eq!(digest(SOUND), digest(&same));
    assert_ne!(digest(SOUND), digest(&changed("requests_per_minute = 600", "requests_per_minute = 601")));
    let other = environment().with_var("T_KEY", "another key");
    assert_eq!(Config::parse(SOUND, "gw.toml", &other).unwrap().digest(), digest(SOUND));
    assert_eq!(digest(SOUND).as_str().len(), 32);
}

#[test]
fn i18_no_print_of_a_configuration_holds_a_secret() {
    let config = parse(SOUND).unwrap();
    let printed = format!("{config:?} {}", config.effective());
    assert!(!printed.contains("canary"), "{printed}");
    assert!(printed.contains("UP_KEY"));
}

#[test]
fn i18_a_pasted_secret_is_not_repeated() {
    for (from, to) in [
        ("api_key = { env = \"UP_KEY\" }", "api_key = \"hunter2-hunter2\""),
        ("api_key = { env = \"UP_KEY\" }", "apikey = \"hunter2-hunter2\""),
        ("api_key = { env = \"UP_KEY\" }", "api_key = \"hunter2-hunter2"),
        ("api_key = { env = \"UP_KEY\" }", "api_key = { env = \"sk-hunter2-hunter2\" }"),
        ("secret = { env = \"T_KEY\" }", "secret = \"hunter2-hunter2\", secret = 1"),
    ] {
        let faults = parse(&changed(from, to)).unwrap_err();
        let said = format!("{faults} {faults:?} {} {}", faults.render(false), faults.to_json());
        assert!(!said.contains("hunter2"), "{said}");
    }
}
