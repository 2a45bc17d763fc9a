//! Every recorded chat-completions exchange, through the readers.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::openai::{ChatCodec, StreamDecoder, StreamOptions, read_answer, read_chat};
use gw_types::{DialectCodec, ErrorKind, FinishReason, GatewayError, StreamItem, Usage};

use crate::fixtures::{Exchange, chat_exchanges};

#[test]
fn every_recorded_request_is_read() {
    let mut read = 0;
    for exchange in chat_exchanges().iter().filter(|exchange| exchange.status == 200) {
        // Azure's deployments stand in the path, so that its requests may lack the model.
        if !exchange.request["model"].is_string() || !exchange.request["messages"].is_array() {
            continue;
        }
        let body = Bytes::from(serde_json::to_vec(&exchange.request).unwrap());
        let facts = read_chat(&body).unwrap_or_else(|error| panic!("{}: {error:?}", exchange.id));
        assert_eq!(Some(&*facts.model), exchange.request["model"].as_str(), "{}", exchange.id);
        read += 1;
    }
    assert!(read == 0 || read > 50, "{read}");
}

#[test]
fn every_recorded_answer_is_read() {
    for exchange in chat_exchanges().iter().filter(|exchange| exchange.status == 200 && !exchange.stream) {
        let body = Bytes::copy_from_slice(&exchange.body);
        let id = &exchange.id;
        let read = read_answer(&body);
        if id.contains("filtered-error-200") {
            assert_eq!(read.unwrap_err().kind(), ErrorKind::ContentFiltered, "{id}");
            continue;
        }
        let facts = read.unwrap_or_else(|error| panic!("{id}: {error:?}"));
        assert!(facts.finish.is_some_and(|finish| finish != FinishReason::Other), "{id}: {facts:?}");
        assert_eq!(
            facts.usage.is_some(),
            exchange.body.windows(8).any(|window| window == b"\"usage\":"),
            "{id}"
        );
        assert!(facts.content_bytes > 0 || facts.finish != Some(FinishReason::Stop), "{id}: {facts:?}");
        assert_eq!(facts.tool_calls, facts.finish == Some(FinishReason::ToolCalls), "{id}");
        assert!(facts.served_model.is_some(), "{id}");
    }
}

struct Streamed {
    items: Vec<StreamItem>,
    usage: Option<Usage>,
    error: Option<GatewayError>,
}

fn stream(exchange: &Exchange, chunk_bytes: usize) -> Streamed {
    let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: true });
    let mut items = VecDeque::new();
    for chunk in exchange.body.chunks(chunk_bytes) {
        decoder.push(Bytes::copy_from_slice(chunk), &mut items);
    }
    let mut error = None;
    match decoder.end() {
        Ok(item) => items.push_back(item),
        Err(interrupted) => error = Some(interrupted),
    }
    let usage = items.iter().filter_map(|item| item.facts.usage.as_deref().copied()).next_back();
    error = error.or_else(|| items.iter().find_map(|item| item.facts.error.clone()));
    Streamed { items: items.into(), usage, error }
}

#[test]
fn every_recorded_stream_is_complete_or_fails_with_its_reason() {
    for exchange in chat_exchanges().iter().filter(|exchange| exchange.status == 200 && exchange.stream) {
        let id = &exchange.id;
        let whole = stream(exchange, usize::MAX);
        let bytes = stream(exchange, 1);
        let relayed = |streamed: &Streamed| -> Vec<u8> {
            streamed.items.iter().flat_map(|item| item.raw.to_vec()).collect()
        };
        assert_eq!(relayed(&whole), relayed(&bytes), "{id}");
        let kind = whole.error.as_ref().map(GatewayError::kind);
        let expected = match id.as_str() {
            id if id.contains("groq-chat--stream-error-in-stream") => Some(ErrorKind::InvalidRequest),
            id if id.contains("openrouter-chat--stream-error-in-stream") => Some(ErrorKind::InvalidRequest),
            id if id.contains("stream-empty-choices-error") => Some(ErrorKind::ProviderUnavailable),
            _ => None,
        };
        assert_eq!(kind, expected, "{id}");
        let terminals = whole.items.iter().filter(|item| item.facts.terminal).count();
        assert_eq!(terminals, usize::from(expected.is_none()), "{id}");
        if expected.is_none() {
            let reports = String::from_utf8_lossy(&exchange.body).contains("prompt_tokens");
            assert_eq!(whole.usage.is_some(), reports, "{id}");
            let content: u64 = whole.items.iter().map(|item| u64::from(item.facts.content_bytes)).sum();
            assert!(content > 0, "{id}");
        }
    }
}

#[test]
fn recorded_streams_give_the_same_completion_as_they_are_cut() {
    for exchange in chat_exchanges().iter().filter(|exchange| exchange.status == 200 && exchange.stream) {
        let collect = |streamed: &Streamed| {
            let mut collector = ChatCodec.collector();
            streamed.items.iter().for_each(|item| collector.push(item));
            collector.finish()
        };
        let whole = collect(&stream(exchange, usize::MAX));
        assert_eq!(whole, collect(&stream(exchange, 7)), "{}", exchange.id);
    }
}

#[test]
fn every_recorded_error_has_its_kind() {
    let expected = |id: &str| match id {
        id if id.contains("400-filter") => Some((ErrorKind::ContentFiltered, false)),
        id if id.contains("deepseek-chat--400") => Some((ErrorKind::ContextLengthExceeded, false)),
        id if id.contains("openrouter-chat--400") => Some((ErrorKind::ContextLengthExceeded, false)),
        id if id.contains("too-many-prompt-tokens") => Some((ErrorKind::ContextLengthExceeded, false)),
        id if id.contains("--400-") || id.contains("--422-") => Some((ErrorKind::InvalidRequest, false)),
        id if id.contains("--401") => Some((ErrorKind::ProviderAuth, false)),
        id if id.contains("--402") => Some((ErrorKind::ProviderRateLimited, true)),
        id if id.contains("--404") => Some((ErrorKind::DeploymentMissing, false)),
        id if id.contains("--413-tpm") => Some((ErrorKind::ProviderRateLimited, true)),
        id if id.contains("insufficient-quota") => Some((ErrorKind::ProviderRateLimited, true)),
        id if id.contains("request-too-large") => Some((ErrorKind::ProviderRateLimited, true)),
        id if id.contains("--429") => Some((ErrorKind::ProviderRateLimited, false)),
        id if id.contains("--500") => Some((ErrorKind::ProviderUnavailable, false)),
        _ => None,
    };
    for exchange in chat_exchanges().iter().filter(|exchange| exchange.status != 200) {
        let error = exchange.error();
        let found = Some((error.kind(), error.forbids_retry()));
        assert_eq!(found, expected(&exchange.id), "{}", exchange.id);
        assert!(error.detail().is_some_and(|detail| !detail.message().is_empty()), "{}", exchange.id);
        if exchange.id.contains("ratelimitreached") {
            assert_eq!(error.retry_after().map(|wait| wait.as_secs()), Some(1));
            assert_eq!(error.upstream_request_id(), exchange.header("apim-request-id"));
        }
    }
}
