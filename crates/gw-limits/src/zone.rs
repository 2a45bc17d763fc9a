//! Calendar windows of a time zone, daylight saving included.

#[cfg(test)]
mod tests;

use gw_types::UtcTime;
use jiff::{
    Timestamp, ToSpan,
    civil::Date,
    tz::{TimeZone, TimeZoneDatabase},
};
use serde::Deserialize;

use crate::{Window, window::HOUR_MICROS};

/// Says that a text names no time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone `{0}`; write a name of the IANA database, such as `Europe/London` or `UTC`")]
pub struct UnknownZone(pub String);

/// A time zone, by its name in the IANA database.
///
/// The database is compiled in, so that a window is the same on every machine. Windows of one kind follow each other
/// without gap or overlap:
///
/// - a day begins at its first instant: at 01:00 where 00:00 is skipped, at the first 00:00 where there are two; so
///   the day of a change has 23 or 25 hours;
/// - an hour lasts an hour, also where the clock shows it twice; only a change that is no whole hour (Lord Howe Island)
///   cuts one short.
///
/// ```
/// use gw_limits::{Window, Zone};
/// use gw_types::UtcTime;
///
/// let london = Zone::new("Europe/London").unwrap();
/// // 2026-03-29T12:00:00Z, on the day that summer time begins.
/// let (start, end) = london.window(Window::Day, UtcTime::from_micros(1_774_785_600_000_000));
/// assert_eq!(end.seconds() - start.seconds(), 23 * 3_600);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Zone(TimeZone);

impl TryFrom<String> for Zone {
    type Error = UnknownZone;

    fn try_from(name: String) -> Result<Self, UnknownZone> {
        Self::new(&name)
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Returns the time zone of that name; case does not matter.
    ///
    /// # Errors
    /// [`UnknownZone`] if the database has none.
    pub fn new(name: &str) -> Result<Self, UnknownZone> {
        let found = TimeZoneDatabase::bundled().get(name).map_err(|_| UnknownZone(name.to_owned()))?;
        Ok(if found.iana_name() == Some("UTC") { Self::UTC } else { Self(found) })
    }

    /// Returns the names of the database, in its order.
    pub fn names() -> Vec<String> {
        TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect()
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Returns the first instant of the window that holds `utc`, and the first one after it.
    ///
    /// Beyond the years -9999 to 9999 windows are those of UTC. Costs some hundred nanoseconds outside UTC; who counts
    /// keeps the bounds.
    pub fn window(&self, window: Window, utc: UtcTime) -> (UtcTime, UtcTime) {
        let local = if *self == Self::UTC { None } else { self.local(window, utc) };
        local.unwrap_or_else(|| (window.start_of(utc), window.end_of(utc)))
    }

    fn local(&self, window: Window, utc: UtcTime) -> Option<(UtcTime, UtcTime)> {
        let at = Timestamp::from_microsecond(utc.micros()).ok()?;
        if window == Window::Hour {
            return Some(self.hour(at));
        }
        let first = window.first_day(self.0.to_datetime(at).date())?;
        let (start, end) = (self.start_of(first)?, self.start_of(window.next(first)?)?);
        // Where the clock is set back across midnight, the repeated part shows the date before.
        if at >= end {
            let next = window.next(first)?;
            return Some((utc_time(end), utc_time(self.start_of(window.next(next)?)?)));
        }
        Some((utc_time(start), utc_time(end)))
    }

    /// The first instant of a date.
    fn start_of(&self, date: Date) -> Option<Timestamp> {
        // "Compatible": the earlier of two midnights, and for none the instant of the change.
        let start = self.0.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
        // A date may be skipped as a whole, or its midnight fall into a longer gap: it begins with the change.
        Some(self.0.preceding(start.checked_add(1.nanosecond()).ok()?).next().map_or(start, |change| {
            let skipped = self.0.to_datetime(change.timestamp()).date() >= date
                && self.0.to_datetime(start) != date.at(0, 0, 0, 0);
            if skipped { change.timestamp() } else { start }
        }))
    }

    /// The hour of the offset that holds at `at`, as far as that offset holds.
    fn hour(&self, at: Timestamp) -> (UtcTime, UtcTime) {
        let offset = i64::from(self.0.to_offset(at).seconds()) * 1_000_000;
        let micros = at.as_microsecond();
        let start = micros - (micros + offset).rem_euclid(HOUR_MICROS);
        let end = start + HOUR_MICROS;
        let after = |micros: i64| Timestamp::from_microsecond(micros.saturating_add(1)).ok();
        let begun = after(micros).and_then(|at| self.0.preceding(at).next());
        let ends = self.0.following(at).next();
        let start = begun.map_or(start, |change| start.max(change.timestamp().as_microsecond()));
        let end = ends.map_or(end, |change| end.min(change.timestamp().as_microsecond()));
        (UtcTime::from_micros(start), UtcTime::from_micros(end))
    }
}

impl Window {
    /// The first date of the window that holds a date.
    fn first_day(self, date: Date) -> Option<Date> {
        match self {
            Self::Hour | Self::Day => Some(date),
            Self::Week => date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok(),
            Self::Month => Some(date.first_of_month()),
        }
    }

    /// The first date of the window after the one that begins with `first`.
    fn next(self, first: Date) -> Option<Date> {
        match self {
            Self::Hour | Self::Day => first.checked_add(1.day()).ok(),
            Self::Week => first.checked_add(7.days()).ok(),
            Self::Month => first.checked_add(1.month()).ok(),
        }
    }
}

fn utc_time(at: Timestamp) -> UtcTime {
    UtcTime::from_micros(at.as_microsecond())
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
