//! Whole amounts as NUMERIC in the server's binary form: four numbers of 16 bits (how many digits to the base 10,000,
//! the weight of the first, the sign, the decimals), then the digits, all big-endian.

/// The base of the digits.
const BASE: u128 = 10_000;
/// Digits of the largest amount: 2^128 has 39 decimal ones.
const DIGITS_MAX: usize = 10;
/// The bytes before the digits.
const HEAD: usize = 8;

/// Writes an amount.
pub(super) fn write(amount: u128, out: &mut impl Extend<u8>) {
    let mut digits = [0_u16; DIGITS_MAX];
    let (mut rest, mut first) = (amount, DIGITS_MAX);
    while rest > 0 && first > 0 {
        first -= 1;
        digits[first] = u16::try_from(rest % BASE).unwrap_or(0);
        rest /= BASE;
    }
    let count = u16::try_from(DIGITS_MAX - first).unwrap_or(0);
    // Nothing has no digits, and the weight of its first does not matter.
    let head = [count, count.saturating_sub(1), 0, 0];
    let words = head.iter().chain(&digits[first..]);
    out.extend(words.flat_map(|word| word.to_be_bytes()));
}

/// Reads an amount; `None` if it is negative, has decimals or is above 2^128.
pub(crate) fn read(raw: &[u8]) -> Option<u128> {
    let (head, digits) = raw.split_at_checked(HEAD)?;
    let word = |at: usize| Some(u16::from_be_bytes(head.get(2 * at..2 * at + 2)?.try_into().ok()?));
    let (count, weight, sign, decimals) = (word(0)?, word(1)?, word(2)?, word(3)?);
    if sign != 0 || decimals != 0 || digits.len() != 2 * usize::from(count) {
        return None;
    }
    if count == 0 {
        return Some(0);
    }
    // Zeros at the end are not sent.
    let zeros = weight.checked_sub(count - 1).filter(|_| usize::from(weight) < DIGITS_MAX)?;
    let read = digits.chunks_exact(2).try_fold(0_u128, |amount, digit| {
        amount.checked_mul(BASE)?.checked_add(u128::from(u16::from_be_bytes(digit.try_into().ok()?)))
    })?;
    (0..zeros).try_fold(read, |amount, _| amount.checked_mul(BASE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn back(amount: u128) -> Option<u128> {
        let mut raw = Vec::new();
        super::write(amount, &mut raw);
        super::read(&raw)
    }

    #[test]
    fn amounts_come_back() {
        for amount in [0, 1, 9_999, 10_000, 10_001, 100_000_000, u128::from(u64::MAX), u128::MAX] {
            assert_eq!(back(amount), Some(amount));
        }
        // 20,000 as the server sends it, without the zero at the end.
        assert_eq!(super::read(&[0, 1, 0, 1, 0, 0, 0, 0, 0, 2]), Some(20_000));
        // A half, minus one, and what is cut.
        assert_eq!(super::read(&[0, 1, 0xff, 0xff, 0, 0, 0, 1, 0x13, 0x88]), None);
        assert_eq!(super::read(&[0, 1, 0, 0, 0x40, 0, 0, 0, 0, 1]), None);
        assert_eq!(super::read(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1]), None);
        assert_eq!(super::read(&[]), None);
    }

    proptest! {
        #[test]
        fn any_amount_comes_back_and_any_bytes_are_read(amount: u128, raw: Vec<u8>) {
            prop_assert_eq!(back(amount), Some(amount));
            let _read = super::read(&raw);
        }
    }
}
