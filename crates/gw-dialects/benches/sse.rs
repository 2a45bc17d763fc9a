//! How fast streams are decoded, in bytes of wire a second: framing alone, and framing with facts.
//!
//! One stream of 64 content chunks, as a current OpenAI model sends them; fed as one chunk of bytes, and as one chunk of
//! bytes an event, which is what a network delivers.

use std::{collections::VecDeque, hint::black_box};

use bytes::Bytes;
use divan::{Bencher, counter::BytesCount};
use gw_dialects::{
    openai::{StreamDecoder, StreamOptions},
    sse,
};

fn main() {
    divan::main();
}

const EVENTS: usize = 64;

fn events() -> Vec<Bytes> {
    let head = r#"{"id":"chatcmpl-0123456789abcdefghijklmnopq","object":"chat.completion.chunk","created":1770853433,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_0123456789","#;
    let mut events: Vec<Bytes> = (0..EVENTS)
        .map(|token| {
            let choice = format!(r#""choices":[{{"index":0,"delta":{{"content":" token{token}"}},"logprobs":null,"finish_reason":null}}]"#);
            Bytes::from(format!("data: {head}{choice},\"obfuscation\":\"RURdR9\"}}\n\n"))
        })
        .collect();
    let stop = r#""choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]"#;
    events.push(Bytes::from(format!("data: {head}{stop}}}\n\n")));
    let usage = r#""choices":[],"usage":{"prompt_tokens":110,"completion_tokens":64,"total_tokens":174,"prompt_tokens_details":{"cached_tokens":0}}"#;
    events.push(Bytes::from(format!("data: {head}{usage}}}\n\n")));
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

fn size(chunks: &[Bytes]) -> BytesCount {
    BytesCount::new(chunks.iter().map(Bytes::len).sum::<usize>())
}

fn frame(bencher: Bencher<'_, '_>, chunks: &[Bytes]) {
    bencher.counter(size(chunks)).bench_local(|| {
        let mut decoder = sse::Decoder::new();
        let mut bytes = 0;
        for chunk in chunks {
            decoder.push(chunk.clone());
            while let Some(Ok(event)) = decoder.next_event() {
                bytes += event.data.len();
            }
        }
        black_box(bytes)
    });
}

fn decode(bencher: Bencher<'_, '_>, chunks: &[Bytes]) {
    bencher.counter(size(chunks)).bench_local(|| {
        let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: false });
        let mut items = VecDeque::new();
        for chunk in chunks {
            decoder.push(chunk.clone(), &mut items);
            while let Some(item) = items.pop_front() {
                black_box(&item);
            }
        }
    });
}

#[divan::bench]
fn framing_one_event_a_chunk(bencher: Bencher<'_, '_>) {
    frame(bencher, &events());
}

#[divan::bench]
fn framing_all_at_once(bencher: Bencher<'_, '_>) {
    frame(bencher, &[Bytes::from(events().concat())]);
}

#[divan::bench]
fn framing_crlf(bencher: Bencher<'_, '_>) {
    let stream = String::from_utf8(events().concat()).expect("the stream is ASCII");
    frame(bencher, &[Bytes::from(stream.replace('\n', "\r\n"))]);
}

#[divan::bench]
fn facts_one_event_a_chunk(bencher: Bencher<'_, '_>) {
    decode(bencher, &events());
}

#[divan::bench]
fn facts_all_at_once(bencher: Bencher<'_, '_>) {
    decode(bencher, &[Bytes::from(events().concat())]);
}

#[divan::bench]
fn facts_cut_anywhere(bencher: Bencher<'_, '_>) {
    let stream = Bytes::from(events().concat());
    let chunks: Vec<Bytes> =
        (0..stream.len()).step_by(100).map(|at| stream.slice(at..stream.len().min(at + 100))).collect();
    decode(bencher, &chunks);
}
