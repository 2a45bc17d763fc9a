//! Calendar windows in which money is counted.

use gw_types::UtcTime;
use serde::Deserialize;

/// A calendar window. By itself it is one in UTC; [`Zone::window`] gives those of a time zone.
///
/// [`Zone::window`]: crate::Zone::window
///
/// ```
/// use gw_limits::Window;
/// use gw_types::UtcTime;
///
/// let utc = UtcTime::from_micros(25 * 3_600_000_000 + 1);
/// assert_eq!(Window::Day.start_of(utc).seconds(), 24 * 3_600);
/// assert_eq!(Window::Hour.end_of(utc).seconds(), 26 * 3_600);
/// // 1970 began on a Thursday; its first month had 31 days.
/// assert_eq!(Window::Week.end_of(utc).seconds(), 4 * 86_400);
/// assert_eq!(Window::Month.end_of(utc).seconds(), 31 * 86_400);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// From minute 0 to the next minute 0.
    Hour,
    /// From 00:00 to the next 00:00.
    Day,
    /// From Monday, 00:00, to the next Monday, 00:00 (ISO 8601).
    Week,
    /// From the first of the month, 00:00, to the next first, 00:00.
    Month,
}

pub(crate) const HOUR_MICROS: i64 = 3_600_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
/// From 1970-01-01, a Thursday, back to its Monday.
const THURSDAY_AFTER_MONDAY: i64 = 3 * DAY_MICROS;

impl Window {
    /// Returns the first instant of the UTC window that holds `utc`.
    pub const fn start_of(self, utc: UtcTime) -> UtcTime {
        UtcTime::from_micros(self.bounds(utc.micros()).0)
    }

    /// Returns the first instant after the UTC window that holds `utc`.
    pub const fn end_of(self, utc: UtcTime) -> UtcTime {
        UtcTime::from_micros(self.bounds(utc.micros()).1)
    }

    /// Returns the name, as the configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// UTC has no daylight saving, and POSIX time no leap seconds, so arithmetic suffices.
    const fn bounds(self, micros: i64) -> (i64, i64) {
        match self {
            Self::Hour => even(micros, HOUR_MICROS, 0),
            Self::Day => even(micros, DAY_MICROS, 0),
            Self::Week => even(micros, 7 * DAY_MICROS, THURSDAY_AFTER_MONDAY),
            Self::Month => {
                let month = month_of(micros.div_euclid(DAY_MICROS));
                let start = first_day_of(month).saturating_mul(DAY_MICROS);
                (start, first_day_of(month + 1).saturating_mul(DAY_MICROS))
            }
        }
    }
}

/// The window of a fixed length that holds `micros`, where one window began `ahead` before the epoch.
const fn even(micros: i64, length: i64, ahead: i64) -> (i64, i64) {
    let since = micros.rem_euclid(length) + ahead;
    let start = micros.saturating_sub(since.rem_euclid(length));
    (start, start.saturating_add(length))
}

/// The month, counted from January of the year 0, that holds a day counted from 1970-01-01.
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
const fn month_of(day: i64) -> i64 {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Counted from March, so that the leap day comes last.
    let from_march = (5 * of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + from_march + 2
}

/// The first day of such a month, counted from 1970-01-01; `days_from_civil` of the same source.
const fn first_day_of(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, of_year) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * of_year + 2) / 5 - 719_468
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use gw_types::UtcTime;

    use super::Window;

    const DAY: i64 = 86_400_000_000;

    fn check(window: Window, micros: i64, start: i64, end: i64) {
        let utc = UtcTime::from_micros(micros);
        assert_eq!((window.start_of(utc).micros(), window.end_of(utc).micros()), (start, end));
    }

    #[test]
    fn an_end_is_the_next_start() {
        check(Window::Day, 0, 0, DAY);
        check(Window::Day, DAY - 1, 0, DAY);
        check(Window::Day, DAY, DAY, 2 * DAY);
        check(Window::Hour, DAY - 1, DAY - DAY / 24, DAY);
        check(Window::Week, 4 * DAY - 1, -3 * DAY, 4 * DAY);
        check(Window::Week, 4 * DAY, 4 * DAY, 11 * DAY);
    }

    #[test]
    fn months_have_their_own_lengths() {
        // 2024-02-29, 2023-02-28 and 2000-02-29 are the last of their months, 1900-02-28 too.
        for (last, length) in [(19_782, 29), (19_416, 28), (11_016, 29), (-25_509, 28)] {
            check(Window::Month, last * DAY, (last - length + 1) * DAY, (last + 1) * DAY);
        }
        check(Window::Month, -1, -31 * DAY, 0);
    }

    #[test]
    fn instants_before_the_epoch_and_at_the_ends_of_the_range_have_windows() {
        check(Window::Day, -1, -DAY, 0);
        check(Window::Day, -DAY, -DAY, 0);
        check(Window::Day, i64::MIN, i64::MIN, i64::MIN + DAY);
        assert_eq!(Window::Day.end_of(UtcTime::from_micros(i64::MAX)).micros(), i64::MAX);
        for window in [Window::Week, Window::Month] {
            assert_eq!(window.start_of(UtcTime::from_micros(i64::MIN)).micros(), i64::MIN);
            assert_eq!(window.end_of(UtcTime::from_micros(i64::MAX)).micros(), i64::MAX);
        }
    }
}
