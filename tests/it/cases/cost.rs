//! Kind `cost`.

use gw_testkit::{FakeProvider, Fault, SeenCall, status};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Gw, Toml, chat, key_of};

/// How an upstream speaks, and what it answers with this usage.
#[derive(Clone, Copy, Debug)]
enum Upstream {
    Messages,
    Chat,
    Generate,
    Responses,
}

impl Upstream {
    const fn kind(self) -> &'static str {
        match self {
            Self::Messages => "kind = \"anthropic\"",
            Self::Generate => "kind = \"gemini\"",
            Self::Responses => "kind = \"openai\"",
            Self::Chat => "",
        }
    }

    fn answer(self, usage: &Value) -> Fault {
        let body = match self {
            Self::Messages => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "stop_sequence": null, "content": [{"type": "text", "text": "hi"}], "usage": usage,
            }),
            Self::Generate => json!({
                "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP",
                    "index": 0}],
                "modelVersion": "m", "responseId": "r1", "usageMetadata": usage,
            }),
            Self::Chat => json!({
                "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage,
                "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null,
                    "message": {"role": "assistant", "content": "hi", "refusal": null}}],
            }),
            Self::Responses => json!({
                "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
                "output": [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                    "content": [{"type": "output_text", "text": "hi", "annotations": []}]}],
                "usage": usage,
            }),
        };
        status(200).body(body.to_string()).into()
    }

    async fn ask(self, gw: &Gw) -> Value {
        let (path, body) = match self {
            Self::Responses => ("/v1/responses", json!({"model": "m", "input": "hello"})),
            Self::Messages | Self::Chat | Self::Generate => ("/v1/chat/completions", chat("m", "hello")),
        };
        let answer = gw.call(Method::POST, path).key(&key_of("a")).json(&body).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// The usage that the client saw, and the record.
struct Billed {
    seen: Value,
    record: Value,
}

impl Billed {
    /// Asks an upstream that reports the usage, at the price.
    async fn of(upstream: Upstream, price: &str, usage: Value) -> Self {
        let answer = move |_: &SeenCall| upstream.answer(&usage);
        let provider = FakeProvider::start_with(answer).await.unwrap();
        let url = match upstream {
            Upstream::Chat | Upstream::Responses => provider.base_url(),
            Upstream::Messages | Upstream::Generate => provider.url(),
        };
        let lines = format!("price = {{ {price} }}\ncontext_window = 1_000_000\nmax_output_tokens = 8_192");
        let toml = Toml::new()
            .upstream_with("up", &url, upstream.kind(), &lines)
            .route("m", &["up"])
            .tenant("a", "budget = { limit_micros = 1_000_000_000, window = \"month\" }");
        let gw = Gw::start(&toml).await;
        let seen = upstream.ask(&gw).await["usage"].clone();
        let record = gw.records(1).await.remove(0);
        let spent = gw.settled("a").await["budget"]["spent_pico"].as_u64();
        assert_eq!(spent, record["cost"].as_u64(), "the budget moves by the cost");
        assert!(!record["usage"]["estimated"].as_bool().unwrap(), "{record}");
        Self { seen, record }
    }

    #[track_caller]
    fn costs(&self, pico: u64) -> &Self {
        assert_eq!(self.record["cost"], pico, "{}", self.record);
        self
    }

    /// Compares classes that must be disjoint: input, cache read, cache write, output, reasoning.
    #[track_caller]
    fn in_classes(&self, classes: [u64; 5]) -> &Self {
        let names = ["input", "cached_input", "cache_write", "output", "reasoning"];
        let read = names.map(|name| self.record["usage"][name].as_u64().unwrap());
        assert_eq!(read, classes, "{}", self.record["usage"]);
        self
    }

    /// Compares what a chat client sees: prompt, completion, total, cached and reasoning tokens.
    #[track_caller]
    fn seen_as(&self, figures: [u64; 5]) {
        let at = |pointer| self.seen.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let read = [
            "/prompt_tokens",
            "/completion_tokens",
            "/total_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/completion_tokens_details/reasoning_tokens",
        ]
        .map(at);
        assert_eq!(read, figures, "{}", self.seen);
    }
}

const MICRO: u64 = 1_000_000;

#[tokio::test]
async fn prompt_cache_tokens_are_priced_once() {
    const PRICE: &str =
        "input = 3_000_000, cache_write = 3_750_000, cached_input = 300_000, output = 15_000_000";
    let v1 = json!({"input_tokens": 10, "cache_creation_input_tokens": 1_000, "cache_read_input_tokens": 2_000,
        "output_tokens": 100});
    let v1 = Billed::of(Upstream::Messages, PRICE, v1).await;
    v1.costs(5_880 * MICRO).in_classes([10, 2_000, 1_000, 100, 0]).seen_as([3_010, 100, 3_110, 2_000, 0]);
    let v2 = json!({"prompt_tokens": 3_010, "completion_tokens": 100, "total_tokens": 3_110,
        "prompt_tokens_details": {"cached_tokens": 2_000}});
    let v2 = Billed::of(Upstream::Chat, PRICE, v2).await;
    v2.costs(5_130 * MICRO).in_classes([1_010, 2_000, 0, 100, 0]).seen_as([3_010, 100, 3_110, 2_000, 0]);
    let v3 = json!({"promptTokenCount": 3_010, "cachedContentTokenCount": 2_000, "candidatesTokenCount": 100,
        "totalTokenCount": 3_110});
    let v3 = Billed::of(Upstream::Generate, PRICE, v3).await;
    v3.costs(5_130 * MICRO).in_classes([1_010, 2_000, 0, 100, 0]).seen_as([3_010, 100, 3_110, 2_000, 0]);
    let v4 = json!({"prompt_tokens": 100, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 150}});
    let v4 = Billed::of(Upstream::Chat, PRICE, v4).await;
    v4.costs(1_545 * MICRO).in_classes([0, 150, 0, 100, 0]);
    assert_eq!(
        (&v1.record["usage"]["inconsistent"], &v4.record["usage"]["inconsistent"]),
        (&json!(false), &json!(true))
    );
}

#[tokio::test]
async fn long_context_tier_covers_every_token_class() {
    const PRICE: &str = "input = 3_000_000, output = 15_000_000, cached_input = 300_000, cache_write = 3_750_000, \
        tier = { threshold = 200_000, inclusive = false, scope = \"whole_request\", input = 6_000_000, output = 22_500_000 }";
    let usage = |written: u64| {
        json!({"input_tokens": 5_000, "cache_read_input_tokens": 190_000, "cache_creation_input_tokens": written,
            "output_tokens": 1_000})
    };
    Billed::of(Upstream::Messages, PRICE, usage(10_000)).await.costs(241_500 * MICRO);
    Billed::of(Upstream::Messages, PRICE, usage(5_000)).await.costs(105_750 * MICRO);
    // A price that does not say where its tier begins and what it prices does not start.
    for said in ["inclusive = false, ", "scope = \"whole_request\", "] {
        let toml = Toml::new()
            .scripted_with("up", &["ok"], &format!("price = {{ {} }}", PRICE.replace(said, "")))
            .route("m", &["up"])
            .tenant("a", "");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gw.toml"), toml.text()).unwrap();
        let variables: Vec<_> =
            toml.environment().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let output = crate::support::run_gw(folder.path(), &["serve"], &variables);
        let said = said.split(' ').next().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && errors.contains(said), "{errors}");
    }
}

#[tokio::test]
async fn reasoning_tokens_neither_lost_nor_doubled() {
    const PRICE: &str = "input = 1_000_000, output = 4_000_000";
    let v1 = json!({"prompt_tokens": 200, "completion_tokens": 1_050, "total_tokens": 1_250,
        "completion_tokens_details": {"reasoning_tokens": 50}});
    let v2 = json!({"promptTokenCount": 200, "candidatesTokenCount": 1_000, "thoughtsTokenCount": 50,
        "totalTokenCount": 1_250});
    let v3 = json!({"input_tokens": 200, "output_tokens": 1_050, "total_tokens": 1_250,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 50}});
    for (upstream, usage) in [(Upstream::Chat, v1), (Upstream::Generate, v2), (Upstream::Responses, v3)] {
        let billed = Billed::of(upstream, PRICE, usage).await;
        // Output 1,050 in all, of which 50 are reasoning.
        billed.costs(4_400 * MICRO).in_classes([200, 0, 0, 1_000, 50]);
        match upstream {
            Upstream::Responses => assert_eq!(billed.seen["output_tokens"], 1_050),
            Upstream::Messages | Upstream::Chat | Upstream::Generate => {
                billed.seen_as([200, 1_050, 1_250, 0, 50]);
            }
        }
    }
}

#[tokio::test]
async fn audio_tokens_are_not_free_and_not_text() {
    const TEXT: &str = "input = 600_000, output = 2_400_000";
    let usage = json!({"prompt_tokens": 115, "completion_tokens": 47, "total_tokens": 162,
        "prompt_tokens_details": {"audio_tokens": 100}, "completion_tokens_details": {"audio_tokens": 34}});
    let m1 = Billed::of(
        Upstream::Chat,
        &format!("{TEXT}, audio_input = 10_000_000, audio_output = 20_000_000"),
        usage.clone(),
    )
    .await;
    m1.costs(1_720_200_000);
    assert_eq!(m1.record["priced_by_fallback"], false);
    // Nobody asked for audio here, so nobody could refuse; the bill comes at the price of text, and says so.
    let m2 = Billed::of(Upstream::Chat, TEXT, usage.clone()).await;
    m2.costs(181_800_000);
    assert_eq!(m2.record["priced_by_fallback"], true);
    // Who asks for audio under a budget is refused before any call, and told which price is missing.
    let provider = FakeProvider::start_with(move |_| Upstream::Chat.answer(&usage)).await.unwrap();
    let toml = Toml::new()
        .upstream_with("up", &provider.base_url(), "", &format!("price = {{ {TEXT} }}"))
        .route("m", &["up"])
        .tenant("a", "budget = { limit_micros = 1_000_000, window = \"month\" }");
    let gw = Gw::start(&toml).await;
    let mut body = chat("m", "hello");
    body["modalities"] = json!(["text", "audio"]);
    body["audio"] = json!({"voice": "alloy", "format": "wav"});
    let refused = gw.chat("a", &body).send().await;
    let record = gw.records(1).await.remove(0);
    let message = refused.error()["message"].as_str().unwrap().to_owned();
    assert!(
        refused.status == 503 && message.contains("no deployment has a price for the audio"),
        "{message}"
    );
    assert_eq!(record["decision"]["exclusions"][0]["reason"], "missing_price");
    assert_eq!((provider.calls().len(), &record["cost"]), (0, &json!(0)));
}
