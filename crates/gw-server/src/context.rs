//! The request headers that gw reads, checked.

use std::time::Duration;

use gw_types::{BoundedText, CacheControl, ErrorKind, GatewayError, RequestContext};
use http::{HeaderMap, HeaderValue};

/// A header that gw reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    TaskClass,
    Classification,
    Residency,
    DeadlineMs,
    SideEffecting,
    Cache,
    PromptVersion,
    SchemaVersion,
    RequestId,
    Traceparent,
}

impl Field {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "x-gw-task-class" => Self::TaskClass,
            "x-gw-classification" => Self::Classification,
            "x-gw-residency" => Self::Residency,
            "x-gw-deadline-ms" => Self::DeadlineMs,
            "x-gw-side-effecting" => Self::SideEffecting,
            "x-gw-cache" => Self::Cache,
            "x-gw-prompt-version" => Self::PromptVersion,
            "x-gw-schema-version" => Self::SchemaVersion,
            "x-request-id" => Self::RequestId,
            "traceparent" => Self::Traceparent,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TaskClass => "x-gw-task-class",
            Self::Classification => "x-gw-classification",
            Self::Residency => "x-gw-residency",
            Self::DeadlineMs => "x-gw-deadline-ms",
            Self::SideEffecting => "x-gw-side-effecting",
            Self::Cache => "x-gw-cache",
            Self::PromptVersion => "x-gw-prompt-version",
            Self::SchemaVersion => "x-gw-schema-version",
            Self::RequestId => "x-request-id",
            Self::Traceparent => "traceparent",
        }
    }

    /// Says what the header should have been.
    const fn message(self) -> &'static str {
        match self {
            Self::TaskClass => "the header `x-gw-task-class` must be a name of at most 128 characters",
            Self::Classification => {
                "the header `x-gw-classification` must be `public`, `internal`, `confidential` or `restricted`"
            }
            Self::Residency => "the header `x-gw-residency` must be a name of at most 128 characters",
            Self::DeadlineMs => {
                "the header `x-gw-deadline-ms` must be a whole number of milliseconds, at least 1"
            }
            Self::SideEffecting => "the header `x-gw-side-effecting` must be `true` or `false`",
            Self::Cache => "the header `x-gw-cache` must be `no-store`, `no-cache` or `only-if-cached`",
            Self::PromptVersion => {
                "the header `x-gw-prompt-version` must be 1 to 128 visible ASCII characters"
            }
            Self::SchemaVersion => {
                "the header `x-gw-schema-version` must be 1 to 128 visible ASCII characters"
            }
            Self::RequestId => "the header `x-request-id` must be 1 to 128 visible ASCII characters",
            Self::Traceparent => "the header `traceparent` must be 1 to 128 hexadecimal digits and dashes",
        }
    }

    fn malformed(self) -> GatewayError {
        GatewayError::new(ErrorKind::InvalidRequest, self.message()).with_param(self.name())
    }
}

/// Reads the headers that gw knows, in one pass; all others are left alone.
///
/// # Errors
/// `InvalidRequest`, naming the first header that is malformed or stands there twice.
pub(crate) fn read(headers: &HeaderMap) -> Result<RequestContext, GatewayError> {
    let mut context = RequestContext::default();
    let mut seen = 0_u16;
    for (name, value) in headers {
        let Some(field) = Field::of(name.as_str()) else { continue };
        let bit = 1 << field as u16;
        if seen & bit != 0 {
            let message = "a header that gw reads must not stand there twice";
            return Err(GatewayError::new(ErrorKind::InvalidRequest, message).with_param(field.name()));
        }
        seen |= bit;
        take(&mut context, field, value).ok_or_else(|| field.malformed())?;
    }
    Ok(context)
}

/// Puts one header into the context; `None` if it is malformed.
fn take(context: &mut RequestContext, field: Field, value: &HeaderValue) -> Option<()> {
    let text = value.to_str().ok()?;
    match field {
        Field::TaskClass => context.task_class = Some(text.parse().ok()?),
        Field::Classification => context.classification = Some(text.parse().ok()?),
        Field::Residency => context.residency = Some(text.parse().ok()?),
        Field::DeadlineMs => context.deadline = Some(deadline(text)?),
        Field::SideEffecting => context.side_effecting = flag(text)?,
        Field::Cache => context.cache = cache_control(text)?,
        Field::PromptVersion => context.prompt_version = Some(label(text)?),
        Field::SchemaVersion => context.schema_version = Some(label(text)?),
        Field::RequestId => context.client_request_id = Some(label(text)?),
        Field::Traceparent => context.traceparent = Some(trace(text)?),
    }
    Some(())
}

/// Reads decimal digits; what is above the server's maximum is refused by the pipeline, which knows it.
fn deadline(text: &str) -> Option<Duration> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: u64 = text.parse().ok()?;
    (millis > 0).then(|| Duration::from_millis(millis))
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn cache_control(text: &str) -> Option<CacheControl> {
    match text {
        "no-store" => Some(CacheControl::NoStore),
        "no-cache" => Some(CacheControl::NoCache),
        "only-if-cached" => Some(CacheControl::OnlyIfCached),
        _ => None,
    }
}

fn label(text: &str) -> Option<BoundedText> {
    let fits = (1..=BoundedText::BYTES_MAX).contains(&text.len());
    (fits && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')).then(|| BoundedText::new(text))
}

fn trace(text: &str) -> Option<BoundedText> {
    label(text).filter(|_| text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::{CacheControl, Classification, RequestContext};
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn read(headers: &[(&str, &[u8])]) -> Result<RequestContext, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        super::read(&map).map_err(|error| error.param().unwrap_or_default().to_owned())
    }

    fn refuses(name: &str, values: &[&[u8]]) {
        for value in values {
            assert_eq!(read(&[(name, value)]), Err(name.to_owned()), "{name}: {value:?}");
        }
    }

    #[test]
    fn every_header_is_read() {
        let context = read(&[
            ("x-gw-task-class", b"reasoning"),
            ("x-gw-classification", b"restricted"),
            ("x-gw-residency", b"eu"),
            ("x-gw-deadline-ms", b"250"),
            ("x-gw-side-effecting", b"true"),
            ("x-gw-cache", b"only-if-cached"),
            ("x-gw-prompt-version", b"p 1"),
            ("x-gw-schema-version", b"s1"),
            ("x-request-id", b"abc"),
            ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("x-other", b"\xff"),
        ])
        .unwrap();
        assert_eq!(context.classification, Some(Classification::Restricted));
        assert_eq!(context.deadline, Some(Duration::from_millis(250)));
        assert!(context.side_effecting);
        assert_eq!(context.cache, CacheControl::OnlyIfCached);
        assert_eq!(context.prompt_version.unwrap().as_str(), "p 1");
        assert!(context.traceparent.is_some() && context.schema_version.is_some());
        assert_eq!(context.client_request_id.unwrap().as_str(), "abc");
        assert_eq!(
            (context.task_class.unwrap().as_str(), context.residency.unwrap().as_str()),
            ("reasoning", "eu")
        );
    }

    #[test]
    fn no_header_is_the_default() {
        assert_eq!(read(&[]), Ok(RequestContext::default()));
        assert_eq!(read(&[("x-gw-side-effecting", b"false")]), Ok(RequestContext::default()));
    }

    #[test]
    fn malformed_headers_are_named() {
        let long = [b'a'; 129];
        refuses("x-gw-task-class", &[b"", b"a b", b"\xc3\xa9", &long]);
        refuses("x-gw-classification", &[b"", b"secret", b"Public"]);
        refuses("x-gw-residency", &[b"", b"a,b"]);
        refuses("x-gw-deadline-ms", &[b"", b"0", b"-1", b"+1", b"1.5", b"1e3", b"99999999999999999999"]);
        refuses("x-gw-side-effecting", &[b"", b"yes", b"True", b"1"]);
        refuses("x-gw-cache", &[b"", b"no-store, no-cache", b"default"]);
        refuses("x-gw-prompt-version", &[b"", b"\xff", &long]);
        refuses("x-gw-schema-version", &[b"", b"a\tb", &long]);
        refuses("x-request-id", &[b"", b"\x80", &long]);
        refuses("traceparent", &[b"", b"00 11", b"xyz", &long]);
    }

    #[test]
    fn a_header_stands_there_once() {
        assert_eq!(read(&[("x-request-id", b"a"), ("x-request-id", b"a")]), Err("x-request-id".to_owned()));
    }
}
