//! Instants of wall time as text.

use super::UtcTime;

impl UtcTime {
    /// Returns the instant as RFC 3339 has it, in UTC and whole seconds, rounded down: `2026-11-29T00:00:00Z`.
    ///
    /// The calendar is the proleptic Gregorian one, computed from days as in Howard Hinnant's `civil_from_days`.
    pub fn to_rfc3339(self) -> String {
        let (days, second) = (self.seconds().div_euclid(86_400), self.seconds().rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Returns year, month and day of the day so many days after 1970-01-01. An era has 400 years, which begin in March.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::UtcTime;

    fn check(seconds: i64, expected: &str) {
        assert_eq!(UtcTime::from_micros(seconds * 1_000_000).to_rfc3339(), expected);
    }

    #[test]
    fn instants_are_written_in_utc() {
        check(0, "1970-01-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_827_696, "2000-02-29T12:34:56Z");
        check(1_709_164_800, "2024-02-29T00:00:00Z");
        check(1_893_456_000, "2030-01-01T00:00:00Z");
        check(1_798_761_599, "2026-12-31T23:59:59Z");
        check(4_102_444_800, "2100-01-01T00:00:00Z");
    }

    #[test]
    fn parts_of_a_second_are_cut() {
        assert_eq!(UtcTime::from_micros(1_999_999).to_rfc3339(), "1970-01-01T00:00:01Z");
    }
}
