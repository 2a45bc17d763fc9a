//! Every recorded exchange of Gemini's formats, at the Gemini API and at Vertex AI, against what is written down here.

use bytes::Bytes;
use gw_dialects::{
    collect::Collector,
    gemini::{StreamReader, classify, read_embeddings, read_message, read_token_count},
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

/// What an answer is: its blocks, why it ended, and the tokens by class (input, cached, output, reasoning, audio in,
/// image in).
struct Expected {
    id: &'static str,
    blocks: &'static [&'static str],
    finish: FinishReason,
    usage: Option<[u64; 6]>,
}

const fn row(
    id: &'static str,
    blocks: &'static [&'static str],
    finish: FinishReason,
    usage: [u64; 6],
) -> Expected {
    Expected { id, blocks, finish, usage: Some(usage) }
}

use FinishReason::{ContentFilter, Length, Other, Stop, ToolCalls};

/// Blocks are named by kind: `text+` and `call+` carry a signature, `call:NAME(ARGUMENTS)` is a call.
#[rustfmt::skip] // One answer a line.
const ANSWERS: &[Expected] = &[
    row("gemini-generatecontent--audio-text--11af19", &["text"], Stop, [7, 0, 8, 354, 84, 0]),
    row("gemini-generatecontent--filtered-system--fbf480", &[], ContentFilter, [14, 0, 0, 0, 0, 0]),
    row("gemini-generatecontent--json-mode-multi-turn--603a88", &["text"], Stop, [125, 0, 10, 32, 0, 0]),
    row("gemini-generatecontent--json-schema-signature--e94a73", &["text+"], Stop, [6, 0, 10, 229, 0, 0]),
    row("gemini-generatecontent--signature-multi-turn--ffca5a", &["text+"], Stop, [206, 0, 1, 28, 0, 0]),
    row("gemini-generatecontent--signature-reasoning--353316", &["thinking", "text+"], Stop, [105, 0, 8, 47, 0, 0]),
    row("gemini-generatecontent--tool-call-signature--93e891", &["thinking", r#"call+:weather({"location":"Florence, Italy"})"#], ToolCalls, [54, 0, 15, 64, 0, 0]),
    row("gemini-generatecontent--tool-call-signature--f263d1", &[r#"call+:weather({"location":"San Francisco"})"#], ToolCalls, [29, 0, 15, 1801, 0, 0]),
    row("gemini-generatecontent--tool-call-tool-result--9a43b4", &[r#"call+:__mirascope_formatted_output_tool__({"author":"Brandon Sanderson","pages":544,"publication_year":2006,"title":"Mistborn: The Final Empire"})"#], ToolCalls, [268, 0, 49, 218, 0, 0]),
    row("gemini-generatecontent--tool-result-image--816431", &["text"], Stop, [350, 0, 115, 0, 0, 258]),
    row("gemini-generatecontent--tool-result-signature--baaf67", &["thinking", "text+"], Stop, [234, 0, 28, 56, 0, 0]),
    row("gemini-generatecontent--tools-parallel-signature--3e2714", &[r#"call+:search_docs({"query":"test"})"#, r#"call:multiply({"a":5,"b":3})"#], ToolCalls, [194, 0, 33, 216, 0, 0]),
    row("gemini-generatecontent--tools-parallel-signature--c55bbb", &[r#"call+:weather({"latitude":"52.5200","longitude":"13.4050"})"#, "call:best_language_to_learn({})"], ToolCalls, [143, 0, 44, 109, 0, 0]),
    // No prompt count and no total at all.
    row("gemini-streamgeneratecontent--stream-image-system--2bc050", &["text"], Stop, [0, 0, 23, 67, 0, 0]),
    row("gemini-streamgeneratecontent--stream-json-mode-system--c5e046", &["text"], Stop, [105, 0, 10, 153, 0, 0]),
    row("gemini-streamgeneratecontent--stream-server-tool-system--5d48d1", &["opaque", "text"], Stop, [785, 0, 37, 742, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tool-call-signature--de3238", &["thinking", r#"call+:weather({"location":"Florence, Italy"})"#], ToolCalls, [54, 0, 14, 64, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tool-call-tool-result--f5921e", &["call+:best_language_to_learn({})"], ToolCalls, [120, 0, 14, 42, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tool-result-json-schema--163f7d", &["text+"], Stop, [128, 0, 21, 30, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tools-parallel-signature--435562", &[r#"call+:writeItems({"operations":[{"action":"add","description":"Fresh red apple","itemid":"apple_001","price":0.5},{"action":"add","description":"Ripe yellow banana","itemid":"banana_001","price":0.3}]})"#], ToolCalls, [54, 0, 74, 121, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tools-parallel-signature--6ffde2", &[r#"call+:getWeather({"location":"Boston"})"#, r#"call:getWeather({"location":"San Francisco"})"#], ToolCalls, [26, 0, 23, 132, 0, 0]),
    row("gemini-streamgeneratecontent--stream-tools-parallel-signature--b09190", &["thinking", "call+:read_theme({})", r#"call:read_screen({"id":"A"})"#, r#"call:read_screen({"id":"B"})"#, r#"call:read_screen({"id":"C"})"#], ToolCalls, [249, 0, 58, 183, 0, 0]),
    row("gemini-streamgeneratecontent--stream-truncated-text--e95f99", &["text"], Length, [9, 0, 15, 32, 0, 0]),
    row("vertex-gemini-generatecontent--document-usage-cached--e7e7ea", &["text"], Stop, [70, 1274, 99, 74, 0, 0]),
    row("vertex-gemini-generatecontent--finish-unexpected-tool-call-tool-call--bcf873", &["call+:list_files({})"], Other, [22, 0, 3, 142, 0, 0]),
    row("vertex-gemini-generatecontent--json-schema-signature--fa7133", &["text+"], Stop, [70, 0, 13, 218, 0, 0]),
    row("vertex-gemini-generatecontent--tool-result-signature--239986", &["thinking", "text+"], Stop, [310, 0, 23, 84, 0, 0]),
    row("vertex-gemini-streamgeneratecontent--stream-signature-reasoning--fb98ae", &["thinking", "text+"], Stop, [43, 0, 618, 757, 0, 0]),
    row("vertex-gemini-streamgeneratecontent--stream-text--9176cc", &["text"], Stop, [11, 0, 16, 232, 0, 0]),
    row("vertex-gemini-streamgeneratecontent--stream-tool-call-tool-result--81f2ea", &["call+:best_language_to_learn({})"], ToolCalls, [76, 0, 7, 57, 0, 0]),
    row("vertex-gemini-streamgeneratecontent--stream-tools-parallel-signature--c2fb9b", &["call+:cookRecipe"], ToolCalls, [31, 0, 684, 1026, 0, 0]),
];

/// Errors, by a part of the id: kind, seconds to wait, and whether a repeat is forbidden.
#[rustfmt::skip] // One error a line.
const ERRORS: &[(&str, ErrorKind, Option<u64>)] = &[
    ("gemini-batchembedcontents--404-not-found--292cee", ErrorKind::DeploymentMissing, None),
    ("gemini-counttokens--404-not-found--40a825", ErrorKind::DeploymentMissing, None),
    ("gemini-generatecontent--400-invalid-argument--5446ef", ErrorKind::ProviderAuth, None),
    ("gemini-generatecontent--404-not-found--ee2a77", ErrorKind::DeploymentMissing, None),
    ("gemini-generatecontent--429-resource-exhausted--c3417d", ErrorKind::ProviderRateLimited, Some(48)),
    ("gemini-generatecontent--500-internal--e79d92", ErrorKind::ProviderUnavailable, None),
    ("gemini-generatecontent--503-unavailable--38ac24", ErrorKind::ProviderUnavailable, None),
    ("gemini-streamgeneratecontent--400-invalid-argument--632c00", ErrorKind::ProviderAuth, None),
    ("gemini-streamgeneratecontent--429-no-retryinfo--80329f", ErrorKind::ProviderRateLimited, None),
    ("vertex-gemini-generatecontent--400-invalid-argument--27df13", ErrorKind::InvalidRequest, None),
    ("vertex-gemini-generatecontent--400-invalid-argument--29baae", ErrorKind::InvalidRequest, None),
    ("vertex-gemini-generatecontent--400-invalid-argument--872abc", ErrorKind::ContextLengthExceeded, None),
    ("vertex-gemini-generatecontent--404-not-found--27aca7", ErrorKind::DeploymentMissing, None),
    ("vertex-gemini-streamgeneratecontent--429-array-body--11be36", ErrorKind::ProviderRateLimited, None),
];

const BLOCKED: &str = "vertex-gemini-generatecontent--filtered-prompt-blocked--3e353d";

fn exchanges() -> Vec<&'static Exchange> {
    ["generateContent", "streamGenerateContent", "countTokens", "batchEmbedContents", "embedContent"]
        .into_iter()
        .flat_map(exchanges_of)
        .filter(|exchange| exchange.api.starts_with("gemini."))
        .collect()
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
    let signed = |signature: bool| if signature { "+" } else { "" };
    let name = |block: &Content| match block {
        Content::Text(text) => format!("text{}", signed(text.signature.is_some())),
        Content::Thinking(_) => "thinking".to_owned(),
        Content::ToolUse(call) => {
            let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
            assert!(arguments.is_object() && call.id.starts_with("call_") && call.id.len() <= 40);
            format!("call{}:{}({arguments})", signed(call.signature.is_some()), call.name)
        }
        Content::Opaque(_) => "opaque".to_owned(),
        other => panic!("{other:?}"),
    };
    message.choices[0].blocks.iter().map(name).collect()
}

/// What the provider itself says the total is.
fn stated_total(exchange: &Exchange) -> Option<u64> {
    let text = String::from_utf8_lossy(&exchange.body);
    let (_, rest) = text.rsplit_once("\"totalTokenCount\":")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[test]
fn every_recorded_answer_is_read() {
    let mut seen = 0;
    let answers = exchanges().into_iter().filter(|exchange| {
        exchange.status == 200 && exchange.api.to_ascii_lowercase().ends_with("generatecontent")
    });
    for exchange in answers {
        let id = exchange.id.as_str();
        if id == BLOCKED {
            let error = read(exchange).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ContentFiltered, "{id}");
            assert!(error.detail().is_some(), "{id}");
            continue;
        }
        let expected = ANSWERS.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row for {id}"));
        let message = read(exchange).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        let found = names(&message);
        let same = |(found, expected): (&String, &&str)| {
            found.starts_with(expected) && (found == expected || expected.ends_with("cookRecipe"))
        };
        assert!(
            found.len() == expected.blocks.len() && found.iter().zip(expected.blocks).all(same),
            "{id}: {found:?}"
        );
        assert_eq!(message.choices[0].finish, expected.finish, "{id}");
        assert!(message.model.is_some() && message.id.is_some(), "{id}");
        let usage = message.usage.map(|usage| {
            if let Some(total) = stated_total(exchange) {
                assert_eq!((usage.total().get(), usage.inconsistent), (total, false), "{id}");
            }
            [
                usage.input,
                usage.cached_input,
                usage.output,
                usage.reasoning,
                usage.audio_input,
                usage.image_input,
            ]
            .map(|count| count.get())
        });
        assert_eq!(usage, expected.usage, "{id}");
        seen += 1;
    }
    assert!(seen == 0 || seen == ANSWERS.len(), "{seen} of {}", ANSWERS.len());
}

#[test]
fn recorded_citations_have_their_source() {
    let exchange =
        exchanges().into_iter().find(|exchange| exchange.id.contains("stream-server-tool-system--5d48d1"));
    let Some(exchange) = exchange else { return };
    let message = read(exchange).unwrap();
    let Content::Text(text) = &message.choices[0].blocks[1] else { panic!("no text") };
    let spans: Vec<_> = text.citations.iter().map(|citation| citation.span).collect();
    assert_eq!(spans, [Some((0, 30)), Some((32, 107))]);
    assert!(text.citations.iter().all(|citation| citation.quote.is_some()));
}

#[test]
fn every_recorded_error_has_its_kind() {
    let mut seen = 0;
    for exchange in exchanges().into_iter().filter(|exchange| exchange.status != 200) {
        let id = exchange.id.as_str();
        let (_, kind, wait) =
            ERRORS.iter().find(|(row, ..)| *row == id).unwrap_or_else(|| panic!("no row for {id}"));
        let header = |name: &str| exchange.header(name);
        let head = ErrorHead { status: exchange.status, header: &header, utc: UtcTime::default() };
        let error = classify(&head, &exchange.body);
        let found = (error.kind(), error.retry_after().map(|wait| wait.as_secs()), error.forbids_retry());
        assert_eq!(found, (*kind, *wait, false), "{id}");
        assert!(error.detail().is_some_and(|detail| !detail.message().is_empty()), "{id}");
        seen += 1;
    }
    assert!(seen == 0 || seen == ERRORS.len(), "{seen} of {}", ERRORS.len());
}

#[test]
fn recorded_counts_and_embeddings_are_read() {
    for exchange in exchanges().into_iter().filter(|exchange| exchange.status == 200) {
        let id = exchange.id.as_str();
        match exchange.api.as_str() {
            "gemini.countTokens" => {
                let expected = if id.starts_with("vertex") { 13 } else { 8 };
                assert_eq!(read_token_count(&exchange.body).unwrap().get(), expected, "{id}");
            }
            "gemini.batchEmbedContents" | "gemini.embedContent" => {
                let answer = read_embeddings(&exchange.body, "m").unwrap();
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                let vector = answer["data"][0]["embedding"].as_array().unwrap();
                assert!(vector.len() >= 768 && vector.iter().all(Value::is_number), "{id}");
                let tokens = if id.starts_with("vertex") { 11 } else { 8 };
                assert_eq!(answer["usage"]["prompt_tokens"], tokens, "{id}");
            }
            _ => {}
        }
    }
}

/// Pieces that streams are made of, sound and broken.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let document = prop::sample::select(vec![
        r#"{"candidates":[{"content":{"parts":[{"text":"é🙂"}]}}],"responseId":"r"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"S"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"t","thought":true},{"functionCall":{"name":"f","args":{}}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]","stringValue":"x"}],"willContinue":true}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
        r#"{"candidates":[{"index":1,"content":{"parts":[{"executableCode":{}}]},"finishReason":2}]}"#,
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","groundingMetadata":{"groundingSupports":[{"segment":{"endIndex":3}}]}}]}"#,
        r#"{"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":18446744073709551615,"totalTokenCount":1}}"#,
        r#"{"promptFeedback":{"blockReason":"X"}}"#,
        r#"{"error":{"code":429,"message":"m"}}"#,
        r#"{"candidates":{"parts":7},"usageMetadata":[]}"#,
        "null",
    ]);
    let piece = prop_oneof![
        8 => document.prop_map(|document| format!("data: {document}\r\n\r\n").into_bytes()),
        1 => prop::sample::select(vec!["data: ", "[", ",", "]", "\n\n", "\u{feff}", "{", ": c\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_stream_is_read_in_order_wherever_it_is_cut(
        body in stream_bytes(),
        as_array: bool,
        chunk_bytes in 1..40_usize,
    ) {
        let body = if as_array {
            let text = String::from_utf8_lossy(&body).replace("data: ", ",").replacen(',', "[", 1);
            format!("{text}]").into_bytes()
        } else {
            body
        };
        prop_assert_eq!(events([&*body]), events(body.chunks(chunk_bytes)));
        // A whole answer may be anything as well.
        if let Ok(message) = read_message(&body) {
            prop_assert!(!message.choices.is_empty());
        }
    }

    #[test]
    fn any_error_body_is_classified(body in stream_bytes(), status in 300..600_u16) {
        let head = ErrorHead { status, header: &|_| None, utc: UtcTime::default() };
        prop_assert_eq!(classify(&head, &body).status(), Some(status));
    }
}
