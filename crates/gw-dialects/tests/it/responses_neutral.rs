//! Every recorded responses exchange, through the neutral form and back.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use gw_dialects::{
    neutral::{
        AnswerStamp, At, BlockKind, Content, Event, Message, MessageChoice, Opaque, Prompt, RawJson,
        Signature, Text, Thinking, ToolUse, WriteOptions,
    },
    responses::{
        StreamDecoder, StreamEnding, StreamReader, StreamWriter, read_message, read_prompt, write_message,
        write_prompt,
    },
};
use gw_types::{ErrorKind, FinishReason, GatewayError, OutputField, StreamItem, TokenCount, Usage};
use serde_json::Value;

use crate::fixtures::{Exchange, exchanges_of};

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "resp_0", created: 1, model: "asked" };

/// What a stream of events comes to.
#[derive(Debug, Default, PartialEq)]
struct Read {
    id: Option<String>,
    model: Option<String>,
    blocks: Vec<Content>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    error: Option<ErrorKind>,
    ended: bool,
}

/// Puts events together, and checks that they keep to their order.
fn put_together(events: &[Event]) -> Read {
    let mut read = Read::default();
    let mut blocks: Vec<(At, Content, bool)> = Vec::new();
    for event in events {
        assert!(!read.ended && read.error.is_none(), "something follows the end");
        match event {
            Event::Start { id, model } => (read.id, read.model) = (id.clone(), model.clone()),
            Event::BlockStart(at, kind) => {
                assert_eq!(at.block as usize, blocks.len());
                blocks.push((*at, begun(kind), true));
            }
            Event::BlockStop(at) => assert!(std::mem::replace(&mut find(&mut blocks, *at).2, false)),
            Event::TextDelta(at, more) => match &mut find(&mut blocks, *at).1 {
                Content::Text(text) => text.text.push_str(more),
                other => panic!("text in {other:?}"),
            },
            Event::Citation(at, citation) => match &mut find(&mut blocks, *at).1 {
                Content::Text(text) => text.citations.push(citation.clone()),
                other => panic!("a citation in {other:?}"),
            },
            Event::RefusalDelta(at, more) => match &mut find(&mut blocks, *at).1 {
                Content::Refusal(text) => text.push_str(more),
                other => panic!("a refusal in {other:?}"),
            },
            Event::ThinkingDelta(at, more) => match &mut find(&mut blocks, *at).1 {
                Content::Thinking(thinking) => thinking.text.push_str(more),
                other => panic!("reasoning in {other:?}"),
            },
            Event::SignatureDelta(at, more) => match &mut find(&mut blocks, *at).1 {
                Content::Thinking(thinking) => thinking.signature = Some(more.clone()),
                other => panic!("a signature in {other:?}"),
            },
            Event::ArgumentsDelta(at, more) => match &mut find(&mut blocks, *at).1 {
                Content::ToolUse(call) => call.arguments.push_str(more),
                other => panic!("arguments in {other:?}"),
            },
            Event::Logprobs(..) | Event::ServiceTier(_) | Event::Unread(_) => {}
            Event::Finish { reason, .. } => read.finish = Some(*reason),
            Event::Usage(usage) => read.usage = Some(*usage),
            Event::Error(error) => read.error = Some(error.kind()),
            Event::End => read.ended = true,
        }
    }
    assert!(read.error.is_some() || blocks.iter().all(|block| !block.2), "a block is open at the end");
    read.blocks = blocks.into_iter().map(|(_, content, _)| content).collect();
    read
}

fn find(blocks: &mut [(At, Content, bool)], at: At) -> &mut (At, Content, bool) {
    let block = &mut blocks[at.block as usize];
    assert!(block.2, "a delta after the end of its block");
    block
}

fn begun(kind: &BlockKind) -> Content {
    match kind {
        BlockKind::Text => Content::Text(Text::default()),
        BlockKind::Thinking => Content::Thinking(Thinking { text: String::new(), signature: None }),
        BlockKind::RedactedThinking(data) => Content::RedactedThinking(data.clone()),
        BlockKind::ToolUse { id, name, signature } => {
            let (id, name, signature) = (id.clone(), name.clone(), signature.clone());
            Content::ToolUse(ToolUse { id, name, arguments: String::new(), signature })
        }
        BlockKind::Refusal => Content::Refusal(String::new()),
        BlockKind::Opaque(origin, value) => Content::Opaque(Opaque { origin: *origin, value: value.clone() }),
    }
}

fn events(body: &[u8], size: usize) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for piece in body.chunks(size) {
        reader.push(Bytes::copy_from_slice(piece), &mut events);
    }
    reader.end(&mut events);
    events
}

/// What differs between two tellings of one answer: the ids of opaque items, and encrypted forms, which are made anew.
fn comparable(mut blocks: Vec<Content>) -> Vec<Content> {
    for block in &mut blocks {
        let blank = |signature: &mut Signature| signature.data = "same".to_owned();
        match block {
            Content::Thinking(thinking) => thinking.signature.iter_mut().for_each(blank),
            Content::RedactedThinking(signature) => blank(signature),
            // The tests take responses apart, which sorts their members.
            Content::Opaque(opaque) => {
                let sorted: Value = serde_json::from_str(opaque.value.as_str()).unwrap();
                opaque.value = RawJson::new(&sorted.to_string()).unwrap();
            }
            _ => {}
        }
    }
    blocks
}

fn streams() -> Vec<&'static Exchange> {
    exchanges_of("responses").into_iter().filter(|exchange| exchange.stream).collect()
}

/// Returns the response in the last event of a stream.
fn last_response(body: &[u8]) -> Value {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let data = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str::<Value>(data).unwrap()["response"].clone()
}

#[test]
fn recorded_streams_say_what_their_last_event_says() {
    for exchange in streams() {
        let id = &exchange.id;
        let whole = put_together(&events(&exchange.body, usize::MAX));
        for size in [1, 7] {
            assert_eq!(put_together(&events(&exchange.body, size)), whole, "{id}");
        }
        if id.contains("error-in-stream") {
            assert!(whole.error.is_some() && !whole.ended, "{id}");
            continue;
        }
        let message = read_message(&Bytes::from(last_response(&exchange.body).to_string())).unwrap();
        assert!(whole.ended, "{id}");
        assert_eq!((whole.finish, whole.usage), (Some(message.choices[0].finish), message.usage), "{id}");
        assert_eq!(whole.model, message.model, "{id}");
        // One recorder replaced the ids of every event.
        assert!(whole.id == message.id || id.contains("60d897"), "{id}");
        assert_eq!(comparable(whole.blocks), comparable(message.choices[0].blocks.clone()), "{id}");
    }
}

#[test]
fn recorded_answers_survive_being_written() {
    for exchange in exchanges_of("responses").into_iter().filter(|one| one.status == 200 && !one.stream) {
        let id = &exchange.id;
        let Ok(message) = read_message(&Bytes::copy_from_slice(&exchange.body)) else {
            assert!(id.contains("error-200"), "{id}");
            continue;
        };
        let again = read_message(&write_message(&message, &STAMP)).unwrap();
        // What has no place in the neutral form is not there to be written.
        let expected = Message { id: Some("resp_0".to_owned()), unread: Vec::new(), ..message };
        assert_eq!(again, expected, "{id}");
        let calls = again.choices[0].blocks.iter().filter_map(|block| match block {
            Content::ToolUse(call) => Some(call),
            _ => None,
        });
        for call in calls {
            assert!(serde_json::from_str::<Value>(&call.arguments).unwrap().is_object(), "{id}");
        }
    }
}

fn write(events: &[Event]) -> Vec<u8> {
    let mut writer = StreamWriter::new(&STAMP);
    let mut out = BytesMut::new();
    events.iter().for_each(|event| writer.write(event, &mut out));
    out.to_vec()
}

#[test]
fn recorded_streams_survive_being_written() {
    for exchange in streams() {
        let id = &exchange.id;
        let read = events(&exchange.body, usize::MAX);
        let written = write(&read);
        let (before, after) = (put_together(&read), put_together(&events(&written, usize::MAX)));
        if before.error.is_some() {
            assert!(after.error.is_some(), "{id}");
            continue;
        }
        assert_eq!(after, Read { id: Some("resp_0".to_owned()), ..before }, "{id}");
        check_order(id, &written);
        let (items, end) = decode(&written);
        assert!(end.is_ok() && items.iter().any(|item| item.facts.terminal), "{id}");
        let message = read_message(&Bytes::from(last_response(&written).to_string())).unwrap();
        assert_eq!(comparable(message.choices[0].blocks.clone()), comparable(after.blocks), "{id}");
    }
}

fn decode(body: &[u8]) -> (VecDeque<StreamItem>, Result<StreamItem, GatewayError>) {
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    decoder.push(Bytes::copy_from_slice(body), &mut items);
    let end = decoder.end();
    (items, end)
}

/// Checks that events are numbered without gaps and named after their type, and that items and parts begin and end once.
fn check_order(id: &str, body: &[u8]) {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let mut open: Vec<String> = Vec::new();
    for (number, event) in text.split_terminator("\n\n").enumerate() {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        let kind = data["type"].as_str().unwrap();
        assert_eq!(name, format!("event: {kind}"), "{id}");
        assert_eq!(data["sequence_number"].as_u64(), Some(number as u64), "{id}: {kind}");
        let place = |what: &str| {
            format!("{what} {} {} {}", data["output_index"], data["content_index"], data["summary_index"])
        };
        match kind {
            "response.output_item.added" => open.push(place("item")),
            "response.output_item.done" => assert_eq!(open.pop(), Some(place("item")), "{id}"),
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                open.push(place("part"));
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                assert_eq!(open.pop(), Some(place("part")), "{id}");
            }
            "response.completed" | "response.incomplete" => assert!(open.is_empty(), "{id}"),
            _ => {}
        }
    }
}

#[test]
fn a_stream_can_be_ended_behind_any_event() {
    for exchange in streams() {
        let id = &exchange.id;
        let text = String::from_utf8(exchange.body.clone()).unwrap();
        let all: Vec<&str> = text.split_inclusive("\n\n").collect();
        // Behind every event of the short ones and every seventh of the others.
        let step = if all.len() < 40 { 1 } else { 7 };
        for cut in (1..all.len()).step_by(step) {
            let relayed = all[..cut].concat();
            if ["completed", "incomplete", "failed"]
                .iter()
                .any(|end| relayed.contains(&format!("response.{end}\n")))
                || relayed.contains("event: error\n")
            {
                continue;
            }
            let mut ending = StreamEnding::new(&STAMP);
            ending.observe(relayed.as_bytes());
            let capped = [relayed.as_bytes(), &ending.capped()].concat();
            let (items, end) = decode(&capped);
            assert!(end.is_ok(), "{id} {cut}");
            let finish = items.iter().find_map(|item| item.facts.finish);
            assert_eq!(finish, Some(FinishReason::Length), "{id} {cut}");
            let streamed = put_together(&events(&capped, usize::MAX)).blocks;
            let last = read_message(&Bytes::from(last_response(&capped).to_string())).unwrap();
            // A search of OpenAI's own is told of in the last event once it is finished.
            let told = last.choices[0].blocks.clone();
            let finished = |blocks: Vec<Content>| -> Vec<Content> {
                blocks.into_iter().filter(|block| !matches!(block, Content::Opaque(_))).collect()
            };
            assert_eq!(comparable(finished(streamed)), comparable(finished(told)), "{id} {cut}");

            let mut ending = StreamEnding::new(&STAMP);
            ending.observe(relayed.as_bytes());
            let error = GatewayError::new(ErrorKind::StreamInterrupted, "cut");
            let failed = [relayed.as_bytes(), &ending.failed(&error)].concat();
            assert_eq!(last_response(&failed)["status"], "failed", "{id} {cut}");
            assert!(put_together(&events(&failed, usize::MAX)).error.is_some(), "{id} {cut}");
        }
    }
}

fn options(model: &str) -> WriteOptions<'_> {
    WriteOptions {
        model,
        output_bound: None,
        default_output: TokenCount::new(1),
        output_field: OutputField::MaxOutputTokens,
    }
}

fn requests() -> Vec<(&'static Exchange, Prompt)> {
    let usable = exchanges_of("responses").into_iter().filter(|exchange| {
        exchange.request["model"].is_string() && exchange.request["previous_response_id"].is_null()
    });
    let read = usable.map(|exchange| {
        let body = serde_json::to_vec(&exchange.request).unwrap();
        let prompt = read_prompt(&body).unwrap_or_else(|error| panic!("{}: {error:?}", exchange.id));
        (exchange, prompt)
    });
    read.collect()
}

#[test]
fn recorded_requests_survive_being_written() {
    for (exchange, prompt) in requests() {
        let id = &exchange.id;
        let model = exchange.request["model"].as_str().unwrap();
        let (written, loss) = write_prompt(&prompt, &options(model));
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(normal(&written), normal(&exchange.request), "{id}");
        let known = ["include", "truncation", "stream_options", "max_tool_calls"];
        let lost: Vec<&str> = loss.items.iter().map(|item| item.path.as_str()).collect();
        // What an earlier answer was taken from has no place in the neutral form.
        let is_known = |path: &&str| known.contains(path) || path.ends_with(".annotations");
        assert!(lost.iter().all(is_known), "{id}: {lost:?}");
    }
}

/// Brings a request into one of the forms that mean the same.
fn normal(request: &Value) -> Value {
    let mut request = request.clone();
    let fields = request.as_object_mut().unwrap();
    for field in ["include", "truncation", "stream_options", "max_tool_calls"] {
        fields.remove(field);
    }
    fields.retain(|_, value| !value.is_null() && *value != Value::Bool(false) || value.as_str().is_some());
    let mut items = match fields.remove("input").unwrap() {
        Value::String(text) => vec![serde_json::json!({"role": "user", "content": text})],
        Value::Array(items) => items,
        other => panic!("{other}"),
    };
    if let Some(Value::String(text)) = fields.remove("instructions") {
        items.insert(0, serde_json::json!({"role": "system", "content": text}));
    }
    for item in &mut items {
        let item = item.as_object_mut().unwrap();
        for field in ["id", "status", "phase", "extra_content"] {
            item.remove(field);
        }
        if item.get("type").is_some_and(|kind| kind == "message") {
            item.remove("type");
        }
        // Without an encrypted form reasoning is no more than its text, whichever field it stands in.
        if item.get("type").is_some_and(|kind| kind == "reasoning")
            && item.get("summary").is_some_and(|summary| *summary == serde_json::json!([]))
            && let Some(mut content) = item.remove("content")
        {
            for part in content.as_array_mut().into_iter().flatten() {
                part["type"] = Value::from("summary_text");
            }
            item.insert("summary".to_owned(), content);
        }
        for field in ["content", "output"] {
            if let Some(content) = item.get_mut(field) {
                normal_content(content);
            }
        }
        if item.get("content").is_some_and(|content| *content == serde_json::json!([])) {
            item.remove("content");
        }
        item.retain(|_, value| !value.is_null());
    }
    fields.insert("input".to_owned(), merged(items));
    if let Some(tools) = fields.get_mut("tools").and_then(Value::as_array_mut) {
        for tool in tools.iter_mut().filter_map(Value::as_object_mut) {
            tool.retain(|_, value| !value.is_null() && *value != Value::Bool(false));
        }
    }
    if fields.get("text").is_some_and(|text| *text == serde_json::json!({"format": {"type": "text"}})) {
        fields.remove("text");
    }
    if fields.get("metadata").is_some_and(|metadata| *metadata == serde_json::json!({})) {
        fields.remove("metadata");
    }
    if fields.get("store") == Some(&Value::Bool(true)) {
        fields.remove("store");
    }
    if fields.get("tools").is_some_and(|tools| *tools == serde_json::json!([])) {
        fields.remove("tools");
        fields.remove("tool_choice");
    }
    request
}

fn normal_content(content: &mut Value) {
    if let Value::String(text) = content {
        *content = serde_json::json!([{"type": "text", "text": text}]);
    }
    for part in content.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if part.get("text").is_some() {
            part.insert("type".to_owned(), Value::from("text"));
        }
        part.remove("annotations");
        part.remove("logprobs");
        if part.get("detail").is_some_and(|detail| detail == "auto") {
            part.remove("detail");
        }
        part.retain(|_, value| !value.is_null());
    }
}

/// Joins neighbours of one role.
fn merged(items: Vec<Value>) -> Value {
    let mut merged: Vec<Value> = Vec::new();
    for item in items {
        if let Some(last) = merged.last_mut()
            && last["role"].is_string()
            && last["role"] == item["role"]
            && (item["role"] == "user" || item["role"] == "assistant")
        {
            let more = item["content"].as_array().unwrap().clone();
            last["content"].as_array_mut().unwrap().extend(more);
        } else {
            merged.push(item);
        }
    }
    Value::from(merged)
}

#[test]
fn written_requests_read_back_alike() {
    for (exchange, prompt) in requests() {
        let (first, _) = write_prompt(&prompt, &options("m"));
        let again = read_prompt(&first).unwrap();
        let (second, loss) = write_prompt(&again, &options("m"));
        assert_eq!(first, second, "{}", exchange.id);
        let lost: Vec<&str> = loss.items.iter().map(|item| item.path.as_str()).collect();
        assert!(lost.iter().all(|path| *path == "include"), "{}: {lost:?}", exchange.id);
    }
}

#[test]
fn an_answer_of_another_format_is_written_as_events_in_order() {
    let choice = MessageChoice::new(
        vec![
            Content::Thinking(Thinking {
                text: "Hm.".to_owned(),
                signature: Some(Signature::new(gw_dialects::neutral::Origin::Anthropic, "Sig+/=1")),
            }),
            Content::text("Hello."),
            Content::ToolUse(ToolUse {
                id: "t0".to_owned(),
                name: "f".to_owned(),
                arguments: "{\"a\":1}".to_owned(),
                signature: None,
            }),
        ],
        FinishReason::ToolCalls,
    );
    let message = Message { choices: vec![choice], ..Message::default() };
    let body: Value = serde_json::from_slice(&write_message(&message, &STAMP)).unwrap();
    assert_eq!(body["output"][0]["encrypted_content"], "gw1.anthropic.Sig+/=1");
    let ids: Vec<&str> =
        body["output"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["rs_0_0", "msg_0_1", "fc_0_2"]);
    let again = read_message(&Bytes::from(body.to_string())).unwrap();
    assert_eq!(again.choices, message.choices);
}
