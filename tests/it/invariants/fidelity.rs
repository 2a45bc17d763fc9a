//! I19: what is byte for byte the same on both sides of the gateway.

use bytes::Bytes;
use gw_testkit::{FakeAnswer, FakeProvider, FakeStream, FaultScript, Step};
use http::Method;

use crate::support::{Gw, Toml, key_of};

/// A request with everything that a reader into numbers and back would change: big and strange numbers, unknown fields
/// at every depth, escapes, blanks, an order of its own.
const REQUEST: &str = "{ \"x_first\" : 1e400,\n  \"model\":\t\"m\"  , \"seed\": 9223372036854775809,\
  \"messages\":[ {\"role\":\"user\",\"content\":\"caf\\u00e9 \\ud83d\\ude00 \\/ \u{1F642}\",\"x_deep\":{\"a\":[0.10,-0,1E+2,{}]}} ],\
  \"temperature\":0.70000000000000001,\"logit_bias\":{\"50256\":-100},\"x_null\":null,\"metadata\":{\"b\":1,\"a\":2},\
  \"max_completion_tokens\": 64, \"x_last\":[[],[[]],\"\"] }";

/// An answer of the same kind, with trailing blanks behind it.
const ANSWER: &str = "{\"id\":\"a1\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"their-name\",\
  \"x_unknown\":{\"big\":9223372036854775809,\"inf\":1e400,\"tiny\":1.0e-400,\"esc\":\"\\u00e9\\/\"},\"choices\" : [ {\"index\":0,\
  \"message\":{\"role\":\"assistant\",\"content\":\"Hi \\u263a\",\"annotations\":[],\"x\":-0.0},\"logprobs\":null,\"finish_reason\":\"stop\"} ],\
  \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9,\"x_detail\":{\"y\":1.50}},\"service_tier\":\"default\"}\n  ";

/// Chunks of a stream, each as strange as the answer.
const CHUNKS: [&str; 4] = [
    "{\"id\":\"s1\",\"created\":1700000000,\"model\":\"their-name\",\"x\":1e400,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}",
    "{\"id\":\"s1\", \"choices\" : [{\"index\":0,\"delta\":{\"content\":\"H\\u00e9\",\"x_deep\":[9223372036854775809,0.10]},\"logprobs\":null,\"finish_reason\":null}],\"obfuscation\":\"aa\"}",
    "{\"id\":\"s1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\",\"x_reason\":{\"why\":1E+2}}]}",
    "{\"id\":\"s1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9},\"x_usage\":-0}",
];

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new().upstream("up", provider).route("m", &["up"]).tenant("a", "")
}

fn strange_answer() -> FakeAnswer {
    FakeAnswer { status: 200, headers: Vec::new(), body: Bytes::from(ANSWER), cut_after_bytes: None }
}

#[tokio::test]
async fn i19_a_plain_request_and_its_answer_keep_every_byte_but_the_model_name() {
    let provider = FakeProvider::start(FaultScript::of(strange_answer())).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a"));
    let answer = call.bytes(REQUEST).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.text(), ANSWER);
    let seen = provider.wait_for_calls(1).await;
    assert_eq!(seen[0].body, REQUEST.replace("\"m\"", "\"up-model\""));
    let record = &gw.records(1).await[0];
    assert_eq!(record["served_model"], "their-name");
    assert_eq!((record["usage"]["input"].as_u64(), record["usage"]["output"].as_u64()), (Some(7), Some(2)));
}

#[tokio::test]
async fn i19_a_limit_changes_the_output_bound_and_nothing_else() {
    let provider = FakeProvider::start(FaultScript::of(strange_answer())).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route_with("m", &["up"], "default_max_output_tokens = 128")
        .tenant("a", "tokens_per_minute = 100_000");
    let gw = Gw::start(&toml).await;
    let send =
        |body: String| gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a")).bytes(body).send();
    assert_eq!(send(REQUEST.to_owned()).await.status, 200);
    let unbounded = REQUEST.replace("\"max_completion_tokens\": 64, ", "");
    assert_eq!(send(unbounded.clone()).await.status, 200);
    let seen = provider.wait_for_calls(2).await;
    assert_eq!(seen[0].body, REQUEST.replace("\"m\"", "\"up-model\""), "a bound of the caller's own stays");
    let sent = String::from_utf8(seen[1].body.to_vec()).unwrap();
    let without = sent.replace("\"max_tokens\":128,", "").replace("\"max_completion_tokens\":128,", "");
    assert_ne!(sent, without, "{sent}");
    assert_eq!(without, unbounded.replace("\"m\"", "\"up-model\""));
}

#[tokio::test]
async fn i19_streamed_values_keep_every_byte() {
    let events = CHUNKS.map(Step::event).into_iter().chain([Step::event("[DONE]")]);
    let provider = FakeProvider::start(FaultScript::of(FakeStream::new(events))).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    let streaming = REQUEST.replace("\"x_null\":null", "\"stream\" : true");
    let ask = |body: String| async {
        let call = gw.call(Method::POST, "/v1/chat/completions").key(&key_of("a")).bytes(body);
        call.stream().await.rest().await
    };
    let event = |chunk: &str| format!("data: {chunk}\n\n");
    let hidden: String = CHUNKS[..3].iter().map(|chunk| event(chunk)).chain([event("[DONE]")]).collect();
    assert_eq!(ask(streaming.clone()).await, hidden, "the usage chunk was not asked for");
    let asked = streaming.replace(
        "\"stream\" : true",
        "\"stream\":true,\"stream_options\":{\"include_usage\": true,\"x\":1.0}",
    );
    let whole: String = CHUNKS.iter().map(|chunk| event(chunk)).chain([event("[DONE]")]).collect();
    assert_eq!(ask(asked.clone()).await, whole);
    let seen = provider.wait_for_calls(2).await;
    let first = String::from_utf8(seen[0].body.to_vec()).unwrap();
    let plain = first.replace("\"stream_options\":{\"include_usage\":true},", "");
    assert_ne!(plain, first, "gw needs the usage");
    assert_eq!(plain, streaming.replace("\"m\"", "\"up-model\""));
    assert_eq!(seen[1].body, asked.replace("\"m\"", "\"up-model\""), "nothing to add");
}
