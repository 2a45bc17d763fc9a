//! Credentials that are fetched: tokens of a service account, keys of a role; kept, renewed, and never shown.

use std::{sync::Arc, time::Duration};

use gw_adapters::{Provider, ProviderConfig, ProviderCredentials, ProviderKind};
use gw_types::{Adapter, ErrorKind, GatewayError, ManualClock, Operation, Secret, UtcTime};

use crate::{
    server::{Act, Server, json},
    setup::{PLAN, asked, config, deployment},
};

/// Made for these tests; it opens nothing.
const KEY: &str = include_str!("certificates/service-account.key");

const MESSAGES: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#;

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}"#;

/// 2015-08-30T12:36:00Z.
const AT: UtcTime = UtcTime::from_micros(1_440_938_160_000_000);

fn account(token_uri: &str) -> String {
    let key = serde_json::to_string(KEY).unwrap();
    format!(
        r#"{{"type":"service_account","project_id":"proj","private_key_id":"kid-1","private_key":{key},"client_email":"gw@proj.example","token_uri":"{token_uri}"}}"#
    )
}

fn vertex(base_url: &str, account: &str) -> ProviderConfig {
    ProviderConfig {
        kind: ProviderKind::Vertex { project: String::new(), location: "us-east5".to_owned() },
        api_key: None,
        credentials: Some(ProviderCredentials::ServiceAccount(Secret::new(account).unwrap())),
        ..config(base_url)
    }
}

fn bedrock(base_url: &str, credentials: ProviderCredentials) -> ProviderConfig {
    ProviderConfig {
        kind: ProviderKind::Bedrock { region: "us-east-1".to_owned() },
        api_key: None,
        credentials: Some(credentials),
        ..config(base_url)
    }
}

/// A provider whose clock the test moves.
struct Signed {
    provider: Provider,
    adapter: Arc<dyn Adapter>,
    clock: ManualClock,
    model: &'static str,
}

impl Signed {
    fn new(config: ProviderConfig, model: &'static str) -> Self {
        let clock = ManualClock::new(AT);
        let provider = Provider::new(config, Arc::new(clock.clone())).unwrap();
        let adapter = provider.adapter(&deployment(model)).unwrap();
        Self { provider, adapter, clock, model }
    }

    async fn call(&self) -> Result<(), GatewayError> {
        let request = asked(Operation::Messages, MESSAGES);
        let prepared = self.adapter.prepare(&request, &deployment(self.model), &PLAN).unwrap();
        self.adapter.call(prepared).await.map(drop)
    }
}

/// Gives `token-1`, `token-2`, ... for an hour each.
async fn token_server() -> Server {
    Server::start(|number, _| {
        let body = format!(r#"{{"access_token":"token-{}","expires_in":3600}}"#, number + 1);
        Act::Answer(json("200 OK", &body))
    })
    .await
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Returns the credentials that a provider was shown, in order.
fn shown(server: &Server) -> Vec<String> {
    let requests = server.requests();
    requests.iter().map(|request| header(request, "authorization").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_service_accounts_token_is_fetched_once_and_renewed_before_its_end() {
    let tokens = token_server().await;
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let account = account(&format!("http://{}/token", tokens.addr));
    let signed = Signed::new(vertex(&format!("http://{}", server.addr), &account), "claude-x@1");
    for _ in 0..3 {
        signed.call().await.unwrap();
    }
    signed.clock.advance(Duration::from_secs(3_600 - 299));
    signed.call().await.unwrap();
    assert_eq!(shown(&server), ["Bearer token-1", "Bearer token-1", "Bearer token-1", "Bearer token-2"]);
    let line = "POST /v1/projects/proj/locations/us-east5/publishers/anthropic/models/claude-x@1:rawPredict HTTP/1.1";
    assert!(server.requests().iter().all(|request| request.starts_with(line)));

    let asked = tokens.requests().remove(0);
    assert!(asked.starts_with("POST /token HTTP/1.1\r\n"), "{asked}");
    let grant = "\r\n\r\ngrant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let (_, assertion) = asked.split_once(grant).unwrap();
    let claims = claims(assertion, &format!("http://{}/token", tokens.addr));
    assert_eq!(claims["iss"], "gw@proj.example");
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(1_440_938_160), Some(1_440_941_760)));
}

/// Reads the claims of a token that the service account's key has signed for the audience.
fn claims(assertion: &str, audience: &str) -> serde_json::Value {
    use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
    let public = include_bytes!("certificates/service-account.pub");
    let mut validation = Validation::new(Algorithm::RS256);
    validation.set_audience(&[audience]);
    validation.validate_exp = false;
    assert_eq!(decode_header(assertion).unwrap().kid.as_deref(), Some("kid-1"));
    decode(assertion, &DecodingKey::from_rsa_pem(public).unwrap(), &validation).unwrap().claims
}

#[tokio::test]
async fn a_token_that_is_refused_is_fetched_anew() {
    let tokens = token_server().await;
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"no token-1"}}"#;
    let server = Server::start(move |number, _| {
        Act::Answer(if number < 3 { json("401 Unauthorized", body) } else { json("200 OK", ANSWER) })
    })
    .await;
    let account = account(&format!("http://{}/token", tokens.addr));
    let signed = Signed::new(vertex(&format!("http://{}", server.addr), &account), "claude-x@1");
    let error = signed.call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderAuth);
    assert_eq!(error.detail().unwrap().message(), "no [redacted]");
    // A token that was fetched only just is not the reason.
    signed.call().await.unwrap_err();
    signed.clock.advance(Duration::from_secs(30));
    signed.call().await.unwrap_err();
    signed.call().await.unwrap();
    assert_eq!(shown(&server), ["Bearer token-1", "Bearer token-1", "Bearer token-1", "Bearer token-2"]);
}

#[tokio::test]
async fn without_a_token_no_call_is_made() {
    for (status, kind) in [
        ("400 Bad Request", ErrorKind::ProviderAuth),
        ("503 Service Unavailable", ErrorKind::ProviderUnavailable),
        ("429 Too Many Requests", ErrorKind::ProviderRateLimited),
        ("200 OK", ErrorKind::MalformedResponse),
    ] {
        let tokens = Server::always(Act::Answer(json(status, r#"{"error":"invalid_grant"}"#))).await;
        let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
        let account = account(&format!("http://{}/token", tokens.addr));
        let signed = Signed::new(vertex(&format!("http://{}", server.addr), &account), "claude-x@1");
        let error = signed.call().await.unwrap_err();
        assert_eq!((error.kind(), error.is_ambiguous()), (kind, false), "{status}");
        assert_eq!(server.sockets().accepted, 0);
    }
}

const KEYS_ANSWER: &str = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
    <AccessKeyId>ASIA-canary</AccessKeyId><SecretAccessKey>canary-key</SecretAccessKey>\
    <SessionToken>canary-session</SessionToken><Expiration>2015-08-30T13:36:00Z</Expiration></Credentials>\
    </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

#[tokio::test]
async fn a_role_is_taken_for_the_platforms_token() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "platform/token=\n").unwrap();
    let service = Server::always(Act::Answer(json("200 OK", KEYS_ANSWER))).await;
    let server = Server::always(Act::Answer(json("403 Forbidden", r#"{"message":"canary-session"}"#))).await;
    let credentials = ProviderCredentials::AwsWebIdentity {
        role: "arn:aws:iam::000000000000:role/gw".to_owned(),
        session: String::new(),
        token_file,
        endpoint: format!("http://{}", service.addr),
    };
    let signed = Signed::new(bedrock(&format!("http://{}", server.addr), credentials), "m:0");
    let error = signed.call().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderAuth);
    assert_eq!(error.detail().unwrap().message(), "[redacted]");
    let asked = service.requests().remove(0);
    assert!(asked.starts_with("POST / HTTP/1.1\r\n"), "{asked}");
    let body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15\
                &RoleArn=arn%3Aaws%3Aiam%3A%3A000000000000%3Arole%2Fgw&RoleSessionName=gw&WebIdentityToken=platform%2Ftoken%3D";
    assert!(asked.ends_with(body), "{asked}");
    let sent = server.requests().remove(0);
    assert_eq!(header(&sent, "x-amz-security-token"), Some("canary-session"));
    let authorization = header(&sent, "authorization").unwrap();
    assert!(
        authorization
            .starts_with("AWS4-HMAC-SHA256 Credential=ASIA-canary/20150830/us-east-1/bedrock/aws4_request, ")
    );
    let shown = format!("{:?} {:?} {error:?}", signed.provider, signed.adapter);
    assert!(!shown.contains("canary") && !shown.contains("platform"), "{shown}");
}

#[tokio::test]
async fn a_call_to_bedrock_is_signed() {
    let answer = r#"{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}"#;
    let server = Server::always(Act::Answer(json("200 OK", answer))).await;
    let keys = ProviderCredentials::AwsKeys {
        access_key_id: Secret::new("AKIDEXAMPLE").unwrap(),
        secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").unwrap(),
        session_token: None,
    };
    let signed = Signed::new(bedrock(&format!("http://{}", server.addr), keys), "amazon.nova-lite-v1:0");
    signed.call().await.unwrap();
    let sent = server.requests().remove(0);
    assert!(sent.starts_with("POST /model/amazon.nova-lite-v1%3A0/converse HTTP/1.1\r\n"), "{sent}");
    assert_eq!(header(&sent, "x-amz-date"), Some("20150830T123600Z"));
    assert_eq!(header(&sent, "x-amz-security-token"), None);
    let authorization = header(&sent, "authorization").unwrap();
    let head = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, \
                SignedHeaders=content-type;host;x-amz-date, Signature=";
    assert!(authorization.starts_with(head) && authorization.len() == head.len() + 64, "{authorization}");
}

#[test]
fn i18_no_credential_is_printed_or_quoted() {
    let keys = ProviderCredentials::AwsKeys {
        access_key_id: Secret::new("canary-id").unwrap(),
        secret_access_key: Secret::new("canary-key").unwrap(),
        session_token: Secret::new("canary-token"),
    };
    let bedrock = bedrock("http://127.0.0.1:9", keys);
    let text = account("http://127.0.0.1:9/token").replace("kid-1", "canary-kid");
    let vertex = vertex("http://127.0.0.1:9", &text);
    let mut shown = String::new();
    for config in [bedrock, vertex] {
        shown.push_str(&format!("{config:?}"));
        let signed = Signed::new(config, "claude-x@1");
        shown.push_str(&format!("{:?} {:?}", signed.provider, signed.adapter));
    }
    for broken in ["canary", r#"{"type":"authorized_user","canary":1}"#, &text.replace("PRIVATE", "canary")] {
        let config = crate::credentials::vertex("http://127.0.0.1:9", broken);
        let invalid = Provider::new(config, Arc::new(ManualClock::default())).unwrap_err();
        shown.push_str(&format!("{invalid:?} {invalid}"));
    }
    assert!(!shown.contains("canary") && !shown.contains("PRIVATE"), "{shown}");
}
