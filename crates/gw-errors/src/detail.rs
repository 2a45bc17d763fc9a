//! What the provider said about a failure: for the caller's error body, and for nothing else.

/// Carries a provider's own error text to the caller's error body.
///
/// `Debug` and `Display` print `[redacted]`: a provider may echo a prompt or a key in its message, and neither may
/// reach a log, a metric, a trace or a record. Everything is bounded, control characters become blanks, and whatever
/// looks like a credential is replaced before the value exists.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamDetail {
    message: String,
    kind: Option<String>,
    code: Option<String>,
    param: Option<String>,
}

impl UpstreamDetail {
    /// The longest message kept, in bytes; the rest is cut at a character boundary.
    pub const MESSAGE_BYTES_MAX: usize = 2_048;
    /// The longest code, type or parameter kept, in bytes.
    pub const FIELD_BYTES_MAX: usize = 128;

    /// Returns the detail with a scrubbed, bounded message.
    pub fn new(message: &str) -> Self {
        Self { message: clean(message, Self::MESSAGE_BYTES_MAX), kind: None, code: None, param: None }
    }

    /// Adds the provider's error type.
    #[must_use]
    pub fn with_kind(mut self, kind: &str) -> Self {
        self.kind = field(kind);
        self
    }

    /// Adds the provider's error code.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        self.code = field(code);
        self
    }

    /// Adds the parameter that the provider complained about.
    #[must_use]
    pub fn with_param(mut self, param: &str) -> Self {
        self.param = field(param);
        self
    }

    /// Replaces every occurrence of a secret that gw itself used for the call.
    #[must_use]
    pub fn without_secret(mut self, secret: &str) -> Self {
        if secret.len() >= 4 {
            self.message = self.message.replace(secret, REPLACEMENT);
            for text in [&mut self.kind, &mut self.code, &mut self.param].into_iter().flatten() {
                *text = text.replace(secret, REPLACEMENT);
            }
        }
        self
    }

    /// Returns the provider's message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the provider's error type.
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the provider's error code.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the parameter that the provider complained about.
    pub fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }
}

impl std::fmt::Debug for UpstreamDetail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UpstreamDetail([redacted])")
    }
}

impl std::fmt::Display for UpstreamDetail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(REPLACEMENT)
    }
}

const REPLACEMENT: &str = "[redacted]";

/// Prefixes that mark a word as a credential, whatever follows.
const CREDENTIAL_PREFIXES: [&str; 14] = [
    "sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "hf_", "gwk", "AIza", "AKIA", "ASIA", "ya29.", "eyJ", "ghp_",
];

/// A word this long that mixes letters and digits is taken for a key.
const OPAQUE_WORD_BYTES_MIN: usize = 32;

fn field(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| clean(text, UpstreamDetail::FIELD_BYTES_MAX))
}

fn clean(text: &str, bytes_max: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(bytes_max));
    let mut word_start = 0;
    let mut after_bearer = false;
    for character in text.chars() {
        if kept.len() + character.len_utf8() > bytes_max {
            break;
        }
        if is_word(character) {
            kept.push(character);
            continue;
        }
        after_bearer = scrub_word(&mut kept, word_start, after_bearer);
        if kept.len() >= bytes_max {
            word_start = kept.len();
            break;
        }
        kept.push(if character.is_control() { ' ' } else { character });
        word_start = kept.len();
    }
    scrub_word(&mut kept, word_start, after_bearer);
    kept
}

/// Replaces the word from `start` on if it is a credential; returns whether it was the word `Bearer`.
fn scrub_word(kept: &mut String, start: usize, after_bearer: bool) -> bool {
    let word = &kept[start..];
    if word.is_empty() {
        return after_bearer;
    }
    if word.eq_ignore_ascii_case("bearer") {
        return true;
    }
    if (after_bearer && word.len() >= 8) || is_credential(word) {
        kept.truncate(start);
        kept.push_str(REPLACEMENT);
    }
    false
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '*' | '+' | '/' | '=')
}

fn is_credential(word: &str) -> bool {
    let prefixed = CREDENTIAL_PREFIXES.iter().any(|prefix| word.len() >= 8 && word.starts_with(prefix));
    prefixed
        || (word.len() >= OPAQUE_WORD_BYTES_MIN
            && !word.contains('/')
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::UpstreamDetail;

    fn check(message: &str, expected: &str) {
        assert_eq!(UpstreamDetail::new(message).message(), expected);
    }

    #[test]
    fn plain_text_passes() {
        check("context too long: 4096 tokens at most", "context too long: 4096 tokens at most");
        check(
            "see https://example.com/errors/a-very-long-path-with-1-number",
            "see https://example.com/errors/a-very-long-path-with-1-number",
        );
    }

    #[test]
    fn credentials_are_replaced() {
        check("Incorrect API key provided: sk-abc12***wxyz.", "Incorrect API key provided: [redacted]");
        check(
            "header Authorization: Bearer abcdef123456 refused",
            "header Authorization: Bearer [redacted] refused",
        );
        check("key 0123456789abcdef0123456789abcdef is unknown", "key [redacted] is unknown");
    }

    #[test]
    fn control_characters_become_blanks() {
        check("a\r\nb\u{7f}c", "a  b c");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let detail = UpstreamDetail::new(&"é ".repeat(2_000));
        assert!(detail.message().len() <= UpstreamDetail::MESSAGE_BYTES_MAX);
        assert!(detail.message().starts_with("é é"));
    }

    #[test]
    fn own_secret_is_replaced_in_every_field() {
        let detail = UpstreamDetail::new("no hunter2!").with_code("hunter2!").without_secret("hunter2!");
        assert_eq!((detail.message(), detail.code()), ("no [redacted]", Some("[redacted]")));
    }

    #[test]
    fn i18_debug_and_display_are_redacted() {
        let detail = UpstreamDetail::new("the prompt was: hello");
        assert_eq!(format!("{detail:?} {detail}"), "UpstreamDetail([redacted]) [redacted]");
    }
}
