//! Another configuration while the program serves: by signal, by file, by the admin plane.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use gw_testkit::{FakeProvider, FaultScript, ok};
use serde_json::Value;

use crate::support::{Answer, Events, Gw, Toml, chat, eventually, metric};

/// Connections that ask all the time while the configuration changes.
const CONNECTIONS: usize = 64;
/// How often it changes meanwhile.
const CHANGES: usize = 8;

async fn says(text: &str) -> FakeProvider {
    FakeProvider::start(FaultScript::of(ok(text))).await.unwrap()
}

fn status(answer: &Answer) -> String {
    answer.json()["status"].as_str().unwrap_or_default().to_owned()
}

async fn ask(gw: &Gw) -> Answer {
    gw.chat("a", &chat("m", "hello")).send().await
}

async fn digest(gw: &Gw) -> String {
    ask(gw).await.header("x-gw-config").to_owned()
}

#[tokio::test]
async fn reload_and_drain_leave_streams_and_counters_alone() {
    let gated = FaultScript::of(ok("one two three").gate_after(1)).then(ok("from one"));
    let one = FakeProvider::start(gated).await.unwrap();
    let two = says("from two").await;
    let toml = |chain: &str, limit: u32| {
        Toml::new()
            .upstream("one", &one)
            .upstream("two", &two)
            .route("m", &[chain])
            .tenant("a", &format!("requests_per_minute = {limit}"))
    };
    let gw = Gw::start(&toml("one", 10)).await;
    let mut body = chat("m", "hello");
    body["stream"] = Value::Bool(true);
    let mut stream = gw.chat("a", &body).stream().await;
    stream.until("one").await;
    for _ in 0..6 {
        assert_eq!(ask(&gw).await.status, 200);
    }
    let first = digest_of_remaining(&ask(&gw).await, "2");

    // V1: the route moves; the open stream ends where it began, the next request goes elsewhere, and what was used is used.
    gw.write_config(&toml("two", 10));
    let reloaded = gw.reload().await;
    assert_eq!((reloaded.status, status(&reloaded).as_str()), (200, "changed"));
    let next = ask(&gw).await;
    assert_eq!((next.said().as_str(), next.header("x-gw-deployment")), ("from two", "two"));
    let second = digest_of_remaining(&next, "1");
    assert_ne!(first, second);
    one.open_gate();
    let events = Events::read(&stream.rest().await);
    assert_eq!((events.text().as_str(), events.done), ("one two three", true));

    // V2: a file with an error; the old one stays, and that shows in log and metric.
    gw.write_config(&toml("three", 10));
    let refused = gw.reload().await;
    assert_eq!((refused.status, status(&refused).as_str()), (422, "refused"));
    let errors = &refused.json()["errors"];
    assert!(errors[0]["message"].as_str().unwrap().contains("unknown deployment `three`"), "{errors}");
    assert!(gw.stderr().contains("a configuration was refused"), "{}", gw.stderr());
    assert_eq!(metric(&gw.metrics().await, "gw_config_reloads_total{result=\"refused\"}"), 1);
    digest_of_remaining(&ask(&gw).await, "0");

    // V3: a lower limit keeps what was used: there is nothing left of it.
    gw.write_config(&toml("two", 8));
    assert_eq!(status(&gw.reload().await), "changed");
    assert_eq!(ask(&gw).await.status, 429);
}

/// Checks how many requests are left this minute; returns the digest of the configuration that decided.
#[track_caller]
fn digest_of_remaining(answer: &Answer, remaining: &str) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), remaining);
    answer.header("x-gw-config").to_owned()
}

#[tokio::test]
async fn a_reload_that_breaks_residency_is_refused_and_the_old_one_serves_on() {
    let provider = says("hello").await;
    let toml = |region: &str| {
        let url = provider.base_url();
        Toml::new()
            .part("[residency]\nonshore = [\"uk-south\"]")
            .upstream_with("up", &url, "", &format!("region = \"{region}\""))
            .upstream_with("other", &url, "", "region = \"uk-south\"")
            .route("m", &["up"])
            .route("n", &["other"])
            .tenant("a", "residency = \"onshore\"")
    };
    let gw = Gw::start(&toml("uk-south")).await;
    let before = digest(&gw).await;
    gw.write_config(&toml("us-east"));
    let refused = gw.reload().await;
    assert_eq!(refused.status, 422);
    let error = &refused.json()["errors"][0];
    assert_eq!(
        (error["code"].as_str(), error["severity"].as_str()),
        (Some("unserved"), Some("error")),
        "{error}"
    );
    let answer = ask(&gw).await;
    assert_eq!((answer.status, answer.header("x-gw-config")), (200, before.as_str()));
}

#[tokio::test]
async fn a_signal_and_a_swapped_link_reload() {
    let provider = says("hello").await;
    let toml = |limit: u32| {
        let limit = format!("requests_per_minute = {limit}");
        Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", &limit)
    };
    let gw = Gw::start(&toml(1_000)).await;
    let first = digest(&gw).await;
    gw.write_config(&toml(1_001));
    gw.hang_up().await;
    let second = changed(&gw, &first).await;
    // As a mounted ConfigMap changes: the name becomes a link to another file in one step.
    let folder = gw.folder();
    std::fs::write(folder.join("data.toml"), toml(1_002).text()).unwrap();
    std::os::unix::fs::symlink("data.toml", folder.join("link")).unwrap();
    std::fs::rename(folder.join("link"), folder.join("gw.toml")).unwrap();
    changed(&gw, &second).await;
}

/// Waits until another configuration decides.
async fn changed(gw: &Gw, before: &str) -> String {
    eventually("another configuration", || async { Some(digest(gw).await).filter(|digest| digest != before) })
        .await
}

#[tokio::test]
async fn a_reload_under_load_drops_no_request() {
    let provider = says("hello").await;
    let toml = |n: usize| {
        let lines = format!("default_deadline_ms = {}", 50_000 + n);
        Toml::new().server(&lines).upstream("up", &provider).route("m", &["up"]).tenant("a", "")
    };
    let gw = Arc::new(Gw::start(&toml(0)).await);
    let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let asking: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (gw, stop, served) = (Arc::clone(&gw), Arc::clone(&stop), Arc::clone(&served));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = ask(&gw).await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for n in 1..=CHANGES {
        let before = served.load(Ordering::Relaxed);
        gw.write_config(&toml(n));
        assert_eq!(status(&gw.reload().await), "changed");
        // Every connection has asked again under the new one, or nearly so.
        eventually("more answers", || async {
            (served.load(Ordering::Relaxed) >= before + CONNECTIONS).then_some(())
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in asking {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_reload() {
    let gw = Gw::start_without_a_file().await;
    let answer = gw.reload().await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}
