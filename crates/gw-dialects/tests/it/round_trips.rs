//! Properties of the translations: what the neutral form carries comes back the same, and nothing panics on any body.

use bytes::Bytes;
use gw_dialects::{
    anthropic,
    neutral::{Block, Content, DocumentSource, Place, Prompt, WriteOptions},
    openai,
    translate::{self, StreamTranslation, StreamTranslator, Strictness, WireFormat},
};
use gw_types::{GatewayError, Loss, Operation, OutputField, TokenCount};
use proptest::prelude::*;
use serde_json::{Value, json};

const OPTIONS: WriteOptions<'_> = WriteOptions {
    model: "claude-opus-5",
    output_bound: None,
    default_output: TokenCount::new(64),
    output_field: OutputField::MaxTokens,
};

const FORMATS: [WireFormat; 6] = [
    WireFormat::OpenAiChat,
    WireFormat::OpenAiResponses,
    WireFormat::AnthropicMessages,
    WireFormat::Gemini,
    WireFormat::BedrockConverse,
    WireFormat::OllamaChat,
];

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["Hi", "é🙂", "a \"b\"\n{c}", "\\u0041", "1e400"]).prop_map(str::to_owned)
}

/// Adds members to an object, each or not.
fn with(base: Value, members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| prop::option::of(value).prop_map(move |value| (name, value)))
        .collect();
    members
        .prop_map(move |members| {
            let mut object = base.clone();
            for (name, value) in members {
                if let Some(value) = value {
                    object[name] = value;
                }
            }
            object
        })
        .boxed()
}

fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    prop::sample::select(values).boxed()
}

fn mark() -> BoxedStrategy<Value> {
    one_of(vec![json!({"type": "ephemeral"}), json!({"type": "ephemeral", "ttl": "1h"})])
}

// === Chat completions ===

fn chat_part() -> BoxedStrategy<Value> {
    prop_oneof![
        text().prop_flat_map(|text| with(json!({"type": "text", "text": text}), vec![("cache_control", mark())])),
        one_of(vec![
            json!({"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}),
            json!({"type": "file", "file": {"file_id": "file-1"}}),
        ]),
    ]
    .boxed()
}

fn chat_content() -> BoxedStrategy<Value> {
    prop_oneof![text().prop_map(Value::from), prop::collection::vec(chat_part(), 1..4).prop_map(Value::from),]
        .boxed()
}

fn chat_message() -> BoxedStrategy<Value> {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\": [1]}"}});
    prop_oneof![
        3 => chat_content().prop_map(|content| json!({"role": "user", "content": content})),
        1 => text().prop_map(|text| json!({"role": "system", "content": text})),
        1 => text().prop_map(|text| json!({"role": "developer", "content": text})),
        2 => with(
            json!({"role": "assistant"}),
            vec![
                ("content", text().prop_map(Value::from).boxed()),
                ("reasoning_content", text().prop_map(Value::from).boxed()),
                ("tool_calls", one_of(vec![json!([call("a")]), json!([call("a"), call("b")])])),
            ],
        ),
        2 => text().prop_map(|text| json!({"role": "tool", "tool_call_id": "a", "content": text})),
    ]
    .boxed()
}

fn chat_body() -> BoxedStrategy<Value> {
    let settings = vec![
        ("max_tokens", one_of(vec![json!(1), json!(4096)])),
        ("stream", one_of(vec![json!(true), json!(false)])),
        ("temperature", one_of(vec![json!(0), json!(0.7), json!(1.0)])),
        ("top_p", one_of(vec![json!(0.5)])),
        ("top_k", one_of(vec![json!(5)])),
        ("seed", one_of(vec![json!(-3)])),
        ("n", one_of(vec![json!(2)])),
        ("stop", one_of(vec![json!("x"), json!(["x", "y"])])),
        ("logprobs", one_of(vec![json!(true)])),
        ("logit_bias", one_of(vec![json!({"50256": -100})])),
        ("reasoning_effort", one_of(vec![json!("low"), json!("none"), json!("xhigh")])),
        ("verbosity", one_of(vec![json!("low")])),
        ("user", one_of(vec![json!("u")])),
        ("metadata", one_of(vec![json!({"a": "b"})])),
        ("service_tier", one_of(vec![json!("auto"), json!("flex")])),
        ("store", one_of(vec![json!(true), json!(false)])),
        ("parallel_tool_calls", one_of(vec![json!(true), json!(false)])),
        ("tool_choice", one_of(vec![json!("auto"), json!({"type": "function", "function": {"name": "f"}})])),
        (
            "response_format",
            one_of(vec![
                json!({"type": "json_object"}),
                json!({"type": "json_schema", "json_schema": {"name": "s", "strict": true, "schema": {"type": "object"}}}),
            ]),
        ),
    ];
    let tools = json!([{"type": "function", "function": {"name": "f", "description": "d", "strict": true,
        "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}}}]);
    let base = with(json!({"model": "x", "tools": tools}), settings);
    (base, prop::collection::vec(chat_message(), 1..8))
        .prop_map(|(mut body, mut messages)| {
            // Of two neighbours the order of their parts would change.
            let mut last = Value::Null;
            messages.retain(|message| {
                let role = message["role"].clone();
                let neighbour = role == "assistant" && role == last;
                if role != "system" && role != "developer" {
                    last = role;
                }
                !neighbour
            });
            body["messages"] = messages.into();
            body
        })
        .boxed()
}

// === Messages ===

fn source() -> BoxedStrategy<Value> {
    one_of(vec![
        json!({"type": "url", "url": "https://x/y"}),
        json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"}),
        json!({"type": "file", "file_id": "file_1"}),
    ])
}

fn messages_block() -> BoxedStrategy<Value> {
    let document = one_of(vec![
        json!({"type": "text", "media_type": "text/plain", "data": "abc"}),
        json!({"type": "content", "content": [{"type": "text", "text": "abc"}]}),
    ]);
    prop_oneof![
        text().prop_flat_map(|text| with(json!({"type": "text", "text": text}), vec![("cache_control", mark())])),
        source().prop_flat_map(|source| with(
            json!({"type": "image", "source": source}),
            vec![("cache_control", mark())]
        )),
        prop_oneof![source(), document].prop_flat_map(|source| with(
            json!({"type": "document", "source": source}),
            vec![
                ("title", one_of(vec![json!("t")])),
                ("context", one_of(vec![json!("c")])),
                ("citations", one_of(vec![json!({"enabled": true})])),
            ]
        )),
        with(
            json!({"type": "tool_result", "tool_use_id": "t1"}),
            vec![
                (
                    "content",
                    one_of(vec![
                        json!("r"),
                        json!([{"type": "text", "text": "r"}, {"type": "image", "source": {"type": "url", "url": "u"}}]),
                    ])
                ),
                ("is_error", one_of(vec![json!(true)])),
                ("cache_control", mark()),
            ]
        ),
    ]
    .boxed()
}

fn assistant_block() -> BoxedStrategy<Value> {
    prop_oneof![
        text().prop_map(|text| json!({"type": "text", "text": text})),
        one_of(vec![
            json!({"type": "thinking", "thinking": "Hm", "signature": "Sig+/=1"}),
            json!({"type": "redacted_thinking", "data": "R=="}),
            json!({"type": "tool_use", "id": "t1", "name": "f", "input": {"a": [1, {"b": null}]}}),
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            json!({"type": "text", "text": "x", "citations": [{"type": "char_location", "cited_text": "y",
                "document_index": 0, "start_char_index": 0, "end_char_index": 1}]}),
        ]),
    ]
    .boxed()
}

fn messages_body() -> BoxedStrategy<Value> {
    let settings = vec![
        ("stream", one_of(vec![json!(true)])),
        (
            "system",
            one_of(vec![
                json!("Be brief."),
                json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]),
            ]),
        ),
        ("temperature", one_of(vec![json!(0), json!(0.7)])),
        ("top_p", one_of(vec![json!(0.5)])),
        ("top_k", one_of(vec![json!(5)])),
        ("stop_sequences", one_of(vec![json!(["x", "y"])])),
        ("metadata", one_of(vec![json!({"user_id": "u"})])),
        ("service_tier", one_of(vec![json!("auto"), json!("standard_only")])),
        (
            "thinking",
            one_of(vec![json!({"type": "adaptive", "display": "omitted"}), json!({"type": "disabled"})]),
        ),
        (
            "output_config",
            one_of(vec![json!({"format": {"type": "json_schema", "schema": {"type": "object"}}})]),
        ),
        (
            "tool_choice",
            one_of(vec![json!({"type": "auto", "disable_parallel_tool_use": true}), json!({"type": "none"})]),
        ),
    ];
    let tools = json!([{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true},
        {"type": "web_search_20260209", "name": "web_search"}]);
    let base = with(json!({"model": "x", "max_tokens": 4096, "tools": tools}), settings);
    let turn =
        (prop::collection::vec(messages_block(), 1..4), prop::collection::vec(assistant_block(), 1..4));
    (base, prop::collection::vec(turn, 1..4), text())
        .prop_map(|(mut body, turns, last)| {
            let mut messages = Vec::new();
            for (user, assistant) in turns {
                messages.push(json!({"role": "user", "content": user}));
                messages.push(json!({"role": "assistant", "content": assistant}));
            }
            messages.push(json!({"role": "user", "content": last}));
            body["messages"] = messages.into();
            body
        })
        .boxed()
}

// === The properties ===

/// Takes out where things stood: merged turns stand elsewhere the next time.
fn placeless(mut prompt: Prompt) -> Prompt {
    fn forget(block: &mut Block) {
        block.place = Place::default();
        match &mut block.content {
            Content::ToolResult(result) => result.blocks.iter_mut().for_each(forget),
            Content::Document(document) => {
                if let DocumentSource::Blocks(blocks) = &mut document.source {
                    blocks.iter_mut().for_each(forget);
                }
            }
            _ => {}
        }
    }
    prompt.turns.iter_mut().flat_map(|turn| &mut turn.blocks).for_each(forget);
    prompt.instructions.iter_mut().flat_map(|one| &mut one.blocks).for_each(forget);
    prompt.tools.iter_mut().for_each(|tool| tool.place = Place::default());
    prompt
}

type Read = fn(&[u8]) -> Result<Prompt, GatewayError>;
type Write = fn(&Prompt, &WriteOptions<'_>) -> (Bytes, Loss);

/// Checks that a body comes back the same, and that a second time finds nothing more to bring into order.
fn comes_back(body: &Value, read: Read, write: Write) -> Result<(), TestCaseError> {
    let prompt = read(body.to_string().as_bytes()).expect("a body of the format");
    let (sent, loss) = write(&prompt, &OPTIONS);
    prop_assert_eq!(&loss.items, &Vec::new(), "{}", body);
    let again = read(&sent).expect("a body of the format");
    prop_assert_eq!(&write(&again, &OPTIONS).0, &sent);
    let mut prompt = placeless(prompt);
    // A stream always asks for its usage.
    prompt.include_usage = again.include_usage;
    prop_assert!(placeless(again) == prompt, "{}\n{}", body, String::from_utf8_lossy(&sent));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn chat_comes_back_the_same(body in chat_body()) {
        comes_back(&body, openai::read_prompt, openai::write_prompt)?;
    }

    #[test]
    fn messages_come_back_the_same(body in messages_body()) {
        comes_back(&body, anthropic::read_prompt, anthropic::write_prompt)?;
    }

    #[test]
    fn every_request_is_json_in_every_format(chat in chat_body(), messages in messages_body()) {
        for (from, body) in [(Operation::Chat, chat), (Operation::Messages, messages)] {
            for to in FORMATS {
                let text = body.to_string();
                let sent = translate::request(from, text.as_bytes(), to, &OPTIONS, Strictness::Report);
                let (sent, loss) = sent.expect("a body of the format");
                prop_assert!(serde_json::from_slice::<Value>(&sent).is_ok());
                for item in &loss.items {
                    prop_assert!(!item.path.as_str().is_empty() && !item.why.is_empty());
                }
            }
        }
    }

    #[test]
    fn facts_and_prompts_refuse_alike(body in messages_body()) {
        let text = body.to_string();
        let facts = anthropic::read_messages(&Bytes::from(text.clone())).unwrap();
        let prompt = anthropic::read_prompt(text.as_bytes()).unwrap();
        prop_assert_eq!(facts.output.map(|output| output.tokens.get()), prompt.max_output);
        prop_assert_eq!(facts.stream, prompt.stream);
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64), cut in 1_usize..8) {
        let raw = Bytes::from(bytes);
        for from in FORMATS {
            for to in [Operation::Chat, Operation::Messages, Operation::Responses] {
                let stamp = gw_dialects::neutral::AnswerStamp { id: "a", created: 1, model: "m" };
                let _ = translate::answer(from, &raw, to, &stamp);
                let translation = StreamTranslation { from, to, stamp, relay_usage: true };
                let mut translator = StreamTranslator::new(&translation).unwrap();
                let mut items = std::collections::VecDeque::new();
                for chunk in raw.chunks(cut) {
                    translator.push(Bytes::copy_from_slice(chunk), &mut items);
                }
                prop_assert!(translator.end().is_err() || items.iter().any(|item| item.facts.error.is_some()));
            }
        }
        let _ = anthropic::read_messages(&raw);
        let _ = anthropic::read_prompt(&raw);
        let _ = openai::read_prompt(&raw);
    }
}
