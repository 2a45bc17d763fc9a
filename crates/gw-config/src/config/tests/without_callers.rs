//! A configuration that is read for a batch, or for a command that nobody calls: what listeners alone need may be elsewhere.

use std::path::Path;

use super::{changed, environment};
use crate::{Checked, Config, Diagnostics, FixedEnvironment, ServerSettings};

/// What the sound file asks for that a batch has no use for: where it stands, and what is missing without it.
const OF_LISTENERS: [(&str, &str, &str); 6] = [
    (
        "[server]",
        "[server]\nadmin_keys = [{ env = \"ADMIN_KEY\", role = \"read\" }]",
        "`ADMIN_KEY` is not set",
    ),
    ("[server]", "[server]\nadmin_keys = [{ file = \"admin.key\" }]", "file `admin.key` cannot be read"),
    (
        "[residency]",
        "[server.tls]\ncertificate_file = \"gw.pem\"\nkey_file = \"gw.key\"\nclient_ca_file = \"ca.pem\"\n[residency]",
        "file `gw.pem` cannot be read",
    ),
    (
        "[ledger]",
        "[issuers.i]\nissuer = \"https://i\"\naudience = [\"gw\"]\njwks_file = \"jwks.json\"\n[ledger]",
        "file `jwks.json` cannot be read",
    ),
    (
        "[ledger]",
        "[telemetry]\nendpoint = \"http://127.0.0.1:4318\"\nauthorization = { env = \"OTLP\" }\n[ledger]",
        "`OTLP` is not set",
    ),
    ("env = \"T_KEY\"", "file = \"t.key\"", "file `t.key` cannot be read"),
];

fn of(text: &str, environment: FixedEnvironment) -> FixedEnvironment {
    environment.with_file("gw.toml", text.as_bytes())
}

fn batch(environment: &FixedEnvironment) -> Result<Config, Diagnostics> {
    Config::load_without_callers(Path::new("gw.toml"), environment)
}

#[test]
fn a_batch_looks_for_nothing_that_only_a_listener_needs() {
    for (from, to, missing) in OF_LISTENERS {
        let environment = of(&changed(from, to), environment());
        let refused = Config::load(Path::new("gw.toml"), &environment).unwrap_err().to_string();
        assert!(refused.contains(missing), "{refused}");
        let config = batch(&environment).unwrap();
        let seen = format!("{:?}", config.outside);
        let asked = ["T_KEY", "t.key", "ADMIN_KEY", "admin.key", "gw.pem", "gw.key", "ca.pem", "OTLP"];
        assert!(asked.iter().all(|name| !seen.contains(name)) && seen.contains("UP_KEY"), "{seen}");
        Checked::of(config).unwrap();
    }
}

#[test]
fn a_batch_is_refused_without_the_credential_of_a_provider() {
    let environment = of(super::SOUND, FixedEnvironment::new().with_var("T_KEY", "canary-t"));
    let refused = batch(&environment).unwrap_err().to_string();
    assert_eq!(
        refused,
        "gw.toml:10:19: environment variable `UP_KEY` is not set; set `UP_KEY`, or name another variable"
    );
}

#[test]
fn a_batch_is_refused_where_a_key_stands_in_the_file_itself() {
    let environment = of(&changed("{ env = \"T_KEY\" }", "\"canary-t\""), environment());
    let refused = batch(&environment).unwrap_err().to_string();
    assert!(refused.contains("`tenants.t.keys[0].secret` must not hold the secret itself"), "{refused}");
}

#[test]
fn a_batch_runs_under_the_digest_of_the_server() {
    let jwks = br#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}"#;
    let (from, to, _) = OF_LISTENERS[3];
    let environment = of(&changed(from, to), environment().with_file("jwks.json", jwks));
    let served = Config::load(Path::new("gw.toml"), &environment).unwrap();
    assert_eq!(batch(&environment).unwrap().digest(), served.digest());
}

#[test]
fn what_was_read_for_a_batch_listens_nowhere() {
    let open = changed("listen = \"127.0.0.1:8080\"", "listen = \"0.0.0.0:8080\"");
    let settings = ServerSettings::of(&batch(&of(&open, environment())).unwrap());
    for address in [settings.listen, settings.admin_listen] {
        assert!(address.ip().is_loopback() && address.port() == 0, "{address}");
    }
}
