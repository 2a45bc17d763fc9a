//! Reads of an embeddings answer what the pipeline acts on.

use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, FinishReason, GatewayError, Loss};

use super::Encoding;
use crate::{
    failure::{malformed, text_of},
    json::{Fault, Kind, Reader},
    openai::{classify, content::filled, usage::WireUsage},
};

/// What an answer holds. No vector is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingsAnswer {
    /// What the pipeline acts on. An answer that is whole has ended with `Stop`; it has no content and no output tokens.
    pub facts: AnswerFacts,
    /// Number of vectors.
    pub vectors: u32,
    /// How they are written; `Other` where they differ or are neither numbers nor text.
    pub encoding: Encoding,
}

/// Reads a 2xx answer's body, whose vectors are looked over and not copied.
///
/// # Errors
/// An error object in the body is classified like an HTTP error of the status that it names or implies. A body that is no
/// JSON object with at least one vector is `MalformedResponse`.
pub fn read_answer(raw: &Bytes) -> Result<EmbeddingsAnswer, GatewayError> {
    let text = text_of(raw)?;
    let mut answer = Reading::default();
    answer.read(text).map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    if answer.error || answer.vectors == 0 && answer.message {
        return Err(classify::in_band(raw));
    }
    let Some(encoding) = answer.encoding else {
        return Err(malformed("the provider's answer holds no vectors"));
    };
    let facts = AnswerFacts {
        usage: answer.usage.and_then(|usage| usage.classes()),
        finish: Some(FinishReason::Stop),
        served_model: answer.model,
        content_bytes: 0,
        tool_calls: false,
        loss: Loss::default(),
    };
    Ok(EmbeddingsAnswer { facts, vectors: answer.vectors, encoding })
}

#[derive(Default)]
struct Reading {
    usage: Option<WireUsage>,
    model: Option<BoundedText>,
    vectors: u32,
    encoding: Option<Encoding>,
    error: bool,
    message: bool,
}

impl Reading {
    fn read(&mut self, text: &str) -> Result<(), Fault> {
        let mut reader = Reader::new(text);
        reader.object::<Fault>(|reader, key| {
            match key.raw() {
                "data" if reader.kind()? == Kind::Array => {
                    reader.array::<Fault>(|reader, _| self.item(reader))?;
                }
                "usage" => self.usage = WireUsage::read(reader)?,
                "model" => self.model = filled(reader)?.map(|model| BoundedText::new(&model.decoded())),
                "error" => {
                    self.error = reader.kind()? != Kind::Null;
                    reader.skip()?;
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
        })?;
        reader.end()
    }

    fn item(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| {
            if key.raw() == "embedding" {
                let encoding = match reader.kind()? {
                    Kind::Array => Encoding::Float,
                    Kind::String => Encoding::Base64,
                    Kind::Object | Kind::Number | Kind::Bool | Kind::Null => Encoding::Other,
                };
                let mixed = self.encoding.is_some_and(|before| before != encoding);
                self.encoding = Some(if mixed { Encoding::Other } else { encoding });
                self.vectors = self.vectors.saturating_add(1);
            }
            reader.skip().map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::{ErrorKind, FinishReason};

    use super::{Encoding, read_answer};

    #[track_caller]
    fn check(body: &'static str, vectors: u32, encoding: Encoding, input: Option<u64>) {
        let answer = read_answer(&Bytes::from_static(body.as_bytes())).unwrap();
        assert_eq!((answer.vectors, answer.encoding), (vectors, encoding));
        let usage = answer.facts.usage.map(|usage| (usage.input.get(), usage.output_total().get()));
        assert_eq!(usage, input.map(|input| (input, 0)));
        assert_eq!(answer.facts.finish, Some(FinishReason::Stop));
    }

    #[track_caller]
    fn fails(body: &'static str, kind: ErrorKind) {
        assert_eq!(read_answer(&Bytes::from_static(body.as_bytes())).unwrap_err().kind(), kind);
    }

    #[test]
    fn vectors_and_usage_are_read() {
        let openai = r#"{"object":"list","data":[{"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#;
        check(openai, 1, Encoding::Float, Some(8));
        check(r#" {"data":[{"embedding":"AA=="},{"embedding":"AA=="}]}"#, 2, Encoding::Base64, None);
        check(r#"{"data":[{"embedding":"AA=="},{"embedding":[1]}]}"#, 2, Encoding::Other, None);
        check(r#"{"data":[{"embedding":{"float":[1]}}]}"#, 1, Encoding::Other, None);
        // Voyage counts the whole alone.
        check(r#"{"data":[{"embedding":[1]}],"usage":{"total_tokens":22}}"#, 1, Encoding::Float, Some(22));
    }

    #[test]
    fn what_is_no_answer_fails_with_its_kind() {
        fails(r#"{"data":[]}"#, ErrorKind::MalformedResponse);
        fails(r#"{"object":"list"}"#, ErrorKind::MalformedResponse);
        fails("[]", ErrorKind::MalformedResponse);
        fails("<html>", ErrorKind::MalformedResponse);
        fails(r#"{"error":{"message":"m","code":429}}"#, ErrorKind::ProviderRateLimited);
        fails(r#"{"error":{"message":"No provider","code":404}}"#, ErrorKind::DeploymentMissing);
        fails(r#"{"object":"error","message":"m","code":400}"#, ErrorKind::InvalidRequest);
    }
}
