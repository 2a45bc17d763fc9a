//! Windows around changes of the clock, the odd ones included.

use gw_types::UtcTime;
use jiff::Timestamp;
use proptest::prelude::*;

use super::{UnknownZone, Zone};
use crate::Window;

fn utc(text: &str) -> UtcTime {
    UtcTime::from_micros(text.parse::<Timestamp>().unwrap().as_microsecond())
}

#[track_caller]
fn check(zone: &str, window: Window, at: &str, start: &str, end: &str) {
    let found = Zone::new(zone).unwrap().window(window, utc(at));
    assert_eq!(found, (utc(start), utc(end)));
}

#[test]
fn days_of_a_change_have_23_or_25_hours() {
    let london = "Europe/London";
    check(london, Window::Day, "2026-03-29T00:30:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z");
    check(london, Window::Day, "2026-10-25T12:00:00Z", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z");
    // No midnight that day: the clock went from 00:00 to 01:00.
    check(
        "America/Sao_Paulo",
        Window::Day,
        "2018-11-04T12:00:00Z",
        "2018-11-04T03:00:00Z",
        "2018-11-05T02:00:00Z",
    );
    // Two midnights: back from 01:00 to 00:00.
    check(
        "America/Havana",
        Window::Day,
        "2025-11-02T05:30:00Z",
        "2025-11-02T04:00:00Z",
        "2025-11-03T05:00:00Z",
    );
}

#[test]
fn a_date_that_was_skipped_has_no_window() {
    let apia = "Pacific/Apia";
    check(apia, Window::Day, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z");
    check(apia, Window::Day, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z");
}

#[test]
fn hours_last_an_hour_unless_the_change_is_none() {
    let london = "Europe/London";
    check(london, Window::Hour, "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z");
    check(london, Window::Hour, "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z");
    check(
        "Asia/Kolkata",
        Window::Hour,
        "2026-01-01T00:45:00Z",
        "2026-01-01T00:30:00Z",
        "2026-01-01T01:30:00Z",
    );
    let howe = "Australia/Lord_Howe";
    check(howe, Window::Hour, "2026-04-04T14:59:59Z", "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z");
    check(howe, Window::Hour, "2026-04-04T15:00:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z");
}

#[test]
fn weeks_begin_on_monday_and_months_on_the_first() {
    let york = "America/New_York";
    check(york, Window::Week, "2026-11-01T12:00:00Z", "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z");
    check(york, Window::Month, "2026-03-31T12:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z");
}

#[test]
fn names_that_are_no_zone_are_refused() {
    for name in ["", "Europe/Londonn", "local", "system", "UTC+1"] {
        assert_eq!(Zone::new(name), Err(UnknownZone(name.to_owned())));
    }
    assert_eq!(Zone::new("utc").unwrap(), Zone::UTC);
    assert_eq!(Zone::new("europe/london").unwrap().as_str(), "Europe/London");
}

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/London",
    "America/Havana",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Monrovia",
    "Asia/Kathmandu",
];
const WINDOWS: [Window; 4] = [Window::Hour, Window::Day, Window::Week, Window::Month];

proptest! {
    #[test]
    fn windows_follow_each_other_without_gap_or_overlap(
        // 1970 to 2100.
        micros in 0_i64..4_102_444_800_000_000, zone in 0_usize..8, window in 0_usize..4
    ) {
        let (zone, window) = (Zone::new(ZONES[zone]).unwrap(), WINDOWS[window]);
        let at = UtcTime::from_micros(micros);
        let (start, end) = zone.window(window, at);
        prop_assert!(start <= at && at < end);
        for inside in [start, UtcTime::from_micros(end.micros() - 1)] {
            prop_assert_eq!(zone.window(window, inside), (start, end));
        }
        prop_assert_eq!(zone.window(window, end).0, end);
        let (_, before_end) = zone.window(window, UtcTime::from_micros(start.micros() - 1));
        prop_assert_eq!(before_end, start);
    }

    #[test]
    fn utc_by_arithmetic_equals_utc_by_calendar(micros in -60_000_000_000_000_000_i64..250_000_000_000_000_000, window in 0_usize..4) {
        // A zone of offset 0 without changes, which takes the way of all zones.
        let (zone, window) = (Zone::new("Etc/GMT").unwrap(), WINDOWS[window]);
        let at = UtcTime::from_micros(micros);
        prop_assert_eq!(zone.window(window, at), (window.start_of(at), window.end_of(at)));
    }
}

#[test]
fn every_name_is_known() {
    let names = Zone::names();
    assert!(names.len() > 400 && names.iter().all(|name| Zone::new(name).is_ok()));
}
