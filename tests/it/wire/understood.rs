//! Puts an exchange's answer through the readers.

use bytes::Bytes;
use gw_dialects::{
    anthropic, bedrock,
    collect::Collector,
    completions, embeddings, gemini,
    neutral::{Event, Message},
    ollama,
    openai::{self, StreamOptions},
    responses,
    translate::{self, WireFormat},
};
use gw_types::{AnswerFacts, ErrorKind, GatewayError, Operation, StreamItem};

use super::{exchange::Exchange, spoken::Spoken, told::Told};

/// Returns what an answer says. Of a stream both ways of feeding it are compared, and what differs is said in `faults`.
pub(super) fn understand(exchange: &Exchange, spoken: Spoken, faults: &mut Vec<String>) -> Told {
    if !exchange.is_success() {
        return Told::Error(classify(exchange, spoken));
    }
    let raw = &exchange.body;
    let told = match spoken {
        Spoken::Answers(format) if exchange.stream => {
            let whole = stream(format, raw, usize::MAX);
            if whole != stream(format, raw, 1) {
                faults.push("fed byte by byte it says something else than fed whole".to_owned());
            }
            return whole;
        }
        Spoken::Answers(format) => {
            translate::read_message(format, raw).map(|message| Told::Message(message, None))
        }
        Spoken::Completions if exchange.stream => {
            let whole = completion(raw, usize::MAX);
            if whole != completion(raw, 1) {
                faults.push("fed byte by byte it says something else than fed whole".to_owned());
            }
            whole.map(Told::Completion)
        }
        Spoken::Completions => completions::read_answer(raw).map(Told::Completion),
        Spoken::Embeddings => vectors(raw),
        Spoken::GeminiEmbeddings => gemini::read_embeddings(raw, "m").and_then(|body| vectors(&body)),
        Spoken::AnthropicTokens => anthropic::read_token_count(raw).map(Told::Tokens),
        Spoken::GeminiTokens => gemini::read_token_count(raw).map(|count| Told::Tokens(count.get())),
    };
    told.unwrap_or_else(Told::Error)
}

fn classify(exchange: &Exchange, spoken: Spoken) -> GatewayError {
    let format = match spoken {
        Spoken::Answers(format) => format,
        Spoken::Completions | Spoken::Embeddings => WireFormat::OpenAiChat,
        Spoken::GeminiEmbeddings | Spoken::GeminiTokens => WireFormat::Gemini,
        Spoken::AnthropicTokens => WireFormat::AnthropicMessages,
    };
    exchange.with_head(|head| translate::classify(format, head, &exchange.body))
}

fn vectors(raw: &Bytes) -> Result<Told, GatewayError> {
    let answer = embeddings::read_answer(raw)?;
    Ok(Told::Embeddings { vectors: answer.vectors as usize, usage: answer.facts.usage })
}

/// Reads a stream that is fed so many bytes at a time.
pub(super) fn stream(format: WireFormat, raw: &Bytes, chunk_bytes: usize) -> Told {
    let (message, error) = gather(&events(format, raw, chunk_bytes));
    Told::Message(message, error)
}

/// Returns the events of a stream that is fed so many bytes at a time.
fn events(format: WireFormat, raw: &Bytes, chunk_bytes: usize) -> Vec<Event> {
    let mut events = Vec::new();
    macro_rules! read {
        ($format:ident) => {{
            let mut reader = $format::StreamReader::new();
            for chunk in raw.chunks(chunk_bytes) {
                reader.push(raw.slice_ref(chunk), &mut events);
            }
            reader.end(&mut events);
        }};
    }
    match format {
        WireFormat::OpenAiChat => read!(openai),
        WireFormat::OpenAiResponses => read!(responses),
        WireFormat::AnthropicMessages => read!(anthropic),
        WireFormat::Gemini => read!(gemini),
        WireFormat::BedrockConverse => read!(bedrock),
        WireFormat::OllamaChat => read!(ollama),
    }
    events
}

/// Puts events together, up to the first that is last; a stream without one is incomplete.
fn gather(events: &[Event]) -> (Message, Option<GatewayError>) {
    let mut collector = Collector::default();
    for event in events {
        match event {
            Event::Error(error) => return (collector.finish(), Some(error.clone())),
            Event::End => return (collector.finish(), None),
            event => collector.push(event.clone()),
        }
    }
    let error =
        GatewayError::new(ErrorKind::Internal, "a reader of streams has not said how the stream ended");
    (collector.finish(), Some(error))
}

/// Reads what gw has written for a caller, as the caller would.
pub(super) fn read_back(caller: Operation, body: &Bytes, is_stream: bool) -> Result<Message, GatewayError> {
    let format = match caller {
        Operation::Messages => WireFormat::AnthropicMessages,
        Operation::Responses => WireFormat::OpenAiResponses,
        Operation::Chat | Operation::Completions | Operation::Embeddings | Operation::CountTokens => {
            WireFormat::OpenAiChat
        }
    };
    if !is_stream {
        return translate::read_message(format, body);
    }
    match gather(&events(format, body, usize::MAX)) {
        (message, None) => Ok(message),
        (_, Some(error)) => Err(error),
    }
}

/// Reads a stream of the legacy completions, of which gw keeps the facts.
fn completion(raw: &Bytes, chunk_bytes: usize) -> Result<AnswerFacts, GatewayError> {
    let mut decoder = completions::StreamDecoder::new(StreamOptions { relay_usage: true });
    let mut items = std::collections::VecDeque::new();
    for chunk in raw.chunks(chunk_bytes) {
        decoder.push(raw.slice_ref(chunk), &mut items);
    }
    items.push_back(decoder.end()?);
    let mut facts = AnswerFacts::default();
    for StreamItem { facts: frame, .. } in items {
        if let Some(error) = frame.error {
            return Err(error);
        }
        facts.usage = frame.usage.map(|usage| *usage).or(facts.usage);
        facts.finish = frame.finish.or(facts.finish);
        facts.content_bytes += u64::from(frame.content_bytes);
        facts.served_model = frame.served_model.or(facts.served_model.take());
    }
    Ok(facts)
}
