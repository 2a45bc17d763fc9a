//! Every operation answers in the wire format of its own path, errors included.

use serde_json::{Value, json};

use crate::support::{CONFIG, KEY, Reply, Running, exchange, start};

async fn post(running: &Running, path: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.1\r\nhost: gw\r\n{headers}content-length: {length}\r\n\r\n{body}");
    exchange(running.data, &request).await
}

fn keyed() -> String {
    format!("x-api-key: {KEY}\r\n")
}

const MESSAGES: &str = r#"{"model":"nobody","max_tokens":16,"messages":[{"role":"user","content":"Hi"}]}"#;

#[tokio::test]
async fn errors_have_the_form_of_their_path() {
    let running = start(CONFIG).await;
    for (headers, body, status, kind) in [
        (String::new(), MESSAGES, 401, "authentication_error"),
        (keyed(), MESSAGES, 404, "not_found_error"),
        (keyed(), "{", 400, "invalid_request_error"),
        (keyed(), r#"{"model":"echo","messages":[]}"#, 400, "invalid_request_error"),
    ] {
        for path in ["/v1/messages", "/v1/messages?beta=true"] {
            let reply = post(&running, path, &headers, body).await;
            let said = reply.json();
            assert_eq!((reply.status, &said["type"]), (status, &json!("error")), "{body}");
            assert_eq!(said["error"]["type"], kind, "{body}");
            assert_eq!(said["request_id"].as_str(), reply.header("request-id"), "{body}");
            assert_eq!(reply.header("request-id"), reply.header("x-request-id"), "{body}");
        }
    }
    for path in ["/v1/responses", "/v1/embeddings", "/v1/completions"] {
        let reply = post(&running, path, &keyed(), r#"{"model":"nobody","input":"Hi","prompt":"Hi"}"#).await;
        assert_eq!((reply.status, &*reply.error_type()), (404, "invalid_request_error"), "{path}");
        assert_eq!(reply.json()["error"]["code"], "model_not_found", "{path}");
        let reply = post(&running, path, &keyed(), "[]").await;
        assert_eq!((reply.status, &*reply.error_type()), (400, "invalid_request_error"), "{path}");
    }
}

#[tokio::test]
async fn models_are_listed_in_the_form_of_who_asks() {
    let running = start(CONFIG).await;
    let get = |path: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: gw\r\n{}anthropic-version: 2023-06-01\r\n\r\n", keyed());
        let data = running.data;
        async move { exchange(data, &request).await }
    };
    let list = get("/v1/models").await.json();
    assert_eq!((&list["has_more"], &list["first_id"]), (&json!(false), &json!("cached")));
    assert_eq!(list["data"][0]["type"], "model");
    assert_eq!(get("/v1/models/echo").await.json()["type"], "model");
    let missing = get("/v1/models/other").await;
    assert_eq!((missing.status, &missing.json()["error"]["type"]), (404, &json!("not_found_error")));
}

#[tokio::test]
async fn an_answer_in_the_background_is_refused() {
    let running = start(CONFIG).await;
    let body = r#"{"model":"echo","input":"Hi","background":true}"#;
    let reply = post(&running, "/v1/responses", &keyed(), body).await;
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &Value::from("background")));
    assert_eq!(reply.header("x-gw-attempts"), Some("0"));
}
