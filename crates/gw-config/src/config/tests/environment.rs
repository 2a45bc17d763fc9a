//! What stands outside the file: variables and files with secrets, and where they are looked for.

use std::path::Path;

use super::{SOUND, changed, environment, parse};
use crate::{Config, FixedEnvironment};

/// Checks what is said about a file in an environment.
#[track_caller]
fn check(text: &str, environment: &FixedEnvironment, expected: &str) {
    let faults = Config::parse(text, "conf/gw.toml", environment).unwrap_err();
    assert_eq!(faults.to_string(), format!("conf/gw.toml:{expected}"));
}

fn without_up_key() -> FixedEnvironment {
    FixedEnvironment::new().with_var("T_KEY", "canary-t").with_var("ADMIN_KEY", "canary-admin-1")
}

#[test]
fn secrets_come_from_variables_that_hold_one() {
    for (environment, what) in [
        (without_up_key(), "is not set"),
        (without_up_key().with_var("UP_KEY", ""), "is empty"),
        (without_up_key().with_var("UP_KEY", " \t"), "holds only blanks"),
        (without_up_key().with_garbled_var("UP_KEY"), "is not valid UTF-8"),
        (without_up_key().with_var("UP_KEY", "a\u{1b}b"), "holds a control character"),
        (without_up_key().with_var("UP_KEY", "${VAULT_KEY}"), "holds a placeholder that was not expanded"),
        (without_up_key().with_var("UP_KEY", &"x".repeat(65_537)), "is too long for a secret"),
    ] {
        let expected =
            format!("10:19: environment variable `UP_KEY` {what}; set `UP_KEY`, or name another variable");
        check(SOUND, &environment, &expected);
    }
}

#[test]
fn secrets_come_from_files_beside_the_configuration() {
    let text = changed("{ env = \"UP_KEY\" }", "{ file = \"keys/up\" }");
    let found = without_up_key().with_file("conf/keys/up", b"canary-up\n");
    assert!(Config::parse(&text, "conf/gw.toml", &found).is_ok());
    let elsewhere = without_up_key().with_file("keys/up", b"canary-up");
    check(
        &text,
        &elsewhere,
        "10:20: file `keys/up` cannot be read: it does not exist; put it at `conf/keys/up`, or name another file",
    );
    for (content, what) in
        [(&b""[..], "is empty"), (b"\n", "holds only blanks"), (b"\xff\xfe", "is not valid UTF-8")]
    {
        let environment = without_up_key().with_file("conf/keys/up", content);
        let expected = format!("10:20: file `keys/up` {what}; write the secret alone into `keys/up`");
        check(&text, &environment, &expected);
    }
}

#[test]
fn unresolved_environment_reference_stops_start_up() {
    let text = changed("[server]", "[server]\nadmin_keys = [{ env = \"ADMIN_KEY\" }]");
    // V1 to V4: every way of showing the faults names variable and place, and no secret.
    for environment in [
        without_up_key(),
        without_up_key().with_var("UP_KEY", ""),
        without_up_key().with_var("UP_KEY", "  "),
        without_up_key().with_garbled_var("UP_KEY"),
    ] {
        let faults = Config::parse(&text, "gw.toml", &environment).unwrap_err();
        let said = format!("{faults} {faults:?} {} {}", faults.render(false), faults.to_json());
        assert!(said.contains("`UP_KEY`") && said.contains("gw.toml:11:19"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
    let refers = |to: &str| text.replace("{ env = \"UP_KEY\" }", to);
    check(
        &refers("\"${UP_KEY\""),
        &without_up_key(),
        "11:11: `providers.up.api_key` must not hold the secret itself; write `{ env = \"UP_KEY\" }`",
    );
    check(
        &refers("{ env = \"${UP_KEY\" }"),
        &without_up_key(),
        "11:19: `providers.up.api_key.env` is no name of an environment variable; write `\"UP_KEY\"`",
    );
    check(
        &refers("{ file = \"missing\" }"),
        &without_up_key(),
        "11:20: file `missing` cannot be read: it does not exist; put it at `conf/missing`, or name another file",
    );
    let both = refers("{ file = \"missing\" }").replace("T_KEY", "NOT_SET");
    assert_eq!(Config::parse(&both, "gw.toml", &without_up_key()).unwrap_err().iter().len(), 2);
}

#[test]
fn placeholders_reach_no_provider() {
    for (from, to) in [
        ("http://127.0.0.1:9/v1", "http://${HOST}/v1"),
        ("http2 = false", "headers = { X-Team = \"${TEAM}\" }"),
    ] {
        let faults = parse(&changed(from, to)).unwrap_err();
        assert!(faults.to_string().contains("holds `${`, which is not expanded here"), "{faults}");
    }
}

#[test]
fn secrets_do_not_stand_in_the_file() {
    let refused = |from: &str, to: &str, expected: &str| {
        let faults = parse(&changed(from, to)).unwrap_err();
        assert_eq!(faults.to_string(), format!("gw.toml:{expected}"));
    };
    let key = "secret = { env = \"T_KEY\" }";
    let remedy = "write `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
    refused(
        key,
        "secret = \"hunter2\"",
        &format!("30:32: `tenants.t.keys[0].secret` must not hold the secret itself; {remedy}"),
    );
    refused(
        "http2 = false",
        "headers = { Authorization = \"Bearer x\" }",
        &format!("11:29: `providers.up.headers.Authorization` must not hold the secret itself; {remedy}"),
    );
    refused(
        "{ env = \"UP_KEY\" }",
        "{ env = \"UP_KEY\", file = \"x\" }",
        &format!("10:11: `providers.up.api_key` must name one place of the secret; {remedy}"),
    );
    let line = "write the line `gwk1:...` that `gw keys create` printed";
    let path = "30:30: `tenants.t.keys[0].hash`";
    refused(key, "hash = \"gwk1:00\"", &format!("{path} is no stored key; {line}"));
    refused(key, "hash = \"gwk1_0011223344\"", &format!("{path} must not hold the key itself; {line}"));
}

#[test]
fn files_are_read_through_the_seam() {
    let environment = environment()
        .with_file("etc/gw.toml", SOUND.as_bytes())
        .with_file("bad.toml", b"version = 1\n# \xff\n");
    let load = |path: &str| Config::load(Path::new(path), &environment);
    assert!(load("etc/gw.toml").is_ok());
    assert_eq!(
        load("gone.toml").unwrap_err().to_string(),
        "gone.toml: the configuration cannot be read: it does not exist; name a file that is there with \
         `--config FILE`"
    );
    assert_eq!(
        load("bad.toml").unwrap_err().to_string(),
        "bad.toml: line 2 is not valid UTF-8; save the file as UTF-8"
    );
}
