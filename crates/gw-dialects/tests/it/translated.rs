//! Every recorded exchange, through the translations: answers and streams to each format that callers read.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{
    anthropic,
    neutral::{AnswerStamp, Content, Message},
    openai, responses,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
};
use gw_types::{AnswerFacts, FinishReason, GatewayError, Operation, Usage};

use crate::fixtures::{Exchange, chat_exchanges, exchanges_of};

const STAMP: AnswerStamp<'_> = AnswerStamp { id: "id-1", created: 7, model: "m" };
const CALLERS: [Operation; 3] = [Operation::Chat, Operation::Messages, Operation::Responses];

/// Every exchange whose answer is a translation's to read, beside the format.
fn exchanges(stream: bool) -> Vec<(WireFormat, &'static Exchange)> {
    let of = |format, list: Vec<&'static Exchange>| {
        list.into_iter()
            .filter(move |one| one.status == 200 && one.stream == stream)
            .map(move |one| (format, one))
    };
    let converse = if stream { "converse-stream" } else { "converse" };
    let gemini = if stream { "streamGenerateContent" } else { "generateContent" };
    of(WireFormat::OpenAiChat, chat_exchanges())
        .chain(of(WireFormat::AnthropicMessages, exchanges_of("messages")))
        .chain(of(WireFormat::OpenAiResponses, exchanges_of("responses")))
        .chain(of(WireFormat::Gemini, exchanges_of(gemini)))
        .chain(of(WireFormat::BedrockConverse, exchanges_of(converse)))
        .collect()
}

/// Reads an answer as its caller would.
fn read_by(caller: Operation, body: &Bytes) -> Message {
    let read = match caller {
        Operation::Messages => anthropic::read_message(body),
        Operation::Responses => responses::read_message(body),
        _ => openai::read_message(body),
    };
    read.unwrap()
}

/// What of an answer every format has a place for.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    text: String,
    calls: Vec<(String, String)>,
    finish: FinishReason,
    usage: Option<(u64, u64, u64)>,
}

fn said(message: &Message) -> Said {
    let choice = &message.choices[0];
    let mut said = Said {
        text: String::new(),
        calls: Vec::new(),
        finish: choice.finish,
        usage: message.usage.map(|usage| totals(&usage)),
    };
    for block in &choice.blocks {
        match block {
            Content::Text(text) => said.text.push_str(&text.text),
            Content::Refusal(text) => said.text.push_str(text),
            Content::ToolUse(call) => {
                let arguments: serde_json::Value =
                    serde_json::from_str(call.arguments_object().as_str()).unwrap();
                said.calls.push((call.name.clone(), arguments.to_string()));
            }
            _ => {}
        }
    }
    said
}

fn totals(usage: &Usage) -> (u64, u64, u64) {
    (usage.input_total().get(), usage.cached_input.get(), usage.output_total().get())
}

/// What the caller's format has no word for is told by the nearest.
fn as_told(caller: Operation, mut said: Said) -> Said {
    said.finish = match (caller, said.finish) {
        (_, FinishReason::Other) if !said.calls.is_empty() => FinishReason::ToolCalls,
        (Operation::Chat | Operation::Messages, FinishReason::Other) => FinishReason::Stop,
        (Operation::Messages, FinishReason::ContentFilter) => FinishReason::Refusal,
        (_, finish) => finish,
    };
    said
}

#[test]
fn every_recorded_answer_reaches_every_caller() {
    let mut read = 0;
    for (format, exchange) in exchanges(false) {
        let id = &exchange.id;
        let raw = Bytes::copy_from_slice(&exchange.body);
        let Ok(message) = translate::read_message(format, &raw) else {
            // Errors inside a 200, which other tests name.
            assert!(id.contains("error") || id.contains("filtered") || id.contains("400"), "{id}");
            continue;
        };
        for caller in CALLERS {
            let (body, facts) = translate::answer(format, &raw, caller, &STAMP).unwrap();
            let back = read_by(caller, &body);
            let mut expected = as_told(caller, said(&message));
            let mut told = as_told(caller, said(&back));
            // A refusal without words is a stop in formats that carry it by its words.
            if expected.finish == FinishReason::Refusal && told.finish == FinishReason::Stop {
                expected.finish = FinishReason::Stop;
            }
            if caller != Operation::Messages && expected.finish == FinishReason::Stop {
                told.finish = FinishReason::Stop;
            }
            if caller == Operation::Messages && message.usage.is_none() {
                told.usage = None;
            }
            assert_eq!(told, expected, "{id} to {caller:?}");
            check_facts(id, &facts, &message);
        }
        read += 1;
    }
    assert!(read == 0 || read > 100, "{read}");
}

fn check_facts(id: &str, facts: &AnswerFacts, message: &Message) {
    assert_eq!(facts.usage, message.usage, "{id}");
    let calls = message.choices.iter().flat_map(|choice| &choice.blocks);
    let calls = calls.filter(|block| matches!(block, Content::ToolUse(_))).count();
    assert_eq!(facts.tool_calls, calls > 0, "{id}");
}

struct Streamed {
    body: Vec<u8>,
    terminals: usize,
    error: Option<GatewayError>,
    usage: Option<Usage>,
}

fn stream(format: WireFormat, caller: Operation, exchange: &Exchange, bytes: usize) -> Streamed {
    let translation = StreamTranslation { from: format, to: caller, stamp: STAMP, relay_usage: true };
    let mut translator = StreamTranslator::new(&translation).unwrap();
    let mut items = VecDeque::new();
    for chunk in exchange.body.chunks(bytes) {
        translator.push(Bytes::copy_from_slice(chunk), &mut items);
    }
    let mut error = None;
    match translator.end() {
        Ok(item) => items.push_back(item),
        Err(interrupted) => error = Some(interrupted),
    }
    Streamed {
        body: items.iter().flat_map(|item| item.raw.to_vec()).collect(),
        terminals: items.iter().filter(|item| item.facts.terminal).count(),
        usage: items.iter().filter_map(|item| item.facts.usage.as_deref().copied()).next_back(),
        error: error.or_else(|| items.iter().find_map(|item| item.facts.error.clone())),
    }
}

/// Reads a stream as its caller would.
fn read_stream(caller: Operation, body: &[u8]) -> Message {
    use gw_dialects::{collect::Collector, neutral::Event};

    let mut events = Vec::new();
    let body = Bytes::copy_from_slice(body);
    match caller {
        Operation::Messages => {
            let mut reader = anthropic::StreamReader::new();
            reader.push(body, &mut events);
            reader.end(&mut events);
        }
        Operation::Responses => {
            let mut reader = responses::StreamReader::new();
            reader.push(body, &mut events);
            reader.end(&mut events);
        }
        _ => {
            let mut reader = openai::StreamReader::new();
            reader.push(body, &mut events);
            reader.end(&mut events);
        }
    }
    assert!(matches!(events.last(), Some(Event::End)), "{:?}", events.last());
    let mut collector = Collector::default();
    collector.extend(events);
    collector.finish()
}

#[test]
fn every_recorded_stream_reaches_every_caller_however_it_is_cut() {
    let mut read = 0;
    for (format, exchange) in exchanges(true) {
        let id = &exchange.id;
        let mut first: Option<Said> = None;
        for caller in CALLERS {
            let whole = stream(format, caller, exchange, usize::MAX);
            // Readers are fed in pieces, whoever reads what the writers make of it.
            if caller == Operation::Chat {
                let cut = stream(format, caller, exchange, 1);
                assert!(whole.body == cut.body, "{id} to {caller:?}");
                assert_eq!((whole.usage, &whole.error), (cut.usage, &cut.error), "{id}");
            }
            assert_eq!(whole.terminals, usize::from(whole.error.is_none()), "{id}");
            if whole.error.is_some() {
                continue;
            }
            let message = read_stream(caller, &whole.body);
            let mut told = said(&message);
            assert!(
                told.finish != FinishReason::Other || caller == Operation::Responses,
                "{id} to {caller:?}"
            );
            if whole.usage.is_none() {
                told.usage = None;
            }
            assert_eq!(told.usage, whole.usage.map(|usage| totals(&usage)), "{id} to {caller:?}");
            let first = first.get_or_insert_with(|| Said {
                text: told.text.clone(),
                calls: told.calls.clone(),
                ..told
            });
            assert_eq!((&first.text, &first.calls), (&said(&message).text, &said(&message).calls), "{id}");
            read += 1;
        }
    }
    assert!(read == 0 || read > 150, "{read}");
}

#[test]
fn every_recorded_messages_stream_passes_as_it_came() {
    for exchange in exchanges_of("messages").into_iter().filter(|one| one.status == 200 && one.stream) {
        let id = &exchange.id;
        let decode = |bytes: usize| {
            let mut decoder = anthropic::StreamDecoder::new();
            let mut items = VecDeque::new();
            for chunk in exchange.body.chunks(bytes) {
                decoder.push(Bytes::copy_from_slice(chunk), &mut items);
            }
            let end = decoder.end();
            items.extend(end.clone().ok());
            let raw: Vec<u8> = items.iter().flat_map(|item| item.raw.to_vec()).collect();
            let failed = end.is_err() || items.iter().any(|item| item.facts.error.is_some());
            let usage = items.iter().filter_map(|item| item.facts.usage.as_deref().copied()).next_back();
            let content: u32 = items.iter().map(|item| item.facts.content_frames).sum();
            (raw, failed, usage, content)
        };
        let whole = decode(usize::MAX);
        assert_eq!(whole, decode(1), "{id}");
        let (raw, failed, usage, content) = whole;
        assert_eq!(failed, id.contains("overloaded"), "{id}");
        if failed {
            continue;
        }
        let sent = String::from_utf8(exchange.body.clone()).unwrap();
        assert_eq!(String::from_utf8(raw).unwrap().trim_end(), sent.trim_end(), "{id}");
        assert!(usage.is_some() && (content > 0 || id.contains("refusal")), "{id}");
    }
}

#[test]
fn every_recorded_messages_answer_is_read() {
    for exchange in exchanges_of("messages").into_iter().filter(|one| one.status == 200 && !one.stream) {
        let raw = Bytes::copy_from_slice(&exchange.body);
        let facts = anthropic::read_answer(&raw).unwrap_or_else(|error| panic!("{}: {error:?}", exchange.id));
        assert!(
            facts.usage.is_some() && facts.finish.is_some() && facts.served_model.is_some(),
            "{}",
            exchange.id
        );
    }
    for exchange in exchanges_of("count_tokens").into_iter().filter(|one| one.status == 200) {
        let raw = Bytes::copy_from_slice(&exchange.body);
        assert!(anthropic::read_token_count(&raw).unwrap() > 0, "{}", exchange.id);
    }
}

#[test]
fn every_recorded_messages_error_has_its_kind() {
    use gw_types::ErrorKind;

    let mut read = 0;
    for exchange in exchanges_of("messages").into_iter().chain(exchanges_of("count_tokens")) {
        let expected = match exchange.status {
            200 => continue,
            400 => ErrorKind::InvalidRequest,
            401 | 403 => ErrorKind::ProviderAuth,
            404 => ErrorKind::DeploymentMissing,
            429 => ErrorKind::ProviderRateLimited,
            500 | 529 => ErrorKind::ProviderUnavailable,
            other => panic!("{}: {other}", exchange.id),
        };
        let header = |name: &str| exchange.header(name);
        let head =
            openai::ErrorHead { status: exchange.status, header: &header, utc: gw_types::UtcTime::default() };
        let error = anthropic::classify(&head, &exchange.body);
        assert_eq!(error.kind(), expected, "{}", exchange.id);
        assert!(error.detail().is_some_and(|detail| !detail.message().is_empty()), "{}", exchange.id);
        assert_eq!(error.upstream_request_id(), exchange.header("request-id"), "{}", exchange.id);
        let forbidden = exchange.header("x-should-retry") == Some("false");
        assert!(!forbidden || error.forbids_retry(), "{}", exchange.id);
        let body: serde_json::Value =
            serde_json::from_slice(&anthropic::error_body(&error, Some("req_1"))).unwrap();
        assert_eq!((&body["type"], &body["request_id"]), (&"error".into(), &"req_1".into()));
        read += 1;
    }
    assert!(read == 0 || read > 8, "{read}");
}
