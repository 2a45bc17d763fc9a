//! Values that must not be printed.

/// A credential: readable for whoever sends it, `[redacted]` for whoever prints it.
///
/// Never empty: [`Secret::new`] refuses empty and blank text, so an unset variable cannot become a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Returns the secret, or `None` if the text is empty, blank or holds a control character.
    pub fn new(text: &str) -> Option<Self> {
        let trimmed = text.trim();
        (!trimmed.is_empty() && !trimmed.chars().any(char::is_control)).then(|| Self(trimmed.into()))
    }

    /// Returns the text. Call it only where the secret is sent or hashed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn i18_secrets_print_as_redacted_and_are_never_empty() {
        let secret = Secret::new("canary\n").unwrap();
        assert_eq!(
            (secret.expose(), format!("{secret:?} {secret}").as_str()),
            ("canary", "[redacted] [redacted]")
        );
        assert_eq!(Secret::new(" \t"), None);
        assert_eq!(Secret::new("a\nb"), None);
    }
}
