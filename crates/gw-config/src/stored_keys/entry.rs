//! The text of a key's entry, as it stands in a list `keys`.

use gw_types::{KeyName, UtcTime};

/// What a new key is for, as it is typed; what is empty or absent narrows nothing. Checked when it is used.
#[derive(Clone, Debug, Default)]
pub struct KeyDraft {
    /// Models, as names or as beginnings with `*`.
    pub models: Vec<String>,
    /// Routes.
    pub routes: Vec<String>,
    /// The most sensitive data.
    pub classification_ceiling: Option<String>,
    /// Networks from which it may be used.
    pub networks: Vec<String>,
    /// When it ends.
    pub expires: Option<UtcTime>,
    /// Requests a minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute.
    pub tokens_per_minute: Option<u64>,
    /// Requests at once.
    pub max_concurrency: Option<u64>,
    /// Money for each window, in micro-USD, and the window.
    pub budget: Option<(u64, String)>,
}

impl KeyDraft {
    /// Returns the entry of a key with this stored line, and of the one that it replaces.
    pub fn entry(&self, name: &KeyName, line: &str, previous: Option<(&str, UtcTime)>) -> String {
        let mut text = head(name.as_str(), line, previous);
        let list = |texts: &[String]| {
            let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", quoted.join(", "))
        };
        let mut add = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!(", {key} = {value}"));
            }
        };
        for (key, texts) in [("models", &self.models), ("routes", &self.routes), ("networks", &self.networks)]
        {
            add(key, (!texts.is_empty()).then(|| list(texts)));
        }
        add("classification_ceiling", self.classification_ceiling.as_deref().map(quoted));
        add("expires", self.expires.map(|at| quoted(&at.to_rfc3339())));
        for (key, number) in [
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
            ("max_concurrency", self.max_concurrency),
        ] {
            add(key, number.map(|number| number.to_string()));
        }
        let budget = self.budget.as_ref();
        add(
            "budget",
            budget.map(|(micros, window)| {
                format!("{{ limit_micros = {micros}, window = {} }}", quoted(window))
            }),
        );
        text.push_str(" }");
        text
    }
}

/// Returns an entry with another line, whose own line goes on until an instant.
pub(super) fn rotated(entry: &str, line: &str, until: UtcTime) -> Option<String> {
    let rest = entry.strip_prefix("{ name = \"")?;
    let (name, rest) = rest.split_once('"')?;
    let rest = rest.strip_prefix(", hash = \"")?;
    let (old, rest) = rest.split_once('"')?;
    // What was replaced before is replaced now.
    let rest = match rest.strip_prefix(", previous = {") {
        Some(previous) => previous.split_once('}')?.1,
        None => rest,
    };
    Some(head(name, line, Some((old, until))) + rest)
}

/// Returns the part that a rotation writes anew.
fn head(name: &str, line: &str, previous: Option<(&str, UtcTime)>) -> String {
    let previous = previous.map_or(String::new(), |(line, until)| {
        format!(", previous = {{ hash = \"{line}\", expires = \"{}\" }}", until.to_rfc3339())
    });
    // Names and lines have no character that would have to be escaped.
    format!("{{ name = \"{name}\", hash = \"{line}\"{previous}")
}

/// Writes a text as a basic string; JSON escapes are TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use gw_types::{KeyName, UtcTime};

    use super::{KeyDraft, rotated};

    #[test]
    fn a_rotation_keeps_everything_but_the_key() {
        let name = KeyName::new("batch").unwrap();
        let draft = KeyDraft {
            models: vec!["gpt-*".to_owned()],
            budget: Some((5, "day".to_owned())),
            ..KeyDraft::default()
        };
        let entry = draft.entry(&name, "gwk1:a", None);
        let rest = ", models = [\"gpt-*\"], budget = { limit_micros = 5, window = \"day\" } }";
        assert_eq!(entry, format!("{{ name = \"batch\", hash = \"gwk1:a\"{rest}"));
        let once = rotated(&entry, "gwk1:b", UtcTime::from_micros(0)).unwrap();
        let until = "1970-01-01T00:00:00Z";
        let expected = |line: &str, old: &str| {
            format!(
                "{{ name = \"batch\", hash = \"{line}\", previous = {{ hash = \"{old}\", expires = \"{until}\" }}{rest}"
            )
        };
        assert_eq!(once, expected("gwk1:b", "gwk1:a"));
        assert_eq!(rotated(&once, "gwk1:c", UtcTime::from_micros(0)).unwrap(), expected("gwk1:c", "gwk1:b"));
        assert_eq!(rotated("{ secret = 1 }", "gwk1:c", UtcTime::from_micros(0)), None);
    }
}
