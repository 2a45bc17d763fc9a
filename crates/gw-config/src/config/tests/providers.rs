//! Kinds of providers: what each of them asks for, and what is none of its business.

use super::{SOUND, changed};
use crate::{Checked, Config, Environment, FixedEnvironment};

const KIND: &str =
    "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = { env = \"UP_KEY\" }";

const AWS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "canary-id"),
    ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
    ("AWS_SESSION_TOKEN", "canary-session"),
];

fn with(variables: &[(&str, &str)]) -> FixedEnvironment {
    let file = b"{\n  \"type\": \"service_account\",\n  \"private_key\": \"canary\\n\"\n}\n";
    let base = super::environment().with_file("sa.json", file);
    variables.iter().fold(base, |environment, (name, value)| environment.with_var(name, value))
}

fn parse(to: &str, environment: &dyn Environment) -> Result<Config, String> {
    Config::parse(&changed(KIND, to), "gw.toml", environment).map_err(|faults| faults.to_string())
}

/// Checks that a provider is accepted, and what of it the effective configuration shows.
#[track_caller]
fn accepts(to: &str, variables: &[(&str, &str)], shown: &[&str]) {
    let config = parse(to, &with(variables)).unwrap();
    let effective = config.effective();
    for shown in shown {
        assert!(effective.contains(shown), "{shown} in {effective}");
    }
    assert!(!format!("{config:?}{effective}").contains("canary"));
}

#[track_caller]
fn refuses(to: &str, expected: &str) {
    let said = parse(to, &with(&[])).unwrap_err();
    let expected: Vec<String> = expected.lines().map(|line| format!("gw.toml:{}", line.trim())).collect();
    assert_eq!(said, expected.join("\n"));
}

#[test]
fn anthropic_and_gemini_need_a_key_alone() {
    for kind in ["anthropic", "gemini"] {
        let to = format!("kind = \"{kind}\"\napi_key = {{ env = \"UP_KEY\" }}");
        accepts(&to, &[], &[&format!("\"kind\": \"{kind}\"")]);
        Checked::of(parse(&to, &with(&[])).unwrap()).unwrap();
    }
    refuses(
        "kind = \"gemini\"\nregion = \"x\"\nlocation = \"y\"",
        "9:1: `region` is for `kind = \"bedrock\"` only; remove `region`
         10:1: `location` is for `kind = \"vertex\"` only; remove `location`",
    );
}

#[test]
fn a_vendor_is_a_known_name() {
    let vendor = |name: &str| format!("kind = \"openai-compatible\"\nvendor = \"{name}\"");
    accepts(&vendor("groq"), &[], &["\"vendor\": \"groq\"", "\"base_url\": \"\""]);
    refuses(
        &vendor("mistal"),
        "9:10: unknown vendor `mistal` in `providers.up.vendor`; did you mean `mistral`?",
    );
    refuses(
        "kind = \"openai\"\nvendor = \"groq\"",
        "9:1: `vendor` is for `kind = \"openai-compatible\"` only; remove `vendor`",
    );
    refuses(
        "kind = \"openai-compatible\"",
        "7:12: missing `base_url` in `providers.up`; write `base_url = \"http://127.0.0.1:8000/v1\"`",
    );
}

#[test]
fn vertex_needs_a_location_and_a_service_account() {
    let whole = "kind = \"vertex\"\nproject = \"p\"\nlocation = \"eu\"\ncredentials = { file = \"sa.json\" }";
    accepts(whole, &[], &["\"location\": \"eu\"", "\"file\": \"sa.json\""]);
    refuses(
        "kind = \"vertex\"",
        "7:12: missing `credentials` in `providers.up`; write `credentials = { file = \"service-account.json\" }`
         7:12: missing `location` in `providers.up`; write `location = \"europe-west4\"`",
    );
    let faults = Checked::of(parse(whole, &with(&[])).unwrap()).unwrap_err().to_string();
    let said = "11:15: `credentials` is no key file of a Google service account; its JSON is expected";
    assert!(faults.contains(said), "{faults}");
    assert!(!faults.contains("canary"), "{faults}");
}

#[test]
fn bedrock_has_one_credential() {
    let bedrock = |more: &str| format!("kind = \"bedrock\"\nregion = \"eu-central-1\"\n{more}");
    accepts(&bedrock("api_key = { env = \"UP_KEY\" }"), &[], &["\"region\": \"eu-central-1\""]);
    accepts(&bedrock(""), &AWS, &["\"env\": \"AWS_SESSION_TOKEN\""]);
    let role = [("AWS_ROLE_ARN", "arn:aws:iam::0:role/x"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/run/token")];
    accepts(&bedrock(""), &role, &["arn:aws:iam::0:role/x", "/run/token", "\"role_session\": \"gw\""]);
    let keys = "access_key_id = { env = \"UP_KEY\" }\nsecret_access_key = { env = \"T_KEY\" }";
    accepts(&bedrock(keys), &[], &["\"env\": \"UP_KEY\"", "\"env\": \"T_KEY\""]);
    accepts(&bedrock("role = \"r\"\nweb_identity_token_file = \"t\""), &[], &["\"role\": \"r\""]);
    let ways = "write `api_key`, or `access_key_id` and `secret_access_key`, or `role` and \
                `web_identity_token_file`; or none of them, and set the variables of AWS";
    refuses(&bedrock(""), &format!("7:12: missing credentials in `providers.up`; {ways}"));
    let half = "access_key_id = { env = \"UP_KEY\" }";
    refuses(&bedrock(half), &format!("7:12: `providers.up` has half of a credential; {ways}"));
    let both = format!("api_key = {{ env = \"UP_KEY\" }}\n{keys}");
    refuses(&bedrock(&both), &format!("7:12: `providers.up` has more than one credential; {ways}"));
    assert!(SOUND.contains(KIND));
}
