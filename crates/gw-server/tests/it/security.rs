//! Who may come in.

use crate::support::{ADMIN_KEY, CONFIG, KEY, ask, chat_request, exchange, start};

const PATHS: [&str; 13] = [
    "/v1/chat/completions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/chat/completions/",
    "/V1/Chat/Completions",
    "/x/../v1/chat/completions",
    "/v1/%63hat/completions",
    "/v1%2Fchat%2Fcompletions",
    "/v1/chat/completions;a=b",
    "/v1/chat/completions?key=",
    "/v1/models",
    "/v1/models/echo",
    "http://other/v1/chat/completions",
];

#[tokio::test]
async fn every_spelling_of_a_route_needs_credentials() {
    let running = start(CONFIG).await;
    let bare = chat_request("", &ask("echo")).replace(&format!("authorization: Bearer {KEY}\r\n"), "");
    for path in PATHS {
        let request = bare.replace("/v1/chat/completions", path);
        let reply = exchange(running.data, &request).await;
        assert_eq!((reply.status, &*reply.error_type()), (401, "authentication_error"), "{path}");
    }
    for header in ["x-original-url", "x-rewrite-url"] {
        let request = bare
            .replace("/v1/chat/completions", "/nowhere")
            .replace("host: gw", &format!("host: gw\r\n{header}: /v1/chat/completions"));
        assert_eq!(exchange(running.data, &request).await.status, 401);
    }
}

#[tokio::test]
async fn every_spelling_but_one_is_no_path() {
    let running = start(CONFIG).await;
    for path in &PATHS[1..9] {
        let request = chat_request("", &ask("echo")).replace("/v1/chat/completions", path);
        let reply = exchange(running.data, &request).await;
        assert_eq!((reply.status, &*reply.error_type()), (404, "invalid_request_error"), "{path}");
    }
    let query =
        chat_request("", &ask("echo")).replace("/v1/chat/completions", "/v1/chat/completions?beta=true");
    assert_eq!(exchange(running.data, &query).await.status, 200);
}

#[tokio::test]
async fn every_spelling_of_a_route_needs_credentials_variants_of_the_key() {
    let running = start(CONFIG).await;
    let with = |header: &str| {
        chat_request("", &ask("echo")).replace(&format!("authorization: Bearer {KEY}"), header)
    };
    let digest = "5f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8";
    for header in [
        "authorization: Bearer ",
        "authorization: Bearer null",
        "authorization: Basic abc",
        &format!("authorization: {KEY}"),
        &format!("authorization: Bearer {digest}"),
        "x-api-key: ",
    ] {
        assert_eq!(exchange(running.data, &with(header)).await.status, 401, "{header}");
    }
    let twice = format!("authorization: Bearer {KEY}\r\nauthorization: Bearer other");
    assert_eq!(exchange(running.data, &with(&twice)).await.status, 400);
    for header in [format!("authorization: bearer {KEY}"), format!("x-api-key: {KEY}")] {
        assert_eq!(exchange(running.data, &with(&header)).await.status, 200, "{header}");
    }
}

#[tokio::test]
async fn request_intake_is_bounded_before_it_is_trusted_credentials_come_first() {
    let running = start(CONFIG).await;
    let request = chat_request("content-encoding: gzip\r\n", &ask("echo")).replace(KEY, "unknown");
    assert_eq!(exchange(running.data, &request).await.status, 401);
    let records = running.admin("/admin/v1/records").await.json();
    assert_eq!(records["records"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn admin_routes_need_an_admin_key_where_there_is_one() {
    let keyed = format!("{CONFIG}\n[server]\nadmin_keys = [{{ env = \"ADMIN_KEY\" }}]\n");
    let running = start(&keyed).await;
    let get = |path: &str, key: Option<&str>| {
        let header = key.map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        format!("GET {path} HTTP/1.1\r\nhost: gw\r\n{header}\r\n")
    };
    for path in [
        "/metrics",
        "/admin/v1/records",
        "/admin/v1/records/req_1",
        "/admin/v1/tenants",
        "/admin/v1/deployments",
        "/nowhere",
        "//metrics",
    ] {
        assert_eq!(exchange(running.admin, &get(path, None)).await.status, 401, "{path}");
        assert_eq!(exchange(running.admin, &get(path, Some(KEY))).await.status, 403, "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(exchange(running.admin, &get(path, None)).await.status, 200, "{path}");
    }
    let page = exchange(running.admin, &get("/metrics", Some(ADMIN_KEY))).await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains(KEY) && !page.body.contains(ADMIN_KEY));
}
