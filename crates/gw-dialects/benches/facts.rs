//! What it costs to read and rewrite one request, and to read one answer.

use bytes::Bytes;
use divan::{Bencher, counter::BytesCount};
use gw_dialects::{
    neutral::WriteOptions,
    openai::{ChatEdits, read_answer, read_chat, rewrite_chat},
    translate::{self, Strictness, WireFormat},
};
use gw_types::{NormalizedRequest, Operation, OutputField, RequestContext, TokenCount};

fn main() {
    divan::main();
}

/// A request of 645 bytes, the size of the hop benchmark's.
fn request() -> Bytes {
    let head = r#"{"model":"gpt-4.1","temperature":0.2,"max_tokens":256,"user":"bench","messages":[{"role":"system","content":"You answer briefly and name your sources."},{"role":"user","content":""#;
    let tail = r#""}]}"#;
    let text = "Explain how a token bucket admits requests. ".repeat(20);
    let text = &text[..645 - head.len() - tail.len()];
    Bytes::from(format!("{head}{text}{tail}"))
}

/// A request of 76 KB, the size that coding agents send.
fn large_request() -> Bytes {
    let tool = r#"{"type":"function","function":{"name":"read_file","description":"Reads a file and returns its text.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}"#;
    let text = "line of code \\\"quoted\\\" and a newline\\n".repeat(1_700);
    let tools = vec![tool; 40].join(",");
    Bytes::from(format!(
        r#"{{"model":"gpt-4.1","stream":true,"tools":[{tools}],"messages":[{{"role":"user","content":"{text}"}}]}}"#
    ))
}

/// An answer of 1,039 bytes.
fn answer() -> Bytes {
    let head = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"message":{"role":"assistant","content":""#;
    let tail = r#"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":110,"completion_tokens":140,"total_tokens":250,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}},"service_tier":"default"}"#;
    let text = "A token bucket holds permits up to its capacity. ".repeat(20);
    let text = &text[..1_039 - head.len() - tail.len()];
    Bytes::from(format!("{head}{text}{tail}"))
}

/// A request of so many bytes, of lines of code with an escape at each end, as coding agents send them.
fn code(bytes: usize) -> Bytes {
    let line = "    let answer = gateway.complete(admitted, &request).await?; // \\\"quoted\\\"\\n";
    let text = line.repeat(bytes / line.len() + 1);
    let body =
        format!(r#"{{"model":"m","max_tokens":64,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    Bytes::from(body)
}

/// What a request costs on its way to a deployment of its own format: it is read, and its model is put in.
#[divan::bench(args = [1_024, 100 * 1_024, 400 * 1_024])]
fn same_dialect_request(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = code(bytes);
    let edits = ChatEdits {
        model: "my-deployment",
        output_bound: None,
        output_field: OutputField::MaxTokens,
        ask_usage: false,
    };
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let facts = read_chat(&body).expect("the request is sound");
        let (body, context) = (body.clone(), RequestContext::default());
        rewrite_chat(&NormalizedRequest { operation: Operation::Chat, body, facts, context }, &edits)
    });
}

/// The same for a deployment of another format: read, and translated.
#[divan::bench(args = [1_024, 100 * 1_024, 400 * 1_024])]
fn translated_request(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = code(bytes);
    let options = WriteOptions {
        model: "my-deployment",
        output_bound: None,
        default_output: TokenCount::new(64),
        output_field: OutputField::MaxTokens,
    };
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let facts = read_chat(&body).expect("the request is sound");
        let to = WireFormat::AnthropicMessages;
        (facts, translate::request(Operation::Chat, &body, to, &options, Strictness::Report))
    });
}

fn read(bencher: Bencher<'_, '_>, body: &Bytes) {
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| read_chat(body).expect("the request is sound"));
}

#[divan::bench]
fn read_chat_645_bytes(bencher: Bencher<'_, '_>) {
    read(bencher, &request());
}

#[divan::bench]
fn read_chat_76_kb(bencher: Bencher<'_, '_>) {
    read(bencher, &large_request());
}

fn rewrite(bencher: Bencher<'_, '_>, body: Bytes, ask_usage: bool) {
    let facts = read_chat(&body).expect("the request is sound");
    let context = RequestContext::default();
    let request = NormalizedRequest { operation: Operation::Chat, body, facts, context };
    let edits = ChatEdits {
        model: "my-deployment",
        output_bound: None,
        output_field: OutputField::MaxTokens,
        ask_usage,
    };
    bencher.counter(BytesCount::new(request.body.len())).bench_local(|| rewrite_chat(&request, &edits));
}

#[divan::bench]
fn rewrite_chat_645_bytes(bencher: Bencher<'_, '_>) {
    rewrite(bencher, request(), false);
}

#[divan::bench]
fn rewrite_chat_76_kb_with_usage(bencher: Bencher<'_, '_>) {
    rewrite(bencher, large_request(), true);
}

#[divan::bench]
fn read_answer_1039_bytes(bencher: Bencher<'_, '_>) {
    let body = answer();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| read_answer(&body).expect("the answer is sound"));
}
