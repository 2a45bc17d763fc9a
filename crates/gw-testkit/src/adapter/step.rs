//! The steps of an adapter's script.

use std::time::Duration;

use bytes::Bytes;
use gw_types::{
    AnswerFacts, BoundedText, CompleteAnswer, ErrorKind, FinishReason, FrameFacts, GatewayError, StreamItem,
    TokenCount, Usage,
};
use serde_json::{Value, json};

/// What an adapter does with one call.
#[derive(Clone, Debug)]
pub enum AdapterStep {
    /// Answers a text, plain or as a stream of its words, as the request asks.
    Ok {
        /// The text.
        text: String,
        /// What the call used.
        usage: Option<Usage>,
        /// Why it ended.
        finish: FinishReason,
    },
    /// Answers as given.
    Answer(Box<CompleteAnswer>),
    /// Fails.
    Error(GatewayError),
    /// Does nothing until it is dropped.
    Hang,
    /// Answers a stream, item by item.
    Stream {
        /// The items; a stream whose last item is not terminal just ends: it is truncated.
        items: Vec<TimedItem>,
        /// Whether the stream, instead of ending, says nothing more.
        hang: bool,
    },
    /// Waits, then does something else.
    After {
        /// How long, by the adapter's clock.
        delay: Duration,
        /// What comes then.
        then: Box<AdapterStep>,
    },
}

/// An item of a stream and the pause before it.
#[derive(Clone, Debug)]
pub struct TimedItem {
    /// The pause, by the adapter's clock, from the item before.
    pub after: Duration,
    /// The item, or the error that ends the stream.
    pub item: Result<StreamItem, GatewayError>,
}

impl AdapterStep {
    /// Returns an answer that used 10 input tokens and one output token a word.
    pub fn ok(text: &str) -> Self {
        let usage = Usage {
            input: TokenCount::new(10),
            output: TokenCount::new(count(words(text).count())),
            ..Usage::default()
        };
        Self::ok_with(text, Some(usage), FinishReason::Stop)
    }

    /// Returns an answer with the usage, or without one.
    pub fn ok_with(text: &str, usage: Option<Usage>, finish: FinishReason) -> Self {
        Self::Ok { text: text.to_owned(), usage, finish }
    }

    /// Returns a failure of the kind.
    pub fn error(kind: ErrorKind) -> Self {
        Self::Error(GatewayError::new(kind, "scripted"))
    }

    /// Returns a whole stream of the text's words with a pause before each item.
    pub fn stream(text: &str, pause: Duration, usage: Option<Usage>) -> Self {
        let items = stream_items(text, usage, FinishReason::Stop);
        Self::Stream { items: paced(items, pause), hang: false }
    }

    /// Returns a stream that ends behind the text's words, without finish reason and terminal item.
    pub fn truncated(text: &str) -> Self {
        Self::Stream { items: paced(word_items(text).collect(), Duration::ZERO), hang: false }
    }

    /// Returns a stream that says nothing more behind the text's words.
    pub fn stalled(text: &str) -> Self {
        Self::Stream { items: paced(word_items(text).collect(), Duration::ZERO), hang: true }
    }

    /// Returns a stream that fails behind the text's words.
    pub fn stream_error(text: &str, kind: ErrorKind) -> Self {
        let mut items = paced(word_items(text).collect(), Duration::ZERO);
        let error = GatewayError::new(kind, "scripted");
        items.push(TimedItem { after: Duration::ZERO, item: Err(error) });
        Self::Stream { items, hang: false }
    }

    /// Waits before the step.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self::After { delay, then: Box::new(self) }
    }
}

fn paced(items: Vec<StreamItem>, after: Duration) -> Vec<TimedItem> {
    items.into_iter().map(|item| TimedItem { after, item: Ok(item) }).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Returns the whole answer of a text.
pub(super) fn complete(text: &str, usage: Option<Usage>, finish: FinishReason) -> CompleteAnswer {
    let message = json!({"role": "assistant", "content": text});
    let mut body = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish.as_str()}],
    });
    if let (Some(fields), Some(usage)) = (body.as_object_mut(), usage) {
        fields.insert("usage".to_owned(), usage_json(&usage));
    }
    CompleteAnswer {
        raw: Bytes::from(body.to_string()),
        facts: AnswerFacts {
            usage,
            finish: Some(finish),
            served_model: Some(BoundedText::new("scripted")),
            content_bytes: count(text.len()),
            ..AnswerFacts::default()
        },
        upstream_request_id: Some(BoundedText::new("req-scripted")),
    }
}

/// Returns the items of a whole stream: one a word, the finish reason, the usage, and the terminal one.
pub(super) fn stream_items(text: &str, usage: Option<Usage>, finish: FinishReason) -> Vec<StreamItem> {
    let mut items: Vec<StreamItem> = word_items(text).collect();
    let last = json!([{"index": 0, "delta": {}, "finish_reason": finish.as_str()}]);
    items.push(StreamItem {
        raw: event(&last, None),
        facts: FrameFacts { finish: Some(finish), ..FrameFacts::default() },
    });
    if let Some(usage) = usage {
        items.push(StreamItem {
            raw: event(&json!([]), Some(&usage)),
            facts: FrameFacts { usage: Some(Box::new(usage)), ..FrameFacts::default() },
        });
    }
    items.push(StreamItem {
        raw: Bytes::new(),
        facts: FrameFacts { terminal: true, ..FrameFacts::default() },
    });
    items
}

fn word_items(text: &str) -> impl Iterator<Item = StreamItem> {
    words(text).enumerate().map(|(at, word)| StreamItem {
        raw: event(&json!([{"index": 0, "delta": {"content": word}, "finish_reason": null}]), None),
        facts: FrameFacts {
            content_bytes: u32::try_from(word.len()).unwrap_or(u32::MAX),
            content_frames: 1,
            served_model: (at == 0).then(|| BoundedText::new("scripted")),
            ..FrameFacts::default()
        },
    })
}

fn event(choices: &Value, usage: Option<&Usage>) -> Bytes {
    let chunk = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": choices, "usage": usage.map(usage_json),
    });
    Bytes::from(format!("data: {chunk}\n\n"))
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_total(),
        "completion_tokens": usage.output_total(),
        "total_tokens": usage.total(),
    })
}
