//! Pages of other origins (the CORS protocol of the Fetch standard): which may call, and what they may read.

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
    },
};

use crate::answer::{self, Answer};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, request-id, x-gw-deployment, x-gw-route, x-gw-config, x-gw-attempts, x-gw-cache, x-gw-cost-micros, \
     x-gw-latency-ms, x-gw-loss, x-should-retry, retry-after, retry-after-ms, x-ratelimit-limit-requests, \
     x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, \
     x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens",
);
/// How long a browser may go by an answer, in seconds: as long as any of them does.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The longest list of headers that a preflight is answered for, in bytes.
const HEADERS_BYTES_MAX: usize = 2_048;

/// Returns the origin to name to this caller, if its page may call. Only headers of the request are heeded; keys travel in
/// headers that a page must set itself, so nothing rides on a browser's cookies.
pub(crate) fn allowed(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let listed = |allowed: &String| allowed == "*" || allowed.as_bytes() == origin.as_bytes();
    origins.iter().any(listed).then(|| origin.clone())
}

/// Answers the question that a browser asks before it sends a page's request; `None`: this is no such question.
pub(crate) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Answer> {
    if *method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut answer = answer::empty(StatusCode::NO_CONTENT);
    let to = answer.headers_mut();
    to.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    to.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // Clients of every kind set headers of their own, and gw heeds only those that it knows.
    if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS)
        && asked.len() <= HEADERS_BYTES_MAX
    {
        to.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    Some(answer)
}

/// Lets the page read the answer.
pub(crate) fn write(origin: HeaderValue, answer: &mut Answer) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("origin"));
}
