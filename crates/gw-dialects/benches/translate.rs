//! What a translation costs: a request, and a stream by its chunks.
//!
//! Requests are chat completions of one long user turn, sent as messages and the other way round. Streams are 64 deltas of
//! text, one chunk of bytes an event, which is what a network delivers.

use std::{collections::VecDeque, hint::black_box};

use bytes::Bytes;
use divan::{
    Bencher,
    counter::{BytesCount, ItemsCount},
};
use gw_dialects::{
    anthropic,
    neutral::{AnswerStamp, WriteOptions},
    translate::{self, StreamTranslation, StreamTranslator, Strictness, WireFormat},
};
use gw_types::{Operation, OutputField, TokenCount};

fn main() {
    divan::main();
}

const KIB: usize = 1024;
const EVENTS: usize = 64;
const STAMP: AnswerStamp<'_> = AnswerStamp { id: "chatcmpl-1", created: 1_893_456_000, model: "m" };

const OPTIONS: WriteOptions<'_> = WriteOptions {
    model: "claude-sonnet-5",
    output_bound: None,
    default_output: TokenCount::new(1_024),
    output_field: OutputField::MaxTokens,
};

fn body(bytes: usize) -> String {
    let said = "The quick brown fox jumps over the lazy dog.\\n".repeat(bytes / 46 + 1);
    format!(r#"{{"model":"m","max_tokens":64,"messages":[{{"role":"user","content":"{said}"}}]}}"#)
}

fn request(bencher: Bencher<'_, '_>, from: Operation, to: WireFormat, bytes: usize) {
    let body = body(bytes);
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        black_box(translate::request(from, body.as_bytes(), to, &OPTIONS, Strictness::Report))
    });
}

#[divan::bench(args = [KIB, 100 * KIB, 400 * KIB])]
fn request_chat_to_messages(bencher: Bencher<'_, '_>, bytes: usize) {
    request(bencher, Operation::Chat, WireFormat::AnthropicMessages, bytes);
}

#[divan::bench(args = [KIB, 100 * KIB, 400 * KIB])]
fn request_messages_to_chat(bencher: Bencher<'_, '_>, bytes: usize) {
    request(bencher, Operation::Messages, WireFormat::OpenAiChat, bytes);
}

#[divan::bench(args = [KIB, 100 * KIB, 400 * KIB])]
fn facts_of_messages(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = Bytes::from(body(bytes));
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| black_box(anthropic::read_messages(black_box(&body))));
}

fn chat_events() -> Vec<Bytes> {
    let head = r#"{"id":"chatcmpl-0123456789abcdefghijklmnopq","object":"chat.completion.chunk","created":1770853433,"model":"gpt-4.1-2025-04-14","service_tier":"default","#;
    let chunk = |delta: &str, reason: &str| {
        let choice =
            format!(r#""choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]"#);
        Bytes::from(format!("data: {head}{choice}}}\n\n"))
    };
    let texts = (0..EVENTS).map(|token| chunk(&format!(r#"{{"content":" token{token}"}}"#), "null"));
    texts.chain([chunk("{}", "\"stop\""), Bytes::from_static(b"data: [DONE]\n\n")]).collect()
}

fn messages_events() -> Vec<Bytes> {
    let event = |kind: &str, rest: &str| {
        Bytes::from(format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n"))
    };
    let start = r#","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}"#;
    let block = r#","index":0,"content_block":{"type":"text","text":""}"#;
    let delta = |token| {
        let rest = format!(r#","index":0,"delta":{{"type":"text_delta","text":" token{token}"}}"#);
        event("content_block_delta", &rest)
    };
    let stop = r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":64}"#;
    let before = [event("message_start", start), event("content_block_start", block)];
    let after = [
        event("content_block_stop", r#","index":0"#),
        event("message_delta", stop),
        event("message_stop", ""),
    ];
    before.into_iter().chain((0..EVENTS).map(delta)).chain(after).collect()
}

fn stream(bencher: Bencher<'_, '_>, from: WireFormat, to: Operation, chunks: &[Bytes]) {
    let translation = StreamTranslation { from, to, stamp: STAMP, relay_usage: true };
    bencher.counter(ItemsCount::new(chunks.len())).bench_local(|| {
        let mut translator = StreamTranslator::new(&translation).expect("formats that are translated");
        let mut items = VecDeque::new();
        for chunk in chunks {
            translator.push(chunk.clone(), &mut items);
            black_box(items.drain(..).count());
        }
        black_box(translator.end())
    });
}

#[divan::bench]
fn stream_chat_to_messages(bencher: Bencher<'_, '_>) {
    stream(bencher, WireFormat::OpenAiChat, Operation::Messages, &chat_events());
}

#[divan::bench]
fn stream_messages_to_chat(bencher: Bencher<'_, '_>) {
    stream(bencher, WireFormat::AnthropicMessages, Operation::Chat, &messages_events());
}

fn relay(bencher: Bencher<'_, '_>, chunks: &[Bytes]) {
    let bytes = chunks.iter().map(Bytes::len).sum::<usize>();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let mut decoder = anthropic::StreamDecoder::new();
        let mut items = VecDeque::new();
        for chunk in chunks {
            decoder.push(chunk.clone(), &mut items);
            black_box(items.drain(..).count());
        }
        black_box(decoder.end())
    });
}

#[divan::bench]
fn relay_messages_by_event(bencher: Bencher<'_, '_>) {
    relay(bencher, &messages_events());
}

#[divan::bench]
fn relay_messages_whole(bencher: Bencher<'_, '_>) {
    relay(bencher, &[Bytes::from(messages_events().concat())]);
}
