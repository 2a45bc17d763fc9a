//! What is asked and what the provider makes of it. All of it follows from the number of the request.

use std::time::Duration;

use gw_testkit::{ChatEnd, Fault, SeenCall, ok, status};
use serde_json::{Value, json};

/// One provider call in so many fails.
const FAILS_ONE_IN: u64 = 5;
/// One good answer in so many is longer than it was asked to be.
const OVERRUNS_ONE_IN: u64 = 3;
/// One client in so many does not wait for ever: for some of them the answer comes first, so that one in ten leaves.
const LEAVES_ONE_IN: u64 = 8;
/// The longest time that such a client stays, in milliseconds: one of two about as long as an idle gateway needs, the other
/// about as long as a busy one does.
const STAYS_MS: [u64; 2] = [90, 700];
/// The longest time before an answer, in milliseconds.
const THINKS_MS: u64 = 40;
/// Milliseconds between two words of a stream.
const WORD_MS: u64 = 2;
/// What a call is taken to be asked for if it names no bound: a budget makes gw name one.
const UNBOUNDED: u64 = 32;

/// Returns a chat request: streams and plain ones, such that name a bound and such that do not.
pub(crate) fn body(number: u64) -> Value {
    let prompt = format!("request {number} of the load, {}", "a few words ".repeat(of(number, 1, 12)));
    let mut body = json!({
        "model": "load", "stream": number % 2 == 1, "messages": [{"role": "user", "content": prompt}],
    });
    if of(number, 2, 3) > 0 {
        body["max_tokens"] = json!(4 + of(number, 3, 24));
    }
    body
}

/// Returns how long the client of a request stays, if it does not wait for its answer.
pub(crate) fn leaves_after(number: u64) -> Option<Duration> {
    let leaves = of(number, 4, LEAVES_ONE_IN) == 0;
    leaves.then(|| Duration::from_millis(mixed(number, 5) % STAYS_MS[of(number, 6, 2)]))
}

/// Returns what the provider does with a call: another thing at each deployment, so that a second call may help.
pub(crate) fn answer(call: &SeenCall) -> Fault {
    let body = call.json();
    let prompt = body["messages"][0]["content"].as_str().unwrap_or_default();
    let number = prompt.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(call.number);
    let place = if body["model"] == "first-model" { 10 } else { 20 };
    let seed = mixed(number, place);
    let bound = body["max_tokens"].as_u64().unwrap_or(UNBOUNDED);
    let words = if seed.is_multiple_of(OVERRUNS_ONE_IN) { bound * 3 } else { 1 + (seed >> 8) % bound };
    let mut chat = ok("word ".repeat(usize::try_from(words).unwrap_or_default()).trim_end());
    chat.input_tokens = 10 + (seed >> 16) % 30;
    chat.pause_ms = WORD_MS;
    let fault = if of(number, place + 1, FAILS_ONE_IN) == 0 {
        let half = usize::try_from(words / 2).unwrap_or_default();
        match of(number, place + 2, 8) {
            0 => status(500).into(),
            1 => status(429).into(),
            2 => Fault::ResetBeforeHead,
            3 => Fault::CloseBeforeHead,
            4 => Fault::HangBeforeHead,
            5 => chat.end(ChatEnd::CutAfter(half)).into(),
            6 => chat.end(ChatEnd::EndAfter(half)).into(),
            _ => chat.end(ChatEnd::ErrorAfter(half)).into(),
        }
    } else {
        chat.into()
    };
    Fault::SlowHead { delay_ms: (seed >> 24) % THINKS_MS, then: Box::new(fault) }
}

/// Returns a number below `below` that follows from the request's number and the place that asks.
fn of(number: u64, place: u64, below: u64) -> usize {
    usize::try_from(mixed(number, place) % below).unwrap_or_default()
}

/// Mixes the bits as splitmix64 does.
fn mixed(number: u64, place: u64) -> u64 {
    let mut bits = number.wrapping_mul(64).wrapping_add(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
