//! How fast Bedrock's and Gemini's streams are decoded, in bytes of wire a second: framing alone, and framing with neutral
//! events.
//!
//! One answer of 64 content frames; fed as one chunk of bytes, and as one chunk of bytes a frame, which is what a network
//! delivers.

use std::hint::black_box;

use bytes::Bytes;
use divan::{Bencher, counter::BytesCount};
use gw_dialects::{
    bedrock,
    event_stream::{Decoder, HeaderValue, encode},
    gemini,
    json_stream::ArrayDecoder,
};

fn main() {
    divan::main();
}

const FRAMES: usize = 64;

fn frame(kind: &str, payload: &str) -> Bytes {
    let headers = [
        (":event-type", HeaderValue::Text(kind)),
        (":content-type", HeaderValue::Text("application/json")),
        (":message-type", HeaderValue::Text("event")),
    ];
    encode(&headers, payload.as_bytes())
}

fn frames() -> Vec<Bytes> {
    let mut frames =
        vec![frame("messageStart", r#"{"p":"abcdefghijklmnopqrstuvwxyzAB","role":"assistant"}"#)];
    frames.extend((0..FRAMES).map(|token| {
        let payload = format!(
            r#"{{"contentBlockIndex":0,"delta":{{"text":" token{token}"}},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"}}"#
        );
        frame("contentBlockDelta", &payload)
    }));
    frames.push(frame("contentBlockStop", r#"{"contentBlockIndex":0,"p":"abcdefg"}"#));
    frames.push(frame("messageStop", r#"{"p":"abcdefg","stopReason":"end_turn"}"#));
    let usage = r#"{"metrics":{"latencyMs":584},"p":"abc","usage":{"inputTokens":110,"outputTokens":64,"totalTokens":174}}"#;
    frames.push(frame("metadata", usage));
    frames
}

fn documents() -> Vec<String> {
    let tail = r#""usageMetadata": {"trafficType": "ON_DEMAND"},"modelVersion": "gemini-3-flash-preview","createTime": "2026-08-19T14:38:15.050708Z","responseId": "17-FapSMA8TdvNkP_d6hmQw""#;
    let document = |token: usize| {
        let end = if token + 1 == FRAMES { r#","finishReason": "STOP""# } else { "" };
        format!(
            r#"{{"candidates": [{{"content": {{"role": "model","parts": [{{"text": " token{token}"}}]}}{end}}}],{tail}}}"#
        )
    };
    (0..FRAMES).map(document).collect()
}

fn size(chunks: &[Bytes]) -> BytesCount {
    BytesCount::new(chunks.iter().map(Bytes::len).sum::<usize>())
}

fn framing(bencher: Bencher<'_, '_>, chunks: &[Bytes]) {
    bencher.counter(size(chunks)).bench_local(|| {
        let mut decoder = Decoder::new();
        let mut bytes = 0;
        for chunk in chunks {
            decoder.push(chunk.clone());
            while let Some(Ok(frame)) = decoder.next_frame() {
                bytes += frame.payload.len();
            }
        }
        black_box(bytes)
    });
}

#[divan::bench]
fn event_stream_framing_one_frame_a_chunk(bencher: Bencher<'_, '_>) {
    framing(bencher, &frames());
}

#[divan::bench]
fn event_stream_framing_all_at_once(bencher: Bencher<'_, '_>) {
    framing(bencher, &[Bytes::from(frames().concat())]);
}

#[divan::bench]
fn event_stream_framing_cut_anywhere(bencher: Bencher<'_, '_>) {
    let stream = Bytes::from(frames().concat());
    let chunks: Vec<Bytes> =
        (0..stream.len()).step_by(100).map(|at| stream.slice(at..stream.len().min(at + 100))).collect();
    framing(bencher, &chunks);
}

#[divan::bench]
fn bedrock_events_one_frame_a_chunk(bencher: Bencher<'_, '_>) {
    let chunks = frames();
    bencher.counter(size(&chunks)).bench_local(|| {
        let mut reader = bedrock::StreamReader::new();
        let mut events = Vec::new();
        for chunk in &chunks {
            reader.push(chunk.clone(), &mut events);
            black_box(&events);
            events.clear();
        }
        reader.end(&mut events);
    });
}

#[divan::bench]
fn gemini_events_one_event_a_chunk(bencher: Bencher<'_, '_>) {
    let chunks: Vec<Bytes> =
        documents().iter().map(|document| Bytes::from(format!("data: {document}\r\n\r\n"))).collect();
    bencher.counter(size(&chunks)).bench_local(|| {
        let mut reader = gemini::StreamReader::new();
        let mut events = Vec::new();
        for chunk in &chunks {
            reader.push(chunk.clone(), &mut events);
            black_box(&events);
            events.clear();
        }
        reader.end(&mut events);
    });
}

#[divan::bench]
fn json_array_framing(bencher: Bencher<'_, '_>) {
    let stream = Bytes::from(format!("[{}]", documents().join(",\r\n")));
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        let mut decoder = ArrayDecoder::new();
        decoder.push(stream.clone());
        let mut bytes = 0;
        while let Some(Ok(value)) = decoder.next_value() {
            bytes += value.len();
        }
        black_box(bytes)
    });
}
