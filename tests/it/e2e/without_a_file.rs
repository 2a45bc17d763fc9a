//! `gw serve` without a configuration: no key, no network.

use http::Method;

use crate::support::{Events, Gw, chat, eventually};

#[tokio::test]
async fn the_demo_models_answer_without_a_key() {
    let gw = Gw::start_without_a_file().await;
    let ask = |body: serde_json::Value| gw.call(Method::POST, "/v1/chat/completions").json(&body);
    let echo = ask(chat("demo-echo", "hello")).send().await;
    assert_eq!((echo.said().as_str(), echo.header("x-gw-deployment")), ("echo: hello", "demo-echo"));
    let flaky = ask(chat("demo-flaky", "hello")).send().await;
    assert_eq!((flaky.said().as_str(), flaky.header("x-gw-attempts")), ("echo: hello", "2"));
    assert_eq!(flaky.header("x-gw-deployment"), "demo-echo");
    let again = ask(chat("demo-flaky", "hello")).send().await;
    assert_eq!(again.header("x-gw-attempts"), "2", "every time");
    let mut body = chat("demo-slow", "take your time");
    body["stream"] = true.into();
    let slow = Events::read(&ask(body).stream().await.rest().await);
    assert_eq!((slow.text().as_str(), slow.done), ("echo: take your time", true));
    let keyed = ask(chat("demo-echo", "hi")).key("sk-whatever-clients-insist-on").send().await;
    assert_eq!(keyed.status, 200);
    let models = gw.call(Method::GET, "/v1/models").send().await.json();
    let ids: Vec<_> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["demo-echo", "demo-flaky", "demo-slow"]);
}

#[tokio::test]
async fn it_prints_the_curl_to_try_and_keeps_its_records_in_the_state_folder() {
    let gw = Gw::start_without_a_file().await;
    let said =
        eventually("the curl", || async { Some(gw.stdout()).filter(|said| said.contains("demo-flaky")) })
            .await;
    assert!(said.contains(&format!("curl -i http://{}/v1/chat/completions", gw.data)), "{said}");
    // What it prints is what works.
    let body = said.split("-d '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let answer = gw.call(Method::POST, "/v1/chat/completions").bytes(body.to_owned()).send().await;
    assert_eq!(answer.said(), "echo: hello");
    gw.records(1).await;
    assert!(gw.folder().join("gw").join("gw.db").exists());
}

#[test]
fn it_serves_nobody_but_this_machine() {
    let folder = tempfile::TempDir::new().unwrap();
    let state = folder.path().to_str().unwrap();
    for arguments in [["--listen", "0.0.0.0:0"], ["--admin-listen", "0.0.0.0:0"]] {
        let arguments = ["serve"].into_iter().chain(arguments).collect::<Vec<_>>();
        let output = crate::support::run_gw(folder.path(), &arguments, &[("XDG_STATE_HOME", state)]);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("loopback"));
    }
}
