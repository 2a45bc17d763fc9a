//! Clients that go away.

use gw_testkit::{FakeProvider, Fault, FaultScript, ok};

use crate::support::{Gw, Raw, Toml, chat, raw_chat};

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new()
        .upstream("up", provider)
        .route("m", &["up"])
        .tenant("a", "max_concurrency = 1\nbudget = { limit_micros = 1_000_000, window = \"day\" }")
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_cancels_the_call_and_pays_for_what_it_got() {
    let provider = FakeProvider::start(FaultScript::of(ok("one two three").gate_after(2))).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    let mut body = chat("m", "hello");
    body["stream"] = true.into();
    let mut stream = gw.chat("a", &body).stream().await;
    stream.until("two").await;
    assert!(gw.tenant("a").await["budget"]["reserved_micros"].as_u64().unwrap() > 0);
    drop(stream);
    provider.wait_for_client_gone(1).await;
    let record = gw.records(1).await.remove(0);
    assert_eq!(
        (record["outcome"].as_str(), record["error"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    let usage = &record["usage"];
    assert!(usage["estimated"].as_bool().unwrap() && usage["output"].as_u64() == Some(2), "{usage}");
    let spent = gw.settled("a").await["budget"]["spent_micros"].as_u64().unwrap();
    assert_eq!(u128::from(spent) * 1_000_000, u128::from(record["cost"].as_u64().unwrap()));
    // The slot is free again at once: the tenant has only one.
    provider.open_gate();
    provider.open_gate();
    assert_eq!(gw.chat("a", &chat("m", "next")).send().await.said(), "one two three");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_cancels_the_call() {
    let provider = FakeProvider::start(FaultScript::of(Fault::HangBeforeHead).then(ok("hi"))).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    let mut client = Raw::connect(gw.data).await;
    client.send(raw_chat("a", b"", chat("m", "hello").to_string().as_bytes())).await;
    provider.wait_for_calls(1).await;
    drop(client);
    provider.wait_for_client_gone(1).await;
    let record = &gw.records(1).await[0];
    assert_eq!(
        (record["outcome"].as_str(), record["attempts"].as_array().unwrap().len()),
        (Some("cancelled"), 1)
    );
    gw.settled("a").await;
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.said(), "hi");
}
