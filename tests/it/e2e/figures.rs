//! What a provider's failure costs a caller, measured at the real program over sockets.
//!
//! `cargo xtask bench --faults` holds the release build to the figures; the tests hold any build to ten times the room,
//! with shorter limits, since how fast they are says nothing about gw.

#![expect(clippy::print_stdout, reason = "the figures are what the run is for")]

use std::time::{Duration, Instant};

use gw_testkit::{
    FakeProvider, FakeStream, Fault, FaultScript, Step, content_filter, error_event_first, html_200, ok,
    status, stream_cut_after,
};
use serde_json::Value;

use crate::support::{Answer, Events, Gw, Raw, Toml, chat, raw_chat};

/// How exactly the figures are kept, and how long the limits are.
#[derive(Clone, Copy)]
struct Room {
    factor: u32,
    /// Of an attempt that hangs.
    attempt: Duration,
    /// Of a request over three that hang.
    request: Duration,
}

impl Room {
    fn of_this_run() -> Self {
        let millis = Duration::from_millis;
        #[expect(clippy::disallowed_methods, reason = "the automation says how exact to be")]
        let is_exact = std::env::var("GW_FIGURES").is_ok_and(|value| value == "exact");
        if is_exact {
            Self { factor: 1, attempt: millis(300), request: millis(3_000) }
        } else {
            Self { factor: 10, attempt: millis(100), request: millis(400) }
        }
    }

    fn most(self, millis: u64) -> Duration {
        Duration::from_millis(millis) * self.factor
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn now() -> Instant {
    Instant::now()
}

/// Prints a figure and holds it to its bound.
#[track_caller]
fn figure(what: &str, took: Duration, most: Duration) {
    println!("{what:<62} {:>9.2} ms  (at most {} ms)", took.as_secs_f64() * 1e3, most.as_millis());
    assert!(took <= most, "{what}: {took:?} is more than {most:?}");
}

/// Samples of one fault; the best counts, because what disturbs a machine only adds.
const SAMPLES: usize = 3;

fn streamed(model: &str) -> Value {
    let mut body = chat(model, "hello");
    body["stream"] = true.into();
    body
}

/// A gateway with a healthy deployment `good`, and for each sample of each fault a deployment of its own before it.
struct Ward {
    gw: Gw,
    good: FakeProvider,
    ill: Vec<FakeProvider>,
}

async fn ward(faults: &[(&str, Fault)], lines: &str) -> Ward {
    let good = FakeProvider::start(FaultScript::of(ok("of the fallback"))).await.unwrap();
    let mut toml = Toml::new().upstream("good", &good).route("healthy", &["good"]).tenant("a", "");
    let mut ill = Vec::new();
    for (name, fault) in faults {
        let provider = FakeProvider::start(FaultScript::of(fault.clone())).await.unwrap();
        for sample in 0..SAMPLES {
            let deployment = format!("{name}-{sample}");
            toml = toml
                .upstream_with(&deployment, &provider.base_url(), "", lines)
                .route(&deployment, &[&deployment, "good"]);
        }
        ill.push(provider);
    }
    let gw = Gw::start(&toml).await;
    for _ in 0..5 {
        gw.chat("a", &chat("healthy", "hello")).send().await;
        gw.chat("a", &streamed("healthy")).stream().await.rest().await;
    }
    Ward { gw, good, ill }
}

impl Ward {
    /// Returns how long a request takes, and its answer.
    async fn timed(&self, body: &Value) -> (Duration, Answer) {
        let began = now();
        let answer = self.gw.chat("a", body).send().await;
        (began.elapsed(), answer)
    }

    /// Returns the best of a few healthy requests.
    async fn healthy(&self, body: fn(&str) -> Value) -> Duration {
        let mut best = Duration::MAX;
        for _ in 0..SAMPLES {
            best = best.min(self.timed(&body("healthy")).await.0);
        }
        best
    }
}

fn plain(model: &str) -> Value {
    chat(model, "hello")
}

async fn fall_over(room: Room) {
    let cut = status(200).body(r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"mess"#);
    let faults: [(&str, Fault); 6] = [
        ("429-rest-60", status(429).retry_after(60).into()),
        ("503", status(503).into()),
        ("reset", Fault::ResetBeforeHead),
        ("html-200", html_200().into()),
        ("cut-json-200", cut.into()),
        ("error-first", error_event_first().into()),
    ];
    let ward = ward(&faults, "").await;
    for (at, (name, _)) in faults.iter().enumerate() {
        let body = if *name == "error-first" { streamed } else { plain };
        let most = if *name == "error-first" { 20 } else { 10 };
        let healthy = ward.healthy(body).await;
        let (good, ill) = (ward.good.calls().len(), ward.ill[at].calls().len());
        let mut best = Duration::MAX;
        for sample in 0..SAMPLES {
            let (took, answer) = ward.timed(&body(&format!("{name}-{sample}"))).await;
            assert_eq!((answer.status, answer.header("x-gw-attempts")), (200, "2"), "{}", answer.text());
            assert!(answer.text().contains("fallback"), "{}", answer.text());
            best = best.min(took);
        }
        let calls = (ward.ill[at].calls().len() - ill, ward.good.calls().len() - good);
        assert_eq!(calls, (SAMPLES, SAMPLES), "{name}: one call each");
        figure(&format!("{name}: added, 1+1 calls"), best.saturating_sub(healthy), room.most(most));
    }
}

async fn hanging(room: Room) {
    let lines = format!("attempt_timeout_ms = {}", room.attempt.as_millis());
    let ward = ward(&[("hangs", Fault::HangBeforeHead)], &lines).await;
    let (took, answer) = ward.timed(&plain("hangs-0")).await;
    assert_eq!((answer.status, answer.header("x-gw-attempts")), (200, "2"));
    assert!(took >= room.attempt, "{took:?}");
    figure("a hanging primary: beyond its attempt limit", took - room.attempt, room.most(50));
}

async fn few_calls() {
    let faults = [("filter", content_filter().into()), ("fails", status(503).into())];
    let ward = ward(&faults, "").await;
    let good = ward.good.calls().len();
    let (_, answer) = ward.timed(&plain("filter-0")).await;
    let calls = (ward.ill[0].calls().len(), ward.good.calls().len() - good);
    assert_eq!((answer.status, calls), (400, (1, 0)), "a content filter moves to nobody");
    println!("content filter: {}+{} calls", calls.0, calls.1);
    let one = FakeProvider::start(FaultScript::of(status(503))).await.unwrap();
    let two = FakeProvider::start(FaultScript::of(Fault::ResetBeforeHead)).await.unwrap();
    let toml =
        Toml::new().upstream("one", &one).upstream("two", &two).route("m", &["one", "two"]).tenant("a", "");
    let gw = Gw::start(&toml).await;
    let answer = gw.chat("a", &chat("m", "hello")).send().await;
    assert!(matches!(answer.status, 502 | 503), "{}", answer.text());
    let calls = one.calls().len() + two.calls().len();
    assert!(calls <= 2, "{calls} calls where both fail");
    println!("both targets failing: {calls} calls");
}

/// A caller's limit over three targets that hang, or drip without ever saying anything.
async fn limit_over_three(room: Room) {
    let drip = Step::pause(Duration::from_millis(if room.factor == 1 { 200 } else { 20 }));
    let drops = |byte: &'static [u8]| {
        (0..200).flat_map(|_| [Step::Bytes(byte.into()), drip.clone()]).collect::<Vec<Step>>()
    };
    let dripping: Fault = FakeStream::new(drops(b":\n")).into();
    let plain_drip: Fault = FakeStream::new(drops(b" ")).header("content-type", "application/json").into();
    let cases = [
        ("hanging, plain", Fault::HangBeforeHead, plain("m")),
        ("hanging, streamed", Fault::HangBeforeHead, streamed("m")),
        ("dripping, plain", plain_drip, plain("m")),
        ("dripping, streamed", dripping, streamed("m")),
    ];
    for (name, fault, body) in cases {
        let mut tried = over_three(room, &fault, &body).await;
        for _ in 1..SAMPLES {
            // A timer that a busy machine fires too late takes the time of the last target.
            if tried.answer.header("x-gw-attempts") == "3" {
                break;
            }
            tried = over_three(room, &fault, &body).await;
        }
        let Tried { gw: _gw, targets, answer, took, ended } = tried;
        assert_eq!((answer.status, answer.header("x-gw-attempts")), (504, "3"), "{name}: {}", answer.text());
        assert!(took >= room.request.saturating_sub(Duration::from_millis(50)), "{name}: {took:?}");
        figure(
            &format!("three targets {name}: beyond the caller's limit"),
            took.saturating_sub(room.request),
            room.most(50),
        );
        for provider in &targets {
            provider.wait_for_client_gone(1).await;
        }
        figure(&format!("three targets {name}: last upstream closed after"), ended.elapsed(), room.most(100));
    }
}

/// What became of one request over three targets.
struct Tried {
    gw: Gw,
    targets: Vec<FakeProvider>,
    answer: Answer,
    took: Duration,
    ended: Instant,
}

async fn over_three(room: Room, fault: &Fault, body: &Value) -> Tried {
    let limit = room.request.as_millis().to_string();
    let expected = format!("expected_latency_ms = {}", room.request.as_millis() * 3 / 10);
    let (mut targets, mut toml) = (Vec::new(), Toml::new());
    for target in ["x", "y", "z"] {
        let provider = FakeProvider::start(FaultScript::of(fault.clone())).await.unwrap();
        toml = toml.upstream_with(target, &provider.base_url(), "", &expected);
        targets.push(provider);
    }
    let gw = Gw::start(&toml.route("m", &["x", "y", "z"]).tenant("a", "")).await;
    let began = now();
    let answer = gw.chat("a", body).header("x-gw-deadline-ms", &limit).send().await;
    Tried { gw, targets, answer, took: began.elapsed(), ended: now() }
}

async fn truncation() {
    let provider = FakeProvider::start(FaultScript::of(stream_cut_after(2))).await.unwrap();
    let gw = Gw::start(&Toml::new().upstream("up", &provider).route("m", &["up"]).tenant("a", "")).await;
    for _ in 0..3 {
        let events = Events::read(&gw.chat("a", &streamed("m")).stream().await.rest().await);
        assert!(events.error.is_some() && !events.done && events.finishes().is_empty(), "{events:?}");
    }
    println!("truncation: an error event and no [DONE]");
}

async fn client_gone(room: Room) {
    let script = FaultScript::of(Fault::HangBeforeHead).then(ok("one two three").gate_after(1));
    let (one, two) = (
        FakeProvider::start(script).await.unwrap(),
        FakeProvider::start(FaultScript::of(ok("never"))).await.unwrap(),
    );
    let toml =
        Toml::new().upstream("one", &one).upstream("two", &two).route("m", &["one", "two"]).tenant("a", "");
    let gw = Gw::start(&toml).await;
    let mut client = Raw::connect(gw.data).await;
    client.send(raw_chat("a", b"", chat("m", "hello").to_string().as_bytes())).await;
    one.wait_for_calls(1).await;
    let left = now();
    drop(client);
    one.wait_for_client_gone(1).await;
    figure("client gone before the first byte: upstream closed after", left.elapsed(), room.most(50));
    let mut stream = gw.chat("a", &streamed("m")).stream().await;
    stream.until("one").await;
    let left = now();
    drop(stream);
    one.wait_for_client_gone(2).await;
    figure("client gone after the first byte: upstream closed after", left.elapsed(), room.most(50));
    gw.records(2).await;
    assert_eq!((one.calls().len(), two.calls().len()), (2, 0), "no further call");
}

#[tokio::test]
async fn what_failures_cost_stays_within_its_figures() {
    let room = Room::of_this_run();
    fall_over(room).await;
    hanging(room).await;
    few_calls().await;
    limit_over_three(room).await;
    truncation().await;
    client_gone(room).await;
}
