//! Paths and queries of the calls.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 calls unreserved.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Path and query of a call, below the provider's base address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The path, from `/` on, percent-encoded.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<&'static str>,
}

/// Names what is asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// One answer.
    Generate,
    /// A streamed answer, as server-sent events.
    Stream,
    /// The tokens of a prompt.
    CountTokens,
    /// The embedding of one text.
    Embed,
    /// The embeddings of several texts (Gemini API only).
    BatchEmbed,
    /// The embeddings of one text or several (older embedding models at Vertex only).
    Predict,
}

/// Where a Vertex model is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VertexPlace<'a> {
    /// The Google Cloud project.
    pub project: &'a str,
    /// The location, such as `europe-west4` or `global`.
    pub location: &'a str,
}

/// Returns the endpoint of a model of the Gemini API.
///
/// A name without a collection is one of `models/`; tuned models say theirs: `tunedModels/NAME`.
///
/// ```
/// use gw_dialects::gemini::{Method, gemini_endpoint};
///
/// let endpoint = gemini_endpoint("gemini-2.5-flash", Method::Stream);
/// assert_eq!(endpoint.path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent");
/// assert_eq!(endpoint.query, Some("alt=sse"));
/// ```
pub fn gemini_endpoint(model: &str, method: Method) -> Endpoint {
    let collection = if model.contains('/') { "" } else { "models/" };
    let path = format!("/v1beta/{collection}{}:{}", segments(model), method.verb());
    Endpoint { path, query: method.query() }
}

/// Returns the endpoint of a model at Vertex AI.
///
/// A name without a collection is one of Google's own models; endpoints and others say theirs: `endpoints/ID`,
/// `publishers/NAME/models/NAME`.
///
/// ```
/// use gw_dialects::gemini::{Method, VertexPlace, vertex_endpoint};
///
/// let place = VertexPlace { project: "example-project", location: "global" };
/// let endpoint = vertex_endpoint(place, "gemini-3-flash-preview", Method::Generate);
/// assert_eq!(
///     endpoint.path,
///     "/v1beta1/projects/example-project/locations/global/publishers/google/models/gemini-3-flash-preview:generateContent"
/// );
/// ```
pub fn vertex_endpoint(place: VertexPlace<'_>, model: &str, method: Method) -> Endpoint {
    let collection = if model.contains('/') { "" } else { "publishers/google/models/" };
    let (project, location) = (segments(place.project), segments(place.location));
    let path = format!(
        "/v1beta1/projects/{project}/locations/{location}/{collection}{}:{}",
        segments(model),
        method.verb()
    );
    Endpoint { path, query: method.query() }
}

impl Method {
    const fn verb(self) -> &'static str {
        match self {
            Self::Generate => "generateContent",
            Self::Stream => "streamGenerateContent",
            Self::CountTokens => "countTokens",
            Self::Embed => "embedContent",
            Self::BatchEmbed => "batchEmbedContents",
            Self::Predict => "predict",
        }
    }

    const fn query(self) -> Option<&'static str> {
        match self {
            Self::Stream => Some("alt=sse"),
            Self::Generate | Self::CountTokens | Self::Embed | Self::BatchEmbed | Self::Predict => None,
        }
    }
}

/// Encodes each segment of a name by itself, so that only the slashes of the configuration are slashes of the path; a
/// segment of dots only, which a server would take for a step up, is left out.
fn segments(name: &str) -> String {
    let kept = name.split('/').filter(|segment| !matches!(*segment, "" | "." | ".."));
    kept.map(|segment| utf8_percent_encode(segment, SEGMENT).to_string()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::{Method, VertexPlace, gemini_endpoint, vertex_endpoint};

    #[track_caller]
    fn check(model: &str, gemini: &str, vertex: &str) {
        assert_eq!(gemini_endpoint(model, Method::CountTokens).path, format!("/v1beta/{gemini}:countTokens"));
        let place = VertexPlace { project: "p", location: "l" };
        assert_eq!(
            vertex_endpoint(place, model, Method::Predict).path,
            format!("/v1beta1/projects/p/locations/l/{vertex}:predict")
        );
    }

    #[test]
    fn models_and_collections_have_their_paths() {
        check("m", "models/m", "publishers/google/models/m");
        check("tunedModels/m", "tunedModels/m", "tunedModels/m");
        check("endpoints/12", "endpoints/12", "endpoints/12");
    }

    #[test]
    fn names_cannot_leave_their_segment() {
        check(
            "a b?x=1#y:z",
            "models/a%20b%3Fx%3D1%23y%3Az",
            "publishers/google/models/a%20b%3Fx%3D1%23y%3Az",
        );
        check("models/../../x", "models/x", "models/x");
        check("models/é%2f", "models/%C3%A9%252f", "models/%C3%A9%252f");
    }
}
