//! Tests of the request writer: one feature a case.

use gw_types::{LossKind, Operation, OutputField, TokenCount};
use serde_json::{Value, json};

use super::write_prompt;
use crate::neutral::{
    Audio, Block, CacheMark, Citation, Content, Document, DocumentSource, Effort, Format, Image, Instruction,
    InstructionRole, MediaSource, Opaque, Origin, Place, Prompt, RawJson, Reasoning, Role, SchemaFormat,
    Signature, Summary, Text, Thinking, Tool, ToolChoice, ToolKind, ToolResult, ToolUse, Unknown,
    WriteOptions,
};

const MODEL: &str = "gemini-2.5-flash";
const NEW_MODEL: &str = "gemini-3-flash-preview";

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

fn signature(origin: Origin) -> Signature {
    Signature::new(origin, "S==")
}

fn call(id: &str, name: &str, signature: Option<Signature>) -> Block {
    let arguments = r#"{"b":1,"a":2}"#.to_owned();
    block(Content::ToolUse(ToolUse { id: id.to_owned(), name: name.to_owned(), arguments, signature }))
}

fn result(id: &str, blocks: Vec<Block>, is_error: bool) -> Block {
    block(Content::ToolResult(ToolResult { id: id.to_owned(), blocks, is_error }))
}

fn function(name: &str, parameters: &str) -> Tool {
    let parameters = Some(raw(parameters));
    let kind = ToolKind::Function { name: name.to_owned(), description: None, parameters, strict: None };
    Tool { kind, cache: None, place: Place::item("tools", 0) }
}

fn schema(schema: &str) -> Format {
    let name = Some("n".to_owned());
    Format::JsonSchema(SchemaFormat { name, description: None, schema: raw(schema), strict: None })
}

/// Checks one member of the body, and everything that was lost.
#[track_caller]
fn check(prompt: &Prompt, model: &str, member: &str, expected: &Value, lost: &[(&str, LossKind)]) {
    let (body, loss) = write(prompt, model);
    let found = member.split('.').try_fold(&body, |node, name| node.get(name)).unwrap_or(&Value::Null);
    assert_eq!(found, expected);
    let loss: Vec<_> = loss.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
    assert_eq!(loss, lost);
}

/// Checks what becomes of a turn of the model's.
#[track_caller]
fn check_turn(blocks: Vec<Block>, model: &str, parts: &Value, lost: &[(&str, LossKind)]) {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, blocks);
    let turns = json!([{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": parts}]);
    check(&prompt, model, "contents", &turns, lost);
}

/// Checks what becomes of a block of the user's.
#[track_caller]
fn check_block(content: Content, part: &Value, lost: &[(&str, LossKind)]) {
    let mut prompt = Prompt::new(Operation::Chat);
    prompt.say(Role::User, vec![text("Hi"), block(content)]);
    let mut parts = vec![json!({"text": "Hi"})];
    parts.extend(Some(part).filter(|part| !part.is_null()).cloned());
    check(&prompt, MODEL, "contents", &json!([{"role": "user", "parts": parts}]), lost);
}

const NOTHING: &[(&str, LossKind)] = &[];

#[test]
fn instructions_come_first() {
    let mut prompt = prompt();
    for (before_turn, said) in [(0, "a"), (0, ""), (1, "b")] {
        let blocks = vec![text(said)];
        prompt.instructions.push(Instruction { role: InstructionRole::Developer, blocks, before_turn });
    }
    let expected = json!({"parts": [{"text": "a"}, {"text": "b"}]});
    check(&prompt, MODEL, "systemInstruction", &expected, &[("messages[1]", LossKind::Approximated)]);
}

#[test]
fn an_instruction_alone_is_what_the_user_says() {
    let mut prompt = Prompt::new(Operation::Chat);
    let blocks = vec![text("a")];
    prompt.instructions.push(Instruction { role: InstructionRole::System, blocks, before_turn: 0 });
    check(&prompt, MODEL, "contents", &json!([{"role": "user", "parts": [{"text": "a"}]}]), NOTHING);
    check(&prompt, MODEL, "systemInstruction", &Value::Null, NOTHING);
}

#[test]
fn media_stand_in_the_request_or_at_an_address() {
    let data = || MediaSource::Data { media_type: "image/webp".to_owned(), base64: "QQ==".to_owned() };
    let image = |source| Content::Image(Image { source, detail: None });
    let inline = json!({"inlineData": {"mimeType": "image/webp", "data": "QQ=="}});
    check_block(image(data()), &inline, NOTHING);
    let at = |address: &str| image(MediaSource::Url(address.to_owned()));
    let file = |address: &str, media: &str| json!({"fileData": {"mimeType": media, "fileUri": address}});
    check_block(at("https://x/a.PNG?b=.gif"), &file("https://x/a.PNG?b=.gif", "image/png"), NOTHING);
    check_block(at("gs://x/a"), &file("gs://x/a", "image/jpeg"), NOTHING);
    let kept = image(MediaSource::File(Origin::Gemini, "files/1".to_owned()));
    check_block(kept, &json!({"fileData": {"fileUri": "files/1"}}), NOTHING);
    let foreign = image(MediaSource::File(Origin::OpenAi, "file-1".to_owned()));
    check_block(foreign, &Value::Null, &[("messages[1]", LossKind::Dropped)]);
    let close = Content::Image(Image { source: data(), detail: Some("high".to_owned()) });
    check_block(close, &inline, &[("messages[1].image_url.detail", LossKind::Dropped)]);
    let audio = Content::Audio(Audio { format: "mp3".to_owned(), base64: "QQ==".to_owned() });
    check_block(audio, &json!({"inlineData": {"mimeType": "audio/mp3", "data": "QQ=="}}), NOTHING);
}

#[test]
fn documents_are_files_or_text() {
    let document = |source| Document { source, title: None, context: None, citations: false };
    let pdf = MediaSource::Url("https://x/a".to_owned());
    check_block(
        Content::Document(document(DocumentSource::Media(pdf))),
        &json!({"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/a"}}),
        NOTHING,
    );
    let mut cited = document(DocumentSource::Text("t".to_owned()));
    cited.citations = true;
    cited.title = Some("x".to_owned());
    let lost =
        [("messages[1].file.filename", LossKind::Dropped), ("messages[1].citations", LossKind::Dropped)];
    check_block(Content::Document(cited), &json!({"text": "t"}), &lost);
    let blocks = vec![text("a"), text("b")];
    let parts = Content::Document(document(DocumentSource::Blocks(blocks)));
    check_block(parts, &json!({"text": "a\nb"}), NOTHING);
}

#[test]
fn blocks_without_a_place_are_dropped() {
    let opaque = |origin| Content::Opaque(Opaque { origin, value: raw(r#"{"executableCode":{}}"#) });
    check_block(opaque(Origin::Gemini), &json!({"executableCode": {}}), NOTHING);
    check_block(opaque(Origin::Anthropic), &Value::Null, &[("messages[1]", LossKind::Dropped)]);
    check_block(Content::text(""), &Value::Null, NOTHING);
    let mut prompt = prompt();
    prompt.turns[0].blocks[0].cache = Some(CacheMark::Short);
    // A cache mark costs nothing but money, so its loss is none.
    let contents = json!([{"role": "user", "parts": [{"text": "Hi"}]}]);
    check(&prompt, MODEL, "contents", &contents, NOTHING);
}

#[test]
fn calls_carry_their_signature_or_the_word_for_none() {
    let part = |signature: Option<&str>| {
        let mut part = json!({"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}});
        if let Some(signature) = signature {
            part["thoughtSignature"] = json!(signature);
        }
        part
    };
    let skip = Some("skip_thought_signature_validator");
    let own = || call("c", "f", Some(signature(Origin::Gemini)));
    let bare = || call("c", "f", None);
    check_turn(vec![own(), bare()], NEW_MODEL, &json!([part(Some("S==")), part(None)]), NOTHING);
    check_turn(vec![bare(), bare()], NEW_MODEL, &json!([part(skip), part(None)]), NOTHING);
    check_turn(vec![bare()], MODEL, &json!([part(None)]), NOTHING);
    let foreign = call("c", "f", Some(signature(Origin::OpenAi)));
    check_turn(vec![foreign], NEW_MODEL, &json!([part(skip)]), &[("messages[1]", LossKind::Dropped)]);
}

#[test]
fn signed_thinking_survives_the_round_trip() {
    let thinking = |said: &str, origin: Option<Origin>| {
        block(Content::Thinking(Thinking { text: said.to_owned(), signature: origin.map(signature) }))
    };
    let thought = json!({"text": "hm", "thought": true});
    let signed = json!({"text": "a", "thoughtSignature": "S=="});
    let gemini = Some(Origin::Gemini);
    // The signature of reasoning stands on the part that follows it.
    check_turn(vec![thinking("hm", gemini), text("a")], MODEL, &json!([thought, signed]), NOTHING);
    let call_part =
        json!({"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}, "thoughtSignature": "S=="});
    check_turn(vec![thinking("", gemini), call("c", "f", None)], NEW_MODEL, &json!([call_part]), NOTHING);
    let redacted = block(Content::RedactedThinking(signature(Origin::Gemini)));
    check_turn(
        vec![text("b"), redacted],
        MODEL,
        &json!([{"text": "b"}, {"text": "", "thoughtSignature": "S=="}]),
        NOTHING,
    );
    let own =
        Text { text: "a".to_owned(), signature: Some(signature(Origin::Gemini)), citations: Vec::new() };
    check_turn(vec![block(Content::Text(own))], MODEL, &json!([signed]), NOTHING);
    // Another provider's goes nowhere, and what nobody signed is not needed.
    let lost = [("messages[1]", LossKind::Dropped)];
    for origin in [Some(Origin::Anthropic), Some(Origin::Bedrock), Some(Origin::OpenAi), None] {
        check_turn(vec![thinking("hm", origin), text("a")], MODEL, &json!([{"text": "a"}]), &lost);
    }
    let foreign = block(Content::RedactedThinking(signature(Origin::Anthropic)));
    check_turn(vec![foreign, text("a")], MODEL, &json!([{"text": "a"}]), &lost);
}

#[test]
fn refusals_and_citations_of_the_history() {
    let refusal = block(Content::Refusal("no".to_owned()));
    check_turn(vec![refusal], MODEL, &json!([{"text": "no"}]), &[("messages[1]", LossKind::Emulated)]);
    let cited = Text { text: "a".to_owned(), citations: vec![Citation::default()], signature: None };
    let lost = [("messages[1].citations", LossKind::Dropped)];
    check_turn(vec![block(Content::Text(cited))], MODEL, &json!([{"text": "a"}]), &lost);
}

#[test]
fn parallel_tool_results_share_one_turn() {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, vec![call("c0", "f", None), call("c1", "g", None)]);
    // Results come in any order, and go out in the order of their calls; what the user says stands behind them.
    let results = vec![
        result("c1", vec![text("r1")], true),
        result("c0", vec![text("r0"), text("x")], false),
        text("and?"),
    ];
    prompt.say(Role::User, results);
    let (body, loss) = write(&prompt, MODEL);
    assert!(loss.is_empty());
    assert_eq!(
        body["contents"].as_array().unwrap()[2..],
        [
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "r0\nx"}}},
                {"functionResponse": {"name": "g", "response": {"error": "r1"}}},
            ]}),
            json!({"role": "user", "parts": [{"text": "and?"}]}),
        ]
    );
}

#[test]
fn pictures_of_a_result_follow_it() {
    let mut prompt = prompt();
    prompt.say(Role::Assistant, vec![call("c0", "f", None)]);
    let source = MediaSource::Data { media_type: "image/png".to_owned(), base64: "QQ==".to_owned() };
    let image = block(Content::Image(Image { source, detail: None }));
    prompt.say(Role::User, vec![result("c0", vec![image], false), result("lost", vec![], false)]);
    let (body, loss) = write(&prompt, MODEL);
    let path = |index: usize| (loss[index].0.as_str(), loss[index].1);
    assert_eq!(
        (path(0), path(1)),
        (("messages[1]", LossKind::Emulated), ("messages[1]", LossKind::Approximated))
    );
    assert_eq!(
        body["contents"].as_array().unwrap()[2..],
        [
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": ""}}},
                {"functionResponse": {"name": "lost", "response": {"output": ""}}},
            ]}),
            json!({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]}),
        ]
    );
}

#[test]
fn tools_are_declared_with_their_schemas() {
    let mut prompt = prompt();
    prompt.tools.push(function("f", r#"{"type":"object","properties":{"z":{"type":"string"},"a":{}}}"#));
    let kind = ToolKind::Function {
        name: "g".to_owned(),
        description: Some("does".to_owned()),
        parameters: Some(raw(r#"{"type":"object","minProperties":1}"#)),
        strict: Some(true),
    };
    prompt.tools.push(Tool { kind, cache: Some(CacheMark::Short), place: Place::item("tools", 1) });
    let server = |origin| ToolKind::Server(origin, raw(r#"{"googleSearch":{}}"#));
    prompt.tools.push(Tool { kind: server(Origin::Gemini), cache: None, place: Place::item("tools", 2) });
    prompt.tools.push(Tool { kind: server(Origin::OpenAi), cache: None, place: Place::item("tools", 3) });
    let declared = json!([
        {"functionDeclarations": [
            {"name": "f", "parametersJsonSchema": {"type": "object", "properties": {"z": {"type": "string"}, "a": {}}}},
            {"name": "g", "description": "does", "parametersJsonSchema": {"type": "object"}},
        ]},
        {"googleSearch": {}},
    ]);
    let lost = [
        ("tools[3]", LossKind::Dropped),
        ("tools[1].function.strict", LossKind::Approximated),
        ("tools[1].function.parameters", LossKind::Approximated),
    ];
    check(&prompt, MODEL, "tools", &declared, &lost);
    let options = WriteOptions {
        model: MODEL,
        output_bound: None,
        default_output: TokenCount::ZERO,
        output_field: OutputField::MaxTokens,
    };
    let body = write_prompt(&prompt, &options).0;
    assert!(std::str::from_utf8(&body).unwrap().contains(r#""properties":{"z":{"type":"string"},"a":{}}"#));
}

#[test]
fn the_choice_of_a_tool_is_a_mode() {
    let check_choice = |choice, config: Value, lost: &[(&str, LossKind)]| {
        let mut prompt = prompt();
        prompt.tools.push(function("f", "{}"));
        prompt.tool_choice = Some(choice);
        check(&prompt, MODEL, "toolConfig.functionCallingConfig", &config, lost);
    };
    check_choice(ToolChoice::Auto, json!({"mode": "AUTO"}), NOTHING);
    check_choice(ToolChoice::None, json!({"mode": "NONE"}), NOTHING);
    check_choice(ToolChoice::Required, json!({"mode": "ANY"}), NOTHING);
    let one = json!({"mode": "ANY", "allowedFunctionNames": ["f"]});
    check_choice(ToolChoice::Tool("f".to_owned()), one, NOTHING);
    let lost = [("tool_choice", LossKind::Approximated)];
    check_choice(ToolChoice::Tool("x".to_owned()), json!({"mode": "ANY"}), &lost);
    let mut without_tools = prompt();
    without_tools.tool_choice = Some(ToolChoice::Auto);
    check(&without_tools, MODEL, "toolConfig", &Value::Null, NOTHING);
}

#[test]
fn sampling_has_gemini_names() {
    let mut prompt = prompt();
    prompt.max_output = Some(64);
    prompt.sampling.temperature = serde_json::from_str("0.7").unwrap();
    prompt.sampling.top_p = serde_json::from_str("0.9").unwrap();
    prompt.sampling.top_k = serde_json::from_str("40").unwrap();
    prompt.sampling.presence_penalty = serde_json::from_str("0.5").unwrap();
    prompt.sampling.frequency_penalty = serde_json::from_str("-0.5").unwrap();
    prompt.sampling.seed = serde_json::from_str("7").unwrap();
    prompt.sampling.stop = vec!["a".to_owned(), "b".to_owned()];
    prompt.sampling.choices = Some(2);
    prompt.sampling.logprobs = Some(true);
    prompt.sampling.top_logprobs = Some(3);
    let config = json!({
        "maxOutputTokens": 64, "temperature": 0.7, "topP": 0.9, "topK": 40, "presencePenalty": 0.5,
        "frequencyPenalty": -0.5, "seed": 7, "stopSequences": ["a", "b"], "candidateCount": 2,
        "responseLogprobs": true, "logprobs": 3,
    });
    check(&prompt, MODEL, "generationConfig", &config, NOTHING);
}

#[test]
fn sampling_that_does_not_fit_is_brought_near() {
    let mut prompt = prompt();
    prompt.sampling.seed = serde_json::from_str("4294967303").unwrap();
    prompt.sampling.stop = (0..6).map(|n| n.to_string()).collect();
    let config = json!({"seed": 7, "stopSequences": ["0", "1", "2", "3", "4"]});
    let lost = [("seed", LossKind::Approximated), ("stop", LossKind::Approximated)];
    check(&prompt, MODEL, "generationConfig", &config, &lost);
}

#[test]
fn settings_without_a_place_are_reported() {
    let mut prompt = prompt();
    prompt.sampling.logit_bias = Some(raw("{}"));
    prompt.parallel_tool_calls = Some(false);
    prompt.verbosity = Some("low".to_owned());
    prompt.user = Some("u".to_owned());
    prompt.metadata = Some(raw("{}"));
    prompt.service_tier = Some("flex".to_owned());
    prompt.cache_key = Some("k".to_owned());
    prompt.store = Some(true);
    // End user, labels, cache key and storage are among the harmless, which are not reported.
    prompt.rest.push(Unknown { path: "x".to_owned(), value: raw("1") });
    let names = ["logit_bias", "parallel_tool_calls", "verbosity", "service_tier", "x"];
    let lost: Vec<_> = names.into_iter().map(|name| (name, LossKind::Dropped)).collect();
    check(&prompt, MODEL, "generationConfig", &json!({}), &lost);
    let mut usual = self::prompt();
    usual.parallel_tool_calls = Some(true);
    usual.service_tier = Some("auto".to_owned());
    usual.store = Some(false);
    check(&usual, MODEL, "generationConfig", &json!({}), NOTHING);
}

#[test]
fn formats_are_native_unless_tools_forbid_it() {
    let mut prompt = prompt();
    prompt.format = Format::JsonObject;
    check(&prompt, MODEL, "generationConfig", &json!({"responseMimeType": "application/json"}), NOTHING);
    prompt.format = schema(r#"{"type":"string"}"#);
    let native = json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "string"}});
    check(&prompt, MODEL, "generationConfig", &native, NOTHING);
    prompt.tools.push(function("f", "{}"));
    check(&prompt, NEW_MODEL, "generationConfig", &native, NOTHING);
    let lost = [("response_format", LossKind::Emulated)];
    check(&prompt, MODEL, "generationConfig", &json!({}), &lost);
    let (body, _) = write(&prompt, MODEL);
    let said = body["systemInstruction"]["parts"][0]["text"].as_str().unwrap();
    assert!(said.ends_with(r#"JSON schema: {"type":"string"}"#), "{said}");
    let mut loose = self::prompt();
    loose.format = schema(r#"{"pattern":"a"}"#);
    let native = json!({"responseMimeType": "application/json", "responseJsonSchema": {}});
    check(&loose, MODEL, "generationConfig", &native, &[("response_format", LossKind::Approximated)]);
}

#[test]
fn thinking_is_a_budget_or_a_level() {
    let check_thinking = |model: &str, reasoning: Reasoning, config: Value, exact: bool| {
        let mut prompt = prompt();
        prompt.reasoning = Some(reasoning);
        let lost = [("reasoning_effort", LossKind::Approximated)];
        check(
            &prompt,
            model,
            "generationConfig.thinkingConfig",
            &config,
            if exact { NOTHING } else { &lost },
        );
    };
    let effort = |effort| Reasoning { effort: Some(effort), ..Reasoning::default() };
    let budget = |tokens| Reasoning { budget_tokens: Some(tokens), ..Reasoning::default() };
    check_thinking(MODEL, effort(Effort::Low), json!({"thinkingBudget": 1_024}), true);
    check_thinking(MODEL, effort(Effort::None), json!({"thinkingBudget": 0}), true);
    check_thinking(MODEL, effort(Effort::Max), json!({"thinkingBudget": 24_576}), false);
    check_thinking("gemini-2.5-pro", effort(Effort::None), json!({"thinkingBudget": 128}), false);
    check_thinking(MODEL, budget(5_000), json!({"thinkingBudget": 5_000}), true);
    check_thinking(NEW_MODEL, budget(5_000), json!({"thinkingBudget": 5_000}), true);
    check_thinking(NEW_MODEL, effort(Effort::High), json!({"thinkingLevel": "high"}), true);
    check_thinking(NEW_MODEL, effort(Effort::Minimal), json!({"thinkingLevel": "minimal"}), true);
    check_thinking("gemini-3-pro", effort(Effort::None), json!({"thinkingLevel": "low"}), false);
    check_thinking(NEW_MODEL, effort(Effort::ExtraHigh), json!({"thinkingLevel": "high"}), false);
    let adaptive = Reasoning { adaptive: true, ..Reasoning::default() };
    check_thinking(MODEL, adaptive, json!({"thinkingBudget": -1}), true);
    check_thinking(NEW_MODEL, adaptive, Value::Null, true);
    let shown = |summary| Reasoning { summary: Some(summary), ..Reasoning::default() };
    check_thinking(MODEL, shown(Summary::Auto), json!({"includeThoughts": true}), true);
    check_thinking(MODEL, shown(Summary::Omitted), json!({"includeThoughts": false}), true);
    let mut old = prompt();
    old.reasoning = Some(effort(Effort::Low));
    check(
        &old,
        "gemini-2.0-flash",
        "generationConfig",
        &json!({}),
        &[("reasoning_effort", LossKind::Dropped)],
    );
}
