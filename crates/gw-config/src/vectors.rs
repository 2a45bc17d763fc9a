//! The request for the vector of a question, and what the answer holds: OpenAI's embeddings, which every deployment that
//! makes vectors takes.

use bytes::Bytes;
use gw_dialects::embeddings;
use gw_exec::EmbeddingCodec;
use gw_types::{NormalizedRequest, Operation, RequestContext};
use serde::Deserialize;
use serde_json::json;

/// Asks for one vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vectors;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    embedding: Vec<f32>,
}

impl EmbeddingCodec for Vectors {
    fn request(&self, model: &str, text: &str) -> Option<NormalizedRequest> {
        let body = json!({"model": model, "input": text, "encoding_format": "float"});
        let body = Bytes::from(body.to_string());
        let facts = embeddings::read_request(&body).ok()?;
        Some(NormalizedRequest {
            operation: Operation::Embeddings,
            body,
            facts,
            context: RequestContext::default(),
        })
    }

    fn vector(&self, raw: &Bytes) -> Option<Vec<f32>> {
        let answer: Answer = serde_json::from_slice(raw).ok()?;
        let [item] = <[Item; 1]>::try_from(answer.data).ok()?;
        Some(item.embedding)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_exec::EmbeddingCodec;

    use super::Vectors;

    fn check(body: &'static str, expected: Option<&[f32]>) {
        assert_eq!(Vectors.vector(&Bytes::from_static(body.as_bytes())).as_deref(), expected, "{body}");
    }

    #[test]
    fn one_vector_or_nothing() {
        check(r#"{"object":"list","data":[{"index":0,"embedding":[0.5,-1]}]}"#, Some(&[0.5, -1.0]));
        check(r#"{"data":[]}"#, None);
        check(r#"{"data":[{"embedding":[1]},{"embedding":[1]}]}"#, None);
        check(r#"{"data":[{"embedding":"AACAPw=="}]}"#, None);
        check("{}", None);
    }

    #[test]
    fn a_question_is_one_input() {
        let asked = Vectors.request("embed", "a \"b\"").unwrap();
        assert_eq!((&*asked.facts.model, asked.facts.messages), ("embed", 1));
    }
}
