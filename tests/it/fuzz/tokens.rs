//! Signed tokens to a listener: claims of any shape under a genuine signature, and tokens that nobody has signed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_exec::SystemClock;
use gw_testkit::TokenSigner;
use gw_types::Clock;
use serde_json::{Map, Value};

use super::{
    fuzz,
    intake::{Served, ask, check},
    shape,
};
use crate::support::Toml;

const ISSUER: &str = "https://login.example.com";
/// 2100-01-01T00:00:00Z, in seconds.
const END: i64 = 4_102_444_800;
/// By how much clocks may differ, unless the configuration says otherwise.
const LEEWAY_S: i64 = 60;
/// The tenants that take tokens. Each has a model of its own, which its callers alone are shown.
const TENANTS: [&str; 3] = ["a", "b", "c"];
/// What stands in every token and must stand in no answer.
const MARK: &str = "MARKED-SUBJECT";
/// So many characters of a token are that token's.
const PIECE: usize = 16;

/// A server that takes tokens of one issuer, and whoever signs for it.
struct House {
    served: Served,
    signer: TokenSigner,
}

impl House {
    fn start() -> Self {
        let signer = TokenSigner::es256("k1").unwrap();
        let set = TokenSigner::set(&[&signer]).unwrap();
        let issuer =
            format!("[issuers.corp]\nissuer = \"{ISSUER}\"\naudience = [\"gw\"]\njwks_file = \"jwks.json\"");
        let toml = Toml::new().scripted("s", &["ok text=hi"]).part(&issuer);
        let asked = ["groups = \"team-a\"", "groups = \"team-b\"", "\"/act/kind\" = [\"job\", \"cron\"]"];
        let toml = TENANTS.into_iter().zip(asked).fold(toml, |toml, (tenant, claims)| {
            let key = format!(
                "[tenants.{tenant}]\nkeys = [{{ name = \"sso\", issuer = \"corp\", claims = {{ {claims} }}, models = \
                 [\"m-{tenant}\"] }}]"
            );
            toml.route(&format!("m-{tenant}"), &["s"]).part(&key)
        });
        Self { served: Served::start(&toml, &[("jwks.json", set.as_bytes())]), signer }
    }

    /// Returns whose caller the bearer of a token is, and the status of the answer, which tells nothing of the token.
    fn present(&self, token: &str) -> (Option<&'static str>, u16) {
        let request = format!(
            "GET /v1/models HTTP/1.1\r\nhost: gw\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        let answer = ask(self.served.data, request.as_bytes());
        let status = check(&answer);
        let text = String::from_utf8(answer).unwrap();
        assert!(!text.contains(MARK), "{text}");
        for part in token.split('.').filter_map(|part| part.get(..PIECE)) {
            assert!(!text.contains(part), "a piece of a token in {text}");
        }
        let shown: Vec<_> =
            TENANTS.into_iter().filter(|tenant| text.contains(&format!("\"m-{tenant}\""))).collect();
        match (status, shown[..].first()) {
            (200, Some(tenant)) => assert_eq!(shown, [*tenant], "callers of several tenants at once"),
            (401 | 403, None) => {}
            _ => panic!("neither a tenant's nor refused: {text}"),
        }
        (shown.first().copied(), status)
    }
}

/// Returns whose the claims are, by the rules of the configuration above.
fn whose(claims: &Map<String, Value>) -> Option<&'static str> {
    let holds = |claim: Option<&Value>, wanted: &[&str]| match claim {
        Some(Value::String(text)) => wanted.contains(&text.as_str()),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(|text| wanted.contains(&text)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    };
    let is_issuers = claims.get("iss").and_then(Value::as_str) == Some(ISSUER);
    let number = |name: &str| claims.get(name).map(|value| value.as_f64().unwrap_or(f64::NAN));
    let now = SystemClock::default().utc().seconds();
    #[expect(clippy::cast_precision_loss, reason = "a second of this age is far below 2^53")]
    let (latest, earliest) = ((now + LEEWAY_S) as f64, (now - LEEWAY_S) as f64);
    let is_for_now = number("exp").is_some_and(|end| end.floor() > earliest)
        && number("nbf").is_none_or(|begin| begin.floor() <= latest);
    if !is_issuers || !holds(claims.get("aud"), &["gw"]) || !is_for_now {
        return None;
    }
    let groups = claims.get("groups");
    let kind = claims.get("act").and_then(|act| act.as_object()?.get("kind"));
    let takes = [holds(groups, &["team-a"]), holds(groups, &["team-b"]), holds(kind, &["job", "cron"])];
    // Where several take them, which one counts would be a guess.
    let mut tenants = TENANTS.into_iter().zip(takes).filter_map(|(tenant, takes)| takes.then_some(tenant));
    tenants.next().filter(|_| tenants.next().is_none())
}

fn seeds() -> [String; 4] {
    let common = format!("\"iss\":\"{ISSUER}\",\"sub\":\"{MARK}\",\"exp\":{END}");
    [
        format!("{{{common},\"aud\":\"gw\",\"groups\":[\"team-a\",\"staff\"]}}"),
        format!("{{{common},\"aud\":[\"x\",\"gw\"],\"groups\":\"team-b\",\"nbf\":1.5}}"),
        format!("{{\"act\":{{\"kind\":[\"cron\",7,null]}},\"aud\":\"gw\",{common}}}"),
        format!("{{{common},\"aud\":\"gw\",\"groups\":{{\"team-a\":true}},\"act\":[\"kind\"]}}"),
    ]
}

#[test]
fn token_claims() {
    let house = House::start();
    for (seed, tenant) in seeds().iter().zip([Some("a"), Some("b"), Some("c"), None]) {
        assert_eq!(house.present(&house.signer.sign_bytes(seed.as_bytes()).unwrap()).0, tenant, "{seed}");
    }
    fuzz("token-claims", &seeds().map(String::into_bytes), |input, _| {
        let claims = serde_json::from_slice::<Map<String, Value>>(input).ok();
        let (tenant, status) = house.present(&house.signer.sign_bytes(input).unwrap());
        let text = String::from_utf8_lossy(input);
        // A claim that stands there twice is refused: the expectation alone would take the last.
        assert!(tenant.is_none() || tenant == claims.as_ref().and_then(whose), "{text}");
        let members = claims.map(|claims| {
            let kinds = ["aud", "groups", "act", "exp", "nbf"];
            kinds.map(|name| claims.get(name).map(std::mem::discriminant))
        });
        shape((tenant, status, members))
    });
    house.served.has_no_fault();
}

/// Puts the three lines together as the parts of a token; what are not three lines is one as it stands, as far as a header
/// can hold it.
fn token(input: &[u8]) -> String {
    let lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
    if let [head, claims, signature] = lines[..] {
        let signature = String::from_utf8_lossy(signature);
        let signature: String = signature.chars().filter(char::is_ascii_graphic).collect();
        return format!("{}.{}.{signature}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
    }
    input.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect()
}

#[test]
fn presented_tokens() {
    let house = House::start();
    let genuine = seeds().map(|claims| house.signer.sign_bytes(claims.as_bytes()).unwrap());
    let signed = |token: &str| token.rsplit_once('.').map(|(signed, _)| signed.to_owned());
    let taken = genuine.each_ref().map(|token| (signed(token), house.present(token).0));
    assert_eq!(taken[0].1, Some(TENANTS[0]));
    let heads =
        ["{\"alg\":\"ES256\",\"kid\":\"k1\"}", "{\"alg\":\"none\"}", "{\"alg\":\"HS256\",\"kid\":\"k1\"}"];
    let (claims, signature) = (&seeds()[0], genuine[0].rsplit('.').next().unwrap());
    let forged = heads.map(|head| format!("{head}\n{claims}\n{signature}"));
    let all: Vec<_> = genuine.iter().chain(&forged).map(|seed| seed.as_bytes().to_vec()).collect();
    fuzz("presented-tokens", &all, |input, _| {
        let token = token(input);
        let (tenant, status) = house.present(&token);
        let expected = taken.iter().find(|(text, _)| *text == signed(&token)).and_then(|(_, tenant)| *tenant);
        assert!(tenant.is_none() || tenant == expected, "a token that nobody has signed");
        shape((tenant, status, token.split('.').count().min(5), token.len().min(999) / 100))
    });
    house.served.has_no_fault();
}
