//! Pages of other origins, and clients with many connections.

use tokio::io::AsyncReadExt;

use crate::support::{CONFIG, ask, chat_request, connect, exchange, start, start_with};

const HERE: &str = "cors_origins = [\"https://app.example\"]\n";

fn with_origins(lines: &str) -> String {
    CONFIG.replace("version = 1\n", &format!("version = 1\n[server]\n{lines}"))
}

fn preflight(origin: &str) -> String {
    format!(
        "OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: gw\r\norigin: {origin}\r\n\
         access-control-request-method: POST\r\naccess-control-request-headers: authorization, content-type\r\n\r\n"
    )
}

#[tokio::test]
async fn a_listed_origin_may_call_and_read() {
    let running = start(&with_origins(HERE)).await;
    let asked = exchange(running.data, &preflight("https://app.example")).await;
    assert_eq!(asked.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "https://app.example"),
        ("access-control-allow-methods", "GET, POST"),
        ("access-control-allow-headers", "authorization, content-type"),
        ("vary", "origin"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    for request in [
        chat_request("origin: https://app.example\r\n", &ask("echo")),
        chat_request("origin: https://app.example\r\n", "{}"),
    ] {
        let answer = exchange(running.data, &request).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
        assert!(answer.header("access-control-expose-headers").unwrap().contains("x-request-id"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

#[tokio::test]
async fn nobody_else_may() {
    let running = start(&with_origins(HERE)).await;
    for origin in ["https://app.example.evil", "http://app.example", "null", "https://app.example:8443"] {
        let asked = exchange(running.data, &preflight(origin)).await;
        assert_eq!((asked.status, asked.header("access-control-allow-origin")), (401, None), "{origin}");
        let request = chat_request(&format!("origin: {origin}\r\n"), &ask("echo"));
        assert_eq!(exchange(running.data, &request).await.header("access-control-allow-origin"), None);
    }
    let without = start(CONFIG).await;
    assert_eq!(exchange(without.data, &preflight("https://app.example")).await.status, 401);
    let all = start(&with_origins("cors_origins = [\"*\"]\n")).await;
    let asked = exchange(all.data, &preflight("https://any.example")).await;
    assert_eq!(asked.header("access-control-allow-origin"), Some("https://any.example"));
}

#[tokio::test]
async fn one_address_cannot_have_every_connection() {
    let running = start_with(CONFIG, |settings| settings.max_connections_per_address = Some(2)).await;
    let held = [connect(running.data).await, connect(running.data).await];
    // The third is accepted by the operating system and closed by gw, whichever of the three gw takes first.
    let mut third = connect(running.data).await;
    let mut nothing = Vec::new();
    assert_eq!(third.read_to_end(&mut nothing).await.unwrap_or(0), 0);
    let page = running.admin("/metrics").await;
    assert!(page.body.contains("gw_refusals_total{reason=\"address_connections\"} 1"), "{}", page.body);
    drop(held);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}
