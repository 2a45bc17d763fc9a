//! In what the providers that speak OpenAI chat differ: where it is, and how an output bound is called.

use gw_types::OutputField;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ProviderKind;

/// What RFC 3986 calls unreserved stays; everything else in a name is data and must not read as syntax.
const DATA: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns path and query of chat completions.
pub(crate) fn chat_path(kind: &ProviderKind, base_path: &str, model: &str) -> String {
    match kind {
        ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => format!("{base_path}/chat/completions"),
        ProviderKind::AzureOpenAi { api_version } => {
            // Both forms of the address are shown to users, so both are taken.
            let base = base_path.strip_suffix("/v1").unwrap_or(base_path);
            let base = base.strip_suffix("/openai").unwrap_or(base_path);
            if api_version == "v1" {
                return format!("{base}/openai/v1/chat/completions");
            }
            let model = utf8_percent_encode(model, DATA);
            let version = utf8_percent_encode(api_version, DATA);
            format!("{base}/openai/deployments/{model}/chat/completions?api-version={version}")
        }
    }
}

/// Returns the field that carries an output bound where the caller named none. OpenAI's reasoning models refuse the
/// older name; many compatible servers know no other.
pub(crate) const fn output_field(kind: &ProviderKind) -> OutputField {
    match kind {
        ProviderKind::OpenAi | ProviderKind::AzureOpenAi { .. } => OutputField::MaxCompletionTokens,
        ProviderKind::OpenAiCompatible => OutputField::MaxTokens,
    }
}

#[cfg(test)]
mod tests {
    use super::chat_path;
    use crate::ProviderKind;

    fn check(version: Option<&str>, base: &str, model: &str, expected: &str) {
        let kind = version.map_or(ProviderKind::OpenAi, |version| ProviderKind::AzureOpenAi {
            api_version: version.to_owned(),
        });
        assert_eq!(chat_path(&kind, base, model), expected);
    }

    #[test]
    fn paths() {
        check(None, "/v1", "gpt", "/v1/chat/completions");
        check(None, "", "a/b", "/chat/completions");
        let dated = "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21";
        for base in ["", "/openai", "/openai/v1"] {
            check(Some("2024-10-21"), base, "gpt-4.1", dated);
            check(Some("v1"), base, "gpt-4.1", "/openai/v1/chat/completions");
        }
        check(Some("v1"), "/v1", "m", "/v1/openai/v1/chat/completions");
    }

    #[test]
    fn names_never_read_as_syntax() {
        check(
            Some("1&x=2"),
            "",
            "../a?b#c%2f",
            "/openai/deployments/..%2Fa%3Fb%23c%252f/chat/completions?api-version=1%26x%3D2",
        );
    }
}
