//! Kind `observability`.

use gw_testkit::{ChatEnd, FakeProvider, FaultScript, ok, status};
use http::Method;
use serde_json::Value;

use crate::support::{Events, Gw, Toml, chat, key_of, metric, series};

fn streaming(model: &str) -> Value {
    let mut body = chat(model, "hello");
    body["stream"] = true.into();
    body
}

async fn house() -> (FakeProvider, FakeProvider, Gw) {
    let script = FaultScript::of(ok("fine").usage(10, 5))
        .for_model("breaks", ok("one two three").end(ChatEnd::ErrorAfter(2)))
        .for_model("retried", status(503))
        .for_model("retried", ok("at last").usage(10, 5))
        .for_model("fails", status(503).header("x-should-retry", "false"))
        .for_model("left", ok("one two three").gate_after(2));
    let one = FakeProvider::start(script).await.unwrap();
    let two = FakeProvider::start(FaultScript::of(ok("of the second").usage(10, 5))).await.unwrap();
    let mut toml = Toml::new().upstream("two", &two).tenant("a", "").tenant("b", "requests_per_minute = 1");
    for model in ["fine", "breaks", "retried", "fails", "left"] {
        let lines = format!("model = \"{model}\"\nmax_attempts = 2");
        toml = toml.upstream_with(model, &one.base_url(), "", &lines).route(model, &[model, "two"]);
    }
    let gw = Gw::start(&toml).await;
    (one, two, gw)
}

#[tokio::test]
async fn each_request_is_counted_once_by_its_final_outcome() {
    let (one, _two, gw) = house().await;
    for tenant in ["a", "a", "b"] {
        assert_eq!(gw.chat(tenant, &chat("fine", "hello")).send().await.status, 200);
    }
    for _ in 0..2 {
        assert!(Events::read(&gw.chat("a", &streaming("fine")).stream().await.rest().await).done);
    }
    let broken = Events::read(&gw.chat("a", &streaming("breaks")).stream().await.rest().await);
    assert!(broken.error.is_some() && broken.text() == "one two ");
    assert_eq!(gw.chat("a", &chat("retried", "hello")).send().await.header("x-gw-attempts"), "2");
    assert_eq!(gw.chat("a", &chat("fails", "hello")).send().await.header("x-gw-deployment"), "two");
    let mut left = gw.chat("a", &streaming("left")).stream().await;
    left.until("two").await;
    drop(left);
    one.wait_for_client_gone(1).await;
    assert_eq!(gw.chat("b", &chat("fine", "hello")).send().await.status, 429);

    let records = gw.records(10).await;
    let page = gw.metrics().await;
    let outcomes = |outcome: &str| records.iter().filter(|record| record["outcome"] == outcome).count();
    assert_eq!(
        (outcomes("ok"), outcomes("failed"), outcomes("cancelled"), outcomes("refused")),
        (7, 1, 1, 1)
    );
    let sum = |prefix: &str, with: &str| -> u64 {
        let lines = page.lines().filter(|line| line.starts_with(prefix) && line.contains(with));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    for (outcome, count) in [("ok", 7), ("failed", 1), ("cancelled", 1), ("refused", 1)] {
        assert_eq!(sum("gw_requests_total{", &format!("outcome=\"{outcome}\"")), count, "{outcome}\n{page}");
    }
    assert_eq!(sum("gw_requests_total{", ""), 10);
    let attempts = |wanted: &dyn Fn(&Value) -> bool| -> u64 {
        let all = records.iter().flat_map(|record| record["attempts"].as_array().unwrap());
        u64::try_from(all.filter(|attempt| wanted(attempt)).count()).unwrap()
    };
    assert_eq!((attempts(&|_| true), sum("gw_attempts_total{", "")), (11, 11));
    let failed = |attempt: &Value| !attempt["error"].is_null() && attempt["error"] != "cancelled";
    assert_eq!(attempts(&failed), 3);
    let unfailed =
        sum("gw_attempts_total{", "error=\"none\"") + sum("gw_attempts_total{", "error=\"cancelled\"");
    assert_eq!(11 - unfailed, 3, "{page}");
    let cost: u64 = records.iter().map(|record| record["cost"].as_u64().unwrap()).sum();
    assert_eq!(sum("gw_cost_pico_usd_total{", ""), cost);
    assert_eq!(metric(&page, "gw_request_seconds_count"), 10);
    assert!(metric(&page, "gw_upstream_first_byte_seconds_count") <= 9, "{page}");
}

#[tokio::test]
async fn client_input_cannot_create_metric_series() {
    let strange = |number: u64| format!("name-{number}\\\"{{}}\\n");
    let provider = FakeProvider::start_with(|call| {
        let name = format!("served-{}", call.number);
        if call.number % 2 == 0 {
            let error = format!(r#"{{"error":{{"message":"no","type":"{name}","code":"{name}"}}}}"#);
            return status(400).body(error).into();
        }
        let mut chat = ok("hi");
        chat.model = Some(name);
        chat.into()
    })
    .await
    .unwrap();
    let toml = Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "").tenant("b", "");
    let gw = Gw::start(&toml).await;
    let round = |number: u64| {
        let (gw, name) = (&gw, strange(number));
        async move {
            gw.chat("a", &chat(&format!("model-{number}"), "hi")).send().await;
            let mut body = chat("m", "hi");
            body["user"] = name.clone().into();
            gw.chat("a", &body).send().await;
            gw.chat("a", &body).send().await;
            gw.chat("a", &chat(&name, "hi")).header("user-agent", &format!("agent-{number}")).send().await;
            gw.call(Method::GET, &format!("/v1/path-{number}")).key(&key_of("a")).send().await;
            gw.call(Method::from_bytes(format!("FOO{number}").as_bytes()).unwrap(), "/v1/models")
                .key(&key_of("a"))
                .send()
                .await;
            gw.call(Method::GET, "/v1/models").key(&format!("bad-key-{number}")).send().await;
            gw.chat("a", &chat("m", "hi")).header("x-gw-task-class", &format!("class-{number}")).send().await;
        }
    };
    round(0).await;
    round(1).await;
    let before = series(&gw.metrics().await);
    for number in 2..60 {
        round(number).await;
    }
    let long = "m".repeat(100_000);
    assert_eq!(gw.chat("a", &chat(&long, "hi")).send().await.status, 400);
    let page = gw.metrics().await;
    let after = series(&page);
    let new: Vec<_> = after.difference(&before).collect();
    assert!(new.len() <= 20, "{} new series: {new:?}", new.len());
    assert!(page.len() < 1_048_576, "{} bytes", page.len());
    for made_up in ["model-", "name-", "path-", "FOO", "agent-", "bad-key", "served-", "class-", "mmm"] {
        assert!(!page.contains(made_up), "{made_up}");
    }
    // What was asked stays in the records, cut to a fixed length.
    let records = gw.admin("/admin/v1/records?limit=1000").send().await.text();
    assert!(records.contains("model-59") && records.contains("served-"));
}
