//! Properties: nothing panics on any bytes, framing does not depend on where chunks are cut, edits touch what they name.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{
    openai::{
        ChatCodec, ChatEdits, ErrorHead, StreamDecoder, StreamOptions, classify, error_body, read_answer,
        read_chat, rewrite_chat,
    },
    retry, sse,
};
use gw_types::{
    DialectCodec, NormalizedRequest, Operation, OutputField, RequestContext, StreamItem, TokenCount, UtcTime,
};
use proptest::prelude::*;
use serde_json::Value;

/// Pieces that streams are made of, sound and broken.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "data: ", "data:", "data", "\n", "\r\n", "\r", "\n\n", ": c", "event: error\n", "id: 1\n", "[DONE]",
            "\u{feff}", "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é🙂\"}}]}",
            "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}}]}",
            "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}", "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}",
            "{\"error\":null,\"choices\":[]}", "{\"error\":{\"message\":\"m\"}}", "{\"choices\":null}",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// JSON of any shape, with the names that the readers look for.
fn json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "model",
        "messages",
        "content",
        "role",
        "error",
        "code",
        "message",
        "choices",
        "delta",
        "usage",
        "type",
        "n",
        "max_tokens",
        "stream",
        "tool_calls",
        "function",
        "arguments",
        "index",
        "id",
        "detail",
        "prompt_tokens",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\\n\"é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        json().prop_map(|value| value.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..64),
        (json(), any::<prop::sample::Index>()).prop_map(|(value, cut)| {
            let mut body = value.to_string().into_bytes();
            body.truncate(cut.index(body.len() + 1));
            body
        }),
    ]
}

/// Splits bytes at the given places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for place in places {
        pieces.push(&bytes[start..place]);
        start = place;
    }
    pieces.push(&bytes[start..]);
    pieces
}

fn events(pieces: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut decoder = sse::Decoder::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(event) = decoder.next_event() {
            let event = event.expect("the stream is short");
            events.push((event.name.to_vec(), event.data.to_vec()));
        }
    }
    events
}

/// What a stream comes to: the bytes relayed, content bytes and frames, whether complete, the error's kind.
fn outcome(pieces: &[&[u8]]) -> (Vec<u8>, u32, u32, bool, Option<gw_types::ErrorKind>) {
    let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: false });
    let mut items = VecDeque::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    let end = decoder.end();
    let mut outcome = (Vec::new(), 0, 0, false, end.as_ref().err().map(gw_types::GatewayError::kind));
    for item in items.iter().chain(end.as_ref().ok()) {
        let StreamItem { raw, facts } = item;
        outcome.0.extend_from_slice(raw);
        outcome.1 += facts.content_bytes;
        outcome.2 += facts.content_frames;
        outcome.3 |= facts.terminal;
        outcome.4 = outcome.4.or(facts.error.as_ref().map(gw_types::GatewayError::kind));
    }
    outcome
}

proptest! {
    #[test]
    fn events_do_not_depend_on_cuts(
        bytes in stream_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        prop_assert_eq!(events(&pieces(&bytes, &cuts)), events(&[&bytes]));
    }

    #[test]
    fn streams_do_not_depend_on_cuts_and_come_to_one_end(
        bytes in stream_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = outcome(&[&bytes]);
        prop_assert_eq!(&outcome(&pieces(&bytes, &cuts)), &whole);
        prop_assert!(whole.3 != whole.4.is_some(), "complete or failed, never both: {:?}", whole);
        for event in String::from_utf8(whole.0).unwrap().split_terminator("\n\n") {
            let json = event.strip_prefix("data: ").unwrap();
            prop_assert!(serde_json::from_str::<Value>(json).unwrap()["choices"].is_array());
        }
    }

    /// Chunks that look alike are recognised by their template; a decoder that has seen nothing reads them in full.
    #[test]
    fn recognised_chunks_mean_what_read_chunks_mean(
        chunks in prop::collection::vec(
            (
                prop::sample::select(vec!["content", "refusal", "reasoning_content", "x"]),
                prop::sample::select(vec!["\"A\"", "\"\"", "\"\\u00e9\"", "\"a\"b\"", "null", "[]", "\"\\q\""]),
                prop::sample::select(vec!["null", "null", "null", "\"stop\""]),
                prop::sample::select(vec!["", ",\"obfuscation\":\"ab\"", ",\"obfuscation\":\"\"", ",\"p\":7"]),
            ),
            1..8,
        ),
    ) {
        let mut decoder = StreamDecoder::new(StreamOptions::default());
        for (field, text, finish, padding) in chunks {
            let event = Bytes::from(format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{field}\":{text}}},\"finish_reason\":{finish}}}]{padding}}}\n\n"
            ));
            let read = |decoder: &mut StreamDecoder| {
                let mut items = VecDeque::new();
                decoder.push(event.clone(), &mut items);
                let item = items.pop_front();
                item.map(|item| (item.raw, item.facts.content_bytes, item.facts.content_frames, item.facts.error))
            };
            let known = read(&mut decoder);
            prop_assert_eq!(&known, &read(&mut StreamDecoder::new(StreamOptions::default())));
            if known.is_none_or(|known| known.3.is_some()) {
                break;
            }
        }
    }

    #[test]
    fn any_body_is_read_or_refused(body in any_body()) {
        let body = Bytes::from(body);
        if let Err(error) = read_chat(&body) {
            serde_json::from_slice::<Value>(&error_body(&error)).unwrap();
        }
        if let Err(error) = read_answer(&body) {
            serde_json::from_slice::<Value>(&error_body(&error)).unwrap();
        }
        let _ = ChatCodec.completion(&body);
        for status in [200, 400, 401, 404, 413, 429, 500] {
            let head = ErrorHead { status, header: &|_| None, utc: UtcTime::default() };
            let error = classify(&head, &body);
            prop_assert_eq!(error.status(), Some(status));
        }
    }

    #[test]
    fn any_guidance_is_read_or_ignored(text in "\\PC{0,12}|[0-9]{0,30}(\\.[0-9]{0,30})?", micros in any::<i64>()) {
        let text: &str = &text;
        let guidance = retry::guidance(&|_| Some(text), UtcTime::from_micros(micros));
        prop_assert!(guidance.retry_after.is_none_or(|wait| wait <= retry::Guidance::RETRY_AFTER_MAX));
    }

    #[test]
    fn i19_edits_change_what_they_name_and_nothing_else(
        extra in prop::collection::btree_map("x[a-z]{0,4}", json(), 0..4),
        model in "\\PC{1,12}",
        new_model in "\\PC{1,12}",
        bound in prop::option::of(1..10_000_u64),
        named in prop::option::of(1..10_000_u64),
        ask_usage: bool,
    ) {
        let mut body = serde_json::Map::from_iter(extra);
        body.insert("model".to_owned(), Value::from(model));
        body.insert("messages".to_owned(), serde_json::json!([{"role": "user", "content": "Hi"}]));
        body.insert("stream".to_owned(), Value::from(true));
        if let Some(named) = named {
            body.insert("max_tokens".to_owned(), Value::from(named));
        }
        let bytes = Bytes::from(serde_json::to_vec_pretty(&body).unwrap());
        let facts = read_chat(&bytes).unwrap();
        let context = RequestContext::default();
        let request = NormalizedRequest { operation: Operation::Chat, body: bytes.clone(), facts, context };
        let edits = ChatEdits {
            model: &new_model,
            output_bound: bound.map(TokenCount::new),
            output_field: OutputField::MaxTokens,
            ask_usage,
        };
        let sent = rewrite_chat(&request, &edits);
        body.insert("model".to_owned(), Value::from(new_model.as_str()));
        if let Some(bound) = bound {
            body.insert("max_tokens".to_owned(), Value::from(bound));
        }
        if ask_usage {
            body.insert("stream_options".to_owned(), serde_json::json!({"include_usage": true}));
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), Value::from(body));
        // What stands behind the last edit is the same, byte for byte.
        let model_end = request.facts.model_span.end;
        let output_end = request.facts.output.map_or(0, |output| output.span.end);
        let tail = &bytes[model_end.max(output_end)..];
        prop_assert!(sent.ends_with(tail));
    }
}
