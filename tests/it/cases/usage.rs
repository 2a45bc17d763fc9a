//! Kind `streaming`: where usage comes from.

use gw_testkit::{FakeProvider, FakeStream, FaultScript, Step};
use serde_json::json;

use super::streaming::{content, done, stop};
use crate::support::{Events, Gw, Toml, chat};

fn with_null_usage(text: &str) -> Step {
    Step::event(&format!(
        r#"{{"id":"c1","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}],"usage":null}}"#
    ))
}

#[tokio::test]
async fn usage_arrives_in_fragments() {
    let usage = Step::event(
        r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#,
    );
    let reported = FakeStream::new([with_null_usage("a"), with_null_usage("b"), stop(), usage, done()]);
    let silent = FakeStream::new([content("one "), content("two "), content("three"), stop(), done()]);
    let provider =
        FakeProvider::start(FaultScript::of(reported.clone()).then(reported).then(silent)).await.unwrap();
    let toml = Toml::new()
        .upstream("up", &provider)
        .route("m", &["up"])
        .tenant("a", "tokens_per_minute = 60_000\nbudget = { limit_micros = 1_000_000, window = \"day\" }");
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let ask = |body: serde_json::Value| {
        let call = gw.chat("a", &body);
        async { Events::read(&call.stream().await.rest().await) }
    };
    let plain = ask(body.clone()).await;
    assert!(plain.usages().is_empty() && plain.done && plain.text() == "ab", "V1");
    assert_eq!(provider.calls()[0].json()["stream_options"]["include_usage"], true, "V1 asks for it");
    let mut asking = body.clone();
    asking["stream_options"] = json!({"include_usage": true});
    let asked = ask(asking).await;
    assert_eq!(
        asked.usages(),
        [&json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})],
        "V5"
    );
    assert!(asked.done);
    assert_eq!(ask(body).await.text(), "one two three");
    let records = gw.records(3).await;
    for record in &records[..2] {
        let usage = &record["usage"];
        assert_eq!((usage["input"].as_u64(), usage["output"].as_u64()), (Some(11), Some(7)));
        assert_eq!((usage["estimated"].as_bool(), record["cost"].as_u64()), (Some(false), Some(25_000_000)));
    }
    let guessed = &records[2]["usage"];
    assert!(guessed["estimated"].as_bool().unwrap(), "V4: {guessed}");
    assert!(
        guessed["input"].as_u64().unwrap() > 0 && guessed["output"].as_u64().unwrap() > 0,
        "V4: {guessed}"
    );
    let spent: u64 = records.iter().map(|record| record["cost"].as_u64().unwrap()).sum();
    assert_eq!(gw.settled("a").await["budget"]["spent_micros"].as_u64(), Some(spent / 1_000_000));
}
