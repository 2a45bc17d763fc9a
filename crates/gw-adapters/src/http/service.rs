//! Which operations a deployment serves, how, and where: worked out once, when its adapter is made.

use gw_dialects::{
    gemini::{EmbeddingsShape, Method as GeminiMethod},
    vendors::Embeddings,
};
use gw_types::{ErrorKind, GatewayError, ModelName, Operation, Prepared};
use http::{HeaderMap, HeaderValue, Method, header, uri::PathAndQuery};

use super::{
    site::{Endpoint, Site, is_claude},
    way::{Format, Habits, Way},
};
use crate::{
    InvalidProvider,
    transport::{Target, Upstream},
};

/// How one operation is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) way: Way,
    plain: Endpoint,
    stream: Endpoint,
}

impl Service {
    const fn same(way: Way, endpoint: Endpoint) -> Self {
        Self { way, plain: endpoint, stream: endpoint }
    }

    /// Returns the endpoint of a call.
    pub(crate) fn endpoint(&self, prepared: &Prepared) -> Endpoint {
        if prepared.stream { self.stream } else { self.plain }
    }
}

/// Returns how a provider serves an operation; `None` where its API has nothing of the kind.
pub(crate) fn service(site: &Site, habits: &Habits, model: &str, operation: Operation) -> Option<Service> {
    match site {
        Site::OpenAi | Site::Azure { .. } => open_ai(habits, operation),
        Site::Anthropic => anthropic(operation),
        Site::Vertex { .. } if is_claude(model) => claude_at_vertex(operation),
        Site::Gemini => google(operation, EmbeddingsShape::Batch),
        Site::Vertex { .. } if model.contains("gemini") => google(operation, EmbeddingsShape::Single),
        Site::Vertex { .. } => google(operation, EmbeddingsShape::Predict),
        Site::Bedrock => bedrock(operation),
        Site::Ollama => ollama(operation),
    }
}

fn open_ai(habits: &Habits, operation: Operation) -> Option<Service> {
    let chat = |way| Service::same(way, Endpoint::Chat);
    Some(match operation {
        Operation::Chat => chat(Way::Chat),
        Operation::Responses if habits.endpoints.responses => {
            Service::same(Way::Responses, Endpoint::Responses)
        }
        Operation::Responses | Operation::Messages => chat(Way::Translated(Format::Chat)),
        Operation::Completions if habits.endpoints.completions => {
            Service::same(Way::Completions, Endpoint::Completions)
        }
        Operation::Embeddings if habits.endpoints.embeddings != Embeddings::None => {
            Service::same(Way::Embeddings, Endpoint::Embeddings)
        }
        Operation::Completions | Operation::Embeddings | Operation::CountTokens => return None,
    })
}

fn anthropic(operation: Operation) -> Option<Service> {
    Some(match operation {
        Operation::Messages => Service::same(Way::Messages, Endpoint::Messages),
        Operation::Chat | Operation::Responses => {
            Service::same(Way::Translated(Format::Messages), Endpoint::Messages)
        }
        Operation::CountTokens => Service::same(Way::CountTokens, Endpoint::CountTokens),
        Operation::Completions | Operation::Embeddings => return None,
    })
}

fn claude_at_vertex(operation: Operation) -> Option<Service> {
    let way = match operation {
        Operation::Messages => Way::VertexMessages,
        Operation::Chat | Operation::Responses => Way::Translated(Format::VertexMessages),
        Operation::CountTokens => {
            return Some(Service::same(Way::VertexTokens, Endpoint::RawCountTokens));
        }
        Operation::Completions | Operation::Embeddings => return None,
    };
    Some(Service { way, plain: Endpoint::RawPredict, stream: Endpoint::StreamRawPredict })
}

fn google(operation: Operation, shape: EmbeddingsShape) -> Option<Service> {
    let method = |way, method| Some(Service::same(way, Endpoint::Gemini(method)));
    match operation {
        Operation::Chat | Operation::Responses | Operation::Messages => Some(Service {
            way: Way::Translated(Format::Gemini),
            plain: Endpoint::Gemini(GeminiMethod::Generate),
            stream: Endpoint::Gemini(GeminiMethod::Stream),
        }),
        Operation::Embeddings => method(
            Way::GoogleEmbeddings(shape),
            match shape {
                EmbeddingsShape::Batch => GeminiMethod::BatchEmbed,
                EmbeddingsShape::Single => GeminiMethod::Embed,
                EmbeddingsShape::Predict => GeminiMethod::Predict,
            },
        ),
        Operation::CountTokens => {
            let is_vertex = shape != EmbeddingsShape::Batch;
            method(Way::GoogleTokens { is_vertex }, GeminiMethod::CountTokens)
        }
        Operation::Completions => None,
    }
}

fn ollama(operation: Operation) -> Option<Service> {
    Some(match operation {
        Operation::Chat | Operation::Responses | Operation::Messages => {
            Service::same(Way::Translated(Format::Ollama), Endpoint::OllamaChat)
        }
        Operation::Completions => Service::same(Way::Completions, Endpoint::Completions),
        Operation::Embeddings => Service::same(Way::Embeddings, Endpoint::Embeddings),
        Operation::CountTokens => return None,
    })
}

fn bedrock(operation: Operation) -> Option<Service> {
    match operation {
        Operation::Chat | Operation::Responses | Operation::Messages => Some(Service {
            way: Way::Translated(Format::Converse),
            plain: Endpoint::Converse,
            stream: Endpoint::ConverseStream,
        }),
        Operation::CountTokens | Operation::Completions | Operation::Embeddings => None,
    }
}

const OPERATIONS: [Operation; 6] = [
    Operation::Chat,
    Operation::Responses,
    Operation::Messages,
    Operation::Completions,
    Operation::Embeddings,
    Operation::CountTokens,
];

/// What a deployment serves, and the unchanging part of each call.
#[derive(Debug)]
pub(crate) struct Services {
    services: [Option<Service>; OPERATIONS.len()],
    model: ModelName,
    /// One an endpoint: a handful.
    targets: Vec<(Endpoint, Target)>,
    layout: Layout,
}

/// What the addresses of a provider have in common.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) site: Site,
    /// The path of the base address, without a slash at its end.
    pub(crate) base: String,
    pub(crate) headers: HeaderMap,
}

impl Services {
    /// Works out lines and headers of all calls.
    ///
    /// # Errors
    /// [`InvalidProvider::BaseUrl`] if base URL and model make no path.
    pub(crate) fn new(
        upstream: &Upstream,
        layout: Layout,
        habits: &Habits,
        model: &ModelName,
    ) -> Result<Self, InvalidProvider> {
        let services = OPERATIONS.map(|operation| service(&layout.site, habits, model.as_str(), operation));
        let mut targets: Vec<(Endpoint, Target)> = Vec::new();
        for endpoint in services.iter().flatten().flat_map(|service| [service.plain, service.stream]) {
            if targets.iter().all(|(known, _)| *known != endpoint) {
                let target = layout
                    .target(upstream, endpoint, model.as_str())
                    .ok_or(InvalidProvider::BaseUrl("makes no path together with the model's name"))?;
                targets.push((endpoint, target));
            }
        }
        Ok(Self { services, model: model.clone(), targets, layout })
    }

    /// Returns how an operation is served.
    pub(crate) fn get(&self, operation: Operation) -> Option<&Service> {
        let at = OPERATIONS.iter().position(|known| *known == operation)?;
        self.services[at].as_ref()
    }

    /// Returns the unchanging part of a call, if it was worked out for the model.
    pub(crate) fn target(&self, endpoint: Endpoint, model: &ModelName) -> Option<&Target> {
        let known = || self.targets.iter().find(|(known, _)| *known == endpoint).map(|(_, target)| target);
        if self.layout.site.names_model() && self.model != *model { None } else { known() }
    }

    /// Works out the unchanging part of a call for another model than the deployment's.
    ///
    /// # Errors
    /// `InvalidRequest`, if the model's name makes no path.
    pub(crate) fn target_for(
        &self,
        upstream: &Upstream,
        endpoint: Endpoint,
        model: &ModelName,
    ) -> Result<Target, GatewayError> {
        self.layout.target(upstream, endpoint, model.as_str()).ok_or_else(|| {
            GatewayError::new(ErrorKind::InvalidRequest, "the model's name cannot be passed on")
                .with_param("model")
        })
    }
}

impl Layout {
    fn target(&self, upstream: &Upstream, endpoint: Endpoint, model: &str) -> Option<Target> {
        let path = PathAndQuery::try_from(self.site.path(&self.base, endpoint, model)).ok()?;
        let mut headers = self.headers.clone();
        if endpoint == Endpoint::ConverseStream {
            let events = HeaderValue::from_static("application/vnd.amazon.eventstream");
            headers.insert(header::ACCEPT, events);
        }
        Some(upstream.target(Method::POST, &path, headers))
    }
}

#[cfg(test)]
mod tests {
    use gw_dialects::vendors::Preset;

    use super::{EmbeddingsShape, OPERATIONS, service};
    use crate::http::{
        site::Site,
        way::{Format, Habits, Way},
    };

    #[track_caller]
    fn check(site: &Site, habits: &Habits, model: &str, expected: [Option<Way>; 6]) {
        let found =
            OPERATIONS.map(|operation| service(site, habits, model, operation).map(|service| service.way));
        assert_eq!(found, expected, "{site:?}");
    }

    /// Columns: chat, responses, messages, completions, embeddings, count_tokens.
    #[test]
    fn every_provider_serves_what_its_api_has() {
        let to = |format| Some(Way::Translated(format));
        let (chat, messages) = (Some(Way::Chat), to(Format::Chat));
        let (completions, embeddings) = (Some(Way::Completions), Some(Way::Embeddings));
        let compatible = Habits::COMPATIBLE;
        let all = |responses| [chat, responses, messages, completions, embeddings, None];
        check(&Site::OpenAi, &Habits::OPENAI, "m", all(Some(Way::Responses)));
        check(&Site::OpenAi, &compatible, "m", all(to(Format::Chat)));
        let groq = Habits::of(Preset::named("groq").unwrap());
        check(&Site::OpenAi, &groq, "m", [chat, Some(Way::Responses), messages, None, None, None]);
        let claude = to(Format::Messages);
        let tokens = Some(Way::CountTokens);
        check(&Site::Anthropic, &compatible, "m", [claude, claude, Some(Way::Messages), None, None, tokens]);
        let google = |shape| {
            let (to, embeddings) = (to(Format::Gemini), Some(Way::GoogleEmbeddings(shape)));
            let is_vertex = shape != EmbeddingsShape::Batch;
            [to, to, to, None, embeddings, Some(Way::GoogleTokens { is_vertex })]
        };
        check(&Site::Gemini, &compatible, "m", google(EmbeddingsShape::Batch));
        let vertex = Site::Vertex { project: "p".to_owned(), location: "l".to_owned() };
        check(&vertex, &compatible, "gemini-embedding-001", google(EmbeddingsShape::Single));
        check(&vertex, &compatible, "text-embedding-005", google(EmbeddingsShape::Predict));
        let claude = to(Format::VertexMessages);
        let messages = Some(Way::VertexMessages);
        check(
            &vertex,
            &compatible,
            "claude-x@1",
            [claude, claude, messages, None, None, Some(Way::VertexTokens)],
        );
        let own = to(Format::Ollama);
        check(&Site::Ollama, &compatible, "llama3.2", [own, own, own, completions, embeddings, None]);
        let converse = to(Format::Converse);
        let all = [converse, converse, converse, None, None, None];
        check(&Site::Bedrock, &compatible, "anthropic.claude", all);
    }
}
