//! Callers of one wire format at providers of another that answer what was recorded of them, over real sockets.

use gw_testkit::{FakeProvider, FaultScript, Recording, SeenCall};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Call, Events, Gw, Toml, key_of};

/// The weather in Florence, as every one of them calls it.
const CALL: &str = "weather {\"location\":\"Florence, Italy\"}";

/// What one kind of provider says to an OpenAI client's question, whole and streamed: recording, text or call, and usage.
struct Target {
    kind: &'static str,
    plain: (&'static str, &'static str, [u64; 2]),
    stream: (&'static str, &'static str, [u64; 2]),
    loss: &'static str,
}

const TARGETS: [Target; 3] = [
    Target {
        kind: "anthropic",
        plain: ("anthropic-messages--tool-call-signature--8ef7c8", CALL, [424, 118]),
        stream: (
            "anthropic-messages--stream-tool-call-tool-result--2e523b",
            "best_language_to_learn {}",
            [815, 41],
        ),
        loss: "seed",
    },
    Target {
        kind: "gemini",
        plain: ("gemini-generatecontent--tool-call-signature--93e891", CALL, [54, 79]),
        stream: ("gemini-streamgeneratecontent--stream-tool-call-signature--de3238", CALL, [54, 78]),
        loss: "",
    },
    Target {
        kind: "bedrock",
        plain: ("bedrock-converse--tool-result-usage-cached--12ebc9", "21", [2_556, 4]),
        stream: (
            "bedrock-converse-stream--stream-tool-call-tool-result--bb5e44",
            "best_language_to_learn {}",
            [1_138, 18],
        ),
        loss: "seed",
    },
];

#[tokio::test]
async fn an_openai_client_talks_to_anthropic_gemini_and_bedrock() {
    for target in TARGETS {
        let kind = target.kind;
        let Some(house) = House::new(&[(kind, &[target.plain.0, target.stream.0])], "").await else { return };
        let losses = if target.loss.is_empty() { "" } else { "1" };
        let answer = house.chat(false).send().await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
        assert_eq!((answer.header("x-gw-loss"), answer.header("x-gw-deployment")), (losses, kind));
        let said = answer.json();
        let message = &said["choices"][0]["message"];
        let call = &message["tool_calls"][0]["function"];
        assert_eq!(told(message["content"].as_str(), call), target.plain.1, "{kind}: {said}");
        assert_eq!(usage(&said["usage"]), target.plain.2, "{kind}: {said}");

        let stream = house.chat(true).stream().await;
        assert_eq!((stream.status, stream.header("x-gw-loss")), (200, losses), "{kind}");
        let events = Events::read(&stream.rest().await);
        assert!(events.done && events.finishes() == ["tool_calls"], "{kind}: {events:?}");
        assert_eq!(told(None, &call_of(&events)), target.stream.1, "{kind}");
        assert_eq!(usage(events.usages()[0]), target.stream.2, "{kind}");

        for record in house.gw.records(2).await {
            let expected: Vec<&str> = Some(target.loss).filter(|loss| !loss.is_empty()).into_iter().collect();
            assert_eq!((&record["loss"], &record["outcome"]), (&json!(expected), &json!("ok")), "{kind}");
        }
    }
}

/// Returns what was said: the text, else the call with its arguments without white space.
fn told(text: Option<&str>, call: &Value) -> String {
    let Some(arguments) = call["arguments"].as_str() else { return text.unwrap_or_default().to_owned() };
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    format!("{} {arguments}", call["name"].as_str().unwrap())
}

/// Returns input and output of a chat's usage.
fn usage(usage: &Value) -> [u64; 2] {
    ["prompt_tokens", "completion_tokens"].map(|field| usage[field].as_u64().unwrap())
}

/// Puts the only call of a stream together.
fn call_of(events: &Events) -> Value {
    let mut call = json!({"name": "", "arguments": ""});
    for chunk in &events.chunks {
        for field in ["name", "arguments"] {
            let piece = chunk["choices"][0]["delta"]["tool_calls"][0]["function"][field].as_str();
            call[field] = format!("{}{}", call[field].as_str().unwrap(), piece.unwrap_or_default()).into();
        }
    }
    call
}

const OPENAI_PLAIN: &str = "openai-chat--tools-parallel-tool-result--476638";
const OPENAI_STREAM: &str = "openai-chat--stream-tools-parallel-system--4ad9fd";
/// A stream that breaks off before its first words.
const CUT_STREAM: &str = "anthropic-messages--stream-truncated-text--42640d@300";
const CLAUDE_PLAIN: &str = "anthropic-messages--tool-call-signature--8ef7c8";

#[tokio::test]
async fn a_claude_client_with_tools_and_thinking_talks_to_an_openai_deployment() {
    let Some(house) = House::new(&[("openai", &[OPENAI_PLAIN, OPENAI_STREAM])], "").await else { return };
    let answer = house.messages(&first_turn(false)).send().await;
    let said = answer.json();
    assert_eq!((answer.status, &said["stop_reason"]), (200, &json!("tool_use")), "{said}");
    let calls: Vec<Value> = said["content"].as_array().unwrap().clone();
    assert_eq!(
        (&calls[0]["name"], &calls[0]["input"]),
        (&json!("get_weather"), &json!({"city": "San Francisco"}))
    );
    assert_eq!((calls.len(), &calls[1]["name"]), (2, &json!("get_population")));
    assert_eq!(said["usage"]["output_tokens"], 46);

    let stream = house.messages(&first_turn(true)).stream().await;
    assert_eq!(stream.header("x-gw-loss"), "1");
    let text = stream.rest().await;
    for wanted in
        [r#""name":"add""#, r#""name":"multiply""#, r#""stop_reason":"tool_use""#, r#""output_tokens":379"#]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{text}");
    // A budget of tokens for thinking is an effort there.
    for call in house.calls(0) {
        let sent = call.json();
        assert_eq!(
            (&sent["reasoning_effort"], &sent["tool_choice"]),
            (&json!("low"), &json!("auto")),
            "{sent}"
        );
        assert_eq!(sent["tools"][0]["function"]["name"], "weather");
    }
    for record in house.gw.records(2).await {
        assert_eq!((&record["loss"], &record["outcome"]), (&json!(["thinking"]), &json!("ok")));
    }
}

#[tokio::test]
async fn an_outage_moves_a_claude_conversation_to_openai_without_its_signatures() {
    let claude: &[&str] = &[CLAUDE_PLAIN, "anthropic-messages--529-overloaded--9acde1", CUT_STREAM];
    let chain: &[(&str, &[&str])] = &[("anthropic", claude), ("openai", &[OPENAI_PLAIN, OPENAI_STREAM])];
    let Some(house) = House::new(chain, "").await else { return };
    // The first turn passes as it is.
    let first = house.messages(&first_turn(false)).send().await;
    assert_eq!((first.header("x-gw-deployment"), first.header("x-gw-loss")), ("anthropic", ""));
    let said = first.json()["content"].clone();
    let signature = said[0]["signature"].as_str().unwrap().to_owned();
    // In the second the provider is overloaded: before its answer, and in its stream before any content.
    for stream in [false, true] {
        let second = second_turn(&said, stream);
        let answer = house.messages(&second).send().await;
        assert_eq!((answer.status, answer.header("x-gw-deployment")), (200, "openai"), "{}", answer.text());
        assert_eq!((answer.header("x-gw-attempts"), answer.header("x-gw-loss")), ("2", "2"));
        let [.., own] = &*house.calls(0) else { panic!("no call") };
        assert_eq!(own.json()["messages"], second["messages"], "its own provider gets everything back");
        let [.., other] = &*house.calls(1) else { panic!("no call") };
        assert!(
            !String::from_utf8_lossy(&other.body).contains(&signature),
            "a signature at another provider"
        );
        let messages = &other.json()["messages"];
        assert_eq!(messages[2]["tool_calls"][0]["function"]["name"], "weather", "{messages}");
        assert_eq!((&messages[3]["role"], &messages[3]["content"]), (&json!("tool"), &json!("21 degrees")));
    }
    let records = house.gw.records(3).await;
    assert_eq!(records[0]["loss"], json!([]));
    for (record, error) in records[1..].iter().zip(["provider_unavailable", "stream_interrupted"]) {
        assert_eq!(record["loss"], json!(["messages[1].content[0]", "thinking"]));
        assert_eq!((&record["primary"], &record["outcome"]), (&json!("anthropic"), &json!("ok")));
        assert_eq!(record["attempts"][0]["error"], error);
    }
    assert!(!house.gw.stderr().contains(&signature), "a signature in a log");
}

#[tokio::test]
async fn what_an_answer_loses_is_told_and_a_hit_names_who_asked_for_it() {
    let plain = "anthropic-messages--stop-sequence-text--2c8927";
    let stream = "anthropic-messages--stream-stop-sequence-multi-turn--a29e4b";
    let Some(house) = House::new(&[("anthropic", &[plain, stream])], "cache = { exact = true }").await else {
        return;
    };
    for (cache, origin) in [("miss", None), ("exact", Some(0))] {
        let answer = house.chat(false).send().await;
        assert_eq!(
            (answer.header("x-gw-cache"), answer.header("x-gw-loss")),
            (cache, "2"),
            "{}",
            answer.text()
        );
        let records = house.gw.records(1 + usize::from(origin.is_some())).await;
        let record = records.last().unwrap();
        assert_eq!(record["loss"], json!(["seed", "answer.stop_sequence"]));
        assert_eq!(record["origin"], origin.map_or(Value::Null, |first: usize| records[first]["id"].clone()));
    }
    // The head of a stream is out before its end is there: the record has it all.
    let mut body = House::chat_body(true);
    body["stop"] = json!(["END"]);
    let streamed = house.gw.chat("a", &body).stream().await;
    let told = streamed.header("x-gw-loss").to_owned();
    assert!(Events::read(&streamed.rest().await).done);
    let records = house.gw.records(3).await;
    assert_eq!(told, "1", "{}", records[2]);
    assert_eq!(records[2]["loss"], json!(["seed", "answer.stop_sequence"]), "{}", records[2]);
    assert_eq!(house.calls(0).len(), 2);
}

#[tokio::test]
async fn a_replayed_answer_says_what_the_first_one_lost() {
    let plain = "anthropic-messages--stop-sequence-text--2c8927";
    let stream = "anthropic-messages--stream-stop-sequence-multi-turn--a29e4b";
    let Some(house) = House::new(&[("anthropic", &[plain, stream])], "").await else { return };
    let lost = json!(["seed", "answer.stop_sequence"]);
    let first = house.chat(false).header("idempotency-key", "k").send().await;
    let again = house.chat(false).header("idempotency-key", "k").send().await;
    assert_eq!(again.header("x-gw-replay-of"), first.header("x-request-id"), "{}", again.text());
    assert_eq!((first.header("x-gw-loss"), again.header("x-gw-loss")), ("2", "2"));
    let streamed = || house.chat(true).header("idempotency-key", "s").stream();
    assert!(Events::read(&streamed().await.rest().await).done);
    // By now all is known that the first head came too early for.
    let again = streamed().await;
    assert_eq!(again.header("x-gw-loss"), "2");
    assert!(Events::read(&again.rest().await).done);
    for record in house.gw.records(4).await {
        assert_eq!(record["loss"], lost, "{record}");
    }
    assert_eq!(house.calls(0).len(), 2);
}

#[tokio::test]
async fn an_outage_moves_an_openai_client_from_provider_to_provider() {
    let chain: &[(&str, &[&str])] = &[
        ("anthropic", &["anthropic-messages--529-overloaded--9acde1", CUT_STREAM]),
        (
            "gemini",
            &[
                "gemini-generatecontent--503-unavailable--38ac24",
                "gemini-streamgeneratecontent--429-no-retryinfo--80329f",
            ],
        ),
        ("bedrock", &[TARGETS[2].plain.0, TARGETS[2].stream.0]),
    ];
    let Some(house) = House::new(chain, "").await else { return };
    let answer = house.chat(false).send().await;
    assert_eq!((answer.status, answer.said()), (200, "21".to_owned()));
    assert_eq!((answer.header("x-gw-deployment"), answer.header("x-gw-attempts")), ("bedrock", "3"));
    let stream = house.chat(true).stream().await;
    assert_eq!((stream.header("x-gw-deployment"), stream.header("x-gw-attempts")), ("bedrock", "3"));
    let events = Events::read(&stream.rest().await);
    assert!(events.done && events.error.is_none(), "{events:?}");
    assert_eq!(told(None, &call_of(&events)), TARGETS[2].stream.1);
    let records = house.gw.records(2).await;
    let kinds = |record: &Value| -> Vec<Value> {
        record["attempts"].as_array().unwrap().iter().map(|attempt| attempt["error"].clone()).collect()
    };
    let [unavailable, interrupted, limited] =
        ["provider_unavailable", "stream_interrupted", "provider_rate_limited"].map(Value::from);
    assert_eq!(kinds(&records[0]), [unavailable.clone(), unavailable, Value::Null]);
    assert_eq!(kinds(&records[1]), [interrupted, limited, Value::Null]);
}

#[tokio::test]
async fn a_provider_that_dies_behind_its_first_words_is_not_replaced() {
    // Gemini counts as it goes; of the others it is estimated what had passed.
    for (kind, id, is_estimated) in [
        ("anthropic", "anthropic-messages--stream-truncated-text--42640d", true),
        ("gemini", "gemini-streamgeneratecontent--stream-server-tool-system--5d48d1", false),
        ("bedrock", "bedrock-converse-stream--stream-truncated-text--2968db", true),
    ] {
        let Some(recorded) = recording(id) else { return };
        let script = FaultScript::of(recorded.cut_after(recorded.body().len() * 2 / 3));
        let spare = recording("openai-chat--stream-text--fac3d9").unwrap();
        let house = House::playing(vec![(kind, script), ("openai", FaultScript::of(&spare))], "").await;
        let events = Events::read(&house.chat(true).stream().await.rest().await);
        assert!(events.error.is_some() && !events.done && events.finishes().is_empty(), "{kind}: {events:?}");
        assert!(!events.text().is_empty() && house.calls(1).is_empty(), "{kind}: {events:?}");
        let record = &house.gw.records(1).await[0];
        assert_eq!((&record["outcome"], &record["error"]), (&json!("failed"), &json!("stream_interrupted")));
        assert_eq!(record["usage"]["estimated"], is_estimated, "{kind}");
        assert!(record["usage"]["output"].as_u64() > Some(3), "{kind}: {record}");
    }
}

#[tokio::test]
async fn strict_translation_refuses_at_every_provider_before_any_call() {
    for target in TARGETS {
        let Some(house) = House::new(&[(target.kind, &[target.plain.0])], "translation = \"strict\"").await
        else {
            return;
        };
        for stream in [false, true] {
            let answer = house.chat(stream).send().await;
            if target.loss.is_empty() {
                assert_eq!(answer.status, 200, "{}", answer.text());
                break;
            }
            let error = answer.error();
            assert_eq!(
                (answer.status, &error["param"], &error["code"]),
                (400, &json!("seed"), &json!("translation_loss")),
                "{error}"
            );
            assert!(house.calls(0).is_empty(), "{}", target.kind);
        }
    }
    // Of a conversation with thinking, what another provider could not go on from is named.
    let Some(house) = House::new(&[("openai", &[OPENAI_PLAIN])], "").await else { return };
    let said = json!([{"type": "thinking", "thinking": "Hm", "signature": "Sig+/=1"}, {"type": "tool_use", "id": "t0", "name": "weather", "input": {}}]);
    let answer = house.messages(&second_turn(&said, false)).header("x-gw-translation", "strict").send().await;
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        answer.status == 400 && message.contains("messages[1].content[0]") && message.contains("thinking"),
        "{message}"
    );
    assert!(house.calls(0).is_empty());
}

/// A Claude client's question, with a tool and thinking.
fn first_turn(stream: bool) -> Value {
    let mut body = recording(CLAUDE_PLAIN).unwrap().request().clone();
    body["model"] = "m".into();
    body["stream"] = stream.into();
    body
}

/// The same with the provider's answer and what the tool brought back.
fn second_turn(said: &Value, stream: bool) -> Value {
    let mut body = first_turn(stream);
    let id = said.as_array().unwrap().iter().find_map(|block| block["id"].as_str()).unwrap();
    let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "21 degrees"}]);
    let turns = body["messages"].as_array_mut().unwrap();
    turns.push(json!({"role": "assistant", "content": said}));
    turns.push(json!({"role": "user", "content": result}));
    body
}

/// Reads a recording; `None`, reported, where the shared folder is absent and need not be there.
fn recording(id: &str) -> Option<Recording> {
    let folder = crate::wire::beside_the_workspace("fixtures/exchanges");
    if crate::wire::is_absent(&folder) {
        return None;
    }
    let provider = id.split('-').next().unwrap();
    Some(Recording::read(&folder.join(provider).join(format!("{id}.json"))).unwrap())
}

/// A gateway in front of providers that play recordings, in one chain, named by their kind.
struct House {
    gw: Gw,
    providers: Vec<FakeProvider>,
}

impl House {
    /// Starts the house; a recording's id and `@N` is the recording cut behind so many bytes.
    async fn new(chain: &[(&str, &[&str])], route: &str) -> Option<Self> {
        let mut scripts = Vec::new();
        for (kind, ids) in chain {
            let mut script = FaultScript::default();
            for id in *ids {
                script = match id.split_once('@') {
                    Some((id, bytes)) => script.then(recording(id)?.cut_after(bytes.parse().unwrap())),
                    None => script.then(&recording(id)?),
                };
            }
            scripts.push((*kind, script));
        }
        Some(Self::playing(scripts, route).await)
    }

    async fn playing(scripts: Vec<(&str, FaultScript)>, route: &str) -> Self {
        let mut toml =
            Toml::new().sqlite().tenant("a", "").var("AWS_ID", "AKIDEXAMPLE").var("AWS_SECRET", "secret");
        let mut providers = Vec::new();
        let mut names = Vec::new();
        for (kind, script) in scripts {
            let provider = FakeProvider::start(script).await.unwrap();
            let credentials = match kind {
                "bedrock" => {
                    "region = \"us-east-1\"\naccess_key_id = { env = \"AWS_ID\" }\nsecret_access_key = { env = \"AWS_SECRET\" }"
                }
                _ => "api_key = { env = \"UPSTREAM_KEY\" }",
            };
            let base = if kind == "openai" { provider.base_url() } else { provider.url() };
            let part = format!("[providers.{kind}]\nkind = \"{kind}\"\nbase_url = \"{base}\"\n{credentials}");
            toml = toml.part(&part).deployment(kind, kind, "max_output_tokens = 8_192\ncatalogue = \"none\"");
            providers.push(provider);
            names.push(kind);
        }
        Self { gw: Gw::start(&toml.route_with("m", &names, route)).await, providers }
    }

    /// Returns the calls that a provider of the chain saw.
    fn calls(&self, index: usize) -> Vec<SeenCall> {
        self.providers[index].calls()
    }

    /// A question of an OpenAI client, with a tool and a setting that only some formats have.
    fn chat(&self, stream: bool) -> Call {
        self.gw.chat("a", &Self::chat_body(stream))
    }

    fn chat_body(stream: bool) -> Value {
        let mut body = json!({
            "model": "m", "max_completion_tokens": 512, "seed": 7,
            "messages": [
                {"role": "system", "content": "You are a helpful assistant"},
                {"role": "user", "content": "What's the weather in Florence, Italy?"},
            ],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": {
                "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}}],
            "stream": stream,
        });
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }

    /// A request of a Claude client.
    fn messages(&self, body: &Value) -> Call {
        let call = self.gw.call(Method::POST, "/v1/messages");
        call.header("x-api-key", &key_of("a")).header("anthropic-version", "2023-06-01").json(body)
    }
}
