//! Every recorded exchange of Bedrock Converse against what is written down here.

use bytes::Bytes;
use gw_dialects::{
    bedrock::{StreamReader, classify, read_message},
    collect::Collector,
    event_stream::{HeaderValue, encode},
    neutral::{Content, Event, Message},
    openai::ErrorHead,
};
use gw_types::{ErrorKind, FinishReason, GatewayError, UtcTime};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    fixtures::{Exchange, exchanges_of},
    order,
};

/// What an answer is: its blocks, why it ended, and the tokens by class (input, cache read, cache write, output).
struct Expected {
    id: &'static str,
    blocks: &'static [&'static str],
    finish: FinishReason,
    usage: Option<[u64; 4]>,
}

const fn row(
    id: &'static str,
    blocks: &'static [&'static str],
    finish: FinishReason,
    usage: [u64; 4],
) -> Expected {
    Expected { id, blocks, finish, usage: Some(usage) }
}

use FinishReason::{ContentFilter, Length, Stop, ToolCalls};

/// Blocks are named by kind: `thinking+` carries a signature, `text2` has two citations, `call:NAME(ARGUMENTS)` is a call.
#[rustfmt::skip] // One answer a line.
const ANSWERS: &[Expected] = &[
    row("bedrock-converse--document-usage-cached--f890d8", &["text0"], Stop, [3, 1712, 236, 121]),
    row("bedrock-converse--filtered-guardrail--53b8ed", &["text0"], ContentFilter, [28, 0, 0, 26]),
    row("bedrock-converse--filtered-guardrail--5cac05", &["text0"], ContentFilter, [17, 0, 0, 17]),
    row("bedrock-converse--json-schema-system--a09843", &["text0"], Stop, [50, 0, 0, 20]),
    row("bedrock-converse--signature-reasoning--17e7f4", &["thinking+", "text0"], Stop, [67, 0, 0, 47]),
    row("bedrock-converse--signature-reasoning--f7f32f", &["thinking+", "text0"], Stop, [80, 0, 0, 588]),
    row("bedrock-converse--tool-call--e58b00", &["text0", "call:updateIssueList({})"], ToolCalls, [100, 0, 0, 25]),
    row("bedrock-converse--tool-call-server-tool--f1b516", &["opaque", "opaque", "text3", "text0"], Stop, [141, 0, 0, 322]),
    row("bedrock-converse--tool-result-usage-cached--12ebc9", &["text0"], Stop, [458, 2098, 0, 4]),
    row("bedrock-converse--tools-parallel-tool-result--2e8ded", &["opaque", "opaque", r#"call:final_result({"result":14013304.0})"#], ToolCalls, [1148, 0, 0, 59]),
    row("bedrock-converse--truncated-text--228405", &["text0"], Length, [8, 0, 0, 10]),
    row("bedrock-converse-stream--stream-document-text--f2e769", &["text1"], Stop, [670, 0, 0, 28]),
    row("bedrock-converse-stream--stream-filtered-guardrail--54d246", &["text0"], ContentFilter, [28, 0, 0, 22]),
    row("bedrock-converse-stream--stream-json-schema-text--641bb8", &["text0"], Stop, [210, 0, 0, 18]),
    row("bedrock-converse-stream--stream-signature-reasoning--58e770", &["thinking+", "text0"], Stop, [51, 0, 0, 94]),
    row("bedrock-converse-stream--stream-signature-reasoning--8ce391", &["thinking+", "text0"], Stop, [36, 0, 0, 73]),
    row("bedrock-converse-stream--stream-tool-call-tool-result--bb5e44", &["call:best_language_to_learn({})"], ToolCalls, [1138, 0, 0, 18]),
    // A published fixture without metadata.
    Expected { id: "bedrock-converse-stream--stream-tools-parallel--2ca41d", blocks: &["text0", r#"call:tool-a({"a":"1"})"#, r#"call:tool-b({"b":"2"})"#, "text0", r#"call:json({"final":"result"})"#], finish: ToolCalls, usage: None },
    row("bedrock-converse-stream--stream-tools-parallel-server-tool--1e3fa0", &["opaque", "opaque", r#"call:final_result({"result":7006652.0})"#], ToolCalls, [1002, 0, 0, 59]),
    row("bedrock-converse-stream--stream-truncated-text--2968db", &["text0"], Length, [8, 0, 0, 10]),
];

#[rustfmt::skip] // One error a line.
const ERRORS: &[(&str, ErrorKind)] = &[
    ("bedrock-converse--400--5f1c69", ErrorKind::InvalidRequest),
    ("bedrock-converse--400-validationexception--515cc8", ErrorKind::DeploymentMissing),
    ("bedrock-converse--403-expiredtokenexception--9b40ce", ErrorKind::ProviderAuth),
    ("bedrock-converse--403-unrecognizedclientexception--37b59b", ErrorKind::ProviderAuth),
    ("bedrock-converse--429-throttling--aaeec8", ErrorKind::ProviderRateLimited),
    ("bedrock-converse-stream--400-validationexception--b663c0", ErrorKind::DeploymentMissing),
];

fn exchanges() -> Vec<&'static Exchange> {
    ["converse", "converse-stream"].into_iter().flat_map(exchanges_of).collect()
}

/// Reads a streamed answer that comes in these pieces.
fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk), &mut events);
    }
    reader.end(&mut events);
    order::check(&events);
    events
}

fn stream(body: &[u8], chunk_bytes: usize) -> Result<Message, GatewayError> {
    let events = events(body.chunks(chunk_bytes));
    let mut collector = Collector::default();
    let mut error = None;
    for event in events {
        match event {
            Event::Error(found) => error = Some(found),
            other => collector.push(other),
        }
    }
    error.map_or_else(|| Ok(collector.finish()), Err)
}

fn read(exchange: &Exchange) -> Result<Message, GatewayError> {
    if !exchange.stream {
        return read_message(&exchange.body);
    }
    let whole = stream(&exchange.body, usize::MAX);
    assert_eq!(whole, stream(&exchange.body, 1), "{}", exchange.id);
    whole
}

fn names(message: &Message) -> Vec<String> {
    let name = |block: &Content| match block {
        Content::Text(text) => format!("text{}", text.citations.len()),
        Content::Thinking(thinking) if thinking.signature.is_some() => "thinking+".to_owned(),
        Content::ToolUse(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
            format!("call:{}({arguments})", call.name)
        }
        Content::Opaque(_) => "opaque".to_owned(),
        other => panic!("{other:?}"),
    };
    message.choices[0].blocks.iter().map(name).collect()
}

#[test]
fn every_recorded_answer_is_read() {
    let mut seen = 0;
    for exchange in exchanges().into_iter().filter(|exchange| exchange.status == 200) {
        let id = exchange.id.as_str();
        let expected = ANSWERS.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row for {id}"));
        let message = read(exchange).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        assert_eq!(names(&message), expected.blocks, "{id}");
        assert_eq!(message.choices[0].finish, expected.finish, "{id}");
        let usage = message.usage.map(|usage| {
            assert!(!usage.inconsistent, "{id}");
            [usage.input, usage.cached_input, usage.cache_write, usage.output].map(|count| count.get())
        });
        assert_eq!(usage, expected.usage, "{id}");
        seen += 1;
    }
    assert!(seen == 0 || seen == ANSWERS.len(), "{seen} of {}", ANSWERS.len());
}

#[test]
fn every_recorded_error_has_its_kind() {
    let mut seen = 0;
    for exchange in exchanges().into_iter().filter(|exchange| exchange.status != 200) {
        let id = exchange.id.as_str();
        let (_, kind) =
            ERRORS.iter().find(|(row, _)| *row == id).unwrap_or_else(|| panic!("no row for {id}"));
        let header = |name: &str| exchange.header(name);
        let head = ErrorHead { status: exchange.status, header: &header, utc: UtcTime::default() };
        let error = classify(&head, &exchange.body);
        assert_eq!((error.kind(), error.forbids_retry()), (*kind, false), "{id}");
        assert!(error.detail().is_some_and(|detail| !detail.message().is_empty()), "{id}");
        assert_eq!(error.upstream_request_id(), exchange.header("x-amzn-requestid"), "{id}");
        seen += 1;
    }
    assert!(seen == 0 || seen == ERRORS.len(), "{seen} of {}", ERRORS.len());
}

/// Frames that streams are made of, sound and broken.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let payload = |index: u32| {
        prop::sample::select(vec![
            ("contentBlockDelta", r#""delta":{"text":"é🙂"}"#),
            ("contentBlockDelta", r#""delta":{"text":""}"#),
            ("contentBlockDelta", r#""delta":{"reasoningContent":{"text":"t"}}"#),
            ("contentBlockDelta", r#""delta":{"reasoningContent":{"signature":"S","text":""}}"#),
            ("contentBlockDelta", r#""delta":{"reasoningContent":{"redactedContent":"R"}}"#),
            ("contentBlockDelta", r#""delta":{"toolUse":{"input":"{"}}"#),
            ("contentBlockDelta", r#""delta":{"toolResult":[{"text":"x"}]}"#),
            ("contentBlockDelta", r#""delta":{"citation":{"title":"t"}}"#),
            ("contentBlockDelta", r#""delta":[]"#),
            ("contentBlockStart", r#""start":{"toolUse":{"toolUseId":"c","name":"f"}}"#),
            (
                "contentBlockStart",
                r#""start":{"toolUse":{"toolUseId":"c","name":"f","type":"server_tool_use"}}"#,
            ),
            ("contentBlockStart", r#""start":{"toolResult":{"toolUseId":"c"}}"#),
            ("contentBlockStop", r#""p":"abc""#),
            ("messageStart", r#""role":"assistant""#),
            ("messageStop", r#""stopReason":"end_turn""#),
            ("messageStop", r#""stopReason":"malformed_tool_use""#),
            ("metadata", r#""usage":{"inputTokens":1,"outputTokens":18446744073709551615}"#),
            ("unknown", r#""x":1"#),
        ])
        .prop_map(move |(kind, rest)| {
            let payload = format!(r#"{{"contentBlockIndex":{index},{rest}}}"#);
            let headers =
                [(":event-type", HeaderValue::Text(kind)), (":message-type", HeaderValue::Text("event"))];
            encode(&headers, payload.as_bytes()).to_vec()
        })
    };
    let exception = encode(
        &[(":message-type", HeaderValue::Text("exception")), (":exception-type", HeaderValue::Text("x"))],
        b"{}",
    );
    let piece = prop_oneof![
        12 => (0..3_u32).prop_flat_map(payload),
        1 => Just(exception.to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_stream_is_read_in_order_wherever_it_is_cut(body in stream_bytes(), chunk_bytes in 1..60_usize) {
        prop_assert_eq!(events([&*body]), events(body.chunks(chunk_bytes)));
        if let Ok(message) = read_message(&body) {
            prop_assert!(!message.choices.is_empty());
        }
    }

    #[test]
    fn any_error_body_is_classified(body in "\\PC{0,40}", status in 300..600_u16, kind in "\\PC{0,20}") {
        let header = |name: &str| (name == "x-amzn-errortype").then_some(kind.as_str());
        let head = ErrorHead { status, header: &header, utc: UtcTime::default() };
        prop_assert_eq!(classify(&head, body.as_bytes()).status(), Some(status));
    }
}
