//! I18 over a thousand mixed requests: every dialect, plain and streamed, answered, refused, failed and cut, with errors of
//! the provider that echo gw's own key; the log at its most talkative.

use gw_testkit::{ChatEnd, FakeProvider, Fault, content_filter, ok, status};
use http::Method;
use serde_json::{Value, json};

use super::secrets::{BAD_KEY, COMPLETION, PROMPT, PROVIDERS_WORDS, Search};
use crate::support::{Ask, Collector, Gw, House, Toml, chat, key_of};

const REQUESTS: usize = 1_000;
/// So many at a time.
const AT_ONCE: usize = 20;
const OWN_KEY: &str = "sk-upstream-key-of-the-gateway";

fn echoing(code: u16) -> Fault {
    let said = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {OWN_KEY}. {PROVIDERS_WORDS}","type":"{OWN_KEY}","code":"{OWN_KEY}"}}}}"#
    );
    status(code).header("x-request-id", OWN_KEY).header("x-echo", OWN_KEY).body(said).into()
}

async fn provider() -> FakeProvider {
    FakeProvider::start_with(|call| {
        let text = format!("well, {COMPLETION} it is");
        match call.number % 12 {
            0 => echoing(401),
            1 => echoing(403),
            2 => echoing(429),
            3 => echoing(500),
            4 => content_filter()
                .body(format!(r#"{{"error":{{"message":"{PROMPT} {OWN_KEY}","code":"content_filter"}}}}"#))
                .into(),
            5 => ok(&text).end(ChatEnd::CutAfter(2)).into(),
            6 => ok(&text).end(ChatEnd::ErrorAfter(2)).into(),
            7 => status(200).body(format!("{COMPLETION} {OWN_KEY}: no JSON")).into(),
            _ => ok(&text).into(),
        }
    })
    .await
    .unwrap()
}

fn toml(provider: &FakeProvider, collector: &Collector) -> Toml {
    Toml::new()
        .part(&collector.toml())
        .upstream("one", provider)
        .upstream("two", provider)
        .route_with("cached", &["one", "two"], "cache = { exact = true, semantic = { threshold = 0.9 } }")
        .route("plain", &["one", "two"])
        .tenant(
            "a",
            "budget = { limit_micros = 100_000_000, window = \"day\" }\ntokens_per_minute = 10_000_000",
        )
        .tenant("b", "requests_per_minute = 3")
        .sqlite()
}

/// Returns the path and body of one of the requests.
fn request(number: usize) -> (&'static str, Value) {
    let model = if number.is_multiple_of(2) { "cached" } else { "plain" };
    let prompt = format!("{} please repeat {PROMPT}", number / 8);
    let messages = json!([{"role": "user", "content": prompt}]);
    let (path, mut body) = match number % 6 {
        0 | 1 => ("/v1/chat/completions", chat(model, &prompt)),
        2 => ("/v1/messages", json!({"model": model, "max_tokens": 50, "messages": messages})),
        3 => ("/v1/responses", json!({"model": model, "input": prompt})),
        4 => ("/v1/completions", json!({"model": model, "prompt": prompt})),
        _ => ("/v1/embeddings", json!({"model": model, "input": prompt})),
    };
    body["metadata"] = json!({"note": PROMPT});
    body["stream"] = (number % 6 != 5 && number % 4 < 2).into();
    if number.is_multiple_of(31) {
        body["messages"] = PROMPT.into();
    }
    (path, body)
}

async fn drive(gw: &Gw, search: &mut Search) {
    for first in (0..REQUESTS).step_by(AT_ONCE) {
        let calls: Vec<_> = (first..first + AT_ONCE)
            .map(|number| {
                let (path, body) = request(number);
                let key = match number % 17 {
                    0 => BAD_KEY.to_owned(),
                    1 => key_of("b"),
                    _ => key_of("a"),
                };
                let call = gw.call(Method::POST, path).key(&key).json(&body);
                tokio::spawn(async move { call.try_send().await })
            })
            .collect();
        for call in calls {
            // A stream that was cut may break the connection.
            let Some(answer) = call.await.unwrap() else { continue };
            search.look_at_headers("an answer", &answer);
            let text = answer.text();
            for key in [OWN_KEY, BAD_KEY, &key_of("a"), &key_of("b")] {
                assert!(!text.contains(key), "`{key}` in {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i18_a_thousand_mixed_requests_leave_no_mark() {
    let provider = provider().await;
    let collector = Collector::start(&[]).await;
    let gw =
        Gw::start_with(&toml(&provider, &collector), &["--log", "trace", "--log-format", "json"], &[]).await;
    let mut search = Search::default();
    drive(&gw, &mut search).await;
    assert!(provider.calls().len() > REQUESTS / 2, "most were passed on");
    for page in [
        "/metrics",
        "/healthz",
        "/readyz",
        "/admin/v1/records?limit=1000",
        "/admin/v1/tenants",
        "/admin/v1/deployments",
        "/admin/v1/records/none",
        "/admin/v1/nothing",
    ] {
        let answer = gw.admin(page).send().await;
        search.look(page, &answer.body);
        search.look_at_headers(page, &answer);
    }
    let (log, folder) = (gw.stderr(), gw.folder());
    assert!(log.contains("\"target\":\"gw::request\""), "every request has its line");
    search.look("stdout", gw.stdout().as_bytes());
    let kept = gw.stop().await;
    search.look_into_files(&folder);
    drop(kept);
    assert!(collector.spans().len() > REQUESTS, "spans were told of requests and calls");
    search.look("what the collector was told", format!("{:?}", collector.told()).as_bytes());
    assert_eq!(search.found(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn i18_debug_text_of_everything_shows_nothing() {
    let toml = Toml::new()
        .scripted("s", &[&format!("ok text={COMPLETION}")])
        .route_with("m", &["s"], "cache = { exact = true, semantic = { threshold = 0.9 } }")
        .tenant("a", "")
        .part("[providers.p]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9\"\napi_key = { env = \"UPSTREAM_KEY\" }");
    let house = House::new(&toml).await;
    let ask = Ask::of("a", "m", PROMPT);
    let given = house.ask(&ask).await;
    let mut search = Search::default();
    for (place, text) in [
        ("the composition", format!("{:?}{:#?}", house.composition, house.composition)),
        ("the request", format!("{:?}", ask.request())),
        (
            "the failure or the answer's head",
            given.map_or_else(|failure| format!("{failure:?}"), |given| format!("{:?}", given.head)),
        ),
        ("the records", format!("{:?}", house.records().await)),
    ] {
        search.look(place, text.as_bytes());
    }
    assert_eq!(search.found(), Vec::<String>::new());
}
