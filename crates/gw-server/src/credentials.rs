//! The key that a caller presents.

use gw_types::Secret;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};

use crate::refusal::Refusal;

static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const SCHEME: &str = "bearer";

/// Returns the key of `Authorization: Bearer KEY`, or else of `x-api-key: KEY`; `None` where there is none to try.
///
/// # Errors
/// Two of the same header: which one counts would be a guess, and another hop may guess otherwise.
pub(crate) fn presented(headers: &HeaderMap) -> Result<Option<Secret>, Refusal> {
    let authorization = only(headers, &AUTHORIZATION)?;
    let api_key = only(headers, &X_API_KEY)?;
    Ok(authorization
        .and_then(bearer)
        .or_else(|| api_key.and_then(|value| value.to_str().ok()))
        .and_then(Secret::new))
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(Refusal::ambiguous_key()),
    }
}

/// Returns what follows the scheme, which is compared without regard to case (RFC 9110, section 11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let text = value.to_str().ok()?;
    let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
    (scheme.eq_ignore_ascii_case(SCHEME) && rest.starts_with(' ')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn check(headers: &[(&'static str, &'static str)], expected: Option<Option<&str>>) {
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            });
        let found = super::presented(&map).ok();
        let found = found.as_ref().map(|key| key.as_ref().map(|key| key.expose()));
        assert_eq!(found, expected, "{headers:?}");
    }

    #[test]
    fn keys_come_in_two_headers() {
        check(&[("authorization", "Bearer abc")], Some(Some("abc")));
        check(&[("authorization", "bEARER  abc ")], Some(Some("abc")));
        check(&[("x-api-key", "abc")], Some(Some("abc")));
        check(&[("authorization", "Bearer abc"), ("x-api-key", "def")], Some(Some("abc")));
        check(&[("authorization", "Basic abc"), ("x-api-key", "def")], Some(Some("def")));
    }

    #[test]
    fn what_is_no_key_is_none() {
        check(&[], Some(None));
        for value in ["", "Bearer", "Bearer ", "Bearer   ", "Bearerabc", "Basic abc", "abc"] {
            check(&[("authorization", value)], Some(None));
        }
        check(&[("x-api-key", "")], Some(None));
    }

    #[test]
    fn every_spelling_of_a_route_needs_credentials_two_headers_are_refused() {
        check(&[("authorization", "Bearer abc"), ("authorization", "Bearer def")], None);
        check(&[("authorization", "Bearer abc"), ("authorization", "Bearer abc")], None);
        check(&[("x-api-key", "abc"), ("x-api-key", "def")], None);
    }
}
