//! Paths of the calls.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 calls unreserved, as the signature's canonical form wants it.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the path of `Converse`, or of `ConverseStream`, for a model's id, an inference profile's or an ARN.
///
/// The id is one segment, colons and slashes encoded. Signature version 4 encodes the path once more.
///
/// ```
/// use gw_dialects::bedrock::converse_path;
///
/// assert_eq!(converse_path("amazon.nova-lite-v1:0", false), "/model/amazon.nova-lite-v1%3A0/converse");
/// assert_eq!(converse_path("a/b", true), "/model/a%2Fb/converse-stream");
/// ```
pub fn converse_path(model: &str, stream: bool) -> String {
    let method = if stream { "converse-stream" } else { "converse" };
    format!("/model/{}/{method}", utf8_percent_encode(model, SEGMENT))
}
