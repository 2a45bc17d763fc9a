//! Writes the vectors of an answer in the encoding that the caller asked for.

use std::ops::Range;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use gw_types::GatewayError;

use super::Encoding;
use crate::{
    edit::Edits,
    failure::{malformed, text_of},
    json::{Fault, Kind, Reader},
};

/// Returns the answer with its vectors in the wanted encoding; as it came, without a copy, where they have it already.
///
/// Floats become base64 of 32-bit floats in little-endian order, as OpenAI writes them; a number between two of these is
/// rounded to the nearer one. The other way round every float is written with the fewest digits that read back as the same.
/// Everything outside the vectors stays byte for byte. Vectors of another form are left alone.
///
/// # Errors
/// `MalformedResponse`, where a vector is neither numbers nor base64 of whole finite floats.
///
/// ```
/// use bytes::Bytes;
/// use gw_dialects::embeddings::{Encoding, in_encoding};
///
/// let raw = Bytes::from_static(br#"{"data":[{"embedding":[1, -0.5],"index":0}]}"#);
/// let written = in_encoding(&raw, Encoding::Base64).unwrap();
/// assert_eq!(written, r#"{"data":[{"embedding":"AACAPwAAAL8=","index":0}]}"#);
/// ```
pub fn in_encoding(raw: &Bytes, wanted: Encoding) -> Result<Bytes, GatewayError> {
    let from = match wanted {
        Encoding::Float => Kind::String,
        Encoding::Base64 => Kind::Array,
        Encoding::Other => return Ok(raw.clone()),
    };
    let text = text_of(raw)?;
    let vectors = vectors(text, from).map_err(|_| malformed("the provider's answer is not a JSON object"))?;
    if vectors.is_empty() {
        return Ok(raw.clone());
    }
    let mut edits = Edits::default();
    for vector in vectors {
        let written = match wanted {
            Encoding::Base64 => base64_of(text, vector.clone()),
            Encoding::Float | Encoding::Other => floats_of(text, vector.clone()),
        };
        let written = written.ok_or_else(|| malformed("the provider's answer holds an unreadable vector"))?;
        edits.replace(vector, written);
    }
    let mut body = Vec::new();
    edits.apply(raw, &mut body, 0);
    Ok(Bytes::from(body))
}

/// Returns where the vectors of one kind stand.
fn vectors(text: &str, kind: Kind) -> Result<Vec<Range<usize>>, Fault> {
    let mut found = Vec::new();
    let mut item = |reader: &mut Reader<'_>| -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| {
            let wanted = key.raw() == "embedding" && reader.kind()? == kind;
            let value = reader.skip()?;
            if wanted {
                found.push(value);
            }
            Ok(())
        })
    };
    Reader::new(text).object::<Fault>(|reader, key| {
        if key.raw() == "data" && reader.kind()? == Kind::Array {
            return reader.array::<Fault>(|reader, _| item(reader));
        }
        reader.skip().map(drop)
    })?;
    Ok(found)
}

fn base64_of(text: &str, vector: Range<usize>) -> Option<String> {
    let mut bytes = Vec::with_capacity(vector.len() / 2);
    Reader::starting_at(text, vector.start)
        .array::<Fault>(|reader, _| {
            let at = reader.at();
            let number: f32 =
                reader.number()?.parse().map_err(|_| Fault { at, what: "expected a number" })?;
            if !number.is_finite() {
                return Err(Fault { at, what: "the number does not fit into 32 bits" });
            }
            bytes.extend_from_slice(&number.to_le_bytes());
            Ok(())
        })
        .ok()?;
    let mut written = String::with_capacity(bytes.len() / 3 * 4 + 6);
    written.push('"');
    STANDARD.encode_string(&bytes, &mut written);
    written.push('"');
    Some(written)
}

fn floats_of(text: &str, vector: Range<usize>) -> Option<String> {
    let said = Reader::starting_at(text, vector.start).string().ok()?;
    let bytes = STANDARD.decode(said.decoded().as_bytes()).ok()?;
    let (floats, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut written = String::with_capacity(floats.len() * 14 + 2);
    written.push('[');
    for (index, float) in floats.iter().enumerate() {
        let float = f32::from_le_bytes(*float);
        if !float.is_finite() {
            return None;
        }
        if index > 0 {
            written.push(',');
        }
        // `Debug` keeps the exponent of very small numbers short; both forms are JSON.
        written.push_str(&format!("{float:?}"));
    }
    written.push(']');
    Some(written)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gw_types::ErrorKind;

    use super::{Encoding, in_encoding};

    #[track_caller]
    fn check(raw: &'static str, wanted: Encoding, expected: &str) {
        assert_eq!(in_encoding(&Bytes::from_static(raw.as_bytes()), wanted).unwrap(), expected);
    }

    #[track_caller]
    fn fails(raw: &'static str, wanted: Encoding) {
        let error = in_encoding(&Bytes::from_static(raw.as_bytes()), wanted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MalformedResponse);
    }

    #[test]
    fn floats_become_base64() {
        check(
            r#"{"x":[1], "data": [ {"index":0,"embedding": [ 1, -0.5 ] ,"y":"embedding"}, {"embedding":[]}]}"#,
            Encoding::Base64,
            r#"{"x":[1], "data": [ {"index":0,"embedding": "AACAPwAAAL8=" ,"y":"embedding"}, {"embedding":""}]}"#,
        );
    }

    #[test]
    fn base64_becomes_floats() {
        check(
            r#"{"data":[{"embedding":"AACAPwAAAL8="},{"embedding":""}],"n":1}"#,
            Encoding::Float,
            r#"{"data":[{"embedding":[1.0,-0.5]},{"embedding":[]}],"n":1}"#,
        );
    }

    #[test]
    fn what_has_the_encoding_already_passes() {
        check(r#"{"data":[{"embedding":[1.50]}]}"#, Encoding::Float, r#"{"data":[{"embedding":[1.50]}]}"#);
        check(r#"{"data":[{"embedding":"AA=="}]}"#, Encoding::Base64, r#"{"data":[{"embedding":"AA=="}]}"#);
        check(r#"{"data":[{"embedding":"?"}]}"#, Encoding::Other, r#"{"data":[{"embedding":"?"}]}"#);
    }

    #[test]
    fn unreadable_vectors_are_malformed() {
        fails(r#"{"data":[{"embedding":"AA=="}]}"#, Encoding::Float);
        fails(r#"{"data":[{"embedding":"?"}]}"#, Encoding::Float);
        fails(r#"{"data":[{"embedding":"AADAfw=="}]}"#, Encoding::Float);
        fails(r#"{"data":[{"embedding":[1e39]}]}"#, Encoding::Base64);
        fails(r#"{"data":[{"embedding":["a"]}]}"#, Encoding::Base64);
        fails("nothing", Encoding::Base64);
    }
}
