//! Recorded answers that something happened to on their way: frames lost, doubled, out of order, cut, padded, or with fields
//! of another type. Whatever comes, the readers say one and the same of it however it is fed, never take a part for the
//! whole, and never panic.

use std::sync::LazyLock;

use bytes::Bytes;
use gw_dialects::{
    anthropic, bedrock,
    collect::Collector,
    gemini,
    neutral::{AnswerStamp, Content, Event, Message},
    ollama,
    openai::{self, ErrorHead},
    responses,
    translate::{self, StreamTranslation, StreamTranslator, WireFormat},
};
use gw_types::{ErrorKind, FinishReason, Operation, UtcTime};
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::fixtures::{Exchange, exchanges_of};

/// The longest answers that are changed, in bytes: they are fed byte by byte, many times.
const BODY_BYTES_MAX: usize = 24 * 1024;

/// What happens to an answer; places are drawn.
#[derive(Clone, Debug)]
enum Change {
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
    Cut(Index),
    /// A value, by its place among all, becomes another.
    Retype(Index, Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    prop_oneof![
        index().prop_map(Change::Drop),
        index().prop_map(Change::Double),
        (index(), index()).prop_map(|(one, other)| Change::Swap(one, other)),
        index().prop_map(Change::Cut),
        (index(), index(), 0..REPLACEMENTS).prop_map(|(frame, place, by)| Change::Retype(frame, place, by)),
    ]
}

const REPLACEMENTS: usize = 8;

fn replacement(number: usize) -> Value {
    match number {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e300),
        4 => json!("text"),
        5 => json!([]),
        6 => json!([{"text": 1}]),
        _ => json!({}),
    }
}

/// The recorded answers in a format that every caller can be given; none, reported, where they are absent.
pub(crate) static ANSWERS: LazyLock<Vec<(&'static Exchange, WireFormat)>> = LazyLock::new(|| {
    let of = |name: &str, format| {
        let short = exchanges_of(name).into_iter().filter(|one| one.body.len() <= BODY_BYTES_MAX);
        short.map(move |one| (one, format)).collect::<Vec<_>>()
    };
    let chat =
        of("chat", WireFormat::OpenAiChat).into_iter().filter_map(|(one, format)| match one.api.as_str() {
            "cohere.chat" => None,
            "ollama.chat" => Some((one, WireFormat::OllamaChat)),
            _ => Some((one, format)),
        });
    let others = [
        ("openai-chat", WireFormat::OpenAiChat),
        ("responses", WireFormat::OpenAiResponses),
        ("messages", WireFormat::AnthropicMessages),
        ("generateContent", WireFormat::Gemini),
        ("streamGenerateContent", WireFormat::Gemini),
        ("converse", WireFormat::BedrockConverse),
        ("converse-stream", WireFormat::BedrockConverse),
    ];
    chat.chain(others.into_iter().flat_map(|(name, format)| of(name, format))).collect()
});

fn answers(wanted: fn(&Exchange) -> bool) -> Option<Vec<(&'static Exchange, WireFormat)>> {
    let found: Vec<_> = ANSWERS.iter().filter(|(exchange, _)| wanted(exchange)).copied().collect();
    (!found.is_empty()).then_some(found)
}

pub(crate) fn is_success(exchange: &Exchange) -> bool {
    (200..300).contains(&exchange.status)
}

/// What an answer says, and how it failed if it did.
pub(crate) type Told = Result<Message, (Option<Box<Message>>, ErrorKind)>;

/// Reads a stream that is fed so many bytes at a time.
fn stream(format: WireFormat, body: &Bytes, step: usize) -> Told {
    let mut events = Vec::new();
    macro_rules! read {
        ($format:ident) => {{
            let mut reader = $format::StreamReader::new();
            body.chunks(step).for_each(|chunk| reader.push(body.slice_ref(chunk), &mut events));
            reader.end(&mut events);
        }};
    }
    match format {
        WireFormat::OpenAiChat => read!(openai),
        WireFormat::OpenAiResponses => read!(responses),
        WireFormat::AnthropicMessages => read!(anthropic),
        WireFormat::Gemini => read!(gemini),
        WireFormat::BedrockConverse => read!(bedrock),
        WireFormat::OllamaChat => read!(ollama),
    }
    let mut collector = Collector::default();
    for event in events {
        match event {
            Event::Error(error) => return Err((Some(Box::new(collector.finish())), error.kind())),
            Event::End => return Ok(collector.finish()),
            event => collector.push(event),
        }
    }
    panic!("a reader of streams has not said how the stream ended")
}

/// Cuts a stream into its frames; put together they are the stream.
fn frames(format: WireFormat, body: &Bytes) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut rest = body.clone();
    while !rest.is_empty() {
        let length = match format {
            WireFormat::BedrockConverse => rest
                .first_chunk::<4>()
                .map_or(rest.len(), |length| u32::from_be_bytes(*length) as usize)
                .clamp(1, rest.len()),
            WireFormat::OllamaChat => end_of(&rest, b"\n"),
            WireFormat::OpenAiChat
            | WireFormat::OpenAiResponses
            | WireFormat::AnthropicMessages
            | WireFormat::Gemini => end_of(&rest, b"\n\n").min(end_of(&rest, b"\r\n\r\n")),
        };
        frames.push(rest.split_to(length));
    }
    frames
}

fn end_of(bytes: &[u8], mark: &[u8]) -> usize {
    let found = bytes.windows(mark.len()).position(|window| window == mark);
    found.map_or(bytes.len(), |at| at + mark.len())
}

fn apply(format: WireFormat, body: &Bytes, changes: &[Change]) -> Bytes {
    let mut frames = frames(format, body);
    for change in changes {
        if frames.is_empty() {
            break;
        }
        let count = frames.len();
        match change {
            Change::Drop(at) => drop(frames.remove(at.index(count))),
            Change::Double(at) => frames.insert(at.index(count), frames[at.index(count)].clone()),
            Change::Swap(one, other) => frames.swap(one.index(count), other.index(count)),
            Change::Cut(at) => {
                let bytes = Bytes::from(frames.concat());
                frames = vec![bytes.slice(..at.index(bytes.len() + 1))];
            }
            Change::Retype(frame, place, by) => {
                let frame = &mut frames[frame.index(count)];
                *frame = retyped(frame, *place, &replacement(*by));
            }
        }
    }
    Bytes::from(frames.concat())
}

/// Replaces a value in the JSON of a frame. A frame of AWS's stays: its checksum would only say that it is damaged.
fn retyped(frame: &Bytes, place: Index, by: &Value) -> Bytes {
    let Ok(text) = std::str::from_utf8(frame) else { return frame.clone() };
    let (Some(start), Some(end)) = (text.find(['{', '[']), text.rfind(['}', ']'])) else {
        return frame.clone();
    };
    let Some(mut value) = text.get(start..=end).and_then(|json| serde_json::from_str::<Value>(json).ok())
    else {
        return frame.clone();
    };
    let places = count(&value);
    replace(&mut value, &mut place.index(places), by);
    Bytes::from(format!("{}{value}{}", &text[..start], &text[end + 1..]))
}

fn children(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn replace(value: &mut Value, left: &mut usize, by: &Value) -> bool {
    if *left == 0 {
        *value = by.clone();
        return true;
    }
    *left -= 1;
    children(value).into_iter().any(|child| replace(child, left, by))
}

fn bytes(exchange: &Exchange) -> Bytes {
    Bytes::copy_from_slice(&exchange.body)
}

/// What a caller is told: everything but figures and names of its making.
fn said(message: &Message) -> Vec<(Vec<Content>, FinishReason)> {
    message.choices.iter().map(|choice| (choice.blocks.clone(), choice.finish)).collect()
}

pub(crate) fn read(format: WireFormat, body: &Bytes, is_stream: bool) -> Told {
    if is_stream {
        return stream(format, body, usize::MAX);
    }
    translate::read_message(format, body).map_err(|error| (None, error.kind()))
}

/// Reads an answer in every way that it can come, and writes it for every caller.
fn check(format: WireFormat, body: &Bytes, is_stream: bool) -> Result<Told, TestCaseError> {
    let told = read(format, body, is_stream);
    if is_stream {
        for step in [1, 7] {
            prop_assert_eq!(&stream(format, body, step), &told, "{} bytes at a time", step);
        }
    }
    let failed = told.as_ref().err().map(|(_, kind)| *kind);
    if let Some(kind) = failed {
        let fits = matches!(
            kind,
            ErrorKind::MalformedResponse
                | ErrorKind::StreamInterrupted
                | ErrorKind::ContentFiltered
                | ErrorKind::ContextLengthExceeded
                | ErrorKind::InvalidRequest
                | ErrorKind::ProviderAuth
                | ErrorKind::ProviderRateLimited
                | ErrorKind::ProviderTimeout
                | ErrorKind::ProviderUnavailable
                | ErrorKind::DeploymentMissing
        );
        prop_assert!(fits, "{}", kind);
    }
    let stamp = AnswerStamp { id: "a_1", created: 7, model: "m" };
    for to in [Operation::Chat, Operation::Responses, Operation::Messages] {
        let error = if is_stream {
            translated(format, body, &StreamTranslation { from: format, to, stamp, relay_usage: true })
        } else {
            translate::answer(format, body, to, &stamp).err().map(|error| error.kind())
        };
        prop_assert_eq!(error, failed, "for {:?}", to);
    }
    Ok(told)
}

/// Returns whether a kind can be what an error answer of the status means.
fn fits(status: u16, kind: ErrorKind) -> bool {
    use ErrorKind::{
        ContentFiltered, ContextLengthExceeded, DeploymentMissing, InvalidRequest, ProviderAuth,
        ProviderRateLimited, ProviderTimeout, ProviderUnavailable,
    };
    match status {
        401 => kind == ProviderAuth,
        403 => matches!(kind, ProviderAuth | ContentFiltered | InvalidRequest | ProviderRateLimited),
        404 | 410 => kind == DeploymentMissing,
        429 => kind == ProviderRateLimited,
        408 | 504 => matches!(kind, ProviderTimeout | ProviderUnavailable),
        500..=599 => matches!(kind, ProviderUnavailable | ProviderTimeout),
        _ => matches!(
            kind,
            InvalidRequest
                | ContextLengthExceeded
                | ContentFiltered
                | ProviderAuth
                | ProviderRateLimited
                | DeploymentMissing
        ),
    }
}

/// Translates a stream; returns how it failed, if it did.
fn translated(format: WireFormat, body: &Bytes, translation: &StreamTranslation<'_>) -> Option<ErrorKind> {
    let mut translator = StreamTranslator::new(translation).unwrap();
    let mut items = std::collections::VecDeque::new();
    frames(format, body).into_iter().for_each(|frame| translator.push(frame, &mut items));
    match translator.end() {
        Ok(last) => items.push_back(last),
        Err(error) => return Some(error.kind()),
    }
    items.into_iter().find_map(|item| item.facts.error).map(|error| error.kind())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streams_that_something_happened_to(which in any::<Index>(), changes in prop::collection::vec(change(), 1..4)) {
        let Some(answers) = answers(|one| one.stream && is_success(one)) else { return Ok(()) };
        let (exchange, format) = *which.get(&answers);
        drop(check(format, &apply(format, &bytes(exchange), &changes), true)?);
    }

    #[test]
    fn answers_that_something_happened_to(which in any::<Index>(), changes in prop::collection::vec(change(), 1..4)) {
        let Some(answers) = answers(|one| !one.stream && is_success(one)) else { return Ok(()) };
        let (exchange, format) = *which.get(&answers);
        drop(check(format, &apply(format, &bytes(exchange), &changes), false)?);
    }

    #[test]
    fn a_part_is_never_taken_for_the_whole(which in any::<Index>(), at in any::<Index>()) {
        let Some(answers) = answers(is_success) else { return Ok(()) };
        let (exchange, format) = *which.get(&answers);
        let whole = read(format, &bytes(exchange), exchange.stream);
        let Ok(whole) = whole else { return Ok(()) };
        let cut = bytes(exchange).slice(..at.index(exchange.body.len()));
        if let Ok(part) = check(format, &cut, exchange.stream)? {
            // Only what says nothing can be missing: usage, and the end of the framing.
            prop_assert!(said(&part) == said(&whole), "{} cut at {}", exchange.id, at.index(exchange.body.len()));
        }
    }

    #[test]
    fn framing_says_nothing(which in any::<Index>(), comments in prop::collection::vec(any::<Index>(), 0..4)) {
        let Some(answers) = answers(|one| one.stream && is_success(one)) else { return Ok(()) };
        let (exchange, format) = *which.get(&answers);
        let is_sse = exchange.body.starts_with(b"data:") || exchange.body.starts_with(b"event:");
        let Ok(text) = std::str::from_utf8(&exchange.body) else { return Ok(()) };
        if !is_sse {
            return Ok(());
        }
        let plain = text.replace("\r\n", "\n");
        let mut frames: Vec<String> = plain.split_inclusive("\n\n").map(str::to_owned).collect();
        for comment in comments {
            frames.insert(comment.index(frames.len()), ": keep-alive\n\n".to_owned());
        }
        let whole = read(format, &bytes(exchange), true);
        for form in [plain.replace('\n', "\r\n"), plain.replace('\n', "\r"), format!("\u{feff}{plain}"), frames.concat()] {
            prop_assert_eq!(&check(format, &Bytes::from(form), true)?, &whole, "{}", &exchange.id);
        }
    }

    #[test]
    fn errors_fit_their_status_whatever_their_body_says(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 0..3),
        blanks in 0_usize..64,
    ) {
        let Some(answers) = answers(|one| !is_success(one)) else { return Ok(()) };
        let (exchange, format) = *which.get(&answers);
        let padded = [vec![b'\n'; blanks], exchange.body.clone()].concat();
        let header = |name: &str| exchange.header(name);
        let head = ErrorHead { status: exchange.status, header: &header, utc: UtcTime::default() };
        let error = |body: &[u8]| translate::classify(format, &head, body);
        prop_assert_eq!(error(&padded).kind(), error(&exchange.body).kind(), "{} padded", &exchange.id);
        let changed = error(&apply(WireFormat::OpenAiChat, &bytes(exchange), &changes)).kind();
        prop_assert!(fits(exchange.status, changed), "{}: {} for {}", &exchange.id, changed, exchange.status);
    }
}

#[test]
fn blanks_before_an_answer_say_nothing() {
    let Some(answers) = answers(|one| !one.stream && is_success(one)) else { return };
    for (exchange, format) in answers {
        let padded = Bytes::from([b"\n\n  \r\n\t".as_slice(), &exchange.body].concat());
        assert_eq!(read(format, &padded, false), read(format, &bytes(exchange), false), "{}", exchange.id);
    }
}

/// Whoever looks again at what came before would not end here: a quadratic reader moves hundreds of gigabytes.
#[test]
fn one_long_frame_byte_by_byte_is_read_in_one_pass() {
    let text = "a".repeat(1024 * 1024);
    let frame = |json: &Value| format!("data: {json}\n\n");
    let chat =
        frame(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}));
    let gemini =
        frame(&json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}));
    let ollama = format!("{}\n", json!({"message": {"content": text}, "done": true, "done_reason": "stop"}));
    for (format, body) in
        [(WireFormat::OpenAiChat, chat), (WireFormat::Gemini, gemini), (WireFormat::OllamaChat, ollama)]
    {
        let message = stream(format, &Bytes::from(body), 1).unwrap();
        assert_eq!(message.choices[0].blocks[0].as_text().map(str::len), Some(text.len()), "{format:?}");
    }
}
