//! What a provider states that it counted, read off its raw answer without gw's readers, against gw's classes.

use gw_types::Usage;
use serde_json::Value;

/// Compares the sum of the classes with the total that the provider states; says what does not add up. Figures that
/// contradict each other cannot add up, and then gw must have said so; where they do not, it must not.
pub(super) fn compare(body: &[u8], usage: Option<&Usage>) -> Result<(), String> {
    let stated = documents(body).iter().fold(Stated::default(), Stated::merged);
    let (total, usage) = match (stated.total(), usage) {
        (None | Some(0), None) => return Ok(()),
        (None, Some(_)) => return Err("gw has usage that the provider does not state".to_owned()),
        (Some(total), None) => return Err(format!("the provider states {total} tokens, gw has no usage")),
        (Some(total), Some(usage)) => (total, usage),
    };
    match (stated.is_contradictory(), usage.inconsistent) {
        (true, true) => Ok(()),
        (true, false) => {
            Err("the provider's figures contradict each other, and gw does not say so".to_owned())
        }
        (false, true) => Err("gw says that figures contradict each other, which do not".to_owned()),
        (false, false) if usage.total().get() == total => Ok(()),
        (false, false) => {
            Err(format!("the provider states {total} tokens, gw's classes add up to {}", usage.total()))
        }
    }
}

/// The last figures that an answer states; every report counts from the beginning.
#[derive(Clone, Copy, Default)]
struct Stated {
    total: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    /// Part of the input.
    cached: Option<u64>,
    /// What caches read and wrote, beside the input (Anthropic, Bedrock).
    beside: [Option<u64>; 2],
    /// Reasoning: part of the output at some, beside it at others.
    reasoning: Option<u64>,
    /// What tools of the provider's own brought in, beside the input (Gemini).
    tools: Option<u64>,
    /// Audio, part of the output.
    audio: Option<u64>,
}

impl Stated {
    fn total(&self) -> Option<u64> {
        let counted = self.input.or(self.output).is_some();
        let sum = self.input.unwrap_or(0) + self.beside_input() + self.output.unwrap_or(0);
        self.total.or(counted.then_some(sum))
    }

    fn beside_input(&self) -> u64 {
        self.beside.iter().chain([&self.tools]).flatten().sum()
    }

    fn is_contradictory(&self) -> bool {
        let Some(input) = self.input else { return true };
        let output = self.output.unwrap_or(0);
        let reasoning = self.reasoning.unwrap_or(0);
        let sum = input + self.beside_input() + output;
        let is_beside = self.total == Some(sum + reasoning);
        let parts = self.audio.unwrap_or(0) + if is_beside { 0 } else { reasoning };
        self.cached.unwrap_or(0) > input
            || parts > output
            || self.total.is_some_and(|total| total != sum && !is_beside)
    }

    /// Takes over what a document states.
    fn merged(self, document: &Value) -> Self {
        let Some(usage) = usage_of(document) else { return self };
        let count = |places: &[&str]| places.iter().find_map(|place| usage.pointer(place)?.as_u64());
        let last = |places: &[&str], before: Option<u64>| count(places).filter(|count| *count > 0).or(before);
        Self {
            total: last(&["/total_tokens", "/totalTokenCount", "/totalTokens"], self.total),
            input: last(
                &[
                    "/input_tokens",
                    "/prompt_tokens",
                    "/promptTokenCount",
                    "/inputTokens",
                    "/prompt_eval_count",
                ],
                self.input,
            ),
            output: last(
                &[
                    "/output_tokens",
                    "/completion_tokens",
                    "/candidatesTokenCount",
                    "/outputTokens",
                    "/eval_count",
                ],
                self.output,
            ),
            cached: last(
                &[
                    "/prompt_tokens_details/cached_tokens",
                    "/input_tokens_details/cached_tokens",
                    "/cachedContentTokenCount",
                ],
                self.cached,
            ),
            beside: [
                last(&["/cache_creation_input_tokens", "/cacheWriteInputTokens"], self.beside[0]),
                last(&["/cache_read_input_tokens", "/cacheReadInputTokens"], self.beside[1]),
            ],
            reasoning: last(
                &[
                    "/completion_tokens_details/reasoning_tokens",
                    "/output_tokens_details/reasoning_tokens",
                    "/thoughtsTokenCount",
                ],
                self.reasoning,
            ),
            tools: last(&["/toolUsePromptTokenCount"], self.tools),
            audio: last(&["/completion_tokens_details/audio_tokens"], self.audio),
        }
    }
}

/// Returns the usage of a document, wherever its format puts it.
fn usage_of(document: &Value) -> Option<&Value> {
    const PLACES: [&str; 5] =
        ["/usage", "/usageMetadata", "/message/usage", "/response/usage", "/x_groq/usage"];
    let of_object = PLACES.iter().filter_map(|place| document.pointer(place)).find(|usage| usage.is_object());
    // Ollama's figures stand on top.
    of_object.or_else(|| document.get("prompt_eval_count").map(|_| document))
}

/// Returns whether the provider says that it gave the answer up: it ends for a reason that is none of an answer's.
pub(super) fn gave_up(body: &[u8]) -> bool {
    const ENDS: [&str; 3] = ["/candidates/0/finishReason", "/stopReason", "/messageStop/stopReason"];
    const OF_ANSWERS: [&str; 6] =
        ["STOP", "MAX_TOKENS", "end_turn", "max_tokens", "stop_sequence", "tool_use"];
    documents(body).iter().any(|document| {
        let reasons = ENDS.iter().filter_map(|place| document.pointer(place)?.as_str());
        reasons.into_iter().any(|reason| !OF_ANSWERS.contains(&reason))
    })
}

/// Returns every JSON document of an answer, in order: the answer, or the events of a stream in any framing.
fn documents(body: &[u8]) -> Vec<Value> {
    if let Ok(document) = serde_json::from_slice::<Value>(body) {
        return match document {
            Value::Array(items) => items,
            document => vec![document],
        };
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
        return lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    }
    frames(body)
}

/// Returns the payloads of an AWS event stream: 12 bytes of prelude, headers, payload, 4 bytes of checksum.
fn frames(mut bytes: &[u8]) -> Vec<Value> {
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(word)).ok()
    };
    let mut payloads = Vec::new();
    while let (Some(total), Some(headers)) = (word(bytes, 0), word(bytes, 4)) {
        let payload = total.checked_sub(4).and_then(|end| bytes.get(12 + headers..end));
        payloads.extend(payload.and_then(|payload| serde_json::from_slice(payload).ok()));
        bytes = bytes.get(total.max(1)..).unwrap_or_default();
    }
    payloads
}

#[cfg(test)]
mod tests {
    use gw_types::{TokenCount, Usage};

    use super::compare;

    #[track_caller]
    fn check(body: &str, usage: Option<(u64, u64, bool)>, adds_up: bool) {
        let usage = usage.map(|(input, output, inconsistent)| Usage {
            input: TokenCount::new(input),
            output: TokenCount::new(output),
            inconsistent,
            ..Usage::default()
        });
        assert_eq!(compare(body.as_bytes(), usage.as_ref()).is_ok(), adds_up, "{body}");
    }

    #[test]
    fn totals_are_stated_or_summed() {
        let chat = r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
        check(chat, Some((5, 2, false)), true);
        check(chat, Some((5, 3, false)), false);
        check(chat, Some((5, 2, true)), false);
        check(chat, None, false);
        check(r#"{"choices":[]}"#, None, true);
        check(r#"{"choices":[]}"#, Some((5, 2, false)), false);
        let apart = r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":11,"completion_tokens_details":{"reasoning_tokens":4}}}"#;
        check(apart, Some((5, 6, false)), true);
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":9,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n";
        check(stream, Some((13, 3, false)), true);
        check(stream, Some((13, 4, false)), false);
    }

    #[test]
    fn contradictions_must_be_said() {
        let cached = r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":6}}}"#;
        check(cached, Some((6, 2, true)), true);
        check(cached, Some((5, 2, false)), false);
        check(r#"{"usageMetadata":{"candidatesTokenCount":3}}"#, Some((0, 3, true)), true);
    }
}
