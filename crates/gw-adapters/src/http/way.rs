//! How an operation is carried in a provider's format: as it came where that is the same, else translated.

use bytes::Bytes;
use gw_dialects::{
    anthropic::{self, MessagesEdits},
    completions::{self, CompletionsEdits},
    embeddings::{self, EmbeddingsEdits, Encoding},
    gemini::{self, EmbeddingsShape},
    openai::{self, ChatEdits, ErrorHead, StreamOptions},
    responses::{self, ResponsesEdits},
    translate::{self, Strictness},
    vendors::{self, Embeddings, Endpoints, Preset},
};
use gw_types::{
    AnswerFacts, AttemptPlan, BoundedText, Deployment, Dialect, FinishReason, GatewayError, Loss,
    NormalizedRequest, OutputField, Prepared, Usage, UtcTime,
};
use http::HeaderMap;

pub(crate) use super::translated::Format;
use super::{answer::is_of_type, decoder::Decoder, translated, vertex};

/// How an operation is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Chat completions, as they came.
    Chat,
    /// Responses, as they came.
    Responses,
    /// Legacy completions, as they came.
    Completions,
    /// Embeddings, as they came.
    Embeddings,
    /// Anthropic's messages, as they came.
    Messages,
    /// Anthropic's messages, as they came but for what Vertex wants elsewhere.
    VertexMessages,
    /// Anthropic's token count, as it came.
    CountTokens,
    /// Anthropic's token count, as it came but for the version that Vertex wants in the body.
    VertexTokens,
    /// OpenAI's embeddings in one of Google's shapes.
    GoogleEmbeddings(EmbeddingsShape),
    /// Anthropic's token count by Gemini's.
    GoogleTokens {
        /// Whether it is Vertex, which wants the prompt in another place.
        is_vertex: bool,
    },
    /// A conversation in another format than the caller's.
    Translated(Format),
}

/// What is particular to a provider that speaks OpenAI's formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habits {
    /// The differences of a known server.
    pub(crate) preset: Option<&'static Preset>,
    /// The field that carries an output bound where the caller named none and there is no preset. OpenAI's reasoning models
    /// refuse the older name; many compatible servers know no other.
    pub(crate) output: OutputField,
    /// What is served beside chat.
    pub(crate) endpoints: Endpoints,
}

impl Habits {
    /// Of OpenAI itself.
    pub(crate) const OPENAI: Self = Self {
        preset: None,
        output: OutputField::MaxCompletionTokens,
        endpoints: Endpoints { responses: true, completions: true, embeddings: Embeddings::All },
    };

    /// Of any server that speaks OpenAI chat; what it lacks of the rest it says itself.
    pub(crate) const COMPATIBLE: Self = Self {
        preset: None,
        output: OutputField::MaxTokens,
        endpoints: Endpoints { responses: false, completions: true, embeddings: Embeddings::All },
    };

    /// Of a known server.
    pub(crate) const fn of(preset: &'static Preset) -> Self {
        Self { preset: Some(preset), output: preset.output.field(), endpoints: preset.endpoints }
    }

    /// Returns the field to write a bound into where the caller named none.
    pub(crate) const fn output_field(&self) -> OutputField {
        self.output
    }

    /// Whether a stream can be asked for its usage.
    fn asks_usage(&self) -> bool {
        self.preset.is_none_or(|preset| preset.takes_stream_options)
    }

    fn floats_only(&self) -> bool {
        self.endpoints.embeddings == Embeddings::Floats
    }
}

/// What surrounds an answer that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// The call that it answers.
    pub(crate) prepared: &'a Prepared,
    /// The provider's id of the call.
    pub(crate) id: Option<&'a BoundedText>,
    pub(crate) now: UtcTime,
}

impl Way {
    /// Returns the family of formats whose headers go through; `None` where the body is translated.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Chat | Self::Responses | Self::Completions | Self::Embeddings => Some(Dialect::OpenAi),
            Self::Messages | Self::VertexMessages | Self::CountTokens | Self::VertexTokens => {
                Some(Dialect::Anthropic)
            }
            Self::GoogleEmbeddings(_) | Self::GoogleTokens { .. } | Self::Translated(_) => None,
        }
    }

    /// Whether the provider wants to know how long it is waited for: Google's own formats do.
    const fn takes_timeout(self) -> bool {
        match self {
            Self::Translated(Format::Gemini) | Self::GoogleEmbeddings(_) | Self::GoogleTokens { .. } => true,
            Self::Chat
            | Self::Responses
            | Self::Completions
            | Self::Embeddings
            | Self::Messages
            | Self::VertexMessages
            | Self::CountTokens
            | Self::VertexTokens
            | Self::Translated(
                Format::Chat | Format::Messages | Format::VertexMessages | Format::Converse | Format::Ollama,
            ) => false,
        }
    }

    /// Builds a call.
    ///
    /// # Errors
    /// `InvalidRequest` if the provider's format cannot carry the request; `TranslationLoss` if it cannot carry all of it
    /// and the caller or the plan is strict.
    pub(crate) fn prepare(
        self,
        request: &NormalizedRequest,
        deployment: &Deployment,
        plan: &AttemptPlan,
        habits: &Habits,
    ) -> Result<Prepared, GatewayError> {
        let model = deployment.model.as_str();
        let output_bound = plan.output_bound;
        // Usage is always wanted: what a stream cost is known from nothing else.
        let ask_usage = habits.asks_usage();
        let mut vectors_to_base64 = false;
        let (body, loss) = match self {
            Self::Chat => {
                let edits = ChatEdits { model, output_bound, output_field: habits.output_field(), ask_usage };
                let body = match habits.preset {
                    Some(preset) => vendors::rewrite_chat(request, &edits, preset),
                    None => openai::rewrite_chat(request, &edits),
                };
                (body, Loss::default())
            }
            Self::Responses => {
                let edits = ResponsesEdits { model, output_bound };
                (responses::rewrite(request, &edits), Loss::default())
            }
            Self::Completions => {
                let edits = CompletionsEdits { model, output_bound, ask_usage };
                (completions::rewrite(request, &edits), Loss::default())
            }
            Self::Embeddings => {
                let floats_only = habits.floats_only();
                let edits = EmbeddingsEdits { model, floats_only };
                vectors_to_base64 = floats_only && wants_base64(request);
                (embeddings::rewrite(request, &edits), Loss::default())
            }
            Self::Messages | Self::CountTokens => {
                anthropic::rewrite_messages(request, &MessagesEdits { model, output_bound })
            }
            Self::VertexMessages => {
                let (body, loss) =
                    anthropic::rewrite_messages(request, &MessagesEdits { model, output_bound });
                (vertex::without_model(&body), loss)
            }
            Self::VertexTokens => {
                let (body, loss) =
                    anthropic::rewrite_messages(request, &MessagesEdits { model, output_bound });
                (vertex::with_version(&body), loss)
            }
            Self::GoogleEmbeddings(shape) => {
                vectors_to_base64 = wants_base64(request);
                gemini::write_embeddings(&request.body, model, shape)?
            }
            Self::GoogleTokens { is_vertex } => {
                translated::count_tokens(request, deployment, plan, is_vertex)?
            }
            Self::Translated(format) => format.write(request, deployment, plan, habits)?,
        };
        if plan.strict || request.context.translation_strict {
            translate::check(&loss, Strictness::Refuse)?;
        }
        let timeout = self.takes_timeout().then_some(plan.timeout);
        Ok(Prepared { loss, timeout, vectors_to_base64, ..Prepared::new(request, deployment, body) })
    }

    /// Reads a whole answer; returns it in the caller's format.
    ///
    /// # Errors
    /// What an error inside of it says, else `MalformedResponse`.
    pub(crate) fn read(
        self,
        raw: Bytes,
        received: &Received<'_>,
    ) -> Result<(Bytes, AnswerFacts), GatewayError> {
        let facts = match self {
            Self::Chat => openai::read_answer(&raw)?,
            Self::Responses => responses::read_answer(&raw)?,
            Self::Completions => completions::read_answer(&raw)?,
            Self::Messages | Self::VertexMessages => anthropic::read_answer(&raw)?,
            Self::CountTokens | Self::VertexTokens => {
                anthropic::read_token_count(&raw)?;
                counted()
            }
            Self::Embeddings => return vectors(raw, received.prepared),
            Self::GoogleEmbeddings(_) => {
                let raw = gemini::read_embeddings(&raw, &received.prepared.requested_model)?;
                return vectors(raw, received.prepared);
            }
            Self::GoogleTokens { .. } => {
                let count = gemini::read_token_count(&raw)?;
                return Ok((anthropic::token_count_body(count.get()), counted()));
            }
            Self::Translated(format) => {
                let id = translated::id(received);
                let stamp = translated::stamp(&id, received);
                return translate::answer(format.wire(), &raw, received.prepared.operation, &stamp);
            }
        };
        Ok((raw, facts))
    }

    /// Returns what reads a streamed answer.
    ///
    /// # Errors
    /// `InvalidRequest` for an operation that is never translated.
    pub(crate) fn decoder(self, received: &Received<'_>) -> Result<Decoder, GatewayError> {
        let options = StreamOptions { relay_usage: received.prepared.relay_usage };
        Ok(match self {
            Self::Chat => Decoder::Chat(openai::StreamDecoder::new(options)),
            Self::Completions => Decoder::Completions(completions::StreamDecoder::new(options)),
            Self::Responses => Decoder::Responses(responses::StreamDecoder::new()),
            Self::Messages | Self::VertexMessages => Decoder::Messages(anthropic::StreamDecoder::new()),
            // Nobody streams these; what comes all the same ends as an interruption.
            Self::Embeddings
            | Self::CountTokens
            | Self::VertexTokens
            | Self::GoogleEmbeddings(_)
            | Self::GoogleTokens { .. } => Decoder::Chat(openai::StreamDecoder::new(options)),
            Self::Translated(format) => Decoder::Translated(Box::new(format.stream(received)?)),
        })
    }

    /// Says what an error answer means.
    pub(crate) fn classify(self, head: &ErrorHead<'_>, body: &[u8]) -> GatewayError {
        match self {
            Self::Chat | Self::Responses | Self::Completions | Self::Embeddings => {
                openai::classify(head, body)
            }
            Self::Messages | Self::VertexMessages | Self::CountTokens | Self::VertexTokens => {
                anthropic::classify(head, body)
            }
            Self::GoogleEmbeddings(_) | Self::GoogleTokens { .. } => gemini::classify(head, body),
            Self::Translated(format) => translate::classify(format.wire(), head, body),
        }
    }

    /// Returns whether a body is a stream in the provider's framing. One that names no media type is taken at its word that
    /// a stream was asked for.
    pub(crate) fn is_stream(self, headers: &HeaderMap) -> bool {
        let types: &[&[u8]] = match self {
            Self::Chat
            | Self::Responses
            | Self::Completions
            | Self::Embeddings
            | Self::Messages
            | Self::VertexMessages
            | Self::CountTokens
            | Self::VertexTokens
            | Self::GoogleEmbeddings(_)
            | Self::GoogleTokens { .. }
            | Self::Translated(Format::Chat | Format::Messages | Format::VertexMessages) => {
                &[b"text/event-stream"]
            }
            // Whoever stands between may drop the query that asks for events; then the answer is one array.
            Self::Translated(Format::Gemini) => &[b"text/event-stream", b"application/json"],
            // Proxies in front of it are known to call lines plain JSON or text.
            Self::Translated(Format::Ollama) => {
                &[b"application/x-ndjson", b"application/json", b"application/ndjson", b"text/plain"]
            }
            Self::Translated(Format::Converse) => &[b"application/vnd.amazon.eventstream"],
        };
        is_of_type(headers, types)
    }
}

fn wants_base64(request: &NormalizedRequest) -> bool {
    embeddings::wanted_encoding(&request.body) == Encoding::Base64
}

/// Reads embeddings in OpenAI's format, and writes them in the encoding that the caller wants.
fn vectors(raw: Bytes, prepared: &Prepared) -> Result<(Bytes, AnswerFacts), GatewayError> {
    let mut facts = embeddings::read_answer(&raw)?.facts;
    // A provider that does not count says 0, and nothing can be embedded out of no token.
    facts.usage = facts.usage.filter(|usage| !usage.input.is_zero());
    let raw = if prepared.vectors_to_base64 { embeddings::in_encoding(&raw, Encoding::Base64)? } else { raw };
    Ok((raw, facts))
}

/// The facts of an answer that says how many tokens a prompt has: nothing was generated, and nothing is billed.
fn counted() -> AnswerFacts {
    AnswerFacts { usage: Some(Usage::default()), finish: Some(FinishReason::Stop), ..AnswerFacts::default() }
}
