//! Reads numbers: whole, in range, never rounded.

use std::{num::NonZeroU32, ops::RangeInclusive, time::Duration};

use toml::de::DeValue;

use super::{Node, Section};

impl Node<'_> {
    /// Reads a whole number within a range.
    pub(crate) fn whole(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let remedy =
            format!("write a whole number from {} to {}", grouped(*range.start()), grouped(*range.end()));
        match self.value {
            DeValue::Integer(number) => {
                let value = i128::from_str_radix(number.as_str(), number.radix()).ok();
                let value =
                    value.and_then(|value| i64::try_from(value).ok()).filter(|value| range.contains(value));
                if value.is_none() {
                    self.fault(format!("`{}` is out of range: `{number}`", self.path), remedy);
                }
                value
            }
            DeValue::String(text) if text.replace('_', "").parse::<i64>().is_ok() => {
                self.wrong("a whole number", &format!("write `{text}` without quotes"))
            }
            DeValue::String(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => self.wrong("a whole number", &remedy),
        }
    }

    /// Reads a number of thousandths, `0.001` to `most`, exactly; `example` says what to write.
    pub(crate) fn thousandths(&self, most: u32, example: &str) -> Option<u32> {
        let remedy = format!(
            "write a number from 0.001 to {} with at most three decimals, such as `{example}`",
            grouped(i64::from(most))
        );
        let value = match self.value {
            DeValue::Float(number) => thousandths(number.as_str(), most),
            DeValue::Integer(number) => thousandths(number.as_str(), most),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return self.wrong("a number", &remedy),
        };
        if value.is_none() {
            self.fault(format!("`{}` is out of range", self.path), remedy);
        }
        value
    }
}

impl Section<'_> {
    /// Reads an optional `u64` of at most `i64::MAX`, the largest number that TOML must carry.
    pub(crate) fn count(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<u64> {
        self.optional(key)?.whole(range).and_then(|value| u64::try_from(value).ok())
    }

    /// Reads an optional `u32`.
    pub(crate) fn small_count(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        self.optional(key)?.whole(range).and_then(|value| u32::try_from(value).ok())
    }

    /// Reads an optional count of at least one.
    pub(crate) fn positive(&mut self, key: &'static str, at_most: u32) -> Option<NonZeroU32> {
        self.small_count(key, 1..=at_most).and_then(NonZeroU32::new)
    }

    /// Reads an optional duration in whole milliseconds, from 1 to a day.
    pub(crate) fn millis(&mut self, key: &'static str) -> Option<Duration> {
        self.millis_within(key, 1..=DAY_MS)
    }

    /// Reads an optional duration in whole milliseconds.
    pub(crate) fn millis_within(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<Duration> {
        self.count(key, range).map(Duration::from_millis)
    }
}

/// A day, in milliseconds: the longest of any duration.
pub(crate) const DAY_MS: i64 = 86_400_000;

/// Returns the number with an underscore before every third digit, as TOML allows it.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Returns a decimal in thousandths; `None` for more than three decimals, signs, exponents and what is out of range.
fn thousandths(text: &str, most: u32) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 3 || !plain(whole) || !plain(fraction) {
        return None;
    }
    let thousands = whole.parse::<u32>().ok()?.checked_mul(1_000)?;
    let value = thousands.checked_add(format!("{fraction:0<3}").parse().ok()?)?;
    (1..=most.saturating_mul(1_000)).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::{grouped, thousandths};

    #[test]
    fn numbers_are_grouped() {
        assert_eq!((grouped(1).as_str(), grouped(-1_000).as_str()), ("1", "-1_000"));
        assert_eq!(grouped(i64::MIN), "-9_223_372_036_854_775_808");
    }

    #[test]
    fn thousandths_are_exact() {
        for (text, expected) in [
            ("0.92", Some(920)),
            ("0.9200", Some(920)),
            ("1", Some(1_000)),
            ("1.0", Some(1_000)),
            ("0.001", Some(1)),
            ("0.0", None),
            ("0.9999", None),
            ("1.001", None),
            ("-0.5", None),
            ("nan", None),
            ("9e-1", None),
            ("10", None),
            ("99999999999", None),
        ] {
            assert_eq!(thousandths(text, 1), expected, "{text}");
        }
    }

    #[test]
    fn thousandths_go_up_to_a_bound() {
        assert_eq!((thousandths("12.5", 100), thousandths("100.001", 100)), (Some(12_500), None));
    }
}
