//! What each kind of provider is sent, and how its answers come back: same format, other formats.

use gw_adapters::{ProviderConfig, ProviderCredentials, ProviderKind};
use gw_types::{Answer, NormalizedRequest, Operation, PassedHeader, Secret};

use crate::{
    server::{Act, Server, json},
    setup::{KEY, PLAN, Setup, asked, config},
};

/// Makes a call; returns the request as the provider saw it, and the answer.
async fn exchange(
    config: impl FnOnce(&str) -> ProviderConfig,
    model: &str,
    request: &NormalizedRequest,
    act: Act,
) -> (String, Answer) {
    let server = Server::always(act).await;
    let setup = Setup::with_model(config(&format!("http://{}", server.addr)), model);
    let prepared = setup.adapter.prepare(request, &setup.deployment, &PLAN).unwrap();
    let answer = setup.adapter.call(prepared).await.unwrap();
    (server.requests().remove(0).replace(&server.addr.to_string(), "UP"), answer)
}

fn complete(answer: Answer) -> gw_types::CompleteAnswer {
    match answer {
        Answer::Complete(answer) => answer,
        Answer::Stream(_) => panic!("a stream"),
    }
}

fn of_kind(kind: ProviderKind) -> impl FnOnce(&str) -> ProviderConfig {
    move |base| ProviderConfig { kind, ..config(base) }
}

#[track_caller]
fn check_line(request: &str, path: &str) {
    assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{request}");
}

const VECTORS: &str = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0,-0.5]}],"model":"e","usage":{"prompt_tokens":2,"total_tokens":2}}"#;
const COMPLETION: &str = r#"{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"text":"Hi","index":0,"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
const RESPONSE: &str = r#"{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}"#;

/// Every operation that OpenAI has, at OpenAI and in both of Azure's layouts, with the answer as it came.
#[tokio::test]
async fn openai_and_azure_serve_their_four_operations() {
    let operations = [
        (Operation::Responses, r#"{"model":"fast","input":"Hi"}"#, "responses", RESPONSE),
        (Operation::Completions, r#"{"model":"fast","prompt":"Hi"}"#, "completions", COMPLETION),
        (Operation::Embeddings, r#"{"model":"fast","input":"Hi"}"#, "embeddings", VECTORS),
    ];
    for (operation, body, name, raw) in operations {
        let dated = match operation {
            Operation::Responses => "/openai/responses?api-version=2024-10-21".to_owned(),
            _ => format!("/openai/deployments/gpt-x/{name}?api-version=2024-10-21"),
        };
        let azure = |version: &str| ProviderKind::AzureOpenAi { api_version: version.to_owned() };
        for (kind, path) in [
            (ProviderKind::OpenAi, format!("/{name}")),
            (azure("v1"), format!("/openai/v1/{name}")),
            (azure("2024-10-21"), dated),
        ] {
            let request = asked(operation, body);
            let act = Act::Answer(json("200 OK", raw));
            let (sent, answer) = exchange(of_kind(kind), "gpt-x", &request, act).await;
            check_line(&sent, &path);
            assert!(sent.ends_with(&body.replace("fast", "gpt-x")), "{sent}");
            let answer = complete(answer);
            assert_eq!(answer.raw, raw);
            assert!(answer.facts.usage.is_some_and(|usage| !usage.input.is_zero()), "{operation:?}");
        }
    }
}

#[tokio::test]
async fn anthropic_gets_key_and_version_and_the_callers_own_headers() {
    let body = r#"{ "model":"fast","max_tokens":9,"x":1e400,"messages":[{"role":"user","content":"Hi"}]}"#;
    let mut request = asked(Operation::Messages, body);
    let act = Act::Answer(json("200 OK", MESSAGE));
    let (sent, answer) = exchange(of_kind(ProviderKind::Anthropic), "claude-x", &request, act.clone()).await;
    check_line(&sent, "/v1/messages");
    assert!(sent.contains(&format!("\r\nx-api-key: {KEY}\r\n")) && !sent.contains("authorization"), "{sent}");
    assert!(
        sent.contains("\r\nanthropic-version: 2023-06-01\r\n") && !sent.contains("anthropic-beta"),
        "{sent}"
    );
    assert!(sent.ends_with(&body.replace("fast", "claude-x")), "{sent}");
    assert_eq!(complete(answer).raw, MESSAGE);

    request.context.passed = vec![
        (PassedHeader::AnthropicVersion, "2026-10-21".into()),
        (PassedHeader::AnthropicBeta, "a-1,b-2".into()),
        (PassedHeader::OpenAiBeta, "never".into()),
    ];
    let (sent, _) = exchange(of_kind(ProviderKind::Anthropic), "claude-x", &request, act).await;
    assert!(sent.contains("\r\nanthropic-version: 2026-10-21\r\n"), "{sent}");
    assert!(sent.contains("\r\nanthropic-beta: a-1,b-2\r\n") && !sent.contains("openai-beta"), "{sent}");
    assert!(!sent.contains("2023-06-01"), "{sent}");
}

#[tokio::test]
async fn anthropic_counts_tokens() {
    let body = r#"{"model":"fast","messages":[{"role":"user","content":"Hi"}]}"#;
    let act = Act::Answer(json("200 OK", r#"{"input_tokens":14}"#));
    let request = asked(Operation::CountTokens, body);
    let (sent, answer) = exchange(of_kind(ProviderKind::Anthropic), "claude-x", &request, act).await;
    check_line(&sent, "/v1/messages/count_tokens");
    let answer = complete(answer);
    assert_eq!(answer.raw, r#"{"input_tokens":14}"#);
    // Counting is free, whatever is counted.
    assert!(answer.facts.usage.is_some_and(|usage| usage.input.is_zero()));
}

#[tokio::test]
async fn a_caller_of_openai_passes_its_own_header_to_openai_only() {
    let mut request = asked(Operation::Responses, r#"{"model":"fast","input":"Hi"}"#);
    request.context.passed =
        vec![(PassedHeader::OpenAiBeta, "x=1".into()), (PassedHeader::AnthropicBeta, "never".into())];
    let act = Act::Answer(json("200 OK", RESPONSE));
    let (sent, _) = exchange(of_kind(ProviderKind::OpenAi), "gpt-x", &request, act).await;
    assert!(sent.contains("\r\nopenai-beta: x=1\r\n") && !sent.contains("anthropic"), "{sent}");
}

#[tokio::test]
async fn embeddings_at_google_come_back_as_openais() {
    let request =
        asked(Operation::Embeddings, r#"{"model":"fast","input":["a"],"encoding_format":"base64"}"#);
    let act = Act::Answer(json("200 OK", r#"{"embeddings":[{"values":[1,-0.5]}]}"#));
    let (sent, answer) = exchange(of_kind(ProviderKind::Gemini), "embed-1", &request, act).await;
    check_line(&sent, "/v1beta/models/embed-1:batchEmbedContents");
    assert!(sent.contains(&format!("\r\nx-goog-api-key: {KEY}\r\n")), "{sent}");
    assert!(
        sent.ends_with(r#"{"requests":[{"model":"models/embed-1","content":{"parts":[{"text":"a"}]}}]}"#)
    );
    let answer = complete(answer);
    let text = std::str::from_utf8(&answer.raw).unwrap();
    assert!(text.contains(r#""embedding":"AACAPwAAAL8=""#) && text.contains(r#""model":"fast""#), "{text}");
    // Google does not say what it counted, and nothing is embedded for nothing.
    assert_eq!(answer.facts.usage, None);
}

#[tokio::test]
async fn bedrock_takes_a_key_of_its_own() {
    let config = |base: &str| ProviderConfig {
        kind: ProviderKind::Bedrock { region: "eu-central-1".to_owned() },
        ..config(base)
    };
    let server = Server::always(Act::Answer(json("403 Forbidden", r#"{"message":"no"}"#))).await;
    let setup = Setup::with_model(config(&format!("http://{}", server.addr)), "m:0");
    let request = asked(Operation::Chat, r#"{"model":"x","messages":[{"role":"user","content":"Hi"}]}"#);
    let prepared = setup.adapter.prepare(&request, &setup.deployment, &PLAN).unwrap();
    assert!(setup.adapter.call(prepared).await.is_err());
    let sent = server.requests().remove(0);
    check_line(&sent, "/model/m%3A0/converse");
    assert!(
        sent.contains(&format!("\r\nauthorization: Bearer {KEY}\r\n")) && !sent.contains("x-amz"),
        "{sent}"
    );
}

#[test]
fn what_an_api_does_not_have_is_refused_before_any_call() {
    let vertex = ProviderKind::Vertex { project: "p".to_owned(), location: "l".to_owned() };
    let bedrock = ProviderKind::Bedrock { region: "r".to_owned() };
    let embeddings = (Operation::Embeddings, r#"{"model":"m","input":"x"}"#);
    let completions = (Operation::Completions, r#"{"model":"m","prompt":"x"}"#);
    for (kind, model, (operation, body)) in [
        (ProviderKind::Anthropic, "claude", embeddings),
        (ProviderKind::Anthropic, "claude", completions),
        (ProviderKind::Gemini, "gemini", completions),
        (vertex, "claude-x", embeddings),
        (bedrock, "m", embeddings),
    ] {
        let setup = Setup::with_model(ProviderConfig { kind, ..config("http://127.0.0.1:9") }, model);
        let error = setup.adapter.prepare(&asked(operation, body), &setup.deployment, &PLAN).unwrap_err();
        assert_eq!(error.kind(), gw_types::ErrorKind::InvalidRequest);
        assert_eq!(error.subject(), Some(operation.as_str()));
    }
}

#[test]
fn keys_are_needed_where_an_api_has_them() {
    let keys = ProviderCredentials::AwsKeys {
        access_key_id: Secret::new("id").unwrap(),
        secret_access_key: Secret::new("key").unwrap(),
        session_token: None,
    };
    let bedrock = ProviderKind::Bedrock { region: "r".to_owned() };
    let vertex = ProviderKind::Vertex { project: "p".to_owned(), location: "l".to_owned() };
    let other =
        gw_adapters::InvalidProvider::Credentials("is of a sort that this kind of provider does not take");
    for (kind, credentials, expected) in [
        (ProviderKind::Anthropic, None, Some(gw_adapters::InvalidProvider::MissingKey)),
        (ProviderKind::Gemini, None, Some(gw_adapters::InvalidProvider::MissingKey)),
        (bedrock.clone(), None, Some(gw_adapters::InvalidProvider::MissingCredentials)),
        (bedrock, Some(keys.clone()), None),
        (vertex.clone(), Some(keys.clone()), Some(other.clone())),
        (ProviderKind::Gemini, Some(keys), Some(other)),
        (vertex, None, Some(gw_adapters::InvalidProvider::MissingCredentials)),
    ] {
        let config = ProviderConfig { kind, api_key: None, credentials, ..config("http://127.0.0.1:9") };
        let made = gw_adapters::Provider::new(config, std::sync::Arc::new(gw_types::ManualClock::default()));
        assert_eq!(made.err(), expected);
    }
}

/// A deployment that passes on whatever model it is asked for.
#[tokio::test]
async fn the_path_names_the_model_that_was_asked_for() {
    let server = Server::always(Act::Answer(json("404 Not Found", "{}"))).await;
    let bedrock = ProviderKind::Bedrock { region: "r".to_owned() };
    for (kind, path) in [
        (ProviderKind::Gemini, "/v1beta/models/gemini-x%3F:generateContent"),
        (bedrock, "/model/gemini-x%3F/converse"),
        (ProviderKind::OpenAi, "/chat/completions"),
    ] {
        let config = ProviderConfig { kind, ..config(&format!("http://{}", server.addr)) };
        let setup = Setup::with_model(config, "*");
        let request =
            asked(Operation::Chat, r#"{"model":"gemini-x?","messages":[{"role":"user","content":"x"}]}"#);
        let deployment = crate::setup::deployment("gemini-x?");
        let prepared = setup.adapter.prepare(&request, &deployment, &PLAN).unwrap();
        assert!(setup.adapter.call(prepared).await.is_err());
        check_line(server.requests().last().unwrap(), path);
    }
}
