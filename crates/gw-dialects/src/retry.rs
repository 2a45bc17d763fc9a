//! What a provider's answer says about trying again: one reading of all the forms, for every dialect.

use std::time::{Duration, SystemTime};

use gw_types::UtcTime;

/// What the headers of an answer say about trying again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guidance {
    /// How long to wait: more than nothing, at most [`Guidance::RETRY_AFTER_MAX`].
    pub retry_after: Option<Duration>,
    /// What `x-should-retry` says.
    pub should_retry: Option<bool>,
}

impl Guidance {
    /// The longest wait that is told apart, a year: a longer one means the same.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
}

/// Reads the headers `retry-after-ms`, `x-ms-retry-after-ms`, `retry-after` and `x-should-retry`.
///
/// The more precise header wins. `retry-after` may be seconds with decimals or an HTTP date (RFC 9110, section 10.2.3),
/// which is compared with `utc`. What is negative, past, zero or no number gives no guidance, and the next header is
/// asked: a provider is known to send `retry-after-ms: 0` beside `retry-after: 1`.
///
/// ```
/// use std::time::Duration;
/// use gw_dialects::retry;
/// use gw_types::UtcTime;
///
/// let header = |name: &str| (name == "retry-after").then_some("1.5");
/// let guidance = retry::guidance(&header, UtcTime::default());
/// assert_eq!(guidance.retry_after, Some(Duration::from_millis(1_500)));
/// ```
pub fn guidance<'a>(header: &dyn Fn(&str) -> Option<&'a str>, utc: UtcTime) -> Guidance {
    let milliseconds = |name| decimal(header(name)?, 1_000_000);
    let retry_after =
        milliseconds("retry-after-ms").or_else(|| milliseconds("x-ms-retry-after-ms")).or_else(|| {
            header("retry-after").and_then(|text| decimal(text, 1_000_000_000).or_else(|| date(text, utc)))
        });
    let should_retry = header("x-should-retry").and_then(|text| match text.trim() {
        yes if yes.eq_ignore_ascii_case("true") => Some(true),
        no if no.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    });
    Guidance { retry_after, should_retry }
}

/// Reads a decimal number of units of `nanos` nanoseconds each, without going through a float.
fn decimal(text: &str, nanos: u64) -> Option<Duration> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    // A number that does not fit is longer than the longest wait.
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX);
    let mut total = u128::from(whole) * u128::from(nanos);
    let mut unit = nanos;
    for digit in fraction.bytes() {
        unit /= 10;
        total += u128::from(unit) * u128::from(digit - b'0');
    }
    let nanos = u64::try_from(total).unwrap_or(u64::MAX);
    bounded(Duration::from_nanos(nanos))
}

fn date(text: &str, utc: UtcTime) -> Option<Duration> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    let at = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = Duration::from_micros(u64::try_from(utc.micros()).unwrap_or(0));
    bounded(at.checked_sub(now)?)
}

fn bounded(wait: Duration) -> Option<Duration> {
    (!wait.is_zero()).then(|| wait.min(Guidance::RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::UtcTime;

    use super::{Guidance, guidance};

    /// 2030-01-01T00:00:00Z.
    const NOW: UtcTime = UtcTime::from_micros(1_893_456_000_000_000);

    fn read(headers: &[(&str, &'static str)]) -> Guidance {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        guidance(&header, NOW)
    }

    #[track_caller]
    fn check(headers: &[(&str, &'static str)], milliseconds: Option<u64>) {
        assert_eq!(read(headers).retry_after, milliseconds.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn retry_after_seconds_date_and_milliseconds() {
        check(&[("retry-after", "2")], Some(2_000));
        check(&[("retry-after", "Tue, 01 Jan 2030 00:00:03 GMT")], Some(3_000));
        check(&[("retry-after-ms", "250"), ("retry-after", "2")], Some(250));
        check(&[("retry-after", "Mon, 31 Dec 2029 23:59:00 GMT")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-5")], None);
        assert_eq!(read(&[("x-should-retry", "false")]).should_retry, Some(false));
        check(&[("retry-after", "1.5")], Some(1_500));
    }

    #[test]
    fn other_forms() {
        check(&[("x-ms-retry-after-ms", " 40.0 ")], Some(40));
        check(&[("retry-after-ms", "0"), ("retry-after", "1")], Some(1_000));
        check(&[("retry-after-ms", "x"), ("x-ms-retry-after-ms", "7")], Some(7));
        check(&[("retry-after", "1e3")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "")], None);
        check(&[("retry-after", ".5")], None);
        check(&[("retry-after", "411132")], Some(411_132_000));
        check(&[], None);
    }

    #[test]
    fn what_does_not_fit_is_the_longest_wait() {
        let read = read(&[("retry-after", "99999999999999999999999")]);
        assert_eq!(read.retry_after, Some(Guidance::RETRY_AFTER_MAX));
    }

    #[test]
    fn should_retry_is_read_in_any_case() {
        assert_eq!(read(&[("x-should-retry", "True")]).should_retry, Some(true));
        assert_eq!(read(&[("x-should-retry", "maybe")]).should_retry, None);
    }
}
