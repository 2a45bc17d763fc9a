//! Anthropic's messages as Vertex wants them: the model in the path only, the version in the body.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde_json::value::RawValue;

/// The one version that Vertex knows.
const VERSION: &str = r#""vertex-2023-10-16""#;

/// Moves what Vertex wants elsewhere; every other value stays byte for byte. A body that is no object is left alone, and
/// refused by the provider.
pub(super) fn without_model(body: &Bytes) -> Bytes {
    rewritten(body, true)
}

/// As [`without_model`] for a request to count tokens, whose path names no model.
pub(super) fn with_version(body: &Bytes) -> Bytes {
    rewritten(body, false)
}

fn rewritten(body: &Bytes, takes_model: bool) -> Bytes {
    let read: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_slice(body);
    let (Ok(mut members), Ok(version)) = (read, serde_json::from_str(VERSION)) else { return body.clone() };
    if takes_model {
        members.remove("model");
    }
    members.entry(Cow::Borrowed("anthropic_version")).or_insert(version);
    serde_json::to_vec(&members).map_or_else(|_| body.clone(), Bytes::from)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{with_version, without_model};

    #[track_caller]
    fn check(body: &'static str, expected: &str) {
        assert_eq!(without_model(&Bytes::from_static(body.as_bytes())), expected);
    }

    #[test]
    fn only_model_and_version_change() {
        check(
            r#"{"model":"claude","max_tokens":1e2,"x":{ "b":1, "a":2e400 }}"#,
            r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":1e2,"x":{ "b":1, "a":2e400 }}"#,
        );
        check(r#"{"anthropic_version":"v"}"#, r#"{"anthropic_version":"v"}"#);
        check("[]", "[]");
        let counted = with_version(&Bytes::from_static(br#"{"model":"claude"}"#));
        assert_eq!(counted, r#"{"anthropic_version":"vertex-2023-10-16","model":"claude"}"#);
    }
}
