//! Where the operations of each kind of provider are.

use gw_dialects::{
    bedrock,
    gemini::{self, VertexPlace, gemini_endpoint, vertex_endpoint},
};
use percent_encoding::{AsciiSet, utf8_percent_encode};

use crate::location::DATA;

/// What is asked of a provider, in the provider's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's legacy completions.
    Completions,
    /// OpenAI's embeddings.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// Anthropic's token count.
    CountTokens,
    /// One of Gemini's methods.
    Gemini(gemini::Method),
    /// Anthropic's messages at Vertex, whole.
    RawPredict,
    /// Anthropic's messages at Vertex, streamed.
    StreamRawPredict,
    /// Anthropic's token count at Vertex.
    RawCountTokens,
    /// Ollama's own chat.
    OllamaChat,
    /// Bedrock's Converse, whole.
    Converse,
    /// Bedrock's Converse, streamed.
    ConverseStream,
}

/// How a kind of provider lays out its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// `{base}/chat/completions` and its like.
    OpenAi,
    /// Azure's own layout, of which there are two: `v1`, and one with a date and the deployment in the path.
    Azure { api_version: String },
    /// `{base}/v1/messages`.
    Anthropic,
    /// `{base}/v1beta/models/{model}:{method}`.
    Gemini,
    /// `{base}/v1beta1/projects/{project}/locations/{location}/publishers/{publisher}/models/{model}:{method}`.
    Vertex { project: String, location: String },
    /// `{base}/api/chat`, and OpenAI's formats below `{base}/v1`.
    Ollama,
    /// `{base}/model/{model}/converse`.
    Bedrock,
}

impl Site {
    /// Returns whether the path of any endpoint names the model.
    pub(crate) const fn names_model(&self) -> bool {
        match self {
            Self::OpenAi | Self::Anthropic | Self::Ollama => false,
            Self::Azure { .. } | Self::Gemini | Self::Vertex { .. } | Self::Bedrock => true,
        }
    }

    /// Returns path and query of an endpoint. Names are data: nothing in them reads as syntax.
    pub(crate) fn path(&self, base: &str, endpoint: Endpoint, model: &str) -> String {
        let data = |text: &str| utf8_percent_encode(text, DATA).to_string();
        match self {
            Self::OpenAi => format!("{base}/{}", last_part(endpoint)),
            Self::Azure { api_version } => {
                // Both forms of the address are shown to users, so both are taken.
                let root = base.strip_suffix("/v1").unwrap_or(base);
                let root = root.strip_suffix("/openai").unwrap_or(base);
                let name = last_part(endpoint);
                if api_version == "v1" {
                    return format!("{root}/openai/v1/{name}");
                }
                let version = data(api_version);
                if endpoint == Endpoint::Responses {
                    // The one operation whose model stands in the body only.
                    return format!("{root}/openai/{name}?api-version={version}");
                }
                format!("{root}/openai/deployments/{}/{name}?api-version={version}", data(model))
            }
            Self::Anthropic => {
                let root = base.strip_suffix("/v1").unwrap_or(base);
                format!("{root}/v1/{}", last_part(endpoint))
            }
            Self::Gemini => {
                let root = base.strip_suffix("/v1beta").unwrap_or(base);
                joined(root, &gemini_endpoint(model, endpoint.gemini_method()))
            }
            Self::Ollama => {
                // Both forms of the address are shown to users, so both are taken.
                let root = base.strip_suffix("/v1").or(base.strip_suffix("/api")).unwrap_or(base);
                let part = if endpoint == Endpoint::OllamaChat { "api" } else { "v1" };
                format!("{root}/{part}/{}", last_part(endpoint))
            }
            Self::Vertex { project, location } => {
                if let Endpoint::Gemini(method) = endpoint {
                    return joined(base, &vertex_endpoint(VertexPlace { project, location }, model, method));
                }
                let model = model.strip_prefix(CLAUDE_COLLECTION).unwrap_or(model);
                let model = utf8_percent_encode(model, CLAUDE_MODEL);
                let place = format!("{base}/v1/projects/{}/locations/{}", data(project), data(location));
                let name = last_part(endpoint);
                if endpoint == Endpoint::RawCountTokens {
                    return format!("{place}/{CLAUDE_COLLECTION}{name}");
                }
                format!("{place}/{CLAUDE_COLLECTION}{model}:{name}")
            }
            Self::Bedrock => {
                format!("{base}{}", bedrock::converse_path(model, endpoint == Endpoint::ConverseStream))
            }
        }
    }
}

impl Endpoint {
    /// Returns the method; one answer where it is none of Gemini's.
    fn gemini_method(self) -> gemini::Method {
        if let Self::Gemini(method) = self { method } else { gemini::Method::Generate }
    }
}

/// Where Anthropic's models stand at Vertex.
const CLAUDE_COLLECTION: &str = "publishers/anthropic/models/";

/// As [`DATA`], with the sign before a version, which Google shows as it is.
const CLAUDE_MODEL: &AsciiSet = &DATA.remove(b'@');

/// Returns whether a model at Vertex is one of Anthropic's, which speak their own format there too.
pub(crate) fn is_claude(model: &str) -> bool {
    model.starts_with(CLAUDE_COLLECTION) || model.starts_with("claude")
}

fn joined(base: &str, endpoint: &gemini::Endpoint) -> String {
    match endpoint.query {
        Some(query) => format!("{base}{}?{query}", endpoint.path),
        None => format!("{base}{}", endpoint.path),
    }
}

/// Returns the last part of the path.
const fn last_part(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Chat => "chat/completions",
        Endpoint::Responses => "responses",
        Endpoint::Completions => "completions",
        Endpoint::Embeddings => "embeddings",
        Endpoint::Messages => "messages",
        Endpoint::CountTokens => "messages/count_tokens",
        Endpoint::OllamaChat => "chat",
        Endpoint::RawPredict => "rawPredict",
        Endpoint::StreamRawPredict => "streamRawPredict",
        Endpoint::RawCountTokens => "count-tokens:rawPredict",
        // Their formats name them.
        Endpoint::Gemini(_) | Endpoint::Converse | Endpoint::ConverseStream => "",
    }
}

#[cfg(test)]
mod tests {
    use gw_dialects::gemini::Method;

    use super::{Endpoint, Site, is_claude};

    #[track_caller]
    fn check(site: &Site, base: &str, endpoint: Endpoint, model: &str, expected: &str) {
        assert_eq!(site.path(base, endpoint, model), expected);
    }

    fn azure(version: &str) -> Site {
        Site::Azure { api_version: version.to_owned() }
    }

    #[test]
    fn openai_and_azure() {
        check(&Site::OpenAi, "/v1", Endpoint::Chat, "gpt", "/v1/chat/completions");
        check(&Site::OpenAi, "", Endpoint::Embeddings, "a/b", "/embeddings");
        let dated = "/openai/deployments/gpt-4.1/chat/completions?api-version=2024-10-21";
        for base in ["", "/openai", "/openai/v1"] {
            check(&azure("2024-10-21"), base, Endpoint::Chat, "gpt-4.1", dated);
            check(&azure("v1"), base, Endpoint::Chat, "gpt-4.1", "/openai/v1/chat/completions");
            check(&azure("v1"), base, Endpoint::Completions, "m", "/openai/v1/completions");
        }
        check(&azure("v1"), "/v1", Endpoint::Chat, "m", "/v1/openai/v1/chat/completions");
        let responses = "/openai/responses?api-version=2025-03-01-preview";
        check(&azure("2025-03-01-preview"), "", Endpoint::Responses, "m", responses);
        check(&azure("1"), "", Endpoint::Embeddings, "m", "/openai/deployments/m/embeddings?api-version=1");
    }

    #[test]
    fn anthropic_and_bedrock() {
        for base in ["", "/v1"] {
            check(&Site::Anthropic, base, Endpoint::Messages, "m", "/v1/messages");
            check(&Site::Anthropic, base, Endpoint::CountTokens, "m", "/v1/messages/count_tokens");
        }
        let model = "us.amazon.nova-2-lite-v1:0";
        let path = "/model/us.amazon.nova-2-lite-v1%3A0/converse";
        check(&Site::Bedrock, "", Endpoint::Converse, model, path);
        check(&Site::Bedrock, "", Endpoint::ConverseStream, model, &format!("{path}-stream"));
        let arn = "arn:aws:bedrock:us-east-1:0:inference-profile/x";
        let path = "/p/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A0%3Ainference-profile%2Fx/converse";
        check(&Site::Bedrock, "/p", Endpoint::Converse, arn, path);
    }

    #[test]
    fn ollama() {
        for base in ["", "/v1", "/api"] {
            check(&Site::Ollama, base, Endpoint::OllamaChat, "a/b:1", "/api/chat");
            check(&Site::Ollama, base, Endpoint::Embeddings, "m", "/v1/embeddings");
        }
        check(&Site::Ollama, "/p", Endpoint::OllamaChat, "m", "/p/api/chat");
    }

    #[test]
    fn gemini_and_vertex() {
        for base in ["", "/v1beta"] {
            let path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
            check(&Site::Gemini, base, Endpoint::Gemini(Method::Stream), "gemini-2.5-flash", path);
        }
        let vertex = Site::Vertex { project: "p".to_owned(), location: "us-east5".to_owned() };
        let place = "/v1beta1/projects/p/locations/us-east5/publishers/google/models/";
        let path = format!("{place}gemini-3-pro:generateContent");
        check(&vertex, "", Endpoint::Gemini(Method::Generate), "gemini-3-pro", &path);
        let place = "/v1/projects/p/locations/us-east5/publishers/anthropic/models/";
        for model in ["claude-3-7-sonnet@20250219", "publishers/anthropic/models/claude-3-7-sonnet@20250219"]
        {
            assert!(is_claude(model));
            let path = format!("{place}claude-3-7-sonnet@20250219:streamRawPredict");
            check(&vertex, "", Endpoint::StreamRawPredict, model, &path);
            let path = format!("{place}count-tokens:rawPredict");
            check(&vertex, "", Endpoint::RawCountTokens, model, &path);
        }
        assert!(!is_claude("gemini-3-pro"));
    }

    #[test]
    fn names_never_read_as_syntax() {
        check(
            &azure("1&x=2"),
            "",
            Endpoint::Chat,
            "../a?b#c%2f",
            "/openai/deployments/..%2Fa%3Fb%23c%252f/chat/completions?api-version=1%26x%3D2",
        );
        let path = "/model/..%2Fa%3Fb%23c/converse";
        check(&Site::Bedrock, "", Endpoint::Converse, "../a?b#c", path);
    }
}
