//! Conversations between callers and providers of different formats: what goes out, what comes back, what is refused.

use gw_adapters::{ProviderConfig, ProviderKind, Script, ScriptedAdapter};
use gw_dialects::vendors::Preset;
use gw_types::{
    Adapter, Answer, AttemptPlan, ErrorKind, LossKind, ManualClock, NormalizedRequest, Operation, Prepared,
    RequestId,
};
use serde_json::{Value, json as value};

use crate::{
    server::{Act, Server, json},
    setup::{ANSWER, PLAN, Setup, asked, bounded, config, deployment, items, relayed},
};

const CHAT: &str = r#"{"model":"fast","max_tokens":9,"seed":7,"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"}]}"#;
const MESSAGES: &str =
    r#"{"model":"fast","max_tokens":9,"system":"Be brief","messages":[{"role":"user","content":"Hi"}]}"#;

fn at(kind: ProviderKind, model: &str) -> Setup {
    Setup::with_model(ProviderConfig { kind, ..config("http://127.0.0.1:9") }, model)
}

fn prepare(setup: &Setup, request: &NormalizedRequest, plan: &AttemptPlan) -> Prepared {
    setup.adapter.prepare(request, &setup.deployment, plan).unwrap()
}

fn sent(kind: ProviderKind, model: &str, operation: Operation, body: &str) -> Value {
    let setup = at(kind, model);
    serde_json::from_slice(&prepare(&setup, &asked(operation, body), &PLAN).body).unwrap()
}

fn bedrock() -> ProviderKind {
    ProviderKind::Bedrock { region: "us-east-1".to_owned() }
}

#[test]
fn a_chat_goes_out_in_every_providers_format() {
    let anthropic = sent(ProviderKind::Anthropic, "claude-x", Operation::Chat, CHAT);
    assert_eq!((&anthropic["model"], &anthropic["max_tokens"]), (&value!("claude-x"), &value!(9)));
    let gemini = sent(ProviderKind::Gemini, "gemini-2.5-flash", Operation::Chat, CHAT);
    assert_eq!(gemini["generationConfig"]["maxOutputTokens"], 9);
    assert_eq!(gemini["contents"][0]["parts"][0]["text"], "Hi");
    assert_eq!(gemini.get("model"), None);
    let converse = sent(bedrock(), "amazon.nova", Operation::Chat, CHAT);
    assert_eq!(converse["inferenceConfig"]["maxTokens"], 9);
    assert_eq!(converse["messages"][0]["content"][0]["text"], "Hi");
}

#[test]
fn claude_at_vertex_gets_its_version_in_the_body() {
    let setup = |body, operation| {
        let kind = ProviderKind::Vertex { project: "p".to_owned(), location: "us-east5".to_owned() };
        let config = ProviderConfig { kind, ..config("http://127.0.0.1:9") };
        let setup = Setup::with_model(config, "claude-x@1");
        let prepared = prepare(&setup, &asked(operation, body), &PLAN);
        serde_json::from_slice::<Value>(&prepared.body).unwrap()
    };
    for sent in [setup(CHAT, Operation::Chat), setup(MESSAGES, Operation::Messages)] {
        assert_eq!(sent["anthropic_version"], "vertex-2023-10-16");
        assert_eq!((sent.get("model"), &sent["max_tokens"]), (None, &value!(9)));
    }
}

#[test]
fn a_format_that_demands_a_bound_gets_one() {
    let body = r#"{"model":"fast","messages":[{"role":"user","content":"Hi"}]}"#;
    let mut setup = at(ProviderKind::Anthropic, "claude-x");
    let bound = |setup: &Setup, plan: &AttemptPlan| {
        let prepared = prepare(setup, &asked(Operation::Chat, body), plan);
        serde_json::from_slice::<Value>(&prepared.body).unwrap()["max_tokens"].clone()
    };
    assert_eq!(bound(&setup, &PLAN), 4_096);
    setup.deployment.max_output_tokens = Some(gw_types::TokenCount::new(64_000));
    assert_eq!(bound(&setup, &PLAN), 64_000);
    assert_eq!(bound(&setup, &bounded(7)), 7);
}

#[test]
fn a_vendor_gets_a_translated_body_as_it_takes_it() {
    let body = MESSAGES.replace(r#""max_tokens""#, r#""stream":true,"max_tokens""#);
    let to = |name| ProviderKind::OpenAiCompatible { preset: Preset::named(name) };
    let mistral = sent(to("mistral"), "m", Operation::Messages, &body);
    assert_eq!((&mistral["stream"], mistral.get("stream_options")), (&value!(true), None));
    assert_eq!((&mistral["max_tokens"], mistral.get("max_completion_tokens")), (&value!(9), None));
    let groq = sent(to("groq"), "m", Operation::Messages, &body);
    assert_eq!(groq["stream_options"]["include_usage"], true);
    assert_eq!(groq["max_completion_tokens"], 9);
}

#[test]
fn what_is_lost_is_reported_or_refused() {
    let setup = at(ProviderKind::Anthropic, "claude-x");
    let mut request = asked(Operation::Chat, CHAT);
    let loss = prepare(&setup, &request, &PLAN).loss;
    let lost: Vec<_> = loss.items.iter().map(|item| (item.path.as_str(), item.kind)).collect();
    assert_eq!(lost, [("seed", LossKind::Dropped)]);
    let strict = AttemptPlan { strict: true, ..PLAN };
    let refused = |request: &NormalizedRequest, plan: &AttemptPlan| {
        let error = setup.adapter.prepare(request, &setup.deployment, plan).unwrap_err();
        (error.kind(), error.param().map(str::to_owned))
    };
    let expected = (ErrorKind::TranslationLoss, Some("seed".to_owned()));
    assert_eq!(refused(&request, &strict), expected);
    request.context.translation_strict = true;
    assert_eq!(refused(&request, &PLAN), expected);
    let whole = asked(Operation::Chat, &CHAT.replace(r#""seed":7,"#, ""));
    assert!(prepare(&setup, &whole, &strict).loss.items.is_empty());
    // Nothing is translated here, so nothing can be lost.
    let same = at(ProviderKind::OpenAi, "gpt-x");
    assert!(same.adapter.prepare(&request, &same.deployment, &strict).is_ok());
}

#[tokio::test]
async fn a_translated_answer_carries_the_requests_id() {
    let server = Server::always(Act::Answer(json("200 OK", ANSWER))).await;
    let setup = Setup::at(&server.url());
    let mut request = asked(Operation::Messages, MESSAGES);
    for (id, expected) in
        [(None, "msg_up-1"), (Some(RequestId::from_bits(1)), "msg_00000000000000000000000000000001")]
    {
        request.context.id = id;
        let prepared = setup.adapter.prepare(&request, &setup.deployment, &PLAN).unwrap();
        let Answer::Complete(answer) = setup.adapter.call(prepared).await.unwrap() else {
            panic!("a stream")
        };
        let message: Value = serde_json::from_slice(&answer.raw).unwrap();
        assert_eq!((&message["id"], &message["type"]), (&value!(expected), &value!("message")));
        assert_eq!(message["content"], value!([{"type": "text", "text": "Hi"}]));
        assert_eq!(message["usage"]["input_tokens"], 3);
        assert!(answer.facts.usage.is_some() && answer.facts.content_bytes == 2);
    }
    let sent = server.requests().remove(0);
    assert!(sent.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{sent}");
}

#[tokio::test]
async fn the_scripted_provider_answers_every_conversation() {
    let adapter = ScriptedAdapter::new(Script::echo(), std::sync::Arc::new(ManualClock::default()));
    let deployment = deployment("demo-echo");
    for (operation, body, expected) in [
        (Operation::Chat, CHAT, "chat.completion"),
        (Operation::Messages, MESSAGES, "message"),
        (Operation::Responses, r#"{"model":"fast","input":"Hi"}"#, "response"),
    ] {
        let prepared = adapter.prepare(&asked(operation, body), &deployment, &PLAN).unwrap();
        let Answer::Complete(answer) = adapter.call(prepared).await.unwrap() else { panic!("a stream") };
        let text = String::from_utf8(answer.raw.to_vec()).unwrap();
        assert!(text.contains("echo: Hi") && text.contains(expected), "{text}");
        let body = body.replacen('{', r#"{"stream":true,"#, 1);
        let prepared = adapter.prepare(&asked(operation, &body), &deployment, &PLAN).unwrap();
        let Answer::Stream(answer) = adapter.call(prepared).await.unwrap() else { panic!("no stream") };
        let items = items(answer).await;
        assert!(items.last().unwrap().as_ref().unwrap().facts.terminal);
        assert!(relayed(&items).contains("data: {"), "{operation:?}");
    }
    let embeddings = asked(Operation::Embeddings, r#"{"model":"m","input":"x"}"#);
    let error = adapter.prepare(&embeddings, &deployment, &PLAN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}
