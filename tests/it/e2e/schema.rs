//! Answers checked by the JSON schema of their request, through the real program.

use gw_testkit::{FakeProvider, FaultScript, ok};
use serde_json::{Value, json};

use crate::support::{Gw, Toml};

/// A request whose answer must be an object with a number in `n`, and nothing else.
fn counted(stream: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "counted", "strict": true, "schema": schema}});
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "how many?"}], "response_format": format})
}

async fn two_houses(first: &str, second: &str) -> (Gw, [FakeProvider; 2]) {
    let provider = async |text| FakeProvider::start(FaultScript::of(ok(text).usage(11, 3))).await.unwrap();
    let providers = [provider(first).await, provider(second).await];
    let toml = Toml::new().sqlite().upstream("one", &providers[0]).upstream("two", &providers[1]);
    (Gw::start(&toml.route("m", &["one", "two"]).tenant("a", "")).await, providers)
}

#[tokio::test]
async fn an_answer_that_breaks_its_schema_is_paid_for_and_the_next_deployment_asked() {
    let (gw, _providers) = two_houses("{\"n\":\"three\"}", "{\"n\":3}").await;
    let answer = gw.chat("a", &counted(false)).send().await;
    assert_eq!((answer.status, answer.said().as_str()), (200, "{\"n\":3}"), "{}", answer.text());
    assert_eq!((answer.header("x-gw-deployment"), answer.header("x-gw-attempts")), ("two", "2"));
    let record = &gw.records(1).await[0];
    assert_eq!(record["answer_schema"], "kept");
    assert_eq!(record["attempts"][0]["error"], "malformed_response");
    // 11 tokens in at 1 micro-USD, 3 out at 2: what the first one used is billed all the same.
    assert_eq!(record["side_costs"][0]["cost"], 17_000_000);
}

#[tokio::test]
async fn an_answer_that_breaks_its_schema_everywhere_is_an_error() {
    let (gw, _providers) = two_houses("three", "{\"n\":3,\"more\":1}").await;
    let answer = gw.chat("a", &counted(false)).send().await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    let record = &gw.records(1).await[0];
    assert_eq!(
        (&record["answer_schema"], &record["error"]),
        (&json!("broken"), &json!("malformed_response"))
    );
}

#[tokio::test]
async fn a_stream_that_breaks_its_schema_is_said_in_the_record() {
    for (text, verdict) in [("{\"n\":3}", "kept"), ("{\"n\":\"three\"}", "broken")] {
        let (gw, _providers) = two_houses(text, "").await;
        let stream = gw.chat("a", &counted(true)).stream().await;
        assert!(stream.rest().await.contains("[DONE]"));
        let record = &gw.records(1).await[0];
        assert_eq!((&record["answer_schema"], &record["outcome"]), (&json!(verdict), &json!("ok")));
    }
}
