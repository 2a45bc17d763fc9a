//! Which formats gw speaks, by the names that the recordings have for them.

use gw_dialects::translate::WireFormat;

/// A format, and what reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    /// Answers that every caller can be given.
    Answers(WireFormat),
    /// OpenAI's legacy completions.
    Completions,
    /// OpenAI's embeddings.
    Embeddings,
    /// Google's embeddings.
    GeminiEmbeddings,
    /// Anthropic's count of tokens.
    AnthropicTokens,
    /// Google's count of tokens.
    GeminiTokens,
}

/// Formats that gw does not speak: it reaches the models behind them by others.
const NOT_SPOKEN: [&str; 8] = [
    "bedrock.invoke",
    "bedrock.invoke-stream",
    "cohere.chat",
    "cohere.embed",
    "cohere.rerank",
    "ollama.generate",
    "voyage.embeddings",
    "voyage.rerank",
];

/// Returns what reads a format, or `None` for one that gw does not speak. Every vendor's `chat`, `responses`, `completions`
/// and `embeddings` are OpenAI's formats, but for those with one of their own under the name.
pub(super) fn spoken(api: &str) -> Option<Spoken> {
    if NOT_SPOKEN.contains(&api) {
        return None;
    }
    let (vendor, format) = api.split_once('.')?;
    match (vendor, format) {
        ("anthropic", "messages") => Some(Spoken::Answers(WireFormat::AnthropicMessages)),
        ("anthropic", "count_tokens") => Some(Spoken::AnthropicTokens),
        ("gemini", "generateContent" | "streamGenerateContent") => Some(Spoken::Answers(WireFormat::Gemini)),
        ("gemini", "countTokens") => Some(Spoken::GeminiTokens),
        ("gemini", "embedContent" | "batchEmbedContents") => Some(Spoken::GeminiEmbeddings),
        ("bedrock", "converse" | "converse-stream") => Some(Spoken::Answers(WireFormat::BedrockConverse)),
        ("ollama", "chat") => Some(Spoken::Answers(WireFormat::OllamaChat)),
        (_, "chat" | "openai-chat") => Some(Spoken::Answers(WireFormat::OpenAiChat)),
        (_, "responses") => Some(Spoken::Answers(WireFormat::OpenAiResponses)),
        (_, "completions") => Some(Spoken::Completions),
        (_, "embeddings") => Some(Spoken::Embeddings),
        _ => None,
    }
}

#[test]
fn compatible_vendors_speak_openai_and_others_their_own() {
    let chat = Some(Spoken::Answers(WireFormat::OpenAiChat));
    assert_eq!(
        (spoken("groq.chat"), spoken("ollama.openai-chat"), spoken("cohere.chat")),
        (chat, chat, None)
    );
}
