//! Bytes that nobody meant: every parser of foreign bytes reads them or refuses them, and never panics.
//!
//! A target mutates a few seeds. An input whose outcome has a shape that was not seen before is kept and mutated in its
//! turn, which leads inwards without any instrumentation. A few thousand inputs a target are part of every test run;
//! `cargo xtask fuzz TARGET --seconds N` goes on for longer.

mod intake;
mod mutate;
mod tokens;

use std::{
    collections::{BTreeSet, VecDeque},
    env,
    hash::{BuildHasher, Hash},
    time::{Duration, Instant},
};

use bytes::Bytes;
use foldhash::fast::FixedState;
use gw_config::{Config, FixedEnvironment, NewKey};
use gw_dialects::{
    event_stream,
    openai::{StreamDecoder, StreamOptions, read_answer, read_chat},
    sse,
};
use gw_types::{GatewayError, Secret};

use self::mutate::Mutator;
use crate::support::{House, Toml, key_of};

/// Inputs of one target in every test run.
const INPUTS: u64 = 2_000;
/// Inputs that are kept because their outcome was new.
const KEPT_MAX: usize = 512;
/// Time is looked at once in so many inputs.
const INPUTS_A_LOOK: u64 = 256;

/// Mutates the seeds. `read` reads an input, panics where something does not hold, and returns the shape of the outcome.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "the automation says which target and for how long, in real time, and reads what was done"
)]
fn fuzz(target: &str, seeds: &[Vec<u8>], read: impl Fn(&[u8], &Mutator) -> u64) {
    let chosen = env::var("GW_FUZZ_TARGET").ok();
    let seconds = env::var("GW_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let limit = seconds.filter(|_| chosen.as_deref() == Some(target)).map(Duration::from_secs);
    let began = Instant::now();
    // A longer run begins elsewhere than the one before.
    let start = limit.map_or(0, |_| u64::from(std::process::id()));
    let mutator = Mutator::new(start);
    let mut kept: Vec<Vec<u8>> = seeds.to_vec();
    let mut shapes: BTreeSet<u64> = seeds.iter().map(|seed| read(seed, &mutator)).collect();
    let mut inputs = 0_u64;
    loop {
        inputs += 1;
        let input = mutator.mutate(&kept);
        let shape = read(&input, &mutator);
        if kept.len() < KEPT_MAX && shapes.insert(shape) {
            kept.push(input);
        }
        let is_over = match limit {
            None => inputs >= INPUTS,
            Some(limit) => inputs.is_multiple_of(INPUTS_A_LOOK) && began.elapsed() >= limit,
        };
        if is_over {
            break;
        }
    }
    println!("fuzz {target}: {inputs} inputs, {} shapes of outcome, start {start}", shapes.len());
    assert!(shapes.len() > seeds.len().min(2), "nothing but the seeds was reached");
}

fn shape(of: impl Hash) -> u64 {
    FixedState::default().hash_one(of)
}

/// Cuts bytes at chance places: what comes of them must not depend on it.
fn cut(bytes: &[u8], mutator: &Mutator) -> Vec<Bytes> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(1 + mutator.below(rest.len().min(40)));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = more;
    }
    pieces
}

fn kind(error: Option<&GatewayError>) -> Option<&'static str> {
    error.map(|error| error.kind().as_str())
}

fn events(pieces: &[Bytes]) -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
    let mut decoder = sse::Decoder::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece.clone());
        while let Some(event) = decoder.next_event() {
            events.push(event.ok().map(|event| (event.name.to_vec(), event.data.to_vec())));
        }
    }
    let last = decoder.finish().map(|event| (event.name.to_vec(), event.data.to_vec()));
    events.extend(last.map(Some));
    events
}

#[test]
fn sse() {
    let seeds = [
        &b"event: message\r\ndata: {\"a\":1}\r\ndata: 2\r\n\r\n: comment\n\ndata: [DONE]\n\n"[..],
        b"\xEF\xBB\xBFdata:x\rid: 7\rretry: 10\r\rdata\n\n",
    ];
    fuzz("sse", &seeds.map(<[u8]>::to_vec), |input, mutator| {
        let whole = events(&[Bytes::copy_from_slice(input)]);
        assert_eq!(events(&cut(input, mutator)), whole, "framing depends on where chunks are cut");
        shape(
            whole
                .iter()
                .map(|event| event.as_ref().map(|(name, data)| (name.len(), data.len().min(9))))
                .collect::<Vec<_>>(),
        )
    });
}

/// Returns what frames hold, up to the first fault.
fn frames(pieces: &[Bytes]) -> (Vec<(usize, Vec<u8>)>, Option<String>) {
    let mut decoder = event_stream::Decoder::new();
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.push(piece.clone());
        while let Some(frame) = decoder.next_frame() {
            match frame {
                Ok(frame) => frames.push((frame.headers().count(), frame.payload.to_vec())),
                Err(fault) => return (frames, Some(fault.to_string())),
            }
        }
    }
    (frames, None)
}

#[test]
fn event_stream() {
    let name = [(":event-type", event_stream::HeaderValue::Text("contentBlockDelta"))];
    let one = event_stream::encode(&name, b"{\"delta\":{\"text\":\"hi\"}}").to_vec();
    let two = [one.clone(), event_stream::encode(&[], b"").to_vec()].concat();
    fuzz("event-stream", &[one, two], |input, mutator| {
        let whole = frames(&[Bytes::copy_from_slice(input)]);
        assert_eq!(frames(&cut(input, mutator)), whole, "framing depends on where chunks are cut");
        shape((
            whole.0.len(),
            whole.1.map(|fault| fault.split(|c: char| c.is_ascii_digit()).next().map(str::to_owned)),
        ))
    });
}

/// Returns what a stream comes to: what is relayed, content, whether it is complete, and the kind of its error.
fn stream(pieces: &[Bytes]) -> (Vec<u8>, u32, bool, Option<&'static str>) {
    let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: true });
    let mut items = VecDeque::new();
    pieces.iter().for_each(|piece| decoder.push(piece.clone(), &mut items));
    let end = decoder.end();
    let mut outcome = (Vec::new(), 0, false, kind(end.as_ref().err()));
    for item in items.iter().chain(end.as_ref().ok()) {
        outcome.0.extend_from_slice(&item.raw);
        outcome.1 += item.facts.content_bytes;
        outcome.2 |= item.facts.terminal;
        outcome.3 = outcome.3.or(kind(item.facts.error.as_ref()));
    }
    outcome
}

#[test]
fn chat_stream() {
    let seeds = [&b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\ndata: \
{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]},\
\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"[..]];
    fuzz("chat-stream", &seeds.map(<[u8]>::to_vec), |input, mutator| {
        let whole = stream(&[Bytes::copy_from_slice(input)]);
        assert_eq!(stream(&cut(input, mutator)), whole, "a stream depends on where chunks are cut");
        assert!(whole.2 != whole.3.is_some(), "complete or failed, and never both");
        shape((whole.0.len().min(40), whole.1.min(9), whole.2, whole.3))
    });
}

#[test]
fn json_facts() {
    let seeds = [
        &b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9\"}]}],\"stream\":true,\
\"max_tokens\":5,\"n\":2,\"stream_options\":{\"include_usage\":true},\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"[..],
        b"{\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}",
        b"{\"error\":{\"message\":\"m\",\"type\":\"t\",\"code\":429}}",
    ];
    fuzz("json-facts", &seeds.map(<[u8]>::to_vec), |input, _| {
        let body = Bytes::copy_from_slice(input);
        let asked = read_chat(&body);
        if let Ok(facts) = &asked {
            // Not as a value: that would refuse numbers and lone surrogates that JSON allows.
            let json = serde_json::from_slice::<serde::de::IgnoredAny>(input);
            assert!(json.is_ok(), "facts of a body that is no JSON: {:?}", String::from_utf8_lossy(input));
            assert!(facts.model_span.start <= facts.model_span.end && facts.model_span.end <= input.len());
        }
        let told = read_answer(&body);
        let asked = asked.map(|facts| (facts.messages, facts.choices, facts.stream, facts.output.is_some()));
        let told = told.map(|facts| (facts.finish.map(|finish| finish.as_str()), facts.usage.is_some()));
        shape((asked.map_err(|error| error.kind().as_str()), told.map_err(|error| error.kind().as_str())))
    });
}

#[test]
fn keys() {
    let key = NewKey::from_entropy([7; NewKey::ENTROPY_BYTES]);
    let text = format!(
        "version = 1\n[providers.p]\nkind = \"scripted\"\n[tenants.t]\nkeys = [{{ name = \"k\", hash = \"{}\" }}]\n",
        key.line()
    );
    fuzz("keys", &[text.into_bytes()], |input, _| {
        let Ok(text) = std::str::from_utf8(input) else { return 0 };
        match Config::parse(text, "gw.toml", &FixedEnvironment::new()) {
            Ok(_) => 1,
            Err(faults) => {
                let printed = faults.to_string();
                assert!(!printed.is_empty(), "refused without a reason");
                shape(printed.lines().count())
            }
        }
    });
}

#[tokio::test(start_paused = true)]
async fn presented_keys() {
    let key = NewKey::from_entropy([7; NewKey::ENTROPY_BYTES]);
    let other = NewKey::from_entropy([8; NewKey::ENTROPY_BYTES]);
    let hashed = format!("[[tenants.b.keys]]\nname = \"made\"\nhash = \"{}\"", key.line());
    let toml = Toml::new().scripted("s", &["ok"]).route("m", &["s"]).tenant("a", "").part(&hashed);
    let house = House::new(&toml).await;
    let (own, made) = (key_of("a"), key.shown().expose());
    let seeds = [own.as_str(), made, other.shown().expose()].map(|text| text.as_bytes().to_vec());
    fuzz("presented-keys", &seeds, |input, _| {
        let Ok(text) = std::str::from_utf8(input) else { return 0 };
        let Some(secret) = Secret::new(text) else { return 1 };
        let known = house.composition.key_store.identify(&secret).map(|identity| identity.tenant.to_string());
        let expected = match secret.expose() {
            text if text == own => Some("a"),
            text if text == made => Some("b"),
            _ => None,
        };
        assert_eq!(known.as_deref(), expected, "a key that is not the key");
        shape((known, text.len().min(99), text.starts_with("gwk1_")))
    });
}
