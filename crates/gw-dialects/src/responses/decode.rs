//! Reads of a response object what the pipeline acts on, whether it is a whole answer or stands in an event.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, ErrorKind, FinishReason, GatewayError, Loss, Usage};

use crate::{
    failure::{malformed, text_of},
    json::{Fault, Kind, Reader, Text},
    openai::{classify, content::filled, usage::WireUsage},
};

/// Reads the facts of a 2xx answer's body.
///
/// # Errors
/// An error object, in the body or of a response that failed, is classified like an HTTP error of the status that it names
/// or implies. A body that is no response is `MalformedResponse`.
pub fn read_answer(raw: &Bytes) -> Result<AnswerFacts, GatewayError> {
    let text = text_of(raw)?;
    let mut reader = Reader::new(text);
    let response = Response::read(&mut reader)
        .and_then(|response| reader.end().map(|()| response))
        .map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    if !response.has_output && response.says_error() {
        return Err(classify::in_band(raw));
    }
    let finish = response.finish(text)?;
    if !response.has_output {
        return Err(malformed("the provider's answer holds no output"));
    }
    Ok(AnswerFacts {
        usage: response.classes(),
        finish,
        served_model: response.served_model(),
        content_bytes: response.content_bytes,
        tool_calls: response.tool_calls,
        loss: Loss::default(),
    })
}

/// What a response object holds.
#[derive(Debug, Default)]
pub(super) struct Response<'a> {
    status: Option<Text<'a>>,
    reason: Option<Text<'a>>,
    model: Option<Text<'a>>,
    usage: Option<WireUsage>,
    /// Where the value of `error` stands, unless it is `null`.
    error: Option<Range<usize>>,
    has_output: bool,
    /// Whether the fields of an error stand on top.
    message: bool,
    content_bytes: u64,
    pub(super) tool_calls: bool,
    refusal: bool,
}

impl<'a> Response<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut response = Self::default();
        reader.object::<Fault>(|reader, key| response.field(reader, key))?;
        Ok(response)
    }

    fn field(&mut self, reader: &mut Reader<'a>, key: Text<'a>) -> Result<(), Fault> {
        match key.raw() {
            "status" => self.status = filled(reader)?,
            "model" => self.model = filled(reader)?,
            "usage" => self.usage = WireUsage::read_responses(reader)?,
            "incomplete_details" if reader.kind()? == Kind::Object => {
                reader.object::<Fault>(|reader, key| {
                    if key.raw() == "reason" {
                        self.reason = filled(reader)?;
                        return Ok(());
                    }
                    reader.skip().map(drop)
                })?;
            }
            "error" => {
                let given = reader.kind()? != Kind::Null;
                let place = reader.skip()?;
                self.error = given.then_some(place);
            }
            "output" if reader.kind()? == Kind::Array => {
                self.has_output = true;
                reader.array::<Fault>(|reader, _| {
                    let item = Item::read(reader)?;
                    self.content_bytes = self.content_bytes.saturating_add(item.content_bytes);
                    self.tool_calls |= item.is_call;
                    self.refusal |= item.refusal;
                    Ok(())
                })?;
            }
            "message" | "detail" => {
                self.message = true;
                reader.skip()?;
            }
            _ => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    fn says_error(&self) -> bool {
        self.message || self.error.is_some() && self.status.is_none()
    }

    /// Returns why the answer ended, or `None` while it is being made.
    ///
    /// # Errors
    /// What the response says went wrong, where it failed.
    pub(super) fn finish(&self, text: &str) -> Result<Option<FinishReason>, GatewayError> {
        let status = self.status.map(|status| status.decoded());
        match status.as_deref() {
            Some("failed") => Err(self.failure(text)),
            Some("cancelled") => {
                Err(GatewayError::new(ErrorKind::ProviderUnavailable, "the provider gave up the request"))
            }
            Some("queued" | "in_progress") => Ok(None),
            Some("incomplete") => Ok(Some(match self.reason.map(|reason| reason.decoded()).as_deref() {
                Some("max_output_tokens") => FinishReason::Length,
                Some("content_filter") => FinishReason::ContentFilter,
                Some(_) | None => FinishReason::Other,
            })),
            // Servers that leave the status out send answers that are done.
            Some("completed") | None => Ok(Some(self.done())),
            Some(_) => Ok(Some(FinishReason::Other)),
        }
    }

    fn done(&self) -> FinishReason {
        if self.tool_calls {
            FinishReason::ToolCalls
        } else if self.refusal {
            FinishReason::Refusal
        } else {
            FinishReason::Stop
        }
    }

    /// Returns what the response says went wrong.
    pub(super) fn failure(&self, text: &str) -> GatewayError {
        match self.error.clone().and_then(|place| text.get(place)) {
            Some(error) => classify::in_band(error.as_bytes()),
            None => GatewayError::new(ErrorKind::ProviderUnavailable, "the provider failed"),
        }
    }

    pub(super) fn classes(&self) -> Option<Usage> {
        self.usage.and_then(|usage| usage.classes())
    }

    pub(super) fn served_model(&self) -> Option<BoundedText> {
        self.model.map(|model| BoundedText::new(&model.decoded()))
    }
}

/// Calls that the caller must answer; what the provider runs itself is none of them.
pub(super) const CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// What one item of the output holds.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// Whether it is a call that the caller must answer.
    pub(super) is_call: bool,
    refusal: bool,
    content_bytes: u64,
}

impl Item {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut item = Self::default();
        if reader.kind()? != Kind::Object {
            reader.skip()?;
            return Ok(item);
        }
        reader.object::<Fault>(|reader, key| match key.raw() {
            "type" => {
                item.is_call = filled(reader)?.is_some_and(|kind| CALLS.contains(&&*kind.decoded()));
                Ok(())
            }
            "arguments" | "input" | "code" => item.text(reader),
            // Some servers leave the parts out where there is nothing but text.
            "content" if reader.kind()? == Kind::String => item.text(reader),
            "content" | "summary" if reader.kind()? == Kind::Array => {
                reader.array::<Fault>(|reader, _| item.part(reader))
            }
            _ => reader.skip().map(drop),
        })?;
        Ok(item)
    }

    fn part(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| match key.raw() {
            "text" => self.text(reader),
            "refusal" => {
                let before = self.content_bytes;
                self.text(reader)?;
                self.refusal |= self.content_bytes > before;
                Ok(())
            }
            _ => reader.skip().map(drop),
        })
    }

    fn text(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        if reader.kind()? != Kind::String {
            return reader.skip().map(drop);
        }
        self.content_bytes = self.content_bytes.saturating_add(reader.string()?.decoded_len());
        Ok(())
    }
}
