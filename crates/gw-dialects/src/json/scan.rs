//! The inner loops: where a string or a number ends.

use super::Fault;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Bytes of a string that are looked at in words before blocks are worth it.
const SHORT: usize = 24;
/// Bytes of a block.
const BLOCK: usize = 32;

/// Returns one past the closing quote of the string whose opening quote stands at `start`, and whether it has escapes.
pub(super) fn string(bytes: &[u8], start: usize) -> Result<(usize, bool), Fault> {
    let mut at = start + 1;
    let mut escaped = false;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok((at + 1, escaped)),
            Some(b'\\') => {
                escaped = true;
                at = escape(bytes, at)?;
            }
            Some(_) => return Err(Fault { at, what: "control character in a string" }),
            None => return Err(Fault { at, what: "unterminated string" }),
        }
    }
}

/// Returns where the first quote, backslash or control character stands: eight bytes at a step, as names are short, and
/// behind the first ones by blocks.
pub(super) fn plain_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            // Little-endian: the lowest set bit belongs to the first byte, and borrows only spoil higher ones.
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
        if at == start + SHORT {
            at = plain_blocks(bytes, at);
        }
    }
    while bytes.get(at).is_some_and(|byte| !ends_plain(*byte)) {
        at += 1;
    }
    at
}

/// Passes over blocks of plain text. A loop without a branch, of which compilers make vector code.
fn plain_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>)
        && !block.iter().fold(false, |found, byte| found | ends_plain(*byte))
    {
        at += BLOCK;
    }
    at
}

const fn ends_plain(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Marks the bytes of a word that end a run of plain text (the "has zero byte" trick of Bit Twiddling Hacks).
const fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let zero_quote = quote.wrapping_sub(ONES) & !quote;
    let zero_backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | zero_quote | zero_backslash) & HIGHS
}

/// Returns one past the escape whose backslash stands at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = bytes.get(at + 2..at + 6);
            if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                Ok(at + 6)
            } else {
                Err(Fault { at, what: "invalid escape in a string" })
            }
        }
        Some(_) => Err(Fault { at, what: "invalid escape in a string" }),
        None => Err(Fault { at: at + 1, what: "unterminated string" }),
    }
}

/// Returns one past the number that begins at `start`.
pub(super) fn number(bytes: &[u8], start: usize) -> Result<usize, Fault> {
    let invalid = |at| Err(Fault { at, what: "invalid number" });
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    match bytes.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at = digits_end(bytes, at),
        Some(_) | None => return invalid(at),
    }
    if bytes.get(at) == Some(&b'.') {
        let end = digits_end(bytes, at + 1);
        if end == at + 1 {
            return invalid(end);
        }
        at = end;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let first = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits_end(bytes, first);
        if end == first {
            return invalid(end);
        }
        at = end;
    }
    if matches!(bytes.get(at), Some(b'0'..=b'9')) { invalid(at) } else { Ok(at) }
}

fn digits_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}
