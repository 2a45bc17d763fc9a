//! Streams as a client reads them.

use serde_json::Value;

/// The events of a stream that a test may ask about.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    /// The chunks, in order.
    pub(crate) chunks: Vec<Value>,
    /// The error event, if there is one.
    pub(crate) error: Option<Value>,
    /// Whether the stream ended with its final marker.
    pub(crate) done: bool,
}

impl Events {
    /// Reads a whole stream of gw's own framing: `data:` lines and blank lines, nothing else.
    pub(crate) fn read(text: &str) -> Self {
        let mut events = Self { chunks: Vec::new(), error: None, done: false };
        for event in text.split_terminator("\n\n") {
            let data = event.strip_prefix("data: ").unwrap_or_else(|| panic!("no data event: {event:?}"));
            assert!(!events.done, "an event behind the final marker: {data}");
            assert!(!data.contains('\n'), "more than one line: {data}");
            if data == "[DONE]" {
                events.done = true;
                continue;
            }
            let value: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
            if value.get("error").is_some() {
                events.error = Some(value["error"].clone());
            } else {
                assert!(events.error.is_none(), "a chunk behind the error");
                events.chunks.push(value);
            }
        }
        events
    }

    /// Returns the text of the first choice.
    pub(crate) fn text(&self) -> String {
        self.chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    }

    /// Returns the finish reasons of the first choice.
    pub(crate) fn finishes(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect()
    }

    /// Returns the chunks without choices.
    pub(crate) fn usages(&self) -> Vec<&Value> {
        let without = |chunk: &&Value| chunk["choices"].as_array().is_some_and(Vec::is_empty);
        self.chunks.iter().filter(without).map(|chunk| &chunk["usage"]).collect()
    }

    /// Returns the code or type that the error names.
    pub(crate) fn error_text(&self) -> String {
        self.error.as_ref().map_or_else(String::new, ToString::to_string)
    }
}

/// Returns the text of a whole answer.
pub(crate) fn said(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}
