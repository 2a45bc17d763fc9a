//! Reads what the head of an answer says about its body.

use gw_types::{BoundedText, ErrorKind, GatewayError, Loss, Secret};
use http::{HeaderMap, HeaderName, header};

/// The headers that carry a provider's id of the call, in order.
const REQUEST_ID_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("apim-request-id"),
    HeaderName::from_static("x-amzn-requestid"),
];

/// A secret shorter than this, in bytes, is not looked for: it would be found everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// Returns the provider's id of the call; none where the provider echoes one of gw's secrets: the id goes into records.
pub(super) fn request_id(headers: &HeaderMap, secrets: &[Secret]) -> Option<BoundedText> {
    let id = REQUEST_ID_HEADERS.iter().find_map(|name| headers.get(name)?.to_str().ok())?;
    (!holds_secret(id, secrets)).then(|| BoundedText::new(id))
}

/// Returns the name of the model that answered, unless the provider echoes one of gw's secrets there.
pub(super) fn served_model(said: Option<BoundedText>, secrets: &[Secret]) -> Option<BoundedText> {
    said.filter(|model| !holds_secret(model.as_str(), secrets))
}

/// Leaves out fields whose names echo one of gw's secrets: they go into records.
pub(super) fn without_secrets(loss: &mut Loss, secrets: &[Secret]) {
    loss.items.retain(|item| !holds_secret(item.path.as_str(), secrets));
}

fn holds_secret(text: &str, secrets: &[Secret]) -> bool {
    let mut secrets = secrets.iter().map(Secret::expose);
    secrets.any(|secret| secret.len() >= SECRET_BYTES_MIN && text.contains(secret))
}

/// Returns a header's value, if it is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns whether the body is encoded, although gw asks for none.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.is_empty() && !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Returns whether the body is of one of the media types, which are in lower case. A body that names none is of each.
pub(super) fn is_of_type(headers: &HeaderMap, types: &[&[u8]]) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let media_type = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    types.iter().any(|known| media_type.trim_ascii().eq_ignore_ascii_case(known))
}

/// Adds the id of the call, and takes gw's own secrets out of what the provider said.
pub(super) fn dress(mut error: GatewayError, id: Option<&BoundedText>, secrets: &[Secret]) -> GatewayError {
    if let Some(detail) = error.detail().cloned() {
        let scrubbed = secrets.iter().fold(detail, |detail, secret| detail.without_secret(secret.expose()));
        error = error.with_detail(scrubbed);
    }
    if error.upstream_request_id().is_some_and(|id| holds_secret(id, secrets)) {
        error = error.with_upstream_request_id("");
    }
    match id {
        Some(id) if error.upstream_request_id().is_none() => error.with_upstream_request_id(id.as_str()),
        Some(_) | None => error,
    }
}

pub(super) fn malformed(message: &'static str) -> GatewayError {
    GatewayError::new(ErrorKind::MalformedResponse, message)
}

#[cfg(test)]
mod tests {
    use gw_types::{BoundedText, ErrorKind, GatewayError, Loss, LossItem, LossKind, Secret};
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::{dress, is_encoded, is_of_type, request_id, served_model, without_secrets};

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn media_types() {
        for (value, expected) in [
            ("text/event-stream", true),
            ("Text/Event-Stream; charset=utf-8", true),
            ("text/event-stream;charset=utf-8", true),
            ("application/json", false),
            ("text/event-streams", false),
            ("", false),
        ] {
            let is = is_of_type(&headers(&[("content-type", value)]), &[b"other", b"text/event-stream"]);
            assert_eq!(is, expected, "{value}");
        }
        assert!(is_of_type(&headers(&[]), &[b"text/event-stream"]));
    }

    #[test]
    fn encodings() {
        for (value, expected) in [("", false), ("identity", false), ("Identity", false), ("gzip", true)] {
            assert_eq!(is_encoded(&headers(&[("content-encoding", value)])), expected, "{value}");
        }
        assert!(!is_encoded(&headers(&[])));
    }

    #[test]
    fn ids_in_order() {
        let id = |list: &[_]| request_id(&headers(list), &[]).map(|id| id.to_string());
        assert_eq!(id(&[("apim-request-id", "b"), ("x-request-id", "a")]).as_deref(), Some("a"));
        assert_eq!(id(&[("apim-request-id", "b")]).as_deref(), Some("b"));
        assert_eq!(id(&[]), None);
    }

    #[test]
    fn i18_what_echoes_a_secret_is_left_out() {
        let secrets = [Secret::new("hunter2!").unwrap(), Secret::new("abc").unwrap()];
        let id = |id| request_id(&headers(&[("x-request-id", id)]), &secrets).map(|id| id.to_string());
        assert_eq!(id("req-abc").as_deref(), Some("req-abc"));
        assert_eq!(id("req hunter2! was refused"), None);
        let error = |id| GatewayError::new(ErrorKind::ProviderAuth, "no").with_upstream_request_id(id);
        let id = |id| dress(error(id), None, &secrets).upstream_request_id().map(str::to_owned);
        assert_eq!((id("req-abc").as_deref(), id("hunter2!")), (Some("req-abc"), None));
        let model =
            |name| served_model(Some(BoundedText::new(name)), &secrets).map(|model| model.to_string());
        assert_eq!((model("m-1").as_deref(), model("m-hunter2!")), (Some("m-1"), None));
        let item = |path| LossItem { path: BoundedText::new(path), kind: LossKind::Dropped, why: "" };
        let mut loss = Loss { items: vec![item("answer.a"), item("answer.hunter2!")] };
        without_secrets(&mut loss, &secrets);
        assert_eq!(loss.items, [item("answer.a")]);
    }
}
