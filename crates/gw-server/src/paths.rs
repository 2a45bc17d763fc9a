//! Which handler a path of the data plane belongs to.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

const MODELS_BELOW: &str = "/v1/models/";

/// A path of the data plane, matched byte for byte: no case folding, no decoding, no merging of slashes. What was
/// authenticated and what is handled is then one and the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataPath<'a> {
    /// `/`: whether the gateway is there at all.
    Root,
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/models`.
    Models,
    /// `/v1/models/{id}`; the id percent-decoded once, so that it may hold slashes either way.
    Model(Cow<'a, str>),
    /// Anything else.
    Unknown,
}

impl<'a> DataPath<'a> {
    /// Returns which path it is.
    pub(crate) fn of(path: &'a str) -> Self {
        match path {
            "/v1/chat/completions" => Self::Chat,
            "/v1/models" => Self::Models,
            "/" => Self::Root,
            _ => match path.strip_prefix(MODELS_BELOW) {
                Some(id) if !id.is_empty() => {
                    percent_decode_str(id).decode_utf8().map_or(Self::Unknown, Self::Model)
                }
                Some(_) | None => Self::Unknown,
            },
        }
    }

    /// Returns the methods that the path takes, as `allow` lists them; `None` for a path that does not exist.
    pub(crate) const fn allow(&self) -> Option<&'static str> {
        match self {
            Self::Root => Some("GET, HEAD"),
            Self::Chat => Some("POST"),
            Self::Models | Self::Model(_) => Some("GET"),
            Self::Unknown => None,
        }
    }

    /// Returns whether the path takes the method.
    pub(crate) fn takes(&self, method: &Method) -> bool {
        match self {
            Self::Root => method == Method::GET || method == Method::HEAD,
            Self::Chat => method == Method::POST,
            Self::Models | Self::Model(_) => method == Method::GET,
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::DataPath;

    fn check(path: &str, expected: &DataPath<'_>) {
        assert_eq!(DataPath::of(path), *expected, "{path}");
    }

    #[test]
    fn known_paths_match_exactly() {
        check("/", &DataPath::Root);
        check("/v1/chat/completions", &DataPath::Chat);
        check("/v1/models", &DataPath::Models);
    }

    #[test]
    fn model_ids_are_decoded_once() {
        check("/v1/models/gpt-4.1", &DataPath::Model("gpt-4.1".into()));
        check("/v1/models/openai/gpt-4.1", &DataPath::Model("openai/gpt-4.1".into()));
        check("/v1/models/openai%2Fgpt", &DataPath::Model("openai/gpt".into()));
        check("/v1/models/a%252Fb", &DataPath::Model("a%2Fb".into()));
        check("/v1/models/%ff", &DataPath::Unknown);
        check("/v1/models/", &DataPath::Unknown);
    }

    #[test]
    fn every_spelling_of_a_route_needs_credentials_other_spellings_are_other_paths() {
        for path in [
            "",
            "*",
            "//",
            "//v1/chat/completions",
            "/v1//chat/completions",
            "/v1/chat/completions/",
            "/V1/Chat/Completions",
            "/x/../v1/chat/completions",
            "/v1/%63hat/completions",
            "/v1%2Fchat%2Fcompletions",
            "/v1/chat/completions;a=b",
            "/v1/chat",
            "/v1/models;",
        ] {
            check(path, &DataPath::Unknown);
        }
    }

    #[test]
    fn methods_are_part_of_the_path() {
        assert!(DataPath::Chat.takes(&Method::POST));
        assert!(!DataPath::Chat.takes(&Method::GET));
        assert!(DataPath::Root.takes(&Method::HEAD));
        assert!(!DataPath::Models.takes(&Method::POST));
        assert_eq!((DataPath::Chat.allow(), DataPath::Unknown.allow()), (Some("POST"), None));
    }
}
