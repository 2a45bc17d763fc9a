//! Every recorded responses exchange, through the readers.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::responses::{ResponsesEdits, StreamDecoder, read_answer, read_request, rewrite};
use gw_types::{
    AnswerFacts, ErrorKind, FinishReason, GatewayError, NormalizedRequest, Operation, RequestContext,
    StreamItem,
};

use crate::fixtures::{Exchange, exchanges_of};

use self::FinishReason::{Length, Refusal, Stop, ToolCalls};

/// Why an answer ended; its tokens: uncached, cached and written input, visible output, reasoning; its content bytes.
type Answer = (&'static str, FinishReason, [u64; 5], u64);

/// Read off the recordings. A stream's content is the text of its deltas, an answer's that of its output.
const ANSWERS: [Answer; 35] = [
    ("azure-responses--stream-tool-call-signature--6cbc54", ToolCalls, [63, 0, 0, 75, 64], 499),
    ("azure-responses--tool-call-reasoning--721be5", ToolCalls, [60, 0, 0, 63, 0], 30),
    ("deepseek-responses--stream-tool-call-reasoning--5b1881", ToolCalls, [110, 256, 0, 45, 14], 78),
    ("deepseek-responses--stream-tool-result-usage-cached--2236d6", Stop, [56, 384, 0, 14, 0], 48),
    ("deepseek-responses--tool-call-reasoning--ba67cf", ToolCalls, [110, 256, 0, 45, 18], 100),
    ("openai-responses--document-signature--895545", Stop, [769, 0, 0, 64, 192], 90),
    ("openai-responses--image-signature--6e675a", Stop, [86, 0, 0, 48, 832], 157),
    ("openai-responses--json-mode-signature--231acd", Stop, [26, 0, 0, 69, 192], 13),
    ("openai-responses--logprobs-system--1f505a", Stop, [25, 0, 0, 10, 0], 46),
    ("openai-responses--refusal-json-schema--956942", Refusal, [54, 0, 0, 13, 0], 45),
    ("openai-responses--signature-reasoning--4edc6c", Stop, [20, 0, 0, 18, 64], 413),
    ("openai-responses--signature-reasoning--6d205c", Stop, [31, 0, 0, 7, 9], 2),
    ("openai-responses--stream-json-mode-multi-turn--0433ca", Stop, [124, 0, 0, 10, 0], 17),
    ("openai-responses--stream-reasoning-text--60d897", Stop, [19, 0, 0, 61, 44], 180),
    ("openai-responses--stream-server-tool-citations--c5ebe7", Stop, [12243, 0, 0, 40, 100], 162),
    ("openai-responses--stream-signature-reasoning--edcbc6", Stop, [1143, 8320, 0, 70, 512], 215),
    ("openai-responses--stream-text--a326ee", Stop, [13, 0, 0, 9, 0], 31),
    ("openai-responses--stream-tool-call-signature--e71c16", ToolCalls, [60, 0, 0, 33, 192], 30),
    ("openai-responses--stream-tool-call-signature--eed14b", ToolCalls, [58, 0, 0, 56, 192], 2),
    ("openai-responses--stream-tool-call-tool-result--d9ecb5", ToolCalls, [197, 0, 0, 32, 192], 43),
    ("openai-responses--stream-tool-result-multi-turn--16faf0", Stop, [147, 0, 0, 16, 0], 45),
    ("openai-responses--stream-tools-parallel-reasoning--24c835", ToolCalls, [109, 0, 0, 95, 128], 26),
    ("openai-responses--stream-truncated-text--f442db", Length, [0, 0, 0, 0, 0], 76),
    ("openai-responses--tool-call--963c7d", ToolCalls, [72, 0, 0, 8, 0], 26),
    ("openai-responses--tool-call-signature--abca69", ToolCalls, [63, 0, 0, 84, 128], 451),
    ("openai-responses--tool-result-signature--831e5f", Stop, [50, 1536, 0, 73, 320], 47),
    ("openai-responses--tool-result-text--a5c10d", Stop, [108, 0, 0, 17, 0], 66),
    ("openai-responses--tools-parallel--5b7014", ToolCalls, [58, 0, 0, 44, 0], 42),
    ("openai-responses--truncated-reasoning--8f3b04", Length, [3, 0, 1217, 46, 54], 190),
    ("openai-responses--usage-cached-multi-turn--abd82a", Stop, [213, 4352, 0, 5, 0], 2),
    ("xai-responses--json-mode-signature--7ab325", Stop, [40, 192, 0, 9, 291], 112),
    ("xai-responses--stream-tool-call-tool-result--9d619b", ToolCalls, [125, 448, 0, 8, 117], 80),
    ("xai-responses--stream-tool-result-signature--9386c4", Stop, [196, 512, 0, 8, 16], 90),
    ("xai-responses--tool-call-tool-result--d5f6ac", ToolCalls, [406, 192, 0, 22, 76], 192),
    ("xai-responses--tools-parallel-signature--4870f8", ToolCalls, [175, 128, 0, 15, 257], 45),
];

/// The kind of a failure, and whether it forbids a repeat.
const ERRORS: [(&str, ErrorKind, bool); 10] = [
    ("azure-responses--429-negative-ratelimit--7bd1f1", ErrorKind::ProviderRateLimited, false),
    ("deepseek-responses--400-invalid-request-error--ee10e3", ErrorKind::InvalidRequest, false),
    ("openai-responses--400-context-length-exceeded--727399", ErrorKind::ContextLengthExceeded, false),
    ("openai-responses--400-model-not-found--6fad75", ErrorKind::DeploymentMissing, false),
    ("openai-responses--401-invalid-api-key--c519c9", ErrorKind::ProviderAuth, false),
    ("openai-responses--401-invalid-api-key--cc629d", ErrorKind::ProviderAuth, false),
    ("openai-responses--401-invalid-api-key--f05dee", ErrorKind::ProviderAuth, false),
    ("openai-responses--error-200--dca690", ErrorKind::ProviderRateLimited, true),
    ("openai-responses--stream-error-in-stream-text--94cd02", ErrorKind::ProviderRateLimited, true),
    ("xai-responses--400-invalid-argument--07786f", ErrorKind::ProviderAuth, false),
];

fn check_answer(id: &str, facts: &AnswerFacts) {
    let Some((_, finish, tokens, content_bytes)) = ANSWERS.iter().find(|row| row.0 == id) else {
        panic!("{id} is not in the table");
    };
    assert_eq!((facts.finish, facts.content_bytes), (Some(*finish), *content_bytes), "{id}");
    let usage = facts.usage.unwrap_or_default();
    let classes = [usage.input, usage.cached_input, usage.cache_write, usage.output, usage.reasoning];
    assert_eq!(classes.map(|count| count.get()), *tokens, "{id}");
    assert!(!usage.inconsistent, "{id}");
    assert_eq!(facts.usage.is_some(), tokens.iter().any(|count| *count > 0), "{id}");
    assert_eq!(facts.tool_calls, *finish == ToolCalls, "{id}");
    assert!(facts.served_model.is_some(), "{id}");
}

fn check_error(id: &str, error: &GatewayError) {
    // Written by hand, with a code that is none.
    if id.contains("610d2f") {
        assert!(error.kind() == ErrorKind::ProviderUnavailable && error.is_unclassified(), "{id}");
        return;
    }
    let Some((_, kind, no_retry)) = ERRORS.iter().find(|row| row.0 == id) else {
        panic!("{id} is not in the table");
    };
    assert_eq!((error.kind(), error.forbids_retry()), (*kind, *no_retry), "{id}");
    assert!(error.detail().is_some_and(|detail| !detail.message().is_empty()), "{id}");
    assert!(!error.is_unclassified(), "{id}");
}

/// Returns what is relayed of a stream, and what it comes to.
fn stream(exchange: &Exchange, size: usize) -> (Vec<u8>, Result<AnswerFacts, GatewayError>) {
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    for piece in exchange.body.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    match decoder.end() {
        Ok(item) => items.push_back(item),
        Err(error) => return (relayed(&items), Err(error)),
    }
    let mut facts = AnswerFacts::default();
    for item in &items {
        let frame = &item.facts;
        if let Some(error) = &frame.error {
            return (relayed(&items), Err(error.clone()));
        }
        facts.content_bytes += u64::from(frame.content_bytes);
        facts.finish = frame.finish.or(facts.finish);
        facts.usage = frame.usage.as_deref().copied().or(facts.usage);
        facts.tool_calls |= frame.tool_calls;
        facts.served_model = facts.served_model.or(frame.served_model.clone());
    }
    (relayed(&items), Ok(facts))
}

fn relayed(items: &VecDeque<StreamItem>) -> Vec<u8> {
    items.iter().flat_map(|item| item.raw.to_vec()).collect()
}

#[test]
fn every_recorded_answer_is_read() {
    for exchange in exchanges_of("responses").into_iter().filter(|one| one.status == 200 && !one.stream) {
        match read_answer(&Bytes::copy_from_slice(&exchange.body)) {
            Ok(facts) => check_answer(&exchange.id, &facts),
            Err(error) => check_error(&exchange.id, &error),
        }
    }
}

#[test]
fn every_recorded_stream_is_read_and_relayed_however_it_is_cut() {
    for exchange in exchanges_of("responses").into_iter().filter(|exchange| exchange.stream) {
        let id = &exchange.id;
        let whole = stream(exchange, usize::MAX);
        for size in [1, 7] {
            assert_eq!(stream(exchange, size), whole, "{id}");
        }
        let sent = String::from_utf8(exchange.body.clone()).unwrap();
        match whole {
            (relayed, Ok(facts)) => {
                check_answer(id, &facts);
                assert_eq!(String::from_utf8(relayed).unwrap(), sent, "{id}");
            }
            (relayed, Err(error)) => {
                check_error(id, &error);
                let before = sent.split("event: error").next().unwrap();
                assert_eq!(String::from_utf8(relayed).unwrap(), before, "{id}");
            }
        }
    }
}

#[test]
fn every_recorded_error_has_its_kind() {
    for exchange in exchanges_of("responses").into_iter().filter(|exchange| exchange.status != 200) {
        check_error(&exchange.id, &exchange.error());
    }
}

#[test]
fn every_recorded_request_is_read_and_sent_on() {
    let mut read = 0;
    for exchange in exchanges_of("responses") {
        let id = &exchange.id;
        if !exchange.request["model"].is_string() {
            continue;
        }
        let body = Bytes::from(serde_json::to_vec(&exchange.request).unwrap());
        let request = read_request(&body).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        let previous = exchange.request["previous_response_id"].as_str();
        assert_eq!(request.state.is_self_contained(), previous.is_none(), "{id}");
        assert_eq!(request.state.previous_response_id.as_ref().map(|id| id.as_str()), previous, "{id}");
        assert_eq!(request.facts.stream, exchange.request["stream"] == true, "{id}");
        assert!(request.facts.text_bytes > 0, "{id}");
        let model = exchange.request["model"].as_str().unwrap();
        let (facts, context) = (request.facts, RequestContext::default());
        let request = NormalizedRequest { operation: Operation::Responses, body, facts, context };
        let edits = ResponsesEdits { model, output_bound: None };
        assert_eq!(rewrite(&request, &edits), request.body, "{id}");
        read += 1;
    }
    assert!(read == 0 || read > 35, "{read}");
}
