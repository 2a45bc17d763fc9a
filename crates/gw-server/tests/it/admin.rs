//! What operators see.

use serde_json::json;

use crate::support::{CONFIG, ask, start};

#[tokio::test]
async fn records_page_newest_first() {
    let running = start(CONFIG).await;
    for _ in 0..5 {
        assert_eq!(running.chat(&ask("echo")).await.status, 200);
    }
    let page = |reply: serde_json::Value| {
        let seqs: Vec<u64> = reply["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["seq"].as_u64().unwrap())
            .collect();
        (seqs, reply["next_before"].as_u64())
    };
    let first = running.admin("/admin/v1/records?limit=2").await.json();
    assert_eq!(first["records"][0]["tenant"], "acme");
    assert_eq!(page(first), (vec![5, 4], Some(4)));
    assert_eq!(page(running.admin("/admin/v1/records?limit=2&before=4").await.json()), (vec![3, 2], Some(2)));
    assert_eq!(page(running.admin("/admin/v1/records?limit=2&before=2").await.json()), (vec![1], None));
    assert_eq!(page(running.admin("/admin/v1/records?tenant=other").await.json()), (vec![], None));
    assert_eq!(running.admin("/admin/v1/records?limit=0").await.status, 400);
    assert_eq!(running.admin("/admin/v1/records?order=asc").await.status, 400);
}

#[tokio::test]
async fn a_record_is_found_by_its_id() {
    let running = start(CONFIG).await;
    let id = running.chat(&ask("echo")).await.header("x-request-id").unwrap().to_owned();
    let record = running.admin(&format!("/admin/v1/records/{id}")).await;
    assert_eq!((record.status, &record.json()["id"]), (200, &json!(id)));
    assert_eq!(running.admin("/admin/v1/records/req_none").await.status, 404);
}

#[tokio::test]
async fn tenants_show_their_limits() {
    let running = start(CONFIG).await;
    assert_eq!(running.chat(&ask("echo")).await.status, 200);
    let tenants = running.admin("/admin/v1/tenants").await.json();
    let spent = tenants["tenants"][0]["budget"]["spent_micros"].as_u64().unwrap();
    let exactly = tenants["tenants"][0]["budget"]["spent_pico"].as_u64().unwrap();
    assert_eq!(exactly.div_ceil(1_000_000), spent);
    assert!(spent > 0);
    assert_eq!(
        tenants,
        json!({"tenants": [{
            "id": "acme",
            "budget": {
                "window": "day",
                "limit_micros": 50_000_000,
                "spent_micros": spent,
                "spent_pico": exactly,
                "reserved_micros": 0,
                "resets_at": "2030-01-02T00:00:00Z",
            },
            "requests": {"limit": 600, "remaining": 599},
            "tokens": null,
            "concurrency": {"limit": 40, "reserved": 4, "in_use": 0},
        }]})
    );
}

#[tokio::test]
async fn deployments_are_described() {
    let running = start(CONFIG).await;
    let all = running.admin("/admin/v1/deployments").await.json();
    let slow = all["deployments"].as_array().unwrap().iter().find(|one| one["name"] == "slow").unwrap();
    assert_eq!(slow["concurrency"], json!({"limit": 3, "in_use": 0}));
    assert_eq!((&slow["price"], &slow["provider"]), (&json!("free"), &json!("slow")));
    assert!(slow["capabilities"].is_array() && slow["region"].is_string());
    assert!(slow["classification_ceiling"].is_string());
    let well =
        json!({"state": "closed", "consecutive_failures": 0, "open_until": null, "cooldown_until": null});
    assert_eq!(slow["breaker"], well);
}

#[tokio::test]
async fn health_and_metrics_answer() {
    let running = start(CONFIG).await;
    assert_eq!(running.admin("/healthz").await.json(), json!({"status": "ok"}));
    assert_eq!(running.admin("/readyz").await.json(), json!({"status": "ready"}));
    assert_eq!(running.get("/nowhere").await.status, 404);
    let page = running.admin("/metrics").await;
    assert!(page.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        r#"gw_refusals_total{reason="unknown_path"} 1"#,
        r#"gw_budget_limit_micro_usd{tenant="acme"} 50000000"#,
        r#"gw_breaker_state{deployment="slow",state="closed"} 1"#,
        r#"gw_breaker_state{deployment="slow",state="open"} 0"#,
        r#"gw_breaker_state{deployment="slow",state="half_open"} 0"#,
        "gw_ledger_has_place 1",
        "gw_draining 0",
        "# EOF",
    ] {
        assert!(page.body.lines().any(|found| found == line), "{line} is not in\n{}", page.body);
    }
    let post = "POST /healthz HTTP/1.1\r\nhost: gw\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(crate::support::exchange(running.admin, post).await.status, 405);
    assert_eq!(running.admin("/nowhere").await.status, 404);
}
