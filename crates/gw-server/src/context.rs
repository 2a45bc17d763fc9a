//! The request headers that gw reads, checked.

mod tracestate;

use std::{sync::Arc, time::Duration};

use gw_types::{
    BoundedText, CacheControl, ErrorKind, GatewayError, IdempotencyKey, PassedHeader, RequestContext,
    TraceContext,
};
use http::{HeaderMap, HeaderValue};

/// The longest value that is passed on to a provider, in bytes: some clients list every beta that they know.
const PASSED_BYTES_MAX: usize = 2_048;

/// A header that gw reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    TaskClass,
    Classification,
    Residency,
    DeadlineMs,
    SideEffecting,
    IdempotencyKey,
    Cache,
    Locale,
    PromptVersion,
    SchemaVersion,
    Translation,
    RequestId,
    Traceparent,
    AnthropicBeta,
    AnthropicVersion,
    OpenAiBeta,
}

impl Field {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "x-gw-task-class" => Self::TaskClass,
            "x-gw-classification" => Self::Classification,
            "x-gw-residency" => Self::Residency,
            "x-gw-deadline-ms" => Self::DeadlineMs,
            "x-gw-side-effecting" => Self::SideEffecting,
            "idempotency-key" => Self::IdempotencyKey,
            "x-gw-cache" => Self::Cache,
            "x-gw-locale" => Self::Locale,
            "x-gw-prompt-version" => Self::PromptVersion,
            "x-gw-schema-version" => Self::SchemaVersion,
            "x-gw-translation" => Self::Translation,
            "x-request-id" => Self::RequestId,
            "traceparent" => Self::Traceparent,
            "anthropic-beta" => Self::AnthropicBeta,
            "anthropic-version" => Self::AnthropicVersion,
            "openai-beta" => Self::OpenAiBeta,
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
            Self::IdempotencyKey => "idempotency-key",
            Self::Cache => "x-gw-cache",
            Self::Locale => "x-gw-locale",
            Self::PromptVersion => "x-gw-prompt-version",
            Self::SchemaVersion => "x-gw-schema-version",
            Self::Translation => "x-gw-translation",
            Self::RequestId => "x-request-id",
            Self::Traceparent => "traceparent",
            Self::AnthropicBeta => "anthropic-beta",
            Self::AnthropicVersion => "anthropic-version",
            Self::OpenAiBeta => "openai-beta",
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
            Self::IdempotencyKey => {
                "the header `idempotency-key` must be 1 to 255 visible ASCII characters without blanks"
            }
            Self::Cache => "the header `x-gw-cache` must be `no-store`, `no-cache` or `only-if-cached`",
            Self::Locale => {
                "the header `x-gw-locale` must be a language tag of at most 35 letters, digits and dashes"
            }
            Self::PromptVersion => {
                "the header `x-gw-prompt-version` must be 1 to 128 visible ASCII characters"
            }
            Self::SchemaVersion => {
                "the header `x-gw-schema-version` must be 1 to 128 visible ASCII characters"
            }
            Self::Translation => "the header `x-gw-translation` must be `strict`, or be left out",
            Self::RequestId => "the header `x-request-id` must be 1 to 128 visible ASCII characters",
            Self::Traceparent => "the header `traceparent` must be 1 to 128 hexadecimal digits and dashes",
            Self::AnthropicBeta => {
                "the headers `anthropic-beta` must be at most 2,048 visible ASCII characters together"
            }
            Self::AnthropicVersion => {
                "the header `anthropic-version` must be 1 to 128 visible ASCII characters"
            }
            Self::OpenAiBeta => {
                "the headers `openai-beta` must be at most 2,048 visible ASCII characters together"
            }
        }
    }

    /// Returns whether the header is a list, which may stand there in several pieces (RFC 9110, section 5.3).
    const fn is_list(self) -> bool {
        matches!(self, Self::AnthropicBeta | Self::OpenAiBeta)
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
        if seen & bit != 0 && !field.is_list() {
            let message = "a header that gw reads must not stand there twice";
            return Err(GatewayError::new(ErrorKind::InvalidRequest, message).with_param(field.name()));
        }
        seen |= bit;
        take(&mut context, field, value).ok_or_else(|| field.malformed())?;
    }
    let parent = context.traceparent.as_ref().and_then(|parent| TraceContext::parse(parent.as_str()));
    // It is told beside a place in a trace, and means nothing without one.
    context.tracestate = parent.and_then(|_| tracestate::read(headers));
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
        Field::IdempotencyKey => context.idempotency_key = Some(IdempotencyKey::new(text)?),
        Field::Cache => context.cache = cache_control(text)?,
        Field::Locale => context.locale = Some(locale(text)?),
        Field::PromptVersion => context.prompt_version = Some(label(text)?),
        Field::SchemaVersion => context.schema_version = Some(label(text)?),
        Field::RequestId => context.client_request_id = Some(label(text)?),
        Field::Translation => context.translation_strict = (text == "strict").then_some(true)?,
        Field::Traceparent => context.traceparent = Some(trace(text)?),
        Field::AnthropicBeta => pass_list(context, PassedHeader::AnthropicBeta, text)?,
        Field::AnthropicVersion => {
            let version = label(text)?;
            context.passed.push((PassedHeader::AnthropicVersion, Arc::from(version.as_str())));
        }
        Field::OpenAiBeta => pass_list(context, PassedHeader::OpenAiBeta, text)?,
    }
    Some(())
}

/// Adds a piece of a list that goes to the provider; `None` if the whole is too long or holds what no header should.
fn pass_list(context: &mut RequestContext, header: PassedHeader, piece: &str) -> Option<()> {
    let visible = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let so_far = context.passed.iter_mut().find(|(name, _)| *name == header);
    let whole = so_far.as_ref().map_or_else(|| piece.to_owned(), |(_, so_far)| format!("{so_far},{piece}"));
    if piece.is_empty() || whole.len() > PASSED_BYTES_MAX || !whole.bytes().all(visible) {
        return None;
    }
    match so_far {
        Some((_, value)) => *value = Arc::from(whole),
        None => context.passed.push((header, Arc::from(whole))),
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

/// Reads a language tag, such as `pt-BR`, in lower case: tags are compared without their case (RFC 5646, section 2.1.1).
fn locale(text: &str) -> Option<BoundedText> {
    const BYTES_MAX: usize = 35;
    let parts = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (text.len() <= BYTES_MAX && text.split('-').all(parts))
        .then(|| BoundedText::new(&text.to_ascii_lowercase()))
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
            ("idempotency-key", b"order-17"),
            ("x-gw-cache", b"only-if-cached"),
            ("x-gw-locale", b"pt-BR"),
            ("x-gw-prompt-version", b"p 1"),
            ("x-gw-schema-version", b"s1"),
            ("x-request-id", b"abc"),
            ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("x-other", b"\xff"),
        ])
        .unwrap();
        assert_eq!(context.classification, Some(Classification::Restricted));
        assert_eq!(context.deadline, Some(Duration::from_millis(250)));
        assert!(context.side_effecting && context.idempotency_key.is_some());
        assert_eq!(context.cache, CacheControl::OnlyIfCached);
        assert_eq!(context.locale.unwrap().as_str(), "pt-br");
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
    fn the_providers_own_headers_are_passed_on() {
        let context = read(&[
            ("anthropic-beta", b"a-1,b-2"),
            ("anthropic-version", b"2026-10-21"),
            ("anthropic-beta", b"c-3"),
            ("x-gw-translation", b"strict"),
        ])
        .unwrap();
        let passed: Vec<_> = context.passed.iter().map(|(name, value)| (name.as_str(), &**value)).collect();
        assert_eq!(passed, [("anthropic-beta", "a-1,b-2,c-3"), ("anthropic-version", "2026-10-21")]);
        assert!(context.translation_strict);
        let long = vec![b'a'; super::PASSED_BYTES_MAX];
        assert_eq!(read(&[("openai-beta", b"x"), ("openai-beta", &long)]), Err("openai-beta".to_owned()));
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
        refuses("x-gw-locale", &[b"", b"pt_BR", b"pt-", b"*", &[b'a'; 36]]);
        refuses("idempotency-key", &[b"", b"a b", b"\xc3\xa9", &[b'a'; 256]]);
        refuses("x-gw-prompt-version", &[b"", b"\xff", &long]);
        refuses("x-gw-schema-version", &[b"", b"a\tb", &long]);
        refuses("x-request-id", &[b"", b"\x80", &long]);
        refuses("traceparent", &[b"", b"00 11", b"xyz", &long]);
        refuses("x-gw-translation", &[b"", b"lenient", b"Strict"]);
        refuses("anthropic-beta", &[b"", b"\xff"]);
        refuses("anthropic-version", &[b"", &long]);
    }

    #[test]
    fn what_a_trace_says_goes_with_its_place_and_is_never_refused() {
        let place = ("traceparent", &b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"[..]);
        let check = |headers: &[(&str, &[u8])], expected: Option<&str>| {
            assert_eq!(read(headers).unwrap().tracestate.as_deref(), expected);
        };
        check(&[("tracestate", b"a=1"), place, ("tracestate", b"b=2")], Some("a=1,b=2"));
        check(&[("tracestate", b"a=1"), ("traceparent", b"00-0af7-01")], None);
        check(&[("tracestate", b"a=1")], None);
        check(&[place, ("tracestate", b"A=\xff")], None);
    }

    #[test]
    fn a_header_stands_there_once() {
        assert_eq!(read(&[("x-request-id", b"a"), ("x-request-id", b"a")]), Err("x-request-id".to_owned()));
    }
}
