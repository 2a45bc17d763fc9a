//! What reads a streamed answer, by the format that it comes in and the one that it must have.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::{anthropic, completions, openai, responses, translate::StreamTranslator};
use gw_types::{GatewayError, StreamItem};

/// Reads a streamed answer, piece by piece.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// Chat completions, as they come.
    Chat(openai::StreamDecoder),
    /// Legacy completions, as they come.
    Completions(completions::StreamDecoder),
    /// Responses, as they come.
    Responses(responses::StreamDecoder),
    /// Anthropic's messages, as they come.
    Messages(anthropic::StreamDecoder),
    /// Any format, in the caller's.
    Translated(Box<StreamTranslator>),
}

impl Decoder {
    /// Adds the next bytes of the body; appends what they bring.
    pub(crate) fn push(&mut self, piece: Bytes, sink: &mut VecDeque<StreamItem>) {
        match self {
            Self::Chat(decoder) => decoder.push(piece, sink),
            Self::Completions(decoder) => decoder.push(piece, sink),
            Self::Responses(decoder) => decoder.push(piece, sink),
            Self::Messages(decoder) => decoder.push(piece, sink),
            Self::Translated(translator) => translator.push(piece, sink),
        }
    }

    /// Says that the body has ended; returns the last item.
    ///
    /// # Errors
    /// `StreamInterrupted`, if the answer is not complete.
    pub(crate) fn end(&mut self) -> Result<StreamItem, GatewayError> {
        match self {
            Self::Chat(decoder) => decoder.end(),
            Self::Completions(decoder) => decoder.end(),
            Self::Responses(decoder) => decoder.end(),
            Self::Messages(decoder) => decoder.end(),
            Self::Translated(translator) => translator.end(),
        }
    }
}
