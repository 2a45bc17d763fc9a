//! Embeddings: OpenAI's request in Gemini's shapes, and Gemini's answers in OpenAI's.

use bytes::Bytes;
use gw_types::{ErrorKind, GatewayError, Loss, Operation};

use super::classify;
use crate::{
    failure::{malformed, tree_of},
    json::{Node, Value, Writer},
    neutral::LossReport,
};

/// The shapes in which Google's models are asked for embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmbeddingsShape {
    /// `batchEmbedContents` of the Gemini API: several texts.
    Batch,
    /// `embedContent` of Vertex AI: one text.
    Single,
    /// `predict` of Vertex AI, for models before the Gemini ones: several texts.
    Predict,
}

/// Writes a request for the texts of an embeddings request in OpenAI's format, and says what it lost.
///
/// How vectors are encoded is not Google's business: they come as numbers, see [`crate::embeddings::in_encoding`].
///
/// # Errors
/// `InvalidRequest` naming `input`, if it is not text, or more than one text where the shape takes one.
///
/// ```
/// use gw_dialects::gemini::{EmbeddingsShape, write_embeddings};
///
/// let body = br#"{"model":"embed","input":["a","b"],"dimensions":8}"#;
/// let (sent, loss) = write_embeddings(body, "text-embedding-005", EmbeddingsShape::Predict).unwrap();
/// assert_eq!(
///     sent,
///     r#"{"instances":[{"content":"a"},{"content":"b"}],"parameters":{"outputDimensionality":8}}"#
/// );
/// assert!(loss.items.is_empty());
/// ```
pub fn write_embeddings(
    body: &[u8],
    model: &str,
    shape: EmbeddingsShape,
) -> Result<(Bytes, Loss), GatewayError> {
    let refused = |message| GatewayError::new(ErrorKind::InvalidRequest, message);
    let text = std::str::from_utf8(body).map_err(|_| refused("the body is not valid UTF-8"))?;
    let node = Node::read(text).map_err(|_| refused("the body is not JSON"))?;
    let texts = texts(&node)?;
    if shape == EmbeddingsShape::Single && texts.len() != 1 {
        return Err(refused("the deployment embeds one text a request").with_param("input"));
    }
    let dimensions = node.count("dimensions");
    let mut json = Writer::default();
    json.object(|json| write_body(json, &texts, dimensions, model, shape));
    Ok((json.into_bytes(), loss(&node)))
}

/// Returns the texts to embed.
fn texts(node: &Node<'_>) -> Result<Vec<String>, GatewayError> {
    let message = "the deployment embeds text only";
    let refused = || GatewayError::new(ErrorKind::InvalidRequest, message).with_param("input");
    let input = node.get("input").ok_or_else(refused)?;
    if let Some(text) = input.as_str() {
        return Ok(vec![text.into_owned()]);
    }
    let texts: Option<Vec<String>> =
        input.items().iter().map(|item| item.as_str().map(std::borrow::Cow::into_owned)).collect();
    texts.filter(|texts| !texts.is_empty()).ok_or_else(refused)
}

fn write_body(
    json: &mut Writer,
    texts: &[String],
    dimensions: Option<u64>,
    model: &str,
    shape: EmbeddingsShape,
) {
    let write_dimensions = |json: &mut Writer| {
        if let Some(dimensions) = dimensions {
            json.member_number("outputDimensionality", dimensions);
        }
    };
    match shape {
        EmbeddingsShape::Batch => {
            let collection = if model.contains('/') { "" } else { "models/" };
            json.member_array("requests", |json| {
                for text in texts {
                    json.object(|json| {
                        json.member_string("model", &format!("{collection}{model}"));
                        write_content(json, text);
                        write_dimensions(json);
                    });
                }
            });
        }
        EmbeddingsShape::Single => {
            texts.iter().take(1).for_each(|text| write_content(json, text));
            write_dimensions(json);
        }
        EmbeddingsShape::Predict => {
            json.member_array("instances", |json| {
                texts.iter().for_each(|text| json.object(|json| json.member_string("content", text)));
            });
            json.member_object("parameters", write_dimensions);
        }
    }
}

fn write_content(json: &mut Writer, text: &str) {
    json.member_object("content", |json| {
        json.member_array("parts", |json| json.object(|json| json.member_string("text", text)));
    });
}

fn loss(node: &Node<'_>) -> Loss {
    let mut loss = LossReport::new(Operation::Embeddings);
    let Value::Object(members) = &node.value else { return loss.into_loss() };
    for (key, _) in members {
        let name = key.decoded();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match &*name {
            "model" | "input" | "dimensions" | "encoding_format" => {}
            _ => loss.dropped(if is_plain { &name } else { "?" }, "the provider's format has no such field"),
        }
    }
    loss.into_loss()
}

/// Reads the answer to a request of any of the shapes; returns it in OpenAI's format, with the vectors as they came.
///
/// A provider that does not say what was used is written down as 0, which stands for not reported.
///
/// # Errors
/// `MalformedResponse`, if it holds no vectors; what an error inside of it says.
pub fn read_embeddings(raw: &[u8], model: &str) -> Result<Bytes, GatewayError> {
    let node = tree_of(raw)?;
    if node.get("error").is_some() {
        return Err(classify::in_band(&node));
    }
    let vectors = vectors(&node);
    if vectors.is_empty() || vectors.iter().any(Option::is_none) {
        return Err(malformed("the provider's answer holds no vectors"));
    }
    let tokens = tokens(&node);
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("object", "list");
        json.member_array("data", |json| {
            for (index, vector) in vectors.iter().flatten().enumerate() {
                json.object(|json| {
                    json.member_string("object", "embedding");
                    json.member_number("index", index);
                    json.member_raw("embedding", vector);
                });
            }
        });
        json.member_string("model", model);
        json.member_object("usage", |json| {
            json.member_number("prompt_tokens", tokens);
            json.member_number("total_tokens", tokens);
        });
    });
    Ok(json.into_bytes())
}

/// Returns the vectors as they are written; `None` for one that is missing.
fn vectors<'a>(node: &Node<'a>) -> Vec<Option<&'a str>> {
    let values = |embedding: &Node<'a>| {
        let values = embedding.get("values").filter(|values| !values.items().is_empty());
        values.map(|values| values.raw)
    };
    if let Some(one) = node.get("embedding") {
        return vec![values(one)];
    }
    if let Some(list) = node.get("embeddings") {
        return list.items().iter().map(values).collect();
    }
    let predictions = node.get("predictions").map(Node::items).unwrap_or_default();
    predictions.iter().map(|prediction| prediction.get("embeddings").and_then(values)).collect()
}

fn tokens(node: &Node<'_>) -> u64 {
    if let Some(usage) = node.get("usageMetadata") {
        return usage.count("promptTokenCount").unwrap_or(0);
    }
    let predictions = node.get("predictions").map(Node::items).unwrap_or_default();
    let counted = predictions.iter().filter_map(|prediction| {
        let statistics = prediction.get("embeddings")?.get("statistics")?;
        statistics.count("token_count")
    });
    counted.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use gw_types::ErrorKind;

    use super::{EmbeddingsShape, read_embeddings, write_embeddings};

    #[track_caller]
    fn check(body: &str, shape: EmbeddingsShape, expected: &str, lost: &[&str]) {
        let (sent, loss) = write_embeddings(body.as_bytes(), "m", shape).unwrap();
        assert_eq!(sent, expected);
        let paths: Vec<_> = loss.items.iter().map(|item| item.path.as_str().to_owned()).collect();
        assert_eq!(paths, lost);
    }

    #[test]
    fn every_shape_is_written() {
        let one = r#"{"model":"x","input":"é","dimensions":2,"encoding_format":"base64","user":"u","x":1}"#;
        check(
            one,
            EmbeddingsShape::Batch,
            r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"é"}]},"outputDimensionality":2}]}"#,
            &["x"],
        );
        check(
            one,
            EmbeddingsShape::Single,
            r#"{"content":{"parts":[{"text":"é"}]},"outputDimensionality":2}"#,
            &["x"],
        );
        check(
            r#"{"input":["a","b"]}"#,
            EmbeddingsShape::Predict,
            r#"{"instances":[{"content":"a"},{"content":"b"}],"parameters":{}}"#,
            &[],
        );
    }

    #[test]
    fn what_cannot_be_embedded_is_refused() {
        for (body, shape) in [
            (r#"{"input":[[1,2]]}"#, EmbeddingsShape::Batch),
            (r#"{"input":[1,2]}"#, EmbeddingsShape::Batch),
            (r#"{"input":[]}"#, EmbeddingsShape::Batch),
            ("{}", EmbeddingsShape::Batch),
            (r#"{"input":["a","b"]}"#, EmbeddingsShape::Single),
        ] {
            let error = write_embeddings(body.as_bytes(), "m", shape).unwrap_err();
            assert_eq!((error.kind(), error.param()), (ErrorKind::InvalidRequest, Some("input")), "{body}");
        }
        assert!(write_embeddings(b"nothing", "m", EmbeddingsShape::Batch).is_err());
    }

    #[track_caller]
    fn reads(raw: &str, vectors: &str, tokens: u64) {
        let read = read_embeddings(raw.as_bytes(), "m").unwrap();
        let usage = format!(r#""usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}"#);
        assert_eq!(read, format!(r#"{{"object":"list","data":[{vectors}],"model":"m",{usage}}}"#));
    }

    #[test]
    fn every_shape_is_read() {
        let vector =
            |index, values| format!(r#"{{"object":"embedding","index":{index},"embedding":{values}}}"#);
        reads(
            r#"{"embeddings":[{"values":[0.10,-1e-3]},{"values":[2]}]}"#,
            &[vector(0, "[0.10,-1e-3]"), vector(1, "[2]")].join(","),
            0,
        );
        reads(
            r#"{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":11}}"#,
            &vector(0, "[1]"),
            11,
        );
        reads(
            r#"{"predictions":[{"embeddings":{"values":[1],"statistics":{"token_count":4.0}}},{"embeddings":{"values":[2],"statistics":{"token_count":3}}}]}"#,
            &[vector(0, "[1]"), vector(1, "[2]")].join(","),
            7,
        );
    }

    #[test]
    fn what_is_no_answer_fails_with_its_kind() {
        let kind = |raw: &str| read_embeddings(raw.as_bytes(), "m").unwrap_err().kind();
        assert_eq!(kind("{}"), ErrorKind::MalformedResponse);
        assert_eq!(kind(r#"{"embeddings":[{"values":[]}]}"#), ErrorKind::MalformedResponse);
        assert_eq!(kind("nothing"), ErrorKind::MalformedResponse);
        assert_eq!(kind(r#"{"error":{"code":429}}"#), ErrorKind::ProviderRateLimited);
    }
}
