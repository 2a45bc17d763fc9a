//! Calendar windows in which money is counted.

use gw_types::UtcTime;
use serde::Deserialize;

/// A calendar window in UTC.
///
/// ```
/// use gw_limits::Window;
/// use gw_types::UtcTime;
///
/// let utc = UtcTime::from_micros(25 * 3_600_000_000 + 1);
/// assert_eq!(Window::Day.start_of(utc).seconds(), 24 * 3_600);
/// assert_eq!(Window::Hour.end_of(utc).seconds(), 26 * 3_600);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// From minute 0 to the next minute 0.
    Hour,
    /// From 00:00 to the next 00:00.
    Day,
}

impl Window {
    /// Returns the first instant of the window that holds `utc`.
    pub const fn start_of(self, utc: UtcTime) -> UtcTime {
        let micros = utc.micros();
        UtcTime::from_micros(micros.saturating_sub(micros.rem_euclid(self.micros())))
    }

    /// Returns the first instant after the window that holds `utc`.
    pub const fn end_of(self, utc: UtcTime) -> UtcTime {
        UtcTime::from_micros(self.start_of(utc).micros().saturating_add(self.micros()))
    }

    /// Returns the name, as the configuration spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// UTC has no daylight saving, and POSIX time no leap seconds: every window of a kind is equally long.
    const fn micros(self) -> i64 {
        match self {
            Self::Hour => 3_600_000_000,
            Self::Day => 86_400_000_000,
        }
    }
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
    }

    #[test]
    fn instants_before_the_epoch_and_at_the_ends_of_the_range_have_windows() {
        check(Window::Day, -1, -DAY, 0);
        check(Window::Day, -DAY, -DAY, 0);
        check(Window::Day, i64::MIN, i64::MIN, i64::MIN + DAY);
        assert_eq!(Window::Day.end_of(UtcTime::from_micros(i64::MAX)).micros(), i64::MAX);
    }
}
