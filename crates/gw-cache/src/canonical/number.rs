//! Numbers by value: any spelling of a number gives the same text, any other number another, at any size.

use super::Reader;

impl Reader<'_> {
    /// Reads a number and writes it as its digits without zeros at either end, and the exponent that is left.
    ///
    /// `120`, `120.0` and `1.2e2` are `12e1`; `0.5` is `5e-1`. Digits are never turned into a float, so that
    /// neighbours above 2^53 stay apart. The text is at most half longer than what was read.
    pub(super) fn number(&mut self) -> Option<()> {
        let negative = self.take(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && whole[0] == b'0' {
            return None;
        }
        let fraction = if self.take(b'.') { self.digits()? } else { &[] };
        let exponent = if self.take(b'e') || self.take(b'E') { self.exponent()? } else { 0 };
        let text = &mut self.text;
        let start = text.len();
        if negative {
            text.push(b'-');
        }
        let digits_start = text.len();
        let zeros = |digits: &[u8]| digits.iter().take_while(|&&digit| digit == b'0').count();
        let leading = zeros(whole);
        text.extend_from_slice(&whole[leading..]);
        let leading = if leading == whole.len() { zeros(fraction) } else { 0 };
        text.extend_from_slice(&fraction[leading..]);
        let trailing = text[digits_start..].iter().rev().take_while(|&&digit| digit == b'0').count();
        text.truncate(text.len() - trailing);
        if text.len() == digits_start {
            text.truncate(start);
            text.push(b'0');
            return Some(());
        }
        let shift = i64::try_from(trailing).ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let exponent = exponent.checked_add(shift)?;
        if exponent != 0 {
            text.push(b'e');
            text.extend_from_slice(exponent.to_string().as_bytes());
        }
        Some(())
    }

    fn exponent(&mut self) -> Option<i64> {
        let negative = self.take(b'-');
        if !negative {
            self.take(b'+');
        }
        self.digits()?.iter().try_fold(0_i64, |sum, digit| {
            let digit = i64::from(digit - b'0');
            sum.checked_mul(10)?.checked_add(if negative { -digit } else { digit })
        })
    }
}

impl<'a> Reader<'a> {
    /// Takes at least one digit.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let rest = &self.body[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then(|| &rest[..count])
    }
}
