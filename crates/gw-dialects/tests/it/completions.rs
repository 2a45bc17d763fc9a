//! Every recorded exchange of legacy completions, through the readers.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{
    completions::{CompletionsCodec, StreamDecoder, read_answer, read_request},
    openai::StreamOptions,
};
use gw_types::{DialectCodec, ErrorKind, FinishReason, StreamItem};

use crate::fixtures::{Exchange, exchanges_of};

fn stream(exchange: &Exchange, size: usize) -> Vec<StreamItem> {
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    for piece in exchange.body.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    items.push_back(decoder.end().unwrap());
    items.into()
}

#[test]
fn every_recorded_request_is_read() {
    for exchange in
        exchanges_of("completions").iter().filter(|exchange| exchange.request["model"].is_string())
    {
        let body = Bytes::from(serde_json::to_vec(&exchange.request).unwrap());
        let facts = read_request(&body).unwrap_or_else(|error| panic!("{}: {error:?}", exchange.id));
        let asked = exchange.request["n"].as_u64().unwrap_or(1);
        let prompts = exchange.request["prompt"].as_array().map_or(1, Vec::len) as u64;
        assert_eq!(u64::from(facts.choices), asked * prompts, "{}", exchange.id);
        assert!(facts.text_bytes > 0, "{}", exchange.id);
    }
}

#[test]
fn every_recorded_answer_is_read() {
    for exchange in exchanges_of("completions").iter().filter(|one| one.status == 200 && !one.stream) {
        let id = &exchange.id;
        let raw = Bytes::copy_from_slice(&exchange.body);
        let facts = read_answer(&raw).unwrap_or_else(|error| panic!("{id}: {error:?}"));
        assert_eq!((facts.finish, facts.tool_calls), (Some(FinishReason::Length), false), "{id}");
        assert!(facts.content_bytes > 0 && facts.served_model.is_some(), "{id}");
        let usage = facts.usage.unwrap();
        assert!(!usage.output.is_zero() && !usage.input.is_zero() && !usage.inconsistent, "{id}");
        let choices = CompletionsCodec.completion(&raw).unwrap().choices;
        assert_eq!(choices.len() > 1, id.contains("multiple-choices"), "{id}");
    }
}

#[test]
fn every_recorded_stream_is_read_alike_however_it_is_cut() {
    for exchange in exchanges_of("completions").iter().filter(|exchange| exchange.stream) {
        let completion = |size: usize| {
            let items = stream(exchange, size);
            let mut collector = CompletionsCodec.collector();
            items.iter().for_each(|item| collector.push(item));
            let relayed: Vec<u8> = items.iter().flat_map(|item| item.raw.to_vec()).collect();
            (collector.finish().unwrap(), relayed)
        };
        let whole = completion(usize::MAX);
        assert_eq!(whole, completion(1), "{}", exchange.id);
        assert_eq!(
            whole.0.choices[0].text,
            " if you got one.\n\nWanna hear a joke about opentelemetry? When"
        );
        assert_eq!(whole.0.choices[0].finish, FinishReason::Length);
        let text = String::from_utf8(exchange.body.clone()).unwrap();
        assert_eq!(String::from_utf8(whole.1).unwrap(), text.replace("data: [DONE]\n\n", ""));
    }
}

#[test]
fn every_recorded_error_has_its_kind() {
    for exchange in exchanges_of("completions").iter().filter(|exchange| exchange.status != 200) {
        assert_eq!(exchange.error().kind(), ErrorKind::ProviderAuth, "{}", exchange.id);
    }
}
