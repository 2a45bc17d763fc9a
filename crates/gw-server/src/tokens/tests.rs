//! Real tokens with real keys: which are taken, and what is said of those that are not.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use gw_config::{Composition, Config, FixedEnvironment, Seams};
use gw_testkit::TokenSigner;
use gw_types::{
    ErrorKind, FetchRequest, FetchResponse, GatewayError, HttpFetch, ManualClock, Secret, SeededRandom,
    SequentialIds, UtcTime,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{TokenFault, Tokens};
use crate::refusal::Refusal;

/// 2030-01-01T00:00:00Z, in seconds.
const NOW: i64 = 1_893_456_000;
const ISSUER: &str = "https://login.example.com";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Shows a set of keys; counts how often it was asked.
#[derive(Debug, Default)]
struct Shown(Mutex<(Option<String>, usize)>);

impl Shown {
    fn show(&self, set: Option<String>) {
        self.0.lock().0 = set;
    }

    fn asked(&self) -> usize {
        self.0.lock().1
    }
}

#[async_trait]
impl HttpFetch for Shown {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, GatewayError> {
        assert_eq!((request.method, request.url.as_str()), ("GET", "https://login.example.com/keys"));
        let mut shown = self.0.lock();
        shown.1 += 1;
        match &shown.0 {
            Some(set) => Ok(FetchResponse { status: 200, body: Bytes::from(set.clone()) }),
            None => Err(GatewayError::new(ErrorKind::Transport, "nobody is there")),
        }
    }
}

struct House {
    tokens: Tokens,
    clock: ManualClock,
    shown: Arc<Shown>,
    _composition: Composition,
}

/// A gateway whose issuer shows its keys as these lines say.
async fn house(keys: &str, set: &str) -> House {
    let text = format!(
        r#"
version = 1
[issuers.corp]
issuer = "{ISSUER}"
audience = ["gw", "gw-too"]
algorithms = ["RS256", "ES256"]
{keys}
[providers.s]
kind = "scripted"
behaviour = "echo"
[deployments.d]
provider = "s"
model = "m"
price = "free"
[[routes]]
name = "r"
deployments = ["d"]
[tenants.a]
keys = [{{ name = "sso", issuer = "corp", claims = {{ groups = "team-a" }} }}]
[tenants.b]
keys = [{{ name = "sso", issuer = "corp", claims = {{ groups = "team-b" }}, networks = ["10.0.0.0/8"] }}]
[ledger]
store = "none"
"#
    );
    let environment = FixedEnvironment::new().with_file("jwks.json", set.as_bytes());
    let config = Config::parse(&text, "gw.toml", &environment).unwrap();
    let clock = ManualClock::new(UtcTime::from_micros(NOW * 1_000_000));
    let seams = Seams {
        clock: Arc::new(clock.clone()),
        random: Arc::new(SeededRandom::new(1)),
        ids: Arc::new(SequentialIds::default()),
    };
    let composition = Composition::build(&config, seams, |ledger| ledger).await.unwrap();
    let shown = Arc::new(Shown::default());
    shown.show(Some(set.to_owned()));
    let fetch: Arc<dyn HttpFetch> = Arc::<Shown>::clone(&shown);
    let tokens = Tokens::new(composition.issuers.clone(), fetch, Arc::new(clock.clone()));
    House { tokens, clock, shown, _composition: composition }
}

const FILE: &str = "jwks_file = \"jwks.json\"";
const URL: &str = "jwks_url = \"https://login.example.com/keys\"";

impl House {
    /// Returns the tenant of a token, or why it is nobody's; `None`: it is no token.
    async fn of(&self, token: &str) -> Option<Result<String, TokenFault>> {
        let presented = Secret::new(token).unwrap();
        let found = self.tokens.identify(&presented, HERE)?.await;
        Some(found.map(|identity| identity.tenant.to_string()))
    }

    async fn check(&self, token: &str, expected: Result<&str, TokenFault>) {
        assert_eq!(self.of(token).await, Some(expected.map(str::to_owned)), "{token}");
    }
}

/// What a good token says, with a change.
fn said(change: &Value) -> Value {
    let mut claims =
        json!({"iss": ISSUER, "aud": "gw", "exp": NOW + 300, "groups": ["team-a"], "sub": "user-1"});
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

#[tokio::test]
async fn a_genuine_token_is_its_tenants() {
    for signer in [TokenSigner::rs256("k1").unwrap(), TokenSigner::es256("k1").unwrap()] {
        let house = house(FILE, &TokenSigner::set(&[&signer]).unwrap()).await;
        house.check(&signer.sign(&said(&json!({}))).unwrap(), Ok("a")).await;
        // The only key that it could be.
        house.check(&signer.sign_as(None, &said(&json!({}))).unwrap(), Ok("a")).await;
    }
}

#[tokio::test]
async fn claims_are_checked() {
    let signer = TokenSigner::es256("k1").unwrap();
    let house = house(FILE, &TokenSigner::set(&[&signer]).unwrap()).await;
    for (change, expected) in [
        (json!({"aud": ["x", "gw-too"]}), Ok("a")),
        (json!({"aud": "gateway"}), Err(TokenFault::Audience)),
        (json!({"aud": null}), Err(TokenFault::Audience)),
        (json!({"aud": []}), Err(TokenFault::Audience)),
        (json!({"iss": "https://login.example.com/"}), Err(TokenFault::Issuer)),
        (json!({"iss": null}), Err(TokenFault::Issuer)),
        // A minute of difference between two clocks is no difference.
        (json!({"exp": NOW - 59}), Ok("a")),
        (json!({"exp": NOW - 60}), Err(TokenFault::Expired)),
        (json!({"exp": f64::from(u32::MAX) + 0.5}), Ok("a")),
        (json!({"exp": -1e300}), Err(TokenFault::Expired)),
        (json!({"exp": "tomorrow"}), Err(TokenFault::Malformed)),
        (json!({"exp": null}), Err(TokenFault::Malformed)),
        (json!({"nbf": NOW + 60}), Ok("a")),
        (json!({"nbf": NOW + 61}), Err(TokenFault::NotYetValid)),
        (json!({"groups": ["team-c"]}), Err(TokenFault::NoKey)),
        (json!({"groups": ["team-a", "team-b"]}), Err(TokenFault::Ambiguous)),
        // The key of tenant b may not be used from here.
        (json!({"groups": "team-b"}), Err(TokenFault::NoKey)),
    ] {
        house.check(&signer.sign(&said(&change)).unwrap(), expected).await;
    }
    let mut endless = said(&json!({}));
    endless.as_object_mut().unwrap().remove("exp");
    house.check(&signer.sign(&endless).unwrap(), Err(TokenFault::Endless)).await;
}

/// Puts a token together from its parts.
fn token(header: &Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(header), part(claims))
}

#[tokio::test]
async fn nobody_else_can_make_one() {
    let (own, other) = (TokenSigner::es256("k1").unwrap(), TokenSigner::es256("k1").unwrap());
    let house = house(FILE, &TokenSigner::set(&[&own]).unwrap()).await;
    let claims = said(&json!({}));
    house.check(&other.sign(&claims).unwrap(), Err(TokenFault::Signature)).await;
    house.check(&own.sign_as(Some("k2"), &claims).unwrap(), Err(TokenFault::Key)).await;
    let rsa = TokenSigner::rs256("k1").unwrap();
    house.check(&rsa.sign(&claims).unwrap(), Err(TokenFault::Key)).await;
    let genuine = own.sign(&claims).unwrap();
    let signature = genuine.rsplit('.').next().unwrap();
    // Claims of another under the signature of these.
    let forged = token(&json!({"alg": "ES256", "kid": "k1"}), &said(&json!({"sub": "user-2"})), signature);
    house.check(&forged, Err(TokenFault::Signature)).await;
    for algorithm in ["none", "None", "HS256", "HS512", "ES512", "x"] {
        let unsigned = token(&json!({"alg": algorithm, "kid": "k1"}), &claims, signature);
        house.check(&unsigned, Err(TokenFault::Algorithm)).await;
    }
    // Taken in general, but not from this issuer.
    for algorithm in ["RS384", "EdDSA"] {
        let unwanted = token(&json!({"alg": algorithm, "kid": "k1"}), &claims, signature);
        house.check(&unwanted, Err(TokenFault::Algorithm)).await;
    }
    let critical = json!({"alg": "ES256", "kid": "k1", "crit": ["exp"], "exp": 1});
    house.check(&token(&critical, &claims, signature), Err(TokenFault::Malformed)).await;
}

#[tokio::test]
async fn what_is_no_token_is_left_to_the_keys() {
    let signer = TokenSigner::es256("k1").unwrap();
    let house = house(FILE, &TokenSigner::set(&[&signer]).unwrap()).await;
    for text in ["gwk1_0_0_0", "ey", "eyJ.eyJ", "eyJ.e.y.J", "eyJ..x", "eyJ.e+J.x", "sk-a.b.c"] {
        assert_eq!(house.of(text).await, None, "{text}");
    }
    house.check("eyJ.eyJ.x", Err(TokenFault::Algorithm)).await;
    let long = format!("eyJ.{}.x", "A".repeat(20_000));
    house.check(&long, Err(TokenFault::Malformed)).await;
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_one_that_is_new() {
    let (old, new) = (TokenSigner::es256("old").unwrap(), TokenSigner::es256("new").unwrap());
    let house = house(URL, &TokenSigner::set(&[&old]).unwrap()).await;
    let of = |signer: &TokenSigner| signer.sign(&said(&json!({}))).unwrap();
    house.check(&of(&old), Ok("a")).await;
    house.check(&of(&old), Ok("a")).await;
    assert_eq!(house.shown.asked(), 1);
    house.shown.show(Some(TokenSigner::set(&[&new]).unwrap()));
    // Anybody can name a key that there is not: that asks the issuer at most once in ten seconds.
    house.check(&of(&new), Err(TokenFault::Key)).await;
    assert_eq!(house.shown.asked(), 1);
    house.clock.advance(Duration::from_secs(10));
    house.check(&of(&new), Ok("a")).await;
    assert_eq!(house.shown.asked(), 2);
    house.check(&of(&old), Err(TokenFault::Key)).await;
    assert_eq!(house.shown.asked(), 2);
}

#[tokio::test]
async fn keys_are_used_for_a_day_where_their_issuer_is_away() {
    let signer = TokenSigner::es256("k1").unwrap();
    let house = house(URL, &TokenSigner::set(&[&signer]).unwrap()).await;
    let token = signer.sign(&said(&json!({"exp": NOW + 1_000_000}))).unwrap();
    house.check(&token, Ok("a")).await;
    house.shown.show(None);
    house.clock.advance(Duration::from_secs(600));
    house.check(&token, Ok("a")).await;
    house.check(&token, Ok("a")).await;
    assert_eq!(house.shown.asked(), 2, "one request looks for newer ones, the next one does not");
    house.clock.advance(Duration::from_secs(86_400));
    house.check(&token, Err(TokenFault::KeysAway)).await;
    house.shown.show(Some(TokenSigner::set(&[&signer]).unwrap()));
    house.clock.advance(Duration::from_secs(10));
    house.check(&token, Ok("a")).await;
}

#[tokio::test]
async fn an_issuer_that_never_answered_is_no_reason_to_call_a_token_wrong() {
    let signer = TokenSigner::es256("k1").unwrap();
    let house = house(URL, "{}").await;
    house.shown.show(None);
    let token = signer.sign(&said(&json!({}))).unwrap();
    house.check(&token, Err(TokenFault::KeysAway)).await;
    house.check(&token, Err(TokenFault::KeysAway)).await;
    assert_eq!(house.shown.asked(), 1);
    house.shown.show(Some("{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\", \"kid\": \"k1\"}]}".to_owned()));
    house.clock.advance(Duration::from_secs(2));
    house.check(&token, Err(TokenFault::KeysAway)).await;
    house.shown.show(Some(TokenSigner::set(&[&signer]).unwrap()));
    house.clock.advance(Duration::from_secs(2));
    house.check(&token, Ok("a")).await;
}

#[test]
fn every_fault_has_its_status() {
    for fault in TokenFault::ALL {
        let expected = match fault {
            TokenFault::NoKey | TokenFault::Ambiguous => ErrorKind::Forbidden,
            TokenFault::KeysAway => ErrorKind::Overloaded,
            TokenFault::Malformed
            | TokenFault::Algorithm
            | TokenFault::Issuer
            | TokenFault::Audience
            | TokenFault::Endless
            | TokenFault::Expired
            | TokenFault::NotYetValid
            | TokenFault::Key
            | TokenFault::Signature => ErrorKind::Unauthenticated,
        };
        let refusal = Refusal::from(fault);
        assert_eq!(refusal.error.kind(), expected, "{fault:?}");
        assert_eq!(refusal.error.retry_after().is_some(), fault == TokenFault::KeysAway);
    }
}
