//! Tests of the stream decoder; the reported faults are named by their ids.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_types::{ErrorKind, FinishReason, GatewayError, StreamItem, Usage};

use super::{StreamDecoder, StreamOptions};
use crate::openai::wire::{Content, Document};

/// What a caller gets to see of a stream, and what the pipeline learns.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    raw: String,
    text: String,
    content_bytes: u64,
    content_frames: u32,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    served: Vec<String>,
    complete: bool,
    error: Option<(ErrorKind, Option<String>)>,
}

impl Seen {
    fn add(&mut self, item: &StreamItem) {
        assert!(!self.complete && self.error.is_none(), "something follows the end");
        let raw = std::str::from_utf8(&item.raw).unwrap();
        for event in raw.split_inclusive("\n\n") {
            let json = event.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
            let chunk: Document = serde_json::from_str(json).unwrap();
            let message = chunk.choices.into_iter().next().and_then(|choice| choice.message);
            if let Some(Content::Text(text)) = message.and_then(|message| message.content) {
                self.text.push_str(&text);
            }
        }
        self.raw.push_str(raw);
        let facts = &item.facts;
        self.content_bytes += u64::from(facts.content_bytes);
        self.content_frames += facts.content_frames;
        self.finish = facts.finish.or(self.finish);
        self.usage = facts.usage.as_deref().copied().or(self.usage);
        self.served.extend(facts.served_model.iter().map(ToString::to_string));
        self.complete = facts.terminal;
        if let Some(error) = &facts.error {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: &GatewayError) {
        self.error = Some((error.kind(), error.detail().map(|detail| detail.message().to_owned())));
    }

    fn failed(&self) -> Option<ErrorKind> {
        self.error.as_ref().map(|(kind, _)| *kind)
    }
}

fn decode<'a>(options: StreamOptions, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = StreamDecoder::new(options);
    let mut seen = Seen::default();
    let mut items = VecDeque::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
        items.drain(..).for_each(|item| seen.add(&item));
    }
    if seen.complete || seen.error.is_some() {
        assert!(decoder.end().unwrap().raw.is_empty());
        return seen;
    }
    match decoder.end() {
        Ok(item) => seen.add(&item),
        Err(error) => seen.fail(&error),
    }
    seen
}

/// Decodes a stream whole, byte by byte and cut at every position, and returns what all of them give.
#[track_caller]
fn read_with(options: StreamOptions, stream: impl AsRef<[u8]>) -> Seen {
    let stream = stream.as_ref();
    let whole = decode(options, [stream]);
    assert_eq!(decode(options, stream.chunks(1)), whole, "byte by byte");
    for cut in 0..=stream.len() {
        let (before, after) = stream.split_at(cut);
        assert_eq!(decode(options, [before, after]), whole, "cut at {cut}");
    }
    whole
}

#[track_caller]
fn read(stream: impl AsRef<[u8]>) -> Seen {
    read_with(StreamOptions::default(), stream)
}

fn content(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18}}\n\n";

#[test]
fn utf8_split_across_transport_chunks() {
    let stream = format!("{}{STOP}{DONE}", content("你好🙂"));
    let seen = read(&stream);
    assert_eq!((seen.text.as_str(), seen.complete, seen.content_bytes), ("你好🙂", true, 10));
    let mut broken = stream.into_bytes();
    let at = broken.iter().position(|byte| *byte == 0xA0).unwrap();
    broken[at] = 0xFF;
    assert_eq!(read(&broken).failed(), Some(ErrorKind::MalformedResponse));
}

#[test]
fn sse_line_endings_comments_and_optional_space() {
    let plain = format!("{}{}{STOP}{DONE}", content("A"), content("B"));
    let spread = plain.replace("\"index\":0,", "\"index\":0,\ndata: ");
    for stream in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replace("data: ", "data:"),
        format!(": keep-alive\n:\n\n{}", plain.replace("\n\n", "\n: keep-alive\n\n:\n\n")),
        plain.replace("data: ", "event: message\nid: 7\nretry: 10\ndata: "),
        spread.clone(),
        format!("\u{feff}{plain}"),
        plain.replace("[DONE]", "[DONE] "),
    ] {
        let seen = read(&stream);
        assert_eq!((seen.text.as_str(), seen.finish, seen.complete), ("AB", Some(FinishReason::Stop), true));
        let expected = if stream == spread { spread.replace(",\ndata: ", ", ") } else { plain.clone() };
        assert_eq!(seen.raw, expected.replace(DONE, ""), "{stream:?}");
    }
}

#[test]
fn an_event_is_relayed_while_the_connection_stays_open() {
    for ending in ["\n\n", "\r\n\r\n", "\r\r"] {
        let mut decoder = StreamDecoder::new(StreamOptions::default());
        let mut items = VecDeque::new();
        decoder.push(Bytes::from(content("A").replace("\n\n", ending)), &mut items);
        assert_eq!(items.pop_front().unwrap().raw, content("A"));
    }
}

#[test]
fn clean_eof_without_terminal_reason_is_not_success() {
    let hel = content("Hel");
    for stream in [hel.clone(), format!("{hel}{DONE}"), format!("{hel}data: {{\"choices\":[{{\"del")] {
        let seen = read(stream);
        assert_eq!((seen.raw.as_str(), seen.finish, seen.complete), (hel.as_str(), None, false));
        assert_eq!(seen.failed(), Some(ErrorKind::StreamInterrupted));
    }
    let seen = read(format!("{hel}{STOP}"));
    assert_eq!((seen.finish, seen.complete, seen.error), (Some(FinishReason::Stop), true, None));
    assert_eq!(read("").failed(), Some(ErrorKind::StreamInterrupted));
}

#[test]
fn in_band_upstream_error_on_http_200() {
    let seen = read(
        ": ping\n\ndata: {\"error\":{\"message\":\"invalid request\",\"type\":\"invalid_request_error\",\"code\":400}}\n\n",
    );
    assert_eq!(seen.error, Some((ErrorKind::InvalidRequest, Some("invalid request".to_owned()))));
    assert_eq!((seen.raw.as_str(), seen.content_frames), ("", 0));
    let seen = read("data: {\"error\":{\"message\":\"m\",\"type\":\"rate_limit_error\",\"code\":429}}\n\n");
    assert_eq!(seen.failed(), Some(ErrorKind::ProviderRateLimited));
    let late = "data: {\"id\":\"c1\",\"choices\":[],\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n";
    let seen = read(format!("{}{late}{DONE}", content("Hel")));
    assert_eq!((seen.text.as_str(), seen.raw == content("Hel")), ("Hel", true));
    assert_eq!(seen.error, Some((ErrorKind::ProviderUnavailable, Some("overloaded".to_owned()))));
    let named = "event: error\ndata: {\"message\":\"gone\",\"code\":503}\n\n";
    assert_eq!(read(named).error, Some((ErrorKind::ProviderUnavailable, Some("gone".to_owned()))));
    assert_eq!(read("data: {\"error\":\"broken\"}\n\n").failed(), Some(ErrorKind::ProviderUnavailable));
    let top = "data: {\"object\":\"error\",\"message\":\"m\",\"code\":400}\n\n";
    assert_eq!(read(top).failed(), Some(ErrorKind::InvalidRequest));
}

#[test]
fn usage_arrives_in_fragments() {
    let chunk = content("one").replace("]}\n", "],\"usage\":null}\n");
    let stream = format!("{chunk}{chunk}{STOP}{USAGE}{DONE}");
    let kept_back = read(&stream);
    let usage = kept_back.usage.unwrap();
    assert_eq!(
        (usage.input.get(), usage.output.get(), usage.total().get(), usage.estimated),
        (11, 7, 18, false)
    );
    assert_eq!(kept_back.raw, format!("{chunk}{chunk}{STOP}"));
    let relayed = read_with(StreamOptions { relay_usage: true }, &stream);
    assert_eq!(relayed.raw, format!("{chunk}{chunk}{STOP}{USAGE}"));
    assert_eq!(relayed.usage, Some(usage));
    let without = read(format!("{}{STOP}{DONE}", content("one two three")));
    assert_eq!((without.usage, without.content_bytes, without.content_frames), (None, 13, 1));
}

#[test]
fn usage_in_content_chunks_stays_there() {
    let usage =
        |tokens: u64| format!(",\"usage\":{{\"prompt_tokens\":8,\"completion_tokens\":{tokens}}}}}\n\n");
    let cumulative: String = (1..4).map(|tokens| content("x").replace("}\n\n", &usage(tokens))).collect();
    let groq =
        STOP.replace("}\n\n", ",\"x_groq\":{\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":5}}}\n\n");
    let seen = read(format!("{cumulative}{groq}{DONE}"));
    assert_eq!(seen.raw, format!("{cumulative}{groq}"));
    assert_eq!(seen.usage.map(|usage| (usage.input.get(), usage.output.get())), Some((8, 5)));
}

#[test]
fn contiguous_events_are_one_slice_of_the_chunk() {
    let chunk = Bytes::from(format!("{}{}{STOP}{USAGE}{DONE}", content("A"), content("B")));
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(chunk.clone(), &mut items);
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].raw.as_ptr(), chunk.as_ptr());
    assert!(items[0].facts.terminal && items[0].facts.content_frames == 2);
}

#[test]
fn facts_go_with_their_bytes() {
    let chunk = format!("{}{USAGE}{}{STOP}", content("A"), content("BC"));
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(Bytes::from(chunk), &mut items);
    let facts: Vec<_> = items.iter().map(|item| (item.facts.content_bytes, item.facts.finish)).collect();
    assert_eq!(facts, [(1, None), (2, Some(FinishReason::Stop))]);
}

#[test]
fn events_without_content_are_no_progress() {
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let azure = "data: {\"choices\":[],\"prompt_filter_results\":[],\"model\":\"\"}\n\n";
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(Bytes::from(format!(": ping\n\n{azure}{role}")), &mut items);
    assert!(items.iter().all(|item| !item.facts.is_meaningful()));
    assert_eq!(
        items.iter().map(|item| item.raw.clone()).collect::<Vec<_>>().concat(),
        format!("{azure}{role}").as_bytes()
    );
}

#[test]
fn the_head_of_a_tool_call_is_progress() {
    let head = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n";
    let seen = read(head);
    assert_eq!((seen.content_frames, seen.content_bytes, seen.raw.as_str()), (1, 0, head));
}

#[test]
fn null_errors_are_taken_out() {
    let stop = STOP.replace("{\"choices\"", "{\"error\": null, \"choices\"");
    assert_eq!(
        read(format!("{stop}{DONE}")).raw,
        STOP.replace("{\"", "{ \"").replace("[{ ", "[{").replace(":{ ", ":{")
    );
    let stop = STOP.replace("}\n\n", ",\"error\":null}\n\n");
    assert_eq!(read(format!("{stop}{DONE}")).raw, STOP);
}

#[test]
fn chunks_without_choices_are_kept_back() {
    for pointless in ["{\"type\":\"ping\"}", "{\"choices\":null}", "{\"id\":\"c\",\"usage\":null}", ""] {
        let seen = read(format!("data: {pointless}\n\n{}{STOP}{DONE}", content("A")));
        assert_eq!(seen.raw, format!("{}{STOP}", content("A")), "{pointless}");
    }
    let usage = USAGE.replace("[]", "null");
    let seen = read_with(StreamOptions { relay_usage: true }, format!("{STOP}{usage}{DONE}"));
    assert_eq!(seen.raw, format!("{STOP}{USAGE}"));
}

#[test]
fn what_is_no_chunk_is_malformed() {
    for broken in ["<html>", "[1]", "{\"choices\":", "{\"choices\":{}}", "{\"choices\":[1]}", "{} {}", "DONE"]
    {
        let seen = read(format!("{}data: {broken}\n\n{STOP}{DONE}", content("A")));
        assert_eq!(
            (seen.raw.as_str(), seen.failed()),
            (content("A").as_str(), Some(ErrorKind::MalformedResponse)),
            "{broken}"
        );
    }
}

#[test]
fn every_choice_must_end() {
    let choice = |index: u32, finish: &str| {
        format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"finish_reason\":{finish}}}]}}\n\n")
    };
    let both = format!("{}{}{}", choice(0, "null"), choice(1, "null"), choice(0, "\"stop\""));
    assert_eq!(read(format!("{both}{DONE}")).failed(), Some(ErrorKind::StreamInterrupted));
    let seen = read(format!("{both}{}{DONE}", choice(1, "\"content_filter\"")));
    assert_eq!((seen.complete, seen.finish), (true, Some(FinishReason::ContentFilter)));
}

#[test]
fn a_streamed_refusal_is_no_plain_stop() {
    let refusal = content("no").replace("\"content\"", "\"refusal\"");
    let seen = read(format!("{refusal}{STOP}{DONE}"));
    assert_eq!((seen.finish, seen.content_bytes), (Some(FinishReason::Refusal), 2));
}

#[test]
fn the_served_model_is_said_once() {
    let chunk = content("A").replace("{\"choices\"", "{\"model\":\"gpt-x\",\"choices\"");
    let empty = chunk.replace("gpt-x", "");
    assert_eq!(read(format!("{empty}{chunk}{chunk}{STOP}")).served, ["gpt-x"]);
}

#[test]
fn a_last_event_without_its_blank_line_counts() {
    for tail in ["data: [DONE]", "data: [DONE]\n", ""] {
        let seen = read(format!("{}{}{tail}", content("A"), STOP));
        assert!(seen.complete, "{tail}");
    }
    let seen = read(format!("{}{}", content("A"), STOP.trim_end()));
    assert_eq!((seen.complete, seen.raw), (true, format!("{}{STOP}", content("A"))));
    let seen = read(format!("{STOP}{}", USAGE.trim_end()));
    assert_eq!((seen.complete, seen.usage.is_some(), seen.raw.as_str()), (true, true, STOP));
}

#[test]
fn a_cut_event_with_content_is_relayed_before_the_interruption() {
    let seen = read(content("Hel").trim_end());
    assert_eq!(
        (seen.raw.as_str(), seen.failed()),
        (content("Hel").as_str(), Some(ErrorKind::StreamInterrupted))
    );
}

#[test]
fn nothing_follows_the_end() {
    let mut decoder = StreamDecoder::new(StreamOptions::default());
    let mut items = VecDeque::new();
    decoder.push(Bytes::from(format!("{STOP}{DONE}{}", content("late"))), &mut items);
    decoder.push(Bytes::from(content("later")), &mut items);
    assert_eq!((items.len(), items[0].raw.as_ref()), (1, STOP.as_bytes()));
    assert_eq!(decoder.end().unwrap().facts, gw_types::FrameFacts::default());
}

#[test]
fn i19_unknown_fields_and_numbers_pass_as_they_came() {
    let chunk = "data: { \"x\" : 1e400,\"choices\":[ {\"index\":0 ,\"delta\":{\"content\":\"\\u0041\",\"y\":[9223372036854775809]},\"finish_reason\":\"stop\"} ],\"obfuscation\":\"aXb\"}\n\n";
    let seen = read(format!("{chunk}{DONE}"));
    assert_eq!((seen.raw.as_str(), seen.content_bytes), (chunk, 1));
    assert_eq!(read(format!("{chunk}{DONE}").replace('\n', "\r\n")).raw, chunk);
}
