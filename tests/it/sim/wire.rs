//! What a provider sends, byte by byte.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::openai::{ErrorHead, classify};
use gw_types::{ErrorKind, GatewayError, UtcTime};

use super::script::{Does, Play, Told};

/// Stands in every prompt and in what providers say about errors; must stand nowhere else.
pub(crate) const CANARY: &str = "canary-7f3a";
/// What a prompt uses, as a provider tells it.
pub(crate) const PROMPT_TOKENS: u64 = 11;
/// Comments of a provider that only keeps alive, before it hangs.
const KEEP_ALIVES: u32 = 2_000;

/// One step of a stream.
pub(crate) enum Frame {
    Bytes(Bytes),
    /// The connection breaks.
    Break,
    /// Nothing more is said.
    Hang,
}

/// Returns the words of an answer: a marker, and so many more.
fn text(marker: &str, words: u32) -> Vec<String> {
    let word = |at| if at == 0 { marker.to_owned() } else { format!(" w{at}") };
    (0..=words).map(word).collect()
}

/// Returns the output tokens of an answer: a word is a token.
pub(crate) fn output_tokens(play: &Play) -> u64 {
    u64::from(play.words) + 1
}

fn usage(play: &Play) -> Option<String> {
    let output = output_tokens(play);
    let (input, output) = match play.usage {
        Told::Nothing => return None,
        Told::Truth => (PROMPT_TOKENS, output),
        Told::Zero => (0, 0),
        Told::Huge => (PROMPT_TOKENS, 9_000_000_000),
        Told::TenTimes => (PROMPT_TOKENS, 10 * output),
    };
    let total = input + output;
    Some(format!("{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\"total_tokens\":{total}}}"))
}

fn finish(does: Does) -> &'static str {
    match does {
        Does::RunsOut => "length",
        Does::IsFiltered => "content_filter",
        _ => "stop",
    }
}

/// Returns the body of a plain answer with status 200.
pub(crate) fn body(play: &Play, marker: &str) -> Bytes {
    let usage = usage(play).map_or_else(String::new, |usage| format!(",\"usage\":{usage}"));
    let whole = format!(
        "{{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m-1\",\"choices\":[{{\"index\":0,\
         \"message\":{{\"role\":\"assistant\",\"content\":\"{}\"}},\"finish_reason\":\"{}\"}}]{usage}}}",
        text(marker, play.words).concat(),
        finish(play.does),
    );
    Bytes::from(match play.does {
        Does::Page => PAGE.to_owned(),
        Does::Cuts => whole[..whole.len() / 2].to_owned(),
        Does::Garbles => format!("{{\"choices\": [{whole}"),
        Does::Errs => ERROR.to_owned(),
        _ => whole,
    })
}

const PAGE: &str = "<!DOCTYPE html><html><body>canary-7f3a bad gateway</body></html>";
const ERROR: &str =
    "{\"error\":{\"message\":\"canary-7f3a overloaded\",\"type\":\"server_error\",\"code\":null}}";

/// Returns the frames of a stream, each with whether content is in it.
pub(crate) fn frames(play: &Play, marker: &str) -> VecDeque<Frame> {
    let chunk = |choices: &str, usage: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\
             \"choices\":[{choices}]{usage}}}\n\n"
        )
    };
    let delta = |delta: &str, finish: &str| {
        chunk(&format!("{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":{finish}}}"), "")
    };
    if play.does == Does::Page {
        return VecDeque::from([Frame::Bytes(Bytes::from_static(PAGE.as_bytes()))]);
    }
    if play.does == Does::KeepsAlive {
        let alive = (0..KEEP_ALIVES).map(|_| Frame::Bytes(Bytes::from_static(b": alive\n\n")));
        return alive.chain([Frame::Hang]).collect();
    }
    // Where a fault comes behind the words, none of them is a stream that begins with it.
    let is_whole = matches!(play.does, Does::Answers | Does::RunsOut | Does::IsFiltered);
    let said = if is_whole || play.words > 0 { text(marker, play.words) } else { Vec::new() };
    let mut frames = vec![delta("\"role\":\"assistant\",\"content\":\"\"", "null")];
    frames.extend(said.iter().map(|word| delta(&format!("\"content\":\"{word}\""), "null")));
    let mut end = None;
    match play.does {
        Does::Garbles => frames.push("data: {\"choices\":[{]}\n\n".to_owned()),
        Does::Errs => frames.push(format!("data: {ERROR}\n\n")),
        Does::Stalls => end = Some(Frame::Hang),
        Does::ResetsAfter => end = Some(Frame::Break),
        Does::Cuts => {}
        _ => {
            frames.push(delta("", &format!("\"{}\"", finish(play.does))));
            frames.extend(usage(play).map(|usage| chunk("", &format!(",\"usage\":{usage}"))));
            frames.push("data: [DONE]\n\n".to_owned());
        }
    }
    let times = if play.twice { 2 } else { 1 };
    let whole = frames.into_iter().flat_map(|frame| std::iter::repeat_n(Bytes::from(frame), times));
    let mut cut = VecDeque::new();
    for frame in whole {
        let size = if play.pieces == 0 { frame.len() } else { play.pieces };
        (0..frame.len()).step_by(size).for_each(|at| {
            cut.push_back(Frame::Bytes(frame.slice(at..frame.len().min(at + size))));
        });
    }
    cut.extend(end);
    cut
}

/// Returns the error of a call that is answered with an error status, or not at all.
pub(crate) fn refusal(does: Does, utc: UtcTime) -> Option<GatewayError> {
    let transport = || GatewayError::new(ErrorKind::Transport, "scripted");
    let (status, retry_after, code) = match does {
        Does::Refuses | Does::ResetsBefore => return Some(transport()),
        Does::ResetsAfter => return Some(transport().ambiguous()),
        Does::BadRequest => (400, None, "bad"),
        Does::Filters => (400, None, "content_filter"),
        Does::TooLong => (400, None, "context_length_exceeded"),
        Does::BadKey => (401, None, "invalid_api_key"),
        Does::Missing => (404, None, "model_not_found"),
        Does::Limits(seconds) => (429, Some(seconds), "rate_limit_exceeded"),
        Does::NoQuota => (429, None, "insufficient_quota"),
        Does::Fails => (500, None, "server_error"),
        Does::Overloaded(seconds) => (503, Some(seconds), "overloaded"),
        Does::Answers
        | Does::RunsOut
        | Does::IsFiltered
        | Does::Hangs
        | Does::KeepsAlive
        | Does::Page
        | Does::Cuts
        | Does::Garbles
        | Does::Errs
        | Does::Stalls => return None,
    };
    let retry_after = retry_after.map(|seconds| seconds.to_string());
    let header = |name: &str| if name == "retry-after" { retry_after.as_deref() } else { None };
    let body = format!("{{\"error\":{{\"message\":\"{CANARY}\",\"type\":\"t\",\"code\":\"{code}\"}}}}");
    Some(classify(&ErrorHead { status, header: &header, utc }, body.as_bytes()))
}
