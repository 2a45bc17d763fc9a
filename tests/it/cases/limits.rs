//! Kind `limits`.

use std::time::Duration;

use gw_testkit::{FakeProvider, FakeStream, Fault, FaultScript, Step, ok};
use gw_types::{ErrorKind, Money};
use serde_json::Value;

use crate::support::{Ask, Gw, House, Raw, Toml, chat, metric, raw_chat};

#[tokio::test(start_paused = true)]
async fn refused_request_uses_up_no_other_limit() {
    let toml = Toml::new().scripted("up", &["delay=100 ok text=a b c"]).route("m", &["up"]).tenant(
        "a",
        "max_concurrency = 1\nrequests_per_minute = 2\ntokens_per_minute = 1_000\n\
             budget = { limit_micros = 10_000, window = \"day\" }",
    );
    let house = House::new(&toml).await;
    let small = Ask::of("a", "m", "hello").with("max_tokens", 80);
    let large = Ask::of("a", "m", "hello").with("max_tokens", 2_000);
    let (a, b) = tokio::join!(house.ask(&small), house.ask(&small));
    a.unwrap();
    let b = b.unwrap_err().error;
    assert_eq!((b.kind(), b.subject()), (ErrorKind::RateLimited, Some("tenant:a.max_concurrency")));
    assert!(b.retry_after().is_some(), "waiting can help");
    let c = house.ask(&large).await.unwrap_err().error;
    assert_eq!((c.kind(), c.retry_after(), c.forbids_retry()), (ErrorKind::RateLimited, None, true));
    let before = house.records().await.pop().unwrap();
    assert_eq!(before.decision.limiter.unwrap().refused_by[0].as_str(), "tenant:a.tokens_per_minute");
    house.ask(&small).await.unwrap();
    let e = house.ask(&small).await.unwrap_err().error;
    assert!(e.retry_after().is_some_and(|wait| wait <= Duration::from_secs(30)));
    let records = house.records().await;
    let refused = records.last().unwrap().decision.limiter.clone().unwrap();
    assert_eq!(refused.refused_by[0].as_str(), "tenant:a.requests_per_minute");
    assert_eq!(records.iter().map(|record| record.attempts.len()).sum::<usize>(), 2);
    let snapshot = house.snapshot("a");
    assert_eq!(snapshot.requests.unwrap().remaining, 0);
    let used: u64 = records.iter().map(|record| record.usage.total().get()).sum();
    // 200 ms of virtual time mint 3 tokens of the 1,000 a minute.
    let remaining = snapshot.tokens.unwrap().remaining;
    assert!((1_000 - used..=1_000 - used + 3).contains(&remaining), "{remaining} after {used}");
    house.holds_nothing("a");
}

#[tokio::test]
async fn concurrent_requests_cannot_overspend_a_hard_budget() {
    let held = ok("a").usage(100, 200).gate_after(0);
    let provider = FakeProvider::start(FaultScript::of(held)).await.unwrap();
    let price = "price = { input = 0, output = 1_500_000 }";
    // 200 tokens at 1.5 are 300; the bound of 266 at 1.5 is 399.
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", price)
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 1_100, window = \"day\" }");
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["max_tokens"] = 266.into();
    let calls: Vec<_> = (0..50).map(|_| tokio::spawn(gw.chat("a", &body).send())).collect();
    // All 50 have been decided once 48 are in the records.
    gw.records(48).await;
    let budget = gw.tenant("a").await["budget"].clone();
    assert_eq!((budget["spent_micros"].as_u64(), budget["reserved_micros"].as_u64()), (Some(0), Some(798)));
    assert_eq!(provider.calls().len(), 2);
    provider.open_gate();
    provider.open_gate();
    let mut statuses = Vec::new();
    for call in calls {
        let answer = call.await.unwrap();
        if answer.status != 200 {
            assert_eq!(answer.error()["type"], "insufficient_quota");
        }
        statuses.push(answer.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 2);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 48);
    let budget = gw.settled("a").await["budget"].clone();
    assert_eq!(budget["spent_micros"], 600);
    provider.open_gate();
    assert_eq!(gw.chat("a", &body).send().await.status, 200);
    let spent: u128 =
        gw.records(51).await.iter().map(|record| u128::from(record["cost"].as_u64().unwrap())).sum();
    assert_eq!(Money::from_pico(spent), Money::from_micros(900));
}

/// Rounds of each variant. The report says 100; a leaked slot shows in the first.
const ROUNDS: usize = 5;

/// One way for a request to end.
#[derive(Clone, Copy, Debug)]
enum Exit {
    LeftAfterTwoEvents,
    LeftBeforeTheHead,
    Refused,
    TimedOut,
    Malformed,
    LeftBehindDone,
    NotTranslated,
}

impl Exit {
    const ALL: [Self; 7] = [
        Self::LeftAfterTwoEvents,
        Self::LeftBeforeTheHead,
        Self::Refused,
        Self::TimedOut,
        Self::Malformed,
        Self::LeftBehindDone,
        Self::NotTranslated,
    ];

    const fn model(self) -> &'static str {
        match self {
            Self::LeftAfterTwoEvents => "paused",
            Self::LeftBeforeTheHead => "silent",
            Self::Refused => "gone",
            Self::TimedOut => "late",
            Self::Malformed => "malformed",
            Self::LeftBehindDone | Self::NotTranslated => "good",
        }
    }

    async fn take(self, gw: &Gw) {
        let mut body = chat(self.model(), "hello");
        body["stream"] = true.into();
        match self {
            Self::LeftAfterTwoEvents => {
                let mut stream = gw.chat("a", &body).stream().await;
                stream.until("two").await;
            }
            Self::LeftBeforeTheHead => {
                let mut raw = Raw::connect(gw.data).await;
                raw.send(raw_chat("a", b"", body.to_string().as_bytes())).await;
                crate::support::eventually("the call", || async {
                    (gw.tenant("a").await["concurrency"]["in_use"] == 1).then_some(())
                })
                .await;
            }
            Self::LeftBehindDone => {
                let mut raw = Raw::connect(gw.data).await;
                raw.send(raw_chat("a", b"", body.to_string().as_bytes())).await;
                raw.until("[DONE]").await;
            }
            Self::Refused | Self::TimedOut => {
                assert!(gw.chat("a", &body).send().await.status >= 500);
            }
            Self::Malformed => {
                let answer = gw.chat("a", &body).send().await;
                assert!(answer.text().contains("\"error\""), "{}", answer.text());
            }
            Self::NotTranslated => {
                body["messages"] = Value::from("none");
                assert_eq!(gw.chat("a", &body).send().await.status, 400);
            }
        }
    }
}

#[tokio::test]
async fn concurrency_slot_returns_on_every_exit() {
    let malformed = FakeStream::new([
        Step::event(r#"{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#),
        Step::event("{\"choices\":[{\"index\":0,\"delta\""),
    ]);
    let script = FaultScript::of(ok("fine"))
        .for_model("paused", ok("one two three").gate_after(2))
        .for_model("silent", Fault::HangBeforeHead)
        .for_model("late", Fault::HangBeforeHead)
        .for_model("malformed", malformed);
    let provider = FakeProvider::start(script).await.unwrap();
    let gone = FakeProvider::start(FaultScript::of(Fault::RefuseConnection)).await.unwrap();
    let mut toml = Toml::new().tenant("a", "max_concurrency = 1");
    for model in ["paused", "silent", "late", "malformed", "good"] {
        let lines = format!(
            "model = \"{model}\"\nattempt_timeout_ms = {}",
            if model == "late" { 40 } else { 20_000 }
        );
        toml = toml.upstream_with(model, &provider.base_url(), "", &lines).route(model, &[model]);
    }
    let gw = Gw::start(&toml.upstream("gone", &gone).route("gone", &["gone"])).await;
    for exit in Exit::ALL {
        for round in 0..ROUNDS {
            exit.take(&gw).await;
            // Leaving takes a moment to be seen; nothing else may.
            crate::support::eventually("the slot", || async {
                let tenant = gw.tenant("a").await;
                assert!(tenant["concurrency"]["in_use"].as_u64().unwrap() <= 1);
                (tenant["concurrency"]["in_use"] == 0).then_some(())
            })
            .await;
            let answer = gw.chat("a", &chat("good", "next")).send().await;
            assert_eq!(answer.status, 200, "{exit:?}, round {round}: {}", answer.text());
        }
    }
    let page = gw.metrics().await;
    assert_eq!(metric(&page, "gw_tenant_slots_in_use{tenant=\"a\"}"), 0, "{page}");
}
