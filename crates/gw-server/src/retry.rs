//! What a client is told about trying again.

use gw_types::{Dialect, ErrorKind, GatewayError, Retry};
use http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
static FALSE: HeaderValue = HeaderValue::from_static("false");

/// Writes `retry-after` (whole seconds, rounded up), `retry-after-ms` and `x-should-retry`.
///
/// `x-should-retry: false` stands where a repeat cannot heal or must not happen, and where gw has made more than one
/// attempt itself: clients retry twice by default, and the attempts would multiply. Where gw made one attempt, the
/// decision is the client's and the header is absent.
pub(crate) fn write(dialect: Dialect, error: &GatewayError, attempts: u32, headers: &mut HeaderMap) {
    if let Some(after) = error.retry_after() {
        let millis = u64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        headers.insert(RETRY_AFTER_MS.clone(), HeaderValue::from(millis));
    }
    if !may_be_repeated(error.http_status(dialect), error, attempts) {
        headers.insert(SHOULD_RETRY.clone(), FALSE.clone());
    }
}

fn may_be_repeated(status: u16, error: &GatewayError, attempts: u32) -> bool {
    // 408 and 429 are refusals of the moment.
    let is_final = (400..500).contains(&status)
        && !matches!(status, 408 | 429)
        && error.kind().retryable() == Retry::Never;
    !(is_final
        || error.is_ambiguous()
        || error.forbids_retry()
        || error.kind() == ErrorKind::NotCached
        || (attempts > 1 && error.kind().is_of_provider()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::{Dialect, ErrorKind, GatewayError};
    use http::HeaderMap;

    fn headers(error: &GatewayError, attempts: u32) -> HeaderMap {
        let mut headers = HeaderMap::new();
        super::write(Dialect::OpenAi, error, attempts, &mut headers);
        headers
    }

    fn check(kind: ErrorKind, attempts: u32, should_retry: Option<&str>) {
        let headers = headers(&GatewayError::new(kind, "it failed"), attempts);
        let found = headers.get("x-should-retry").map(|value| value.to_str().unwrap());
        assert_eq!(found, should_retry, "{kind} after {attempts} attempts");
    }

    #[test]
    fn what_a_repeat_cannot_heal_says_so() {
        check(ErrorKind::InvalidRequest, 0, Some("false"));
        check(ErrorKind::Unauthenticated, 0, Some("false"));
        check(ErrorKind::UnknownModel, 0, Some("false"));
        check(ErrorKind::ContentFiltered, 1, Some("false"));
        check(ErrorKind::NotCached, 0, Some("false"));
    }

    #[test]
    fn refusals_of_the_moment_leave_it_to_the_client() {
        check(ErrorKind::RateLimited, 0, None);
        check(ErrorKind::QuotaExceeded, 0, None);
        check(ErrorKind::Overloaded, 0, None);
        check(ErrorKind::StatePinned, 1, None);
        check(ErrorKind::Internal, 0, None);
    }

    #[test]
    fn attempts_do_not_multiply() {
        for kind in [ErrorKind::ProviderRateLimited, ErrorKind::ProviderUnavailable, ErrorKind::Transport] {
            check(kind, 1, None);
            check(kind, 2, Some("false"));
            check(kind, 3, Some("false"));
        }
        check(ErrorKind::RateLimited, 2, None);
    }

    #[test]
    fn occurrences_may_forbid() {
        let error = GatewayError::new(ErrorKind::ProviderUnavailable, "it failed");
        assert_eq!(headers(&error.clone().without_retry(), 1)["x-should-retry"], "false");
        assert_eq!(headers(&error.ambiguous(), 1)["x-should-retry"], "false");
        let above = GatewayError::new(ErrorKind::RateLimited, "above the limit").without_retry();
        assert_eq!(headers(&above, 0)["x-should-retry"], "false");
    }

    #[test]
    fn waits_are_rounded_up() {
        for (nanos, seconds, millis) in
            [(0, "0", "0"), (1, "1", "1"), (1_000_000_000, "1", "1000"), (1_500_000_001, "2", "1501")]
        {
            let error = GatewayError::new(ErrorKind::RateLimited, "slow down");
            let headers = headers(&error.with_retry_after(Duration::from_nanos(nanos)), 0);
            assert_eq!(headers["retry-after"], seconds);
            assert_eq!(headers["retry-after-ms"], millis);
        }
    }
}
