//! What networks do between the real program and a provider.

use gw_testkit::{FakeProvider, FaultProxy, FaultScript, Link, ok};

use crate::support::{Gw, Toml, chat};

/// A provider behind a proxy, then one without; the first one's attempts end soon.
async fn start() -> (FakeProvider, FakeProvider, FaultProxy, Gw) {
    let one = FakeProvider::start(FaultScript::of(ok("of the first"))).await.unwrap();
    let two = FakeProvider::start(FaultScript::of(ok("of the second"))).await.unwrap();
    let proxy = FaultProxy::start(one.addr()).await.unwrap();
    let toml = Toml::new()
        .upstream_with("one", &format!("http://{}/v1", proxy.addr()), "", "attempt_timeout_ms = 1200")
        .upstream("two", &two)
        .route("m", &["one", "two"])
        .tenant("a", "");
    let gw = Gw::start(&toml).await;
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.said(), "of the first");
    (one, two, proxy, gw)
}

#[tokio::test]
async fn a_kept_connection_that_was_cut_costs_no_attempt() {
    for end in [Link::Resets, Link::Closes] {
        let (one, two, proxy, gw) = start().await;
        proxy.set_open(end);
        assert!(proxy.wait_for(|seen| seen.open == 0).await);
        let answer = gw.chat("a", &chat("m", "hello")).send().await;
        assert_eq!((answer.said().as_str(), answer.header("x-gw-attempts")), ("of the first", "1"));
        assert_eq!((one.calls().len(), two.calls().len(), proxy.snapshot().accepted), (2, 0, 2));
    }
}

#[tokio::test]
async fn a_provider_that_has_vanished_is_left_after_its_attempt() {
    let (_one, _two, proxy, gw) = start().await;
    proxy.set_open(Link::Vanishes);
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((answer.said().as_str(), answer.header("x-gw-attempts")), ("of the second", "2"));
    // The dead connection is closed, and the next request finds a new one.
    assert!(proxy.wait_for(|seen| seen.open == 0).await);
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert_eq!((answer.said().as_str(), answer.header("x-gw-attempts")), ("of the first", "1"));
}

#[tokio::test]
async fn an_answer_lost_on_its_way_is_ambiguous_where_it_may_have_changed_something() {
    let (one, two, proxy, gw) = start().await;
    proxy.set_open(Link::LosesAnswer);
    let answer = gw.chat("a", &chat("m", "hello")).header("x-gw-side-effecting", "true").send().await;
    assert_eq!((answer.status, answer.header("x-should-retry")), (502, "false"));
    assert_eq!(answer.error()["outcome"], "ambiguous");
    assert_eq!((one.calls().len(), two.calls().len()), (2, 0));
}
