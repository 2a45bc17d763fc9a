//! What every recorded chat answer says, read off the recordings, against what the readers make of it.

use std::collections::VecDeque;

use bytes::Bytes;
use gw_dialects::openai::{ChatCodec, StreamDecoder, StreamOptions, read_answer};
use gw_types::{
    AnswerFacts, DialectCodec, FinishReason,
    FinishReason::{ContentFilter, Length, Refusal, Stop, ToolCalls},
};

use crate::fixtures::{Exchange, chat_exchanges};

/// Why an answer ended; its tokens: uncached, cached and written input, visible output, reasoning; the calls of all choices.
type Answer = (&'static str, FinishReason, Option<[u64; 5]>, usize);

const ANSWERS: [Answer; 99] = [
    ("alibaba-chat--stream-tool-call--9a2291", ToolCalls, Some([295, 0, 0, 22, 0]), 1),
    ("azure-chat--filtered-text--391804", ContentFilter, Some([15, 0, 0, 19, 0]), 0),
    ("azure-chat--json-mode-usage-cached--0cb213", Stop, Some([0, 157, 0, 6, 0]), 0),
    ("azure-chat--multi-turn-text--52f760", Stop, Some([31, 0, 0, 11, 128]), 0),
    ("azure-chat--stream-text--64afe4", Stop, Some([15, 0, 0, 14, 64]), 0),
    ("azure-chat--stream-text--eb877c", Stop, None, 0),
    ("azure-chat--stream-tool-call-system--c836a0", ToolCalls, Some([64, 0, 0, 23, 64]), 1),
    ("azure-chat--stream-tool-call-tool-result--7b0707", ToolCalls, Some([0, 403, 0, 18, 0]), 1),
    ("azure-chat--stream-usage-cached-text--1e228f", Stop, Some([0, 161, 0, 8, 0]), 0),
    ("azure-chat--tool-result-image--8a59b3", Stop, Some([0, 370, 0, 91, 0]), 0),
    ("azure-chat--tool-result-multi-turn--cc96b6", Stop, Some([176, 0, 0, 69, 576]), 0),
    ("azure-chat--tools-parallel-usage-cached--c2a78f", ToolCalls, Some([60, 159, 0, 45, 0]), 3),
    ("cerebras-chat--tool-call-multi-turn--4c4254", ToolCalls, Some([364, 0, 0, 33, 0]), 1),
    ("deepseek-chat--json-mode-text--acaaf1", Stop, Some([44, 0, 0, 9, 0]), 0),
    ("deepseek-chat--reasoning-usage-cached--15f8cf", Stop, Some([175, 320, 0, 26, 118]), 0),
    ("deepseek-chat--stream-reasoning-system--89bbd4", Stop, Some([17, 0, 0, 13, 34]), 0),
    ("deepseek-chat--stream-reasoning-text--db710b", Stop, Some([18, 0, 0, 14, 205]), 0),
    ("deepseek-chat--stream-tool-call-reasoning--2dc11b", ToolCalls, Some([19, 320, 0, 44, 39]), 1),
    ("deepseek-chat--stream-tool-call-tool-result--2a9241", ToolCalls, Some([112, 384, 0, 31, 0]), 1),
    ("deepseek-chat--tool-call-usage-cached--ff48f5", ToolCalls, Some([87, 256, 0, 58, 0]), 1),
    ("deepseek-chat--tool-result-reasoning--ed7f5c", Stop, Some([80, 896, 0, 36, 25]), 0),
    ("deepseek-chat--tools-parallel-system--305edc", ToolCalls, Some([305, 0, 0, 72, 0]), 3),
    ("groq-chat--json-mode-reasoning--648769", Stop, Some([177, 0, 0, 87, 0]), 0),
    ("groq-chat--stream-text--fb6b0a", Stop, Some([12, 0, 0, 26, 0]), 0),
    ("groq-chat--stream-tool-call--438199", ToolCalls, None, 1),
    ("groq-chat--stream-tool-result-multi-turn--836b50", Stop, Some([143, 0, 0, 13, 0]), 0),
    ("groq-chat--stream-tools-parallel-system--d5559b", ToolCalls, Some([201, 0, 0, 58, 0]), 2),
    ("groq-chat--text--f98aa4", Stop, Some([18, 0, 0, 70, 0]), 0),
    ("groq-chat--tool-result-image--42d8ab", Stop, Some([1198, 0, 0, 60, 0]), 0),
    ("groq-chat--tool-result-multi-turn--12cb5f", Stop, Some([143, 0, 0, 13, 0]), 0),
    ("groq-chat--tool-result-reasoning--1794ef", Stop, Some([80, 256, 0, 37, 59]), 0),
    ("groq-chat--tools-parallel-system--ccf289", ToolCalls, Some([205, 0, 0, 53, 0]), 2),
    ("huggingface-chat--stream-tools-parallel-system--6e093a", ToolCalls, Some([201, 0, 0, 55, 0]), 2),
    ("huggingface-chat--tool-result-multi-turn--ec98b2", Stop, Some([132, 0, 0, 13, 0]), 0),
    ("huggingface-chat--tools-parallel--b7d485", ToolCalls, Some([720, 0, 0, 65, 0]), 2),
    ("mistral-chat--image-text--99f396", Stop, Some([81, 0, 0, 48, 0]), 0),
    ("mistral-chat--json-schema-text--77ebdb", Stop, Some([8, 0, 0, 14, 0]), 0),
    ("mistral-chat--reasoning-multi-turn--705c0d", Stop, Some([113, 0, 0, 58, 0]), 0),
    ("mistral-chat--stream-reasoning-text--879253", Stop, Some([10, 0, 0, 46, 0]), 0),
    ("mistral-chat--stream-tool-call--9bea27", ToolCalls, Some([96, 0, 0, 23, 0]), 1),
    ("mistral-chat--stream-tool-call-tool-result--b81ac1", ToolCalls, Some([99, 192, 0, 27, 0]), 1),
    ("mistral-chat--stream-tool-call-usage-cached--b48c6d", ToolCalls, Some([43, 128, 0, 14, 0]), 1),
    ("mistral-chat--stream-tool-result-usage-cached--8e42b7", Stop, Some([30, 192, 0, 43, 0]), 0),
    ("mistral-chat--stream-tools-parallel--6ce54e", ToolCalls, Some([164, 0, 0, 25, 0]), 2),
    ("mistral-chat--text--338bcb", Stop, Some([28, 0, 0, 6, 0]), 0),
    ("mistral-chat--tool-call-usage-cached--f2504c", ToolCalls, Some([32, 112, 0, 28, 0]), 1),
    ("mistral-chat--tools-parallel-system--2eb728", ToolCalls, Some([109, 0, 0, 19, 0]), 3),
    ("mistral-chat--truncated-text--067d50", Length, Some([9, 0, 0, 100, 0]), 0),
    ("moonshot-chat--tool-call--7a358c", ToolCalls, Some([30, 0, 0, 12, 0]), 1),
    ("ollama-openai-chat--stream-tool-result-reasoning--34f34c", Stop, Some([283, 0, 0, 92, 0]), 0),
    ("ollama-openai-chat--tool-call-tool-result--987949", ToolCalls, Some([300, 0, 0, 44, 0]), 1),
    ("openai-chat--audio-text--45fde7", Stop, Some([19, 0, 0, 1, 0]), 0),
    ("openai-chat--citations-text--5f4b95", Stop, Some([13, 0, 0, 197, 0]), 0),
    ("openai-chat--json-schema-text--0328d3", Stop, Some([95, 0, 0, 25, 1856]), 0),
    ("openai-chat--reasoning-text--f8bef5", Stop, Some([12, 0, 0, 15, 15]), 0),
    ("openai-chat--stream-json-schema-text--cb363b", Stop, Some([95, 0, 0, 34, 64]), 0),
    ("openai-chat--stream-refusal-json-schema--74f7c2", Refusal, Some([64, 0, 0, 12, 0]), 0),
    ("openai-chat--stream-system-text--dec61b", Stop, None, 0),
    ("openai-chat--stream-text--fac3d9", Stop, None, 0),
    ("openai-chat--stream-tool-call-json-mode--993680", ToolCalls, Some([218, 0, 0, 22, 0]), 1),
    ("openai-chat--stream-tool-call-tool-result--29ef23", ToolCalls, Some([110, 0, 0, 19, 0]), 1),
    ("openai-chat--stream-tools-parallel-system--4ad9fd", ToolCalls, Some([190, 0, 0, 59, 320]), 2),
    ("openai-chat--stream-tools-parallel-tool-result--95e6d4", ToolCalls, Some([417, 0, 0, 44, 0]), 2),
    ("openai-chat--stream-truncated-text--161c01", Length, None, 0),
    ("openai-chat--stream-truncated-usage-cached--768931", Length, Some([140, 1280, 0, 100, 0]), 0),
    ("openai-chat--text--874fb2", Stop, Some([11, 0, 0, 36, 192]), 0),
    ("openai-chat--text--ff1c97", ToolCalls, Some([82, 0, 0, 16, 0]), 0),
    ("openai-chat--tool-call-image--bebe0e", ToolCalls, Some([1102, 0, 0, 44, 0]), 1),
    ("openai-chat--tool-call-tool-result--4f5b04", ToolCalls, Some([88, 0, 0, 15, 0]), 1),
    ("openai-chat--tool-result-document--b3f7c4", Stop, Some([375, 0, 0, 116, 256]), 0),
    ("openai-chat--tool-result-json-mode--5c5183", Stop, Some([278, 0, 0, 28, 0]), 0),
    ("openai-chat--tools-parallel-multiple-choices--365f0d", ToolCalls, Some([85, 0, 0, 38, 0]), 2),
    ("openai-chat--tools-parallel-tool-result--476638", ToolCalls, Some([207, 0, 0, 46, 0]), 2),
    ("openai-chat--truncated-usage-cache-write--013b12", Length, Some([3, 0, 1217, 0, 100]), 0),
    ("openai-chat--usage-cached-system--e20d40", Stop, Some([17, 1, 0, 0, 0]), 0),
    ("openrouter-chat--citations-leading-whitespace--820838", Stop, Some([7, 0, 0, 236, 0]), 0),
    ("openrouter-chat--json-schema-leading-whitespace--d8f34c", Stop, Some([174, 0, 0, 12, 0]), 0),
    ("openrouter-chat--stream-tool-result-multi-turn--f6ee54", Stop, Some([754, 0, 0, 28, 0]), 0),
    ("openrouter-chat--stream-tool-result-reasoning--8746c3", Stop, Some([1, 403, 0, 17, 94]), 0),
    ("openrouter-chat--stream-tools-parallel-cache-control--b46947", ToolCalls, Some([685, 0, 0, 120, 0]), 2),
    ("openrouter-chat--text--dffb69", Stop, None, 0),
    ("openrouter-chat--tool-call--1b1d17", ToolCalls, Some([280, 0, 0, 40, 0]), 1),
    ("openrouter-chat--tool-call-reasoning--f316c1", ToolCalls, Some([626, 0, 0, 52, 61]), 1),
    ("openrouter-chat--tool-result-image--e18039", Stop, Some([316, 0, 0, 60, 0]), 0),
    ("openrouter-chat--tool-result-reasoning--ab85a7", Stop, Some([94, 310, 0, 12, 116]), 0),
    ("openrouter-chat--tools-parallel-leading-whitespace--e0ee39", ToolCalls, Some([596, 0, 0, 75, 0]), 3),
    ("other-openai-chat--stream-tool-call--1c58bd", ToolCalls, None, 1),
    ("perplexity-chat--json-schema-citations--c9796b", Stop, Some([20, 0, 0, 5, 0]), 0),
    ("perplexity-chat--stream-citations-text--f008d6", Stop, Some([8, 0, 0, 5, 0]), 0),
    ("together-chat--stream-text--94c0be", Stop, Some([41, 0, 0, 15, 0]), 0),
    ("together-chat--tool-call--d000d6", ToolCalls, Some([198, 0, 0, 24, 0]), 1),
    ("xai-chat--stream-reasoning-text--77b1e4", Stop, None, 0),
    ("xai-chat--stream-tool-call-usage-cached--e97278", ToolCalls, Some([1, 400, 0, 44, 257]), 1),
    ("xai-chat--stream-tools-parallel-reasoning--32e627", ToolCalls, Some([274, 192, 0, 68, 266]), 2),
    ("xai-chat--tool-call-reasoning--3a8b2c", ToolCalls, Some([237, 192, 0, 44, 502]), 1),
    ("xai-chat--tool-result-reasoning--1a98a4", Stop, Some([48, 283, 0, 11, 332]), 0),
    ("zai-chat--stream-tool-call-reasoning--6436f9", ToolCalls, Some([1, 224, 0, 23, 78]), 1),
    ("zai-chat--stream-tools-parallel-reasoning--a4bd09", ToolCalls, Some([232, 43, 0, 48, 64]), 2),
    ("zai-chat--tool-call-reasoning--f783de", ToolCalls, Some([182, 43, 0, 23, 77]), 1),
];

/// Recordings whose figures contradict each other; the parts are kept as reported and the sum is brought into range.
const CONTRADICTORY: [&str; 4] = [
    "azure-chat--json-mode-usage-cached--0cb213",
    "azure-chat--stream-tool-call-tool-result--7b0707",
    "azure-chat--stream-usage-cached-text--1e228f",
    "openai-chat--usage-cached-system--e20d40",
];

fn check(exchange: &Exchange, facts: &AnswerFacts) {
    let id = &exchange.id;
    let Some((_, finish, tokens, _)) = ANSWERS.iter().find(|row| row.0 == id) else {
        panic!("{id} is not in the table");
    };
    assert_eq!(facts.finish, Some(*finish), "{id}");
    let classes = facts.usage.map(|usage| {
        [usage.input, usage.cached_input, usage.cache_write, usage.output, usage.reasoning]
            .map(|count| count.get())
    });
    assert_eq!(classes, *tokens, "{id}");
    let inconsistent = facts.usage.is_some_and(|usage| usage.inconsistent);
    assert_eq!(inconsistent, CONTRADICTORY.contains(&id.as_str()), "{id}");
    assert_eq!(facts.tool_calls, *finish == ToolCalls, "{id}");
}

fn stream(exchange: &Exchange, size: usize) -> Option<AnswerFacts> {
    let mut decoder = StreamDecoder::new(StreamOptions { relay_usage: true });
    let mut items = VecDeque::new();
    for piece in exchange.body.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece), &mut items);
    }
    items.push_back(decoder.end().ok()?);
    let mut facts = AnswerFacts::default();
    for item in items.into_iter().map(|item| item.facts) {
        if item.error.is_some() {
            return None;
        }
        facts.finish = item.finish.or(facts.finish);
        facts.usage = item.usage.map(|usage| *usage).or(facts.usage);
        facts.tool_calls |= item.tool_calls;
    }
    Some(facts)
}

#[test]
fn recorded_answers_say_what_the_recordings_say() {
    let mut read = 0;
    for exchange in chat_exchanges().into_iter().filter(|exchange| exchange.status == 200) {
        let body = Bytes::copy_from_slice(&exchange.body);
        let facts = if exchange.stream {
            let whole = stream(exchange, usize::MAX);
            assert_eq!(stream(exchange, 1), whole, "{}", exchange.id);
            whole
        } else {
            read_answer(&body).ok()
        };
        // What fails inside a 200 is looked at where errors are.
        let Some(facts) = facts else { continue };
        check(exchange, &facts);
        read += 1;
    }
    assert!(read == 0 || read == ANSWERS.len(), "{read}");
}

#[test]
fn recorded_calls_are_all_found() {
    for exchange in chat_exchanges().into_iter().filter(|one| one.status == 200 && !one.stream) {
        // What has no neutral form for the cache is looked at elsewhere.
        let Some(completion) = ChatCodec.completion(&Bytes::copy_from_slice(&exchange.body)) else {
            continue;
        };
        let calls: usize = completion.choices.iter().map(|choice| choice.tool_calls.len()).sum();
        let expected = ANSWERS.iter().find(|row| row.0 == exchange.id).map(|row| row.3);
        assert_eq!(Some(calls), expected, "{}", exchange.id);
        for call in completion.choices.iter().flat_map(|choice| &choice.tool_calls) {
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(arguments.is_object() && !call.name.is_empty() && !call.id.is_empty(), "{}", exchange.id);
        }
    }
}
