//! The admin plane: shapes, metrics, keys.

use gw_testkit::{FakeProvider, FaultScript, ok, status};
use http::Method;

use crate::support::{Gw, Toml, chat, key_of, metric, series};

async fn provider() -> FakeProvider {
    FakeProvider::start(FaultScript::of(ok("hello to you").usage(11, 3))).await.unwrap()
}

fn toml(provider: &FakeProvider) -> Toml {
    Toml::new()
        .upstream_with("up", &provider.base_url(), "", "max_concurrency = 7\nregion = \"uk-south\"")
        .route_with("m", &["up"], "cache = { exact = true }")
        .route("n", &["up"])
        .tenant("a", "requests_per_minute = 600\ntokens_per_minute = 60_000\nmax_concurrency = 4\nreserved_concurrency = 2\nbudget = { limit_micros = 1_000_000, window = \"hour\" }")
        .tenant("b", "")
}

#[tokio::test]
async fn tenants_have_the_documented_shape() {
    let provider = provider().await;
    let gw = Gw::start(&toml(&provider)).await;
    assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 200);
    let page = gw.admin("/admin/v1/tenants").send().await.json();
    let ids: Vec<_> = page["tenants"].as_array().unwrap().iter().map(|tenant| tenant["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"]);
    let a = gw.tenant("a").await;
    let budget = &a["budget"];
    assert_eq!((budget["window"].as_str(), budget["limit_micros"].as_u64()), (Some("hour"), Some(1_000_000)));
    assert_eq!((budget["spent_micros"].as_u64(), budget["reserved_micros"].as_u64()), (Some(17), Some(0)));
    let resets = budget["resets_at"].as_str().unwrap();
    assert!(resets.ends_with(":00:00Z") && resets.len() == 20, "{resets}");
    assert_eq!((a["requests"]["limit"].as_u64(), a["tokens"]["limit"].as_u64()), (Some(600), Some(60_000)));
    assert!(a["requests"]["remaining"].as_u64().unwrap() >= 599 && a["tokens"]["remaining"].is_u64());
    let concurrency = serde_json::json!({"limit": 4, "reserved": 2, "in_use": 0});
    assert_eq!(a["concurrency"], concurrency);
    let b = gw.tenant("b").await;
    assert!(b["budget"].is_null() && b["requests"].is_null() && b["tokens"].is_null());
}

#[tokio::test]
async fn records_page_newest_first() {
    let provider = provider().await;
    let gw = Gw::start(&toml(&provider)).await;
    for tenant in ["a", "b", "a", "b", "a"] {
        assert_eq!(gw.chat(tenant, &chat("n", "hello")).send().await.status, 200);
    }
    gw.records(5).await;
    for (query, seqs, next) in [
        ("?limit=2", &[5, 4][..], Some(4)),
        ("?limit=2&before=4", &[3, 2], Some(2)),
        ("?limit=2&before=2", &[1], None),
        ("?tenant=b", &[4, 2], None),
        ("?tenant=nobody", &[], None),
    ] {
        assert_eq!(page(&gw, query).await, (seqs.to_vec(), next), "{query}");
    }
    for query in ["?limit=0", "?limit=1001", "?order=asc", "?limit=1&limit=1"] {
        let answer = gw.admin(&format!("/admin/v1/records{query}")).send().await;
        assert_eq!((answer.status, answer.error()["type"].as_str()), (400, Some("invalid_request_error")));
    }
    assert_eq!(gw.admin("/admin/v1/records/req_0").send().await.status, 404);
    assert_eq!(gw.admin("/admin/v1/nothing").send().await.status, 404);
}

async fn page(gw: &Gw, query: &str) -> (Vec<u64>, Option<u64>) {
    let page = gw.admin(&format!("/admin/v1/records{query}")).send().await.json();
    let seqs =
        page["records"].as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    (seqs, page["next_before"].as_u64())
}

#[tokio::test]
async fn deployments_say_what_they_are_and_how_busy() {
    let provider = FakeProvider::start(FaultScript::of(ok("one two").gate_after(1))).await.unwrap();
    let gw = Gw::start(&toml(&provider)).await;
    let mut body = chat("n", "hello");
    body["stream"] = true.into();
    let mut stream = gw.chat("a", &body).stream().await;
    stream.until("one").await;
    let page = gw.admin("/admin/v1/deployments").send().await.json();
    let up = &page["deployments"][0];
    assert_eq!(
        (up["name"].as_str(), up["model"].as_str(), up["region"].as_str()),
        (Some("up"), Some("up-model"), Some("uk-south"))
    );
    assert_eq!(up["concurrency"], serde_json::json!({"limit": 7, "in_use": 1}));
    assert_eq!(
        (up["classification_ceiling"].as_str(), up["price"].as_str()),
        (Some("restricted"), Some("per_token"))
    );
    assert_eq!(gw.tenant("a").await["concurrency"]["in_use"], 1);
    provider.open_gate();
    stream.rest().await;
    gw.settled("a").await;
}

#[tokio::test]
async fn metrics_agree_with_the_records() {
    let one = FakeProvider::start(FaultScript::of(status(503)).then(status(503)).then(ok("hi").usage(5, 1)))
        .await
        .unwrap();
    let gw = Gw::start(&toml(&one)).await;
    for _ in 0..2 {
        assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.status, 503);
    }
    for cache in ["miss", "exact"] {
        assert_eq!(gw.chat("a", &chat("m", "hello")).send().await.header("x-gw-cache"), cache);
    }
    assert_eq!(gw.call(Method::GET, "/v1/models").key("nobody's").send().await.status, 401);
    gw.records(4).await;
    let page = gw.metrics().await;
    series(&page);
    for (name, value) in [
        ("gw_requests_total{outcome=\"ok\",error=\"none\",operation=\"chat\",route=\"m\"}", 2),
        (
            "gw_requests_total{outcome=\"failed\",error=\"provider_unavailable\",operation=\"chat\",route=\"m\"}",
            2,
        ),
        ("gw_attempts_total{deployment=\"up\",error=\"none\"}", 1),
        ("gw_attempts_total{deployment=\"up\",error=\"provider_unavailable\"}", 2),
        ("gw_cache_total{state=\"exact\"}", 1),
        ("gw_cache_total{state=\"miss\"}", 3),
        ("gw_refusals_total{reason=\"unauthenticated\"}", 1),
        ("gw_tokens_total{tenant=\"a\",class=\"input\"}", 5),
        ("gw_cost_pico_usd_total{tenant=\"a\"}", 7_000_000),
        ("gw_budget_spent_micro_usd{tenant=\"a\"}", 7),
        ("gw_tenant_slots_in_use{tenant=\"a\"}", 0),
        ("gw_request_seconds_count", 4),
    ] {
        assert_eq!(metric(&page, name), value, "{name}\n{page}");
    }
}

#[tokio::test]
async fn with_admin_keys_every_page_but_health_asks_for_one() {
    let provider = provider().await;
    let toml =
        toml(&provider).server("admin_keys = [{ env = \"ADMIN_KEY\" }]").var("ADMIN_KEY", "key-of-the-admin");
    let gw = Gw::start(&toml).await;
    for path in [
        "/metrics",
        "/admin/v1/records",
        "/admin/v1/records/req_1",
        "/admin/v1/tenants",
        "/admin/v1/deployments",
    ] {
        let of = |key: Option<String>| match key {
            Some(key) => gw.admin(path).key(&key).send(),
            None => gw.admin(path).header("accept", "*/*").send(),
        };
        assert_eq!(of(None).await.status, 401, "{path}");
        assert_eq!(of(Some(key_of("a"))).await.status, 403, "{path}");
        assert_ne!(of(Some("key-of-the-admin".to_owned())).await.status / 100, 5);
        assert!(matches!(of(Some("key-of-the-admin".to_owned())).await.status, 200 | 404), "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(gw.admin(path).send().await.status, 200);
    }
}

#[tokio::test]
async fn an_admin_key_that_may_only_look_changes_nothing() {
    let provider = provider().await;
    let keys = "admin_keys = [{ env = \"OPERATOR\" }, { env = \"AUDITOR\", role = \"read\" }]";
    let toml = toml(&provider).server(keys).var("OPERATOR", "key-operator").var("AUDITOR", "key-auditor");
    let gw = Gw::start(&toml).await;
    let reload = |key: &str| gw.admin_post("/admin/v1/reload").key(key).send();
    for key in ["key-operator", "key-auditor"] {
        assert_eq!(gw.admin("/admin/v1/records").key(key).send().await.status, 200);
    }
    assert_eq!([reload("key-auditor").await.status, reload("key-operator").await.status], [403, 200]);
}
