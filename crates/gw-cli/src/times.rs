//! Instants and ages as people type them.

use std::time::Duration;

use gw_types::UtcTime;
use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};

/// Reads a day or an instant, in UTC unless it says otherwise.
pub(crate) fn instant(text: &str) -> Result<UtcTime, String> {
    const WRONG: &str = "write a day as `2026-01-31` or an instant as `2026-01-31T12:00:00Z`";
    let midnight = |day: Date| TimeZone::UTC.to_timestamp(day.to_datetime(Time::midnight())).ok();
    let at = text.parse::<Timestamp>().ok().or_else(|| text.parse().ok().and_then(midnight)).ok_or(WRONG)?;
    Ok(UtcTime::from_micros(at.as_microsecond()))
}

/// Reads a length of time of whole days, hours, minutes or seconds: `90d`, `12h`, `30m`, `45s`.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "write a number and `d`, `h`, `m` or `s`, such as `90d`";
    let unit = text.chars().next_back().ok_or(WRONG)?;
    let seconds: u64 = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return Err(WRONG.to_owned()),
    };
    let count: u32 = text.strip_suffix(unit).and_then(|count| count.parse().ok()).ok_or(WRONG)?;
    Ok(Duration::from_secs(seconds * u64::from(count)))
}

/// Returns the instant so long before another; the earliest there is where there is none.
pub(crate) fn before(now: UtcTime, age: Duration) -> UtcTime {
    let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    UtcTime::from_micros(now.micros().saturating_sub(micros))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{age, instant};

    #[test]
    fn instants_are_days_or_have_a_zone() {
        for (text, expected) in [
            ("2030-01-01", Some(1_893_456_000_000_000)),
            ("2030-01-01T00:00:00.5Z", Some(1_893_456_000_500_000)),
            ("2030-01-01T01:00:00+01:00", Some(1_893_456_000_000_000)),
            ("yesterday", None),
            ("2030-13-01", None),
        ] {
            assert_eq!(instant(text).ok().map(gw_types::UtcTime::micros), expected, "{text}");
        }
    }

    #[test]
    fn ages_have_a_unit() {
        for (text, expected) in [
            ("90d", Some(7_776_000)),
            ("1h", Some(3_600)),
            ("0s", Some(0)),
            ("90", None),
            ("d", None),
            ("-1d", None),
            ("", None),
        ] {
            assert_eq!(age(text).ok(), expected.map(Duration::from_secs), "{text}");
        }
    }
}
