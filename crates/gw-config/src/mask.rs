//! Overwrites what may be a credential before any of a configuration's text is shown.
//!
//! A secret does not belong in the file, but somebody will paste one, and the fault that says so must not print it.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Words that mark a key whose text value is not shown.
const TELLING_WORDS: [&str; 8] =
    ["key", "secret", "token", "password", "passwd", "authoriz", "credential", "cookie"];

/// Beginnings that mark a word as a credential, wherever it stands.
const CREDENTIAL_PREFIXES: [&str; 13] =
    ["sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "hf_", "gwk1_", "AIza", "AKIA", "ya29.", "eyJ", "ghp_"];

/// Words with a prefix are credentials from this length on.
const PREFIXED_BYTES_MIN: usize = 8;

/// A word of letters and digits alone is a credential from this length on, if it holds both.
const OPAQUE_BYTES_MIN: usize = 32;

/// Returns the text with credentials overwritten by asterisks; every other byte keeps its place.
///
/// `broken` are the bytes at which the text is no TOML: what stands there in a value was not read, so the whole rest
/// of such a line is overwritten where its key is telling.
pub(crate) fn mask(text: &str, root: &DeTable<'_>, broken: &[Range<usize>]) -> String {
    let mut hidden: Vec<Range<usize>> = words(text)
        .filter(|word| looks_like_credential(text.get(word.clone()).unwrap_or_default()))
        .collect();
    in_table(root, false, &mut hidden);
    hidden.extend(broken.iter().filter_map(|range| rest_of_line(text, range.start)));
    let mut bytes = text.as_bytes().to_vec();
    for range in hidden {
        for byte in bytes.get_mut(range).into_iter().flatten() {
            if !matches!(*byte, b'"' | b'\'' | b'\n' | b'\r') {
                *byte = b'*';
            }
        }
    }
    // Only whole characters were overwritten, so this is text; if it were not, nothing would be shown.
    String::from_utf8(bytes).unwrap_or_else(|broken| "*".repeat(broken.as_bytes().len()))
}

/// Returns whether the text of a value that is about to be quoted looks like a credential.
pub(crate) fn looks_like_credential(word: &str) -> bool {
    let prefixed =
        word.len() >= PREFIXED_BYTES_MIN && CREDENTIAL_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    prefixed
        || (word.len() >= OPAQUE_BYTES_MIN
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_alphabetic()))
}

fn in_table(table: &DeTable<'_>, inherited: bool, hidden: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        let name = key.get_ref();
        // Where a secret is found is no secret, and a misplaced one was caught as a word.
        let telling =
            !matches!(name.as_ref(), "env" | "file" | "name" | "hash") && (inherited || is_telling(name));
        in_value(value.get_ref(), value.span(), telling, hidden);
    }
}

fn in_value(value: &DeValue<'_>, span: Range<usize>, telling: bool, hidden: &mut Vec<Range<usize>>) {
    match value {
        // A reference in another notation is a misunderstanding, not a secret, and the fault must show it.
        DeValue::String(text) if telling && !text.starts_with('$') => hidden.push(span),
        DeValue::Array(items) => {
            for item in items.iter() {
                in_value(item.get_ref(), item.span(), telling, hidden);
            }
        }
        DeValue::Table(table) => in_table(table, telling, hidden),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// Returns whether a key or header of this name holds a credential.
pub(crate) fn is_telling(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key == "headers" || (!key.contains("tokens") && TELLING_WORDS.iter().any(|word| key.contains(word)))
}

fn rest_of_line(text: &str, at: usize) -> Option<Range<usize>> {
    let at = at.min(text.len());
    let bytes = text.as_bytes();
    let start = bytes.get(..at)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let end =
        bytes.get(start..)?.iter().position(|byte| *byte == b'\n').map_or(text.len(), |len| start + len);
    let equals = start + bytes.get(start..end)?.iter().position(|byte| *byte == b'=')?;
    let key = String::from_utf8_lossy(bytes.get(start..equals)?);
    is_telling(&key).then_some(equals + 1..end)
}

fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/');
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text.get(rest..)?.find(is_word)?;
        let after = text.get(start..)?;
        let end = start + after.find(|c| !is_word(c)).unwrap_or(after.len());
        rest = end;
        Some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::mask;

    fn check(text: &str, expected: &str) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let broken: Vec<_> = errors.iter().filter_map(toml::de::Error::span).collect();
        let shown = mask(text, root.get_ref(), &broken);
        assert_eq!((shown.as_str(), shown.len()), (expected, text.len()));
    }

    #[test]
    fn i18_pasted_credentials_are_overwritten() {
        check("api_key = \"hunter2\"", "api_key = \"*******\"");
        check("api_key = { value = 'é' }", "api_key = { value = '**' }");
        check("admin_keys = [\"one\", { env = \"TWO\" }]", "admin_keys = [\"***\", { env = \"TWO\" }]");
        check("[p.headers]\nX = \"a\"", "[p.headers]\nX = \"*\"");
        check("model = \"sk-12345678\"", "model = \"***********\"");
        check("# 0123456789abcdef0123456789abcdef", "# ********************************");
        check("api_key = \"hunter2\nx = 1", "api_key =*\"*******\nx = 1");
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "api_key = { env = \"UP_KEY\" }",
            "api_key = \"${UP_KEY\"",
            "tokens_per_minute = \"5\"",
            "[deployments.azure-openai-gpt-4-1-mini-uk-south-2025]",
        ] {
            check(text, text);
        }
    }
}
