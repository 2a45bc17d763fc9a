//! Properties of responses, embeddings and legacy completions: any bytes are read or refused, cuts change nothing, what is
//! written reads back.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use gw_dialects::{
    completions, embeddings,
    neutral::{
        AnswerStamp, Content, Event, Message, MessageChoice, Origin, Signature, Text, Thinking, ToolUse,
    },
    openai::error_body,
    responses::{self, StreamDecoder, StreamEnding, StreamReader, StreamWriter},
};
use gw_types::{DialectCodec, ErrorKind, FinishReason, GatewayError, TokenCount, Usage};
use proptest::prelude::*;
use serde_json::Value;

const STAMP: AnswerStamp<'static> = AnswerStamp { id: "resp_0", created: 1, model: "m" };

/// Names and words that the readers look for.
const NAMES: &str = "model input prompt role content type text output status error code message data embedding choices usage input_tokens arguments call_id name summary tools reasoning format index finish_reason stream max_output_tokens n encoding_format";
const WORDS: [&str; 18] = [
    "m",
    "user",
    "assistant",
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "input_text",
    "output_text",
    "input_image",
    "completed",
    "incomplete",
    "failed",
    "stop",
    "base64",
    "AACAPw==",
    "{}",
    "",
];

/// Pieces that bodies are made of, sound and broken.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&str> = NAMES.split(' ').collect();
    let name = prop::sample::select(names);
    let word = prop::sample::select(WORDS.to_vec());
    let leaf = prop_oneof![
        3 => word.prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<f32>().prop_map(Value::from),
    ];
    let json = leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    });
    prop_oneof![
        4 => json.prop_map(|value: Value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
    ]
}

/// Pieces that streams are made of, sound and broken.
fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let event = |kind: &str, fields: &str| {
        format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\"{fields}}}\n\n")
    };
    let added =
        |fields: &str| event("output_item.added", &format!(",\"output_index\":0,\"item\":{{{fields}}}"));
    let delta = |kind: &str| event(kind, ",\"output_index\":0,\"content_index\":0,\"delta\":\"é🙂\"");
    let pieces = vec![
        event("created", ",\"response\":{\"id\":\"r\",\"model\":\"m\"}"),
        added("\"type\":\"message\",\"id\":\"i\""),
        added("\"type\":\"function_call\",\"id\":\"i\",\"call_id\":\"c\",\"name\":\"f\""),
        added("\"type\":\"reasoning\",\"id\":\"i\",\"summary\":[]"),
        delta("output_text.delta"),
        delta("refusal.delta"),
        delta("function_call_arguments.delta"),
        delta("reasoning_summary_text.delta"),
        event("content_part.done", ",\"output_index\":0,\"part\":{\"type\":\"output_text\"}"),
        event("output_item.done", ",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[]}"),
        event("completed", ",\"response\":{\"status\":\"completed\",\"output\":[]}"),
        event("failed", ",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"m\"}}"),
        "event: error\ndata: {\"type\":\"error\",\"message\":\"m\"}\n\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
        ": ping\n\n".to_owned(),
        "data: {\"type\":\"x\"}\r\n\r\n".to_owned(),
        "event: x\n".to_owned(),
        "data: {".to_owned(),
        "\n".to_owned(),
    ];
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// What a stream comes to: the bytes relayed, content bytes, whether complete, the error's kind.
fn outcome(pieces: &[&[u8]]) -> (Vec<u8>, u32, bool, Option<ErrorKind>) {
    let mut decoder = StreamDecoder::new();
    let mut items = VecDeque::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    let end = decoder.end();
    let mut outcome = (Vec::new(), 0, false, end.as_ref().err().map(GatewayError::kind));
    for item in items.iter().chain(end.as_ref().ok()) {
        outcome.0.extend_from_slice(&item.raw);
        outcome.1 += item.facts.content_bytes;
        outcome.2 |= item.facts.terminal;
        outcome.3 = outcome.3.or(item.facts.error.as_ref().map(GatewayError::kind));
    }
    outcome
}

fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut reader = StreamReader::new();
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece), &mut events);
    }
    reader.end(&mut events);
    events
}

fn blocks() -> impl Strategy<Value = Vec<Content>> {
    let signature =
        prop::option::of("[A-Za-z0-9+/=]{1,8}".prop_map(|data| Signature::new(Origin::Gemini, data)));
    let block = prop_oneof![
        "\\PC{1,8}".prop_map(|text| Content::Text(Text { text, ..Text::default() })),
        ("\\PC{1,8}", signature.clone())
            .prop_map(|(text, signature)| Content::Thinking(Thinking { text, signature })),
        "\\PC{1,8}".prop_map(Content::Refusal),
        ("[a-z]{1,4}", "[a-z]{1,4}", signature).prop_map(|(id, name, signature)| {
            Content::ToolUse(ToolUse { id, name, arguments: "{\"a\":\"\\u00e9\"}".to_owned(), signature })
        }),
        "[A-Z]{1,8}".prop_map(|data| Content::RedactedThinking(Signature::new(Origin::OpenAi, data))),
    ];
    prop::collection::vec(block, 0..6)
}

fn message(blocks: Vec<Content>, length: bool) -> Message {
    let finish = if length {
        FinishReason::Length
    } else if blocks.iter().any(|block| matches!(block, Content::ToolUse(_))) {
        FinishReason::ToolCalls
    } else if blocks.iter().any(|block| matches!(block, Content::Refusal(_))) {
        FinishReason::Refusal
    } else {
        FinishReason::Stop
    };
    let usage = Usage { input: TokenCount::new(3), reasoning: TokenCount::new(2), ..Usage::default() };
    Message {
        id: Some("resp_0".to_owned()),
        model: Some("m".to_owned()),
        choices: vec![MessageChoice::new(blocks, finish)],
        usage: Some(usage),
        service_tier: None,
        unread: Vec::new(),
    }
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused(body in any_body()) {
        let body = Bytes::from(body);
        let refusals = [
            responses::read_request(&body).err(),
            responses::read_answer(&body).err(),
            responses::read_prompt(&body).err(),
            responses::read_message(&body).err(),
            embeddings::read_request(&body).err(),
            embeddings::read_answer(&body).err(),
            embeddings::in_encoding(&body, embeddings::Encoding::Float).err(),
            embeddings::in_encoding(&body, embeddings::Encoding::Base64).err(),
            completions::read_request(&body).err(),
            completions::read_answer(&body).err(),
        ];
        for error in refusals.into_iter().flatten() {
            serde_json::from_slice::<Value>(&error_body(&error)).unwrap();
        }
        let _ = responses::ResponsesCodec.completion(&body);
        let _ = completions::CompletionsCodec.completion(&body);
        let _ = embeddings::wanted_encoding(&body);
    }

    /// What one reader takes for an answer the other does too.
    #[test]
    fn facts_and_neutral_parts_agree(body in any_body()) {
        let body = Bytes::from(body);
        match (responses::read_answer(&body), responses::read_message(&body)) {
            (Ok(facts), Ok(message)) => {
                prop_assert_eq!(facts.usage, message.usage);
                prop_assert_eq!(facts.finish.unwrap_or(FinishReason::Other), message.choices[0].finish);
            }
            (Err(facts), Err(message)) => prop_assert_eq!(facts, message),
            (facts, message) => prop_assert!(false, "{:?} {:?}", facts, message),
        }
    }

    #[test]
    fn streams_do_not_depend_on_cuts_and_come_to_one_end(
        bytes in stream_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = outcome(&[&bytes]);
        prop_assert_eq!(&outcome(&pieces(&bytes, &cuts)), &whole);
        prop_assert!(whole.2 != whole.3.is_some(), "complete or failed, never both: {:?}", whole);
        let read = events(&[&bytes]);
        prop_assert!(events(&pieces(&bytes, &cuts)) == read);
        let ends = read.iter().filter(|event| matches!(event, Event::End | Event::Error(_))).count();
        prop_assert_eq!(ends, 1);
        prop_assert_eq!(matches!(read.last(), Some(Event::End)), whole.2);
        for event in String::from_utf8(whole.0).unwrap().split_terminator("\n\n") {
            let (name, data) = event.split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            prop_assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        }
    }

    #[test]
    fn any_stream_can_be_ended(bytes in stream_bytes()) {
        let (relayed, _, complete, _) = outcome(&[&bytes]);
        if complete {
            return Ok(());
        }
        let mut ending = StreamEnding::new(&STAMP);
        ending.observe(&relayed);
        let capped = [relayed.as_slice(), &ending.capped()].concat();
        let ended = outcome(&[&capped]);
        prop_assert!(ended.2 && ended.3.is_none(), "{:?}", ended.3);
        let mut ending = StreamEnding::new(&STAMP);
        ending.observe(&relayed);
        let failed = [relayed.as_slice(), &ending.failed(&GatewayError::new(ErrorKind::Internal, "m"))].concat();
        prop_assert!(outcome(&[&failed]).3.is_some());
    }

    #[test]
    fn answers_read_back_as_they_were_written(blocks in blocks(), length: bool) {
        let written = message(blocks, length);
        let read = responses::read_message(&responses::write_message(&written, &STAMP)).unwrap();
        prop_assert!(read == written, "{:?} {:?}", read, written);
    }

    /// A stream that was written and read again brings the same steps when it is written again.
    #[test]
    fn streams_read_back_as_they_were_written(bytes in stream_bytes()) {
        let write = |events: &[Event]| {
            let mut writer = StreamWriter::new(&STAMP);
            let mut out = BytesMut::new();
            events.iter().for_each(|event| writer.write(event, &mut out));
            out
        };
        let last = b"data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n";
        let read = events(&[&bytes, last]);
        if matches!(read.last(), Some(Event::End)) {
            let first = write(&read);
            prop_assert_eq!(write(&events(&[&first])), first);
        }
    }

    #[test]
    fn vectors_survive_both_encodings(vector in prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::ZERO, 0..8)) {
        let bytes: Vec<u8> = vector.iter().flat_map(|float| float.to_le_bytes()).collect();
        let written: Vec<String> = vector.iter().map(|float| format!("{float:?}")).collect();
        let floats = Bytes::from(format!(r#"{{"data":[{{"embedding":[{}]}}]}}"#, written.join(",")));
        let encoded = embeddings::in_encoding(&floats, embeddings::Encoding::Base64).unwrap();
        prop_assert_eq!(&embeddings::in_encoding(&encoded, embeddings::Encoding::Float).unwrap(), &floats);
        let body: Value = serde_json::from_slice(&encoded).unwrap();
        let text = body["data"][0]["embedding"].as_str().unwrap();
        prop_assert_eq!(text.len(), bytes.len().div_ceil(3) * 4);
    }
}
