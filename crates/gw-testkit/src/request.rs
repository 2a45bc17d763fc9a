//! Builds chat requests whose facts are true of their bodies.

use std::fmt::Write;

use bytes::Bytes;
use gw_types::{
    BodySpan, Capability, CapabilitySet, NormalizedRequest, Operation, OutputField, RequestContext,
    RequestFacts, RequestedOutput, Temperature, TextClasses, TokenCount,
};
use serde_json::Value;

/// Returns a builder of an OpenAI chat request with one user message.
///
/// ```
/// use gw_testkit::sample_request;
///
/// let request = sample_request("reasoner", "hello").stream(true).max_tokens(64).build();
/// let span = request.facts.output.unwrap().span;
/// assert_eq!(&request.body[span.start..span.end], b"64");
/// ```
pub fn sample_request(model: &str, text: &str) -> RequestBuilder {
    RequestBuilder {
        model: model.to_owned(),
        text: text.to_owned(),
        stream: None,
        include_usage: None,
        max_tokens: None,
        temperature: Temperature::Absent,
        tools: None,
        context: RequestContext::default(),
    }
}

/// Builds a chat request; see [`sample_request`]. Prints without its text.
#[derive(Clone)]
pub struct RequestBuilder {
    model: String,
    text: String,
    stream: Option<bool>,
    include_usage: Option<bool>,
    max_tokens: Option<u64>,
    temperature: Temperature,
    tools: Option<Value>,
    context: RequestContext,
}

impl RequestBuilder {
    /// Sets `stream`.
    #[must_use]
    pub fn stream(mut self, stream: bool) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Sets `stream_options.include_usage`.
    #[must_use]
    pub fn include_usage(mut self, include_usage: bool) -> Self {
        self.include_usage = Some(include_usage);
        self
    }

    /// Sets `max_tokens`.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets `temperature` to nothing, 0 or 0.7.
    #[must_use]
    pub fn temperature(mut self, temperature: Temperature) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets `tools`.
    #[must_use]
    pub fn tools(mut self, tools: Value) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Replaces what comes with the body.
    #[must_use]
    pub fn context(mut self, context: RequestContext) -> Self {
        self.context = context;
        self
    }

    /// Returns the request.
    pub fn build(self) -> NormalizedRequest {
        let mut body = String::from("{");
        let model_span = field(&mut body, "model", &Value::from(self.model.as_str()).to_string());
        let messages = serde_json::json!([{"role": "user", "content": self.text}]);
        field(&mut body, "messages", &messages.to_string());
        if let Some(stream) = self.stream {
            field(&mut body, "stream", &stream.to_string());
        }
        let stream_options = self.include_usage.map(|include_usage| {
            field(&mut body, "stream_options", &format!(r#"{{"include_usage":{include_usage}}}"#))
        });
        let output = self.max_tokens.map(|max_tokens| RequestedOutput {
            tokens: TokenCount::new(max_tokens),
            span: field(&mut body, "max_tokens", &max_tokens.to_string()),
            field: OutputField::MaxTokens,
        });
        match self.temperature {
            Temperature::Absent => {}
            Temperature::Zero => drop(field(&mut body, "temperature", "0")),
            Temperature::Above => drop(field(&mut body, "temperature", "0.7")),
        }
        let tools = self.tools.map(|tools| field(&mut body, "tools", &tools.to_string()));
        body.push('}');
        let needed = [
            (Capability::Chat, true),
            (Capability::Streaming, self.stream == Some(true)),
            (Capability::Tools, tools.is_some()),
        ];
        let facts = RequestFacts {
            model: self.model.into(),
            model_span,
            object_start: 1,
            stream: self.stream == Some(true),
            include_usage: self.include_usage == Some(true),
            stream_options,
            output,
            choices: 1,
            text_bytes: length(self.text.len()),
            text_classes: TextClasses::of(&self.text),
            messages: 1,
            tool_bytes: tools.map_or(0, |span| length(span.end - span.start)),
            images: 0,
            audio: false,
            needs: needed
                .into_iter()
                .filter_map(|(needed, is)| is.then_some(needed))
                .collect::<CapabilitySet>(),
            temperature: self.temperature,
            user: None,
        };
        NormalizedRequest {
            operation: Operation::Chat,
            body: Bytes::from(body),
            facts,
            context: self.context,
        }
    }
}

/// Appends a field whose value is JSON text; returns where the value stands.
fn field(body: &mut String, name: &str, value: &str) -> BodySpan {
    let comma = if body.len() > 1 { "," } else { "" };
    // Writing to a string cannot fail.
    let _infallible = write!(body, r#"{comma}"{name}":"#);
    let start = body.len();
    body.push_str(value);
    BodySpan { start, end: body.len() }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl std::fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("model", &self.model)
            .field("text", &format_args!("[{} bytes redacted]", self.text.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{BodySpan, Capability};
    use serde_json::json;

    use super::sample_request;

    #[test]
    fn facts_are_true_of_the_body() {
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        let request =
            sample_request("a\"b", "hé").stream(true).include_usage(true).max_tokens(7).tools(tools);
        let request = request.build();
        let read: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let at = |span: BodySpan| std::str::from_utf8(&request.body[span.start..span.end]).unwrap();
        assert_eq!(at(request.facts.model_span), r#""a\"b""#);
        assert_eq!(at(request.facts.stream_options.unwrap()), r#"{"include_usage":true}"#);
        assert_eq!(at(request.facts.output.unwrap().span), "7");
        assert_eq!(
            (read["model"].as_str(), read["messages"][0]["content"].as_str()),
            (Some("a\"b"), Some("hé"))
        );
        assert_eq!((request.facts.text_bytes, request.facts.tool_bytes), (3, 45));
        assert!(request.facts.needs.contains(Capability::Tools));
        assert!(format!("{:?}", sample_request("m", "canary")).contains("redacted"));
    }
}
