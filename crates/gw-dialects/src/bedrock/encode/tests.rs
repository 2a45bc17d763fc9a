//! Tests of the request writer: one feature a case.

use gw_types::{LossKind, Operation, OutputField, TokenCount};
use serde_json::{Value, json};

use super::write_prompt;
use crate::neutral::{
    Audio, Block, CacheMark, Content, Document, DocumentSource, Effort, Format, Image, Instruction,
    InstructionRole, MediaSource, Opaque, Origin, Place, Prompt, RawJson, Reasoning, Role, SchemaFormat,
    Signature, Thinking, Tool, ToolChoice, ToolKind, ToolResult, ToolUse, Unknown, WriteOptions,
};

const OLD_CLAUDE: &str = "anthropic.claude-3-7-sonnet-20250219-v1:0";
const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const NEW_CLAUDE: &str = "us.anthropic.claude-opus-4-7-v1";
const NOVA: &str = "us.amazon.nova-2-lite-v1:0";
const OTHER: &str = "meta.llama3-70b-instruct-v1:0";

type Lost<'a> = &'a [(&'a str, LossKind)];

const NOTHING: Lost<'static> = &[];

fn write(prompt: &Prompt, model: &str) -> (Value, Vec<(String, LossKind)>) {
    let options = WriteOptions {
        model,
        output_bound: None,
        default_output: TokenCount::new(4_096),
        output_field: OutputField::MaxTokens,
    };
    let (body, loss) = write_prompt(prompt, &options);
    let loss = loss.items.into_iter().map(|item| (item.path.as_str().to_owned(), item.kind)).collect();
    (serde_json::from_slice(&body).unwrap(), loss)
}

fn prompt() -> Prompt {
    let mut prompt = Prompt::new(Operation::Chat);
    prompt.say(Role::User, vec![text("Hi")]);
    prompt
}

fn raw(json: &str) -> RawJson {
    RawJson::new(json).unwrap()
}

fn block(content: Content) -> Block {
    Block::at(Place::item("messages", 1), content)
}

fn text(text: &str) -> Block {
    block(Content::text(text))
}

fn thinking(text: &str, origin: Option<Origin>) -> Block {
    let signature = origin.map(|origin| Signature::new(origin, "S=="));
    block(Content::Thinking(Thinking { text: text.to_owned(), signature }))
}

fn call(id: &str, name: &str) -> Block {
    let arguments = r#"{"b":1,"a":2}"#.to_owned();
    block(Content::ToolUse(ToolUse { id: id.to_owned(), name: name.to_owned(), arguments, signature: None }))
}

fn result(id: &str, blocks: Vec<Block>, is_error: bool) -> Block {
    block(Content::ToolResult(ToolResult { id: id.to_owned(), blocks, is_error }))
}

fn function(name: &str, strict: Option<bool>) -> Tool {
    let parameters = Some(raw(r#"{"type":"object"}"#));
    let description = Some("does".to_owned());
    let kind = ToolKind::Function { name: name.to_owned(), description, parameters, strict };
    Tool { kind, cache: None, place: Place::item("tools", 0) }
}

/// Checks one member of the body, and everything that was lost.
#[track_caller]
fn check(prompt: &Prompt, model: &str, member: &str, expected: &Value, lost: Lost<'_>) {
    let (body, loss) = write(prompt, model);
    let found = member.split('.').try_fold(&body, |node, name| node.get(name)).unwrap_or(&Value::Null);
    assert_eq!(found, expected);
    let loss: Vec<_> = loss.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
    assert_eq!(loss, lost);
}

/// Checks what becomes of a block of the user's.
#[track_caller]
fn check_block(content: Content, part: &Value, lost: Lost<'_>) {
    let mut prompt = Prompt::new(Operation::Chat);
    prompt.say(Role::User, vec![text("Hi"), block(content)]);
    let mut parts = vec![json!({"text": "Hi"})];
    parts.extend(Some(part).filter(|part| !part.is_null()).cloned());
    check(&prompt, CLAUDE, "messages", &json!([{"role": "user", "content": parts}]), lost);
}

/// Checks what becomes of a turn of the model's.
#[track_caller]
fn check_turn(blocks: Vec<Block>, parts: &Value, lost: Lost<'_>) {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, blocks);
    let user = json!({"role": "user", "content": [{"text": "Hi"}]});
    check(&prompt, CLAUDE, "messages", &json!([user, {"role": "assistant", "content": parts}]), lost);
}

#[test]
fn the_system_prompt_stands_apart() {
    let mut prompt = prompt();
    for (before_turn, said) in [(0, "a"), (0, " "), (1, "b")] {
        let blocks = vec![text(said)];
        prompt.instructions.push(Instruction { role: InstructionRole::System, blocks, before_turn });
    }
    let lost = [("messages[1]", LossKind::Approximated)];
    check(&prompt, CLAUDE, "system", &json!([{"text": "a"}, {"text": "b"}]), &lost);
}

#[test]
fn pictures_stand_in_the_request_or_in_s3() {
    let image = |source| Content::Image(Image { source, detail: None });
    let data =
        |media_type: &str| MediaSource::Data { media_type: media_type.to_owned(), base64: "QQ==".to_owned() };
    let dropped = [("messages[1]", LossKind::Dropped)];
    let jpeg = json!({"image": {"format": "jpeg", "source": {"bytes": "QQ=="}}});
    check_block(image(data("image/jpeg")), &jpeg, NOTHING);
    check_block(image(data("image/jpg")), &jpeg, NOTHING);
    check_block(image(data("image/tiff")), &Value::Null, &dropped);
    let s3 = image(MediaSource::Url("s3://b/a.PNG".to_owned()));
    check_block(
        s3,
        &json!({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a.PNG"}}}}),
        NOTHING,
    );
    check_block(image(MediaSource::Url("https://x/a.png".to_owned())), &Value::Null, &dropped);
    check_block(image(MediaSource::File(Origin::OpenAi, "f".to_owned())), &Value::Null, &dropped);
    let close = Content::Image(Image { source: data("image/jpeg"), detail: Some("low".to_owned()) });
    check_block(close, &jpeg, &[("messages[1].image_url.detail", LossKind::Dropped)]);
    let audio = Content::Audio(Audio { format: "mp3".to_owned(), base64: "QQ==".to_owned() });
    check_block(audio, &json!({"audio": {"format": "mp3", "source": {"bytes": "QQ=="}}}), NOTHING);
}

#[test]
fn documents_have_a_name_and_a_format() {
    let document = |source, title: Option<&str>| {
        let title = title.map(str::to_owned);
        Content::Document(Document { source, title, context: None, citations: false })
    };
    let pdf = || {
        DocumentSource::Media(MediaSource::Data {
            media_type: "application/pdf".to_owned(),
            base64: "QQ==".to_owned(),
        })
    };
    let part = |name: &str| json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "QQ=="}}});
    check_block(document(pdf(), None), &part("Document"), NOTHING);
    check_block(document(pdf(), Some("a_b..  c/é.pdf")), &part("a b c pdf"), NOTHING);
    let zip = MediaSource::Data { media_type: "application/zip".to_owned(), base64: "QQ==".to_owned() };
    let dropped = [("messages[1]", LossKind::Dropped)];
    check_block(document(DocumentSource::Media(zip), None), &Value::Null, &dropped);
    let cited = Content::Document(Document {
        source: DocumentSource::Text("é".to_owned()),
        title: None,
        context: Some("c".to_owned()),
        citations: true,
    });
    let text_part = json!({"document": {
        "format": "txt", "name": "Document", "source": {"bytes": "w6k="}, "context": "c", "citations": {"enabled": true},
    }});
    check_block(cited, &text_part, NOTHING);
    let blocks = document(DocumentSource::Blocks(vec![text("a"), text("b")]), None);
    let source = json!({"content": [{"text": "a"}, {"text": "b"}]});
    check_block(
        blocks,
        &json!({"document": {"format": "txt", "name": "Document", "source": source}}),
        NOTHING,
    );
    // Names differ, and text stands beside.
    let mut prompt = Prompt::new(Operation::Chat);
    prompt.say(Role::User, vec![block(document(pdf(), None)), block(document(pdf(), None))]);
    let content = json!([part("Document"), part("Document 2"), {"text": "Read the document."}]);
    check(&prompt, CLAUDE, "messages", &json!([{"role": "user", "content": content}]), NOTHING);
}

#[test]
fn blocks_without_a_place_are_dropped() {
    let opaque = |origin| Content::Opaque(Opaque { origin, value: raw(r#"{"toolResult":{}}"#) });
    check_block(opaque(Origin::Bedrock), &json!({"toolResult": {}}), NOTHING);
    check_block(opaque(Origin::Gemini), &Value::Null, &[("messages[1]", LossKind::Dropped)]);
    check_block(Content::text(" \n"), &Value::Null, NOTHING);
}

#[test]
fn signed_thinking_survives_the_round_trip() {
    let shown = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "S=="}}});
    let redacted = json!({"reasoningContent": {"redactedContent": "S=="}});
    let hidden = |origin| block(Content::RedactedThinking(Signature::new(origin, "S==")));
    let own = vec![thinking("hm", Some(Origin::Bedrock)), hidden(Origin::Bedrock), text("a")];
    check_turn(own, &json!([shown, redacted, {"text": "a"}]), NOTHING);
    let lost = [("messages[1]", LossKind::Dropped)];
    for origin in [Some(Origin::Anthropic), Some(Origin::Gemini), Some(Origin::OpenAi), None] {
        check_turn(vec![thinking("hm", origin), text("a")], &json!([{"text": "a"}]), &lost);
    }
    check_turn(vec![hidden(Origin::Anthropic), text("a")], &json!([{"text": "a"}]), &lost);
}

#[test]
fn parallel_tool_results_share_one_turn() {
    let mut prompt = prompt();
    prompt.tools.push(function("f", None));
    prompt.say(Role::Assistant, vec![call("call_0", "f"), call("call_1", "g")]);
    let image = block(Content::Image(Image {
        source: MediaSource::Data { media_type: "image/png".to_owned(), base64: "QQ==".to_owned() },
        detail: None,
    }));
    let results =
        vec![result("call_0", vec![text("r0"), image], true), result("call_1", vec![], false), text("and?")];
    prompt.say(Role::User, results);
    let (body, loss) = write(&prompt, CLAUDE);
    assert!(loss.is_empty(), "{loss:?}");
    let input = json!({"b": 1, "a": 2});
    assert_eq!(
        body["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "call_0", "name": "f", "input": input}},
                {"toolUse": {"toolUseId": "call_1", "name": "g", "input": input}},
            ]}),
            json!({"role": "user", "content": [
                {"toolResult": {"toolUseId": "call_0", "content": [
                    {"text": "r0"}, {"image": {"format": "png", "source": {"bytes": "QQ=="}}},
                ], "status": "error"}},
                {"toolResult": {"toolUseId": "call_1", "content": [{"json": {}}]}},
                {"text": "and?"},
            ]}),
        ]
    );
}

#[test]
fn ids_of_calls_are_brought_into_form() {
    let long = "x".repeat(65);
    for id in ["call|1", "", &long] {
        let mut prompt = prompt();
        prompt.say(Role::Assistant, vec![call(id, "f")]);
        prompt.say(Role::User, vec![result(id, vec![text("r")], false)]);
        let (body, _) = write(&prompt, CLAUDE);
        let sent = body["messages"][1]["content"][0]["toolUse"]["toolUseId"].as_str().unwrap();
        let plain = sent.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        assert!(plain && (1..=64).contains(&sent.len()), "{sent}");
        assert_eq!(body["messages"][2]["content"][0]["toolResult"]["toolUseId"], sent);
    }
}

#[test]
fn turns_of_which_nothing_is_left_join_their_neighbours() {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, vec![text(" ")]);
    prompt.say(Role::User, vec![text("b")]);
    let messages = json!([{"role": "user", "content": [{"text": "Hi"}, {"text": "b"}]}]);
    check(&prompt, CLAUDE, "messages", &messages, NOTHING);
}

#[test]
fn cache_marks_follow_their_block() {
    let mut prompt = Prompt::new(Operation::Messages);
    let marked = |mark| Block { cache: Some(mark), ..text("a") };
    prompt.say(Role::User, vec![marked(CacheMark::Short), marked(CacheMark::Long)]);
    let point = json!({"cachePoint": {"type": "default"}});
    let long = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let messages =
        |second: &Value| json!([{"role": "user", "content": [{"text": "a"}, point, {"text": "a"}, second]}]);
    check(&prompt, CLAUDE, "messages", &messages(&long), NOTHING);
    // A cache mark costs nothing but money, so its loss is none.
    check(&prompt, OLD_CLAUDE, "messages", &messages(&point), NOTHING);
    let unmarked = json!([{"role": "user", "content": [{"text": "a"}, {"text": "a"}]}]);
    check(&prompt, OTHER, "messages", &unmarked, NOTHING);
    let mut many = Prompt::new(Operation::Messages);
    many.say(Role::User, (0..6).map(|_| marked(CacheMark::Short)).collect());
    let (body, _) = write(&many, CLAUDE);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 10);
}

#[test]
fn tools_are_declared_and_chosen() {
    let mut prompt = prompt();
    prompt.tools.push(function("f", Some(true)));
    prompt.tools.push(Tool { cache: Some(CacheMark::Short), ..function("g", None) });
    let server = |origin| ToolKind::Server(origin, raw(r#"{"systemTool":{"name":"s"}}"#));
    prompt.tools.push(Tool { kind: server(Origin::Bedrock), ..function("", None) });
    prompt.tools.push(Tool { kind: server(Origin::OpenAi), cache: None, place: Place::item("tools", 3) });
    let spec = |name: &str| json!({"name": name, "description": "does", "inputSchema": {"json": {"type": "object"}}});
    let mut strict = spec("f");
    strict["strict"] = json!(true);
    let tools = json!([{"toolSpec": strict}, {"toolSpec": spec("g")}, {"cachePoint": {"type": "default"}}, {"systemTool": {"name": "s"}}]);
    let dropped = ("tools[3]", LossKind::Dropped);
    check(&prompt, CLAUDE, "toolConfig.tools", &tools, &[dropped]);
    for (choice, written) in [
        (ToolChoice::Auto, json!({"auto": {}})),
        (ToolChoice::Required, json!({"any": {}})),
        (ToolChoice::Tool("g".to_owned()), json!({"tool": {"name": "g"}})),
    ] {
        prompt.tool_choice = Some(choice);
        check(&prompt, CLAUDE, "toolConfig.toolChoice", &written, &[dropped]);
    }
    let mut old = self::prompt();
    old.tools.push(function("f", Some(true)));
    let lost = [("tools[0].function.strict", LossKind::Approximated)];
    check(&old, NOVA, "toolConfig.tools", &json!([{"toolSpec": spec("f")}]), &lost);
}

#[test]
fn calling_no_tool_is_declaring_none() {
    let mut prompt = prompt();
    prompt.tools.push(function("f", None));
    prompt.tool_choice = Some(ToolChoice::None);
    check(&prompt, CLAUDE, "toolConfig", &Value::Null, NOTHING);
    prompt.say(Role::Assistant, vec![call("c", "f")]);
    let (body, loss) = write(&prompt, CLAUDE);
    assert_eq!((&body["toolConfig"]["toolChoice"], loss.len()), (&Value::Null, 1));
}

#[test]
fn calls_of_the_history_are_declared() {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, vec![call("c", "g"), call("d", "f"), call("e", "g")]);
    let spec = |name: &str| json!({"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}});
    check(&prompt, CLAUDE, "toolConfig.tools", &json!([spec("f"), spec("g")]), NOTHING);
}

#[test]
fn sampling_keeps_to_what_the_model_takes() {
    let mut prompt = prompt();
    prompt.max_output = Some(64);
    prompt.sampling.temperature = serde_json::from_str("0.7").unwrap();
    prompt.sampling.top_p = serde_json::from_str("0.9").unwrap();
    prompt.sampling.stop = vec!["|".to_owned(), String::new()];
    let whole = json!({"maxTokens": 64, "temperature": 0.7, "topP": 0.9, "stopSequences": ["|"]});
    check(&prompt, OLD_CLAUDE, "inferenceConfig", &whole, NOTHING);
    let half = json!({"maxTokens": 64, "temperature": 0.7, "stopSequences": ["|"]});
    check(&prompt, CLAUDE, "inferenceConfig", &half, &[("top_p", LossKind::Dropped)]);
    let mut hot = self::prompt();
    hot.sampling.temperature = serde_json::from_str("1.5").unwrap();
    let lost = [("temperature", LossKind::Approximated)];
    check(&hot, NOVA, "inferenceConfig", &json!({"temperature": 1}), &lost);
}

#[test]
fn the_likeliest_are_a_field_of_the_model() {
    let mut prompt = prompt();
    prompt.sampling.top_k = serde_json::from_str("40").unwrap();
    check(&prompt, CLAUDE, "additionalModelRequestFields", &json!({"top_k": 40}), NOTHING);
    check(&prompt, NOVA, "additionalModelRequestFields", &json!({"inferenceConfig": {"topK": 40}}), NOTHING);
    let lost = [("top_k", LossKind::Dropped)];
    check(&prompt, OTHER, "additionalModelRequestFields", &Value::Null, &lost);
}

#[test]
fn settings_without_a_place_are_reported() {
    let mut prompt = prompt();
    prompt.sampling.frequency_penalty = serde_json::from_str("1").unwrap();
    prompt.sampling.presence_penalty = serde_json::from_str("1").unwrap();
    prompt.sampling.seed = serde_json::from_str("1").unwrap();
    prompt.sampling.choices = Some(2);
    prompt.sampling.logprobs = Some(true);
    prompt.sampling.logit_bias = Some(raw("{}"));
    prompt.parallel_tool_calls = Some(false);
    prompt.verbosity = Some("low".to_owned());
    prompt.user = Some("u".to_owned());
    prompt.cache_key = Some("k".to_owned());
    prompt.store = Some(true);
    // End user, cache key and storage are among the harmless, which are not reported.
    prompt.rest.push(Unknown { path: "x".to_owned(), value: raw("1") });
    let names = [
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "n",
        "logprobs",
        "logit_bias",
        "parallel_tool_calls",
        "verbosity",
        "x",
    ];
    let lost: Vec<_> = names.into_iter().map(|name| (name, LossKind::Dropped)).collect();
    check(&prompt, CLAUDE, "inferenceConfig", &json!({}), &lost);
}

#[test]
fn labels_and_tiers_are_sent_where_they_fit() {
    let mut prompt = prompt();
    prompt.metadata = Some(raw(r#"{"team":"a b"}"#));
    prompt.service_tier = Some("flex".to_owned());
    check(&prompt, CLAUDE, "requestMetadata", &json!({"team": "a b"}), NOTHING);
    check(&prompt, CLAUDE, "serviceTier", &json!({"type": "flex"}), NOTHING);
    prompt.metadata = Some(raw(r#"{"team":"é"}"#));
    prompt.service_tier = Some("scale".to_owned());
    let lost = [("service_tier", LossKind::Dropped)];
    check(&prompt, CLAUDE, "requestMetadata", &Value::Null, &lost);
    let mut usual = self::prompt();
    usual.service_tier = Some("auto".to_owned());
    check(&usual, CLAUDE, "serviceTier", &Value::Null, NOTHING);
}

#[test]
fn formats_are_native_or_said_in_words() {
    let mut prompt = prompt();
    prompt.format = Format::JsonSchema(SchemaFormat {
        name: Some("n".to_owned()),
        description: Some("d".to_owned()),
        schema: raw(r#"{"type":"string"}"#),
        strict: None,
    });
    let schema = json!({"name": "n", "schema": "{\"type\":\"string\"}", "description": "d"});
    let config = json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}});
    check(&prompt, CLAUDE, "outputConfig", &config, NOTHING);
    let lost = [("response_format", LossKind::Emulated)];
    check(&prompt, OLD_CLAUDE, "outputConfig", &Value::Null, &lost);
    let (body, _) = write(&prompt, NOVA);
    let words = body["system"][0]["text"].as_str().unwrap();
    assert!(words.ends_with(r#"{"description":"d","type":"string"}"#), "{words}");
    prompt.format = Format::JsonObject;
    check(
        &prompt,
        CLAUDE,
        "system",
        &json!([{"text": "Answer with one JSON object and nothing else."}]),
        &lost,
    );
}

/// Checks how the model is told to think.
#[track_caller]
fn check_thinking(prompt: &Prompt, model: &str, fields: &Value, lost: Lost<'_>) {
    check(prompt, model, "additionalModelRequestFields", fields, lost);
}

fn thinks(reasoning: Reasoning) -> Prompt {
    let mut prompt = prompt();
    prompt.reasoning = Some(reasoning);
    prompt
}

#[test]
fn claude_thinks_with_a_budget_or_by_itself() {
    let effort = |effort| thinks(Reasoning { effort: Some(effort), ..Reasoning::default() });
    let budget = |tokens| thinks(Reasoning { budget_tokens: Some(tokens), ..Reasoning::default() });
    let enabled = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    let near = [("reasoning_effort", LossKind::Approximated)];
    let dropped = [("reasoning_effort", LossKind::Dropped)];
    check_thinking(&budget(2_000), CLAUDE, &enabled(2_000), NOTHING);
    check_thinking(&budget(10), CLAUDE, &enabled(1_024), &near);
    check_thinking(&effort(Effort::High), CLAUDE, &enabled(24_576), &near);
    check_thinking(&effort(Effort::None), CLAUDE, &Value::Null, NOTHING);
    check_thinking(&budget(2_000), "anthropic.claude-3-haiku-20240307-v1:0", &Value::Null, &dropped);
    let adaptive =
        |effort: &str| json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}});
    check_thinking(&effort(Effort::High), NEW_CLAUDE, &adaptive("high"), NOTHING);
    check_thinking(&budget(2_000), NEW_CLAUDE, &adaptive("low"), &near);
    let free = thinks(Reasoning { adaptive: true, ..Reasoning::default() });
    check_thinking(&free, NEW_CLAUDE, &json!({"thinking": {"type": "adaptive"}}), NOTHING);
    // In messages an effort stands beside thinking.
    let mut beside = effort(Effort::Low);
    beside.ingress = Operation::Messages;
    check_thinking(&beside, NEW_CLAUDE, &json!({"output_config": {"effort": "low"}}), NOTHING);
    check_thinking(&beside, CLAUDE, &Value::Null, &[("thinking", LossKind::Dropped)]);
    // The bound holds, so the budget gives way.
    let mut bounded = budget(8_000);
    bounded.max_output = Some(4_000);
    check_thinking(&bounded, CLAUDE, &enabled(3_999), &near);
    bounded.max_output = Some(1_024);
    check_thinking(&bounded, CLAUDE, &Value::Null, &dropped);
}

#[test]
fn thinking_excludes_other_settings() {
    let mut prompt = thinks(Reasoning { budget_tokens: Some(2_000), ..Reasoning::default() });
    prompt.sampling.temperature = serde_json::from_str("0.5").unwrap();
    prompt.sampling.top_k = serde_json::from_str("5").unwrap();
    let enabled = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
    let lost = [("temperature", LossKind::Dropped), ("top_k", LossKind::Dropped)];
    check_thinking(&prompt, CLAUDE, &enabled, &lost);
    let mut forced = thinks(Reasoning { budget_tokens: Some(2_000), ..Reasoning::default() });
    forced.tools.push(function("f", None));
    forced.tool_choice = Some(ToolChoice::Required);
    check_thinking(&forced, CLAUDE, &Value::Null, &[("reasoning_effort", LossKind::Dropped)]);
}

#[test]
fn thinking_stops_where_the_history_has_not_thought_here() {
    let mut prompt = thinks(Reasoning { budget_tokens: Some(2_000), ..Reasoning::default() });
    prompt.tools.push(function("f", None));
    prompt.say(Role::Assistant, vec![thinking("hm", Some(Origin::Bedrock)), call("c", "f")]);
    prompt.say(Role::User, vec![result("c", vec![text("r")], false)]);
    let enabled = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
    check_thinking(&prompt, CLAUDE, &enabled, NOTHING);
    prompt.turns[1].blocks[0] = thinking("hm", Some(Origin::Anthropic));
    let lost = [("reasoning_effort", LossKind::Dropped), ("messages[1]", LossKind::Dropped)];
    check_thinking(&prompt, CLAUDE, &Value::Null, &lost);
}

#[test]
fn other_models_think_by_effort() {
    let effort = |effort| thinks(Reasoning { effort: Some(effort), ..Reasoning::default() });
    let nova = |effort: &str| json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}});
    let near = [("reasoning_effort", LossKind::Approximated)];
    check_thinking(&effort(Effort::High), NOVA, &nova("high"), NOTHING);
    let mut bounded = effort(Effort::High);
    bounded.max_output = Some(100);
    check_thinking(&bounded, NOVA, &nova("medium"), &near);
    check_thinking(
        &effort(Effort::Minimal),
        "openai.gpt-oss-120b-1:0",
        &json!({"reasoning_effort": "low"}),
        &near,
    );
    let dropped = [("reasoning_effort", LossKind::Dropped)];
    check_thinking(&effort(Effort::Low), OTHER, &Value::Null, &dropped);
    check_thinking(&effort(Effort::Low), "amazon.nova-lite-v1:0", &Value::Null, &dropped);
}
