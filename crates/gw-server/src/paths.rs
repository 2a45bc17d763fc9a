//! Which handler a path of the data plane belongs to.

use std::borrow::Cow;

use gw_types::{Dialect, Operation};
use http::Method;
use percent_encoding::percent_decode_str;

const MODELS_BELOW: &str = "/v1/models/";

/// A path of the data plane, matched byte for byte: no case folding, no decoding, no merging of slashes. What was
/// authenticated and what is handled is then one and the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataPath<'a> {
    /// `/`: whether the gateway is there at all.
    Root,
    /// The path of an operation, such as `/v1/chat/completions`.
    Operation(Operation),
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
            "/v1/chat/completions" => Self::Operation(Operation::Chat),
            "/v1/messages" => Self::Operation(Operation::Messages),
            "/v1/messages/count_tokens" => Self::Operation(Operation::CountTokens),
            "/v1/responses" => Self::Operation(Operation::Responses),
            "/v1/embeddings" => Self::Operation(Operation::Embeddings),
            "/v1/completions" => Self::Operation(Operation::Completions),
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

    /// Returns the dialect of the path's errors.
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Operation(operation) => operation.dialect(),
            Self::Root | Self::Models | Self::Model(_) | Self::Unknown => Dialect::OpenAi,
        }
    }

    /// Returns the methods that the path takes, as `allow` lists them; `None` for a path that does not exist.
    pub(crate) const fn allow(&self) -> Option<&'static str> {
        match self {
            Self::Root => Some("GET, HEAD"),
            Self::Operation(_) => Some("POST"),
            Self::Models | Self::Model(_) => Some("GET"),
            Self::Unknown => None,
        }
    }

    /// Returns whether the path takes the method.
    pub(crate) fn takes(&self, method: &Method) -> bool {
        match self {
            Self::Root => method == Method::GET || method == Method::HEAD,
            Self::Operation(_) => method == Method::POST,
            Self::Models | Self::Model(_) => method == Method::GET,
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use gw_types::{Dialect, Operation};
    use http::Method;

    use super::DataPath;

    const CHAT: DataPath<'_> = DataPath::Operation(Operation::Chat);

    fn check(path: &str, expected: &DataPath<'_>) {
        assert_eq!(DataPath::of(path), *expected, "{path}");
    }

    #[test]
    fn known_paths_match_exactly() {
        check("/", &DataPath::Root);
        check("/v1/chat/completions", &CHAT);
        check("/v1/responses", &DataPath::Operation(Operation::Responses));
        check("/v1/embeddings", &DataPath::Operation(Operation::Embeddings));
        check("/v1/completions", &DataPath::Operation(Operation::Completions));
        check("/v1/messages", &DataPath::Operation(Operation::Messages));
        check("/v1/messages/count_tokens", &DataPath::Operation(Operation::CountTokens));
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
        assert!(CHAT.takes(&Method::POST));
        assert!(!CHAT.takes(&Method::GET));
        assert!(DataPath::Root.takes(&Method::HEAD));
        assert!(!DataPath::Models.takes(&Method::POST));
        assert_eq!(DataPath::of("/v1/messages").dialect(), Dialect::Anthropic);
        assert_eq!((CHAT.allow(), DataPath::Unknown.allow()), (Some("POST"), None));
    }
}
