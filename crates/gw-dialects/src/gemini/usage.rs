//! Usage: what Gemini reports, brought into classes that do not overlap.

use gw_types::{TokenCount, Usage};

use crate::json::{Node, Value};

/// A `usageMetadata`, as reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WireUsage {
    /// Input, cached tokens included, what tools brought in excluded.
    prompt: Option<u64>,
    /// What server tools brought into the prompt.
    tool_prompt: Option<u64>,
    cached: Option<u64>,
    /// Visible output, thoughts excluded.
    candidates: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
    prompt_audio: Option<u64>,
    prompt_image: Option<u64>,
    cached_audio: Option<u64>,
    cached_image: Option<u64>,
    output_audio: Option<u64>,
    /// Whether a count below zero was reported.
    negative: bool,
}

const AUDIO: (&str, u64) = ("AUDIO", 4);
const IMAGE: (&str, u64) = ("IMAGE", 2);

impl WireUsage {
    /// Reads a `usageMetadata`.
    pub(super) fn read(node: &Node<'_>) -> Self {
        let of = |details: &str, modality| node.get(details).and_then(|list| modality_count(list, modality));
        Self {
            prompt: node.count("promptTokenCount"),
            tool_prompt: node.count("toolUsePromptTokenCount"),
            cached: node.count("cachedContentTokenCount"),
            candidates: node.count("candidatesTokenCount"),
            thoughts: node.count("thoughtsTokenCount"),
            total: node.count("totalTokenCount"),
            prompt_audio: of("promptTokensDetails", AUDIO),
            prompt_image: of("promptTokensDetails", IMAGE),
            cached_audio: of("cacheTokensDetails", AUDIO),
            cached_image: of("cacheTokensDetails", IMAGE),
            output_audio: of("candidatesTokensDetails", AUDIO),
            negative: node.holds_a_negative(),
        }
    }

    /// Takes over every figure of a later report: each report counts from the beginning, and may leave figures out.
    pub(super) fn merge(&mut self, later: &Self) {
        let fields = [
            (&mut self.prompt, later.prompt),
            (&mut self.tool_prompt, later.tool_prompt),
            (&mut self.cached, later.cached),
            (&mut self.candidates, later.candidates),
            (&mut self.thoughts, later.thoughts),
            (&mut self.total, later.total),
            (&mut self.prompt_audio, later.prompt_audio),
            (&mut self.prompt_image, later.prompt_image),
            (&mut self.cached_audio, later.cached_audio),
            (&mut self.cached_image, later.cached_image),
            (&mut self.output_audio, later.output_audio),
        ];
        for (field, later) in fields {
            if field.is_none() || later.is_some_and(|later| later > 0) {
                *field = later.or(*field);
            }
        }
        self.negative |= later.negative;
    }

    /// Returns the usage in disjoint classes, or `None` if nothing was counted.
    ///
    /// `promptTokenCount` holds the cached tokens, `candidatesTokenCount` does not hold the thoughts, and the total is the
    /// sum of prompt, tool prompt, candidates and thoughts. Where only a smaller sum explains the total, thoughts are part
    /// of the candidates. A prompt that is not reported is what the total leaves for it.
    pub(super) fn classes(&self) -> Option<Usage> {
        if self.negative {
            return Some(Usage { implausible: true, ..Usage::default() });
        }
        let candidates = self.candidates.unwrap_or(0);
        let thoughts = self.thoughts.unwrap_or(0);
        let tool_prompt = self.tool_prompt.unwrap_or(0);
        let produced = candidates.saturating_add(thoughts).saturating_add(tool_prompt);
        let prompt = self.prompt.unwrap_or_else(|| self.total.unwrap_or(0).saturating_sub(produced));
        if prompt == 0 && produced == 0 {
            return None;
        }
        let sum = prompt.saturating_add(produced);
        let inside = thoughts > 0 && thoughts <= candidates && self.total == Some(sum - thoughts);
        let visible = if inside { candidates - thoughts } else { candidates };

        let cached = self.cached.unwrap_or(0);
        let uncached =
            |all: Option<u64>, cached: Option<u64>| all.unwrap_or(0).saturating_sub(cached.unwrap_or(0));
        let rest = prompt.saturating_sub(cached);
        let audio = uncached(self.prompt_audio, self.cached_audio).min(rest);
        let image = uncached(self.prompt_image, self.cached_image).min(rest - audio);
        let audio_output = self.output_audio.unwrap_or(0).min(visible);
        let contradicts = cached > prompt || prompt == 0 || self.total.is_some_and(|t| t != sum && !inside);
        Some(Usage {
            input: TokenCount::new((rest - audio - image).saturating_add(tool_prompt)),
            cached_input: TokenCount::new(cached),
            output: TokenCount::new(visible - audio_output),
            reasoning: TokenCount::new(thoughts),
            audio_input: TokenCount::new(audio),
            audio_output: TokenCount::new(audio_output),
            image_input: TokenCount::new(image),
            inconsistent: contradicts,
            ..Usage::default()
        })
    }
}

/// Returns the count of a modality, which is named or numbered.
fn modality_count(list: &Node<'_>, (name, number): (&str, u64)) -> Option<u64> {
    let is = |item: &&Node<'_>| match item.get("modality").map(|modality| &modality.value) {
        Some(Value::String(text)) => text.is(name),
        Some(Value::Number) => item.count("modality") == Some(number),
        Some(Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Null) | None => false,
    };
    list.items().iter().find(is)?.count("tokenCount")
}

#[cfg(test)]
mod tests {
    use gw_types::Usage;

    use super::WireUsage;
    use crate::json::Node;

    fn read(json: &str) -> WireUsage {
        WireUsage::read(&Node::read(json).unwrap())
    }

    /// Input, cached, output, reasoning, audio in, image in, and whether the figures contradict each other.
    #[track_caller]
    fn check(json: &str, expected: [u64; 6], inconsistent: bool) {
        let usage = read(json).classes().unwrap();
        let Usage { input, cached_input, output, reasoning, audio_input, image_input, .. } = usage;
        let found =
            [input, cached_input, output, reasoning, audio_input, image_input].map(|count| count.get());
        assert_eq!((found, usage.inconsistent), (expected, inconsistent), "{json}");
        let wire = read(json);
        if let (Some(total), false) = (wire.total, inconsistent) {
            assert_eq!(usage.total().get(), total, "{json}");
        }
    }

    #[test]
    fn thoughts_are_beside_the_candidates() {
        check(
            r#"{"promptTokenCount":54,"candidatesTokenCount":15,"totalTokenCount":133,"thoughtsTokenCount":64}"#,
            [54, 0, 15, 64, 0, 0],
            false,
        );
        check(
            r#"{"promptTokenCount":10,"candidatesTokenCount":30,"thoughtsTokenCount":20,"totalTokenCount":40}"#,
            [10, 0, 10, 20, 0, 0],
            false,
        );
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt() {
        check(
            r#"{"promptTokenCount":1344,"candidatesTokenCount":99,"totalTokenCount":1517,"thoughtsTokenCount":74,
            "cachedContentTokenCount":1274,"cacheTokensDetails":[{"modality":"IMAGE","tokenCount":1223}],
            "promptTokensDetails":[{"modality":"DOCUMENT","tokenCount":1290}]}"#,
            [70, 1274, 99, 74, 0, 0],
            false,
        );
    }

    #[test]
    fn what_tools_bring_in_is_input() {
        check(
            r#"{"promptTokenCount":15,"candidatesTokenCount":37,"totalTokenCount":1564,"toolUsePromptTokenCount":770,"thoughtsTokenCount":742}"#,
            [785, 0, 37, 742, 0, 0],
            false,
        );
    }

    #[test]
    fn audio_and_images_are_classes_of_their_own() {
        check(
            r#"{"promptTokenCount":91,"candidatesTokenCount":8,"totalTokenCount":453,"thoughtsTokenCount":354,
            "promptTokensDetails":[{"modality":"TEXT","tokenCount":7},{"modality":"AUDIO","tokenCount":84}]}"#,
            [7, 0, 8, 354, 84, 0],
            false,
        );
        check(
            r#"{"promptTokenCount":608,"candidatesTokenCount":115,"totalTokenCount":723,
            "promptTokensDetails":[{"modality":2,"tokenCount":258},{"modality":1,"tokenCount":350}]}"#,
            [350, 0, 115, 0, 0, 258],
            false,
        );
    }

    #[test]
    fn missing_and_contradicting_figures() {
        check(r#"{"candidatesTokenCount":23,"thoughtsTokenCount":67}"#, [0, 0, 23, 67, 0, 0], true);
        check(r#"{"candidatesTokenCount":23,"totalTokenCount":30}"#, [7, 0, 23, 0, 0, 0], false);
        check(r#"{"promptTokenCount":5,"cachedContentTokenCount":9}"#, [0, 9, 0, 0, 0, 0], true);
        check(r#"{"promptTokenCount":5,"totalTokenCount":9}"#, [5, 0, 0, 0, 0, 0], true);
        assert_eq!(read(r#"{"trafficType":"ON_DEMAND"}"#).classes(), None);
        assert_eq!(read(r#"{"candidatesTokenCount":1.5}"#).classes(), None);
    }

    #[test]
    fn later_reports_replace_earlier_ones() {
        let mut usage = read(
            r#"{"promptTokenCount":59,"candidatesTokenCount":8,"totalTokenCount":97,"thoughtsTokenCount":30}"#,
        );
        usage.merge(&read(r#"{"promptTokenCount":128,"candidatesTokenCount":21,"totalTokenCount":179}"#));
        let classes = usage.classes().unwrap();
        assert_eq!((classes.input.get(), classes.output.get(), classes.reasoning.get()), (128, 21, 30));
        assert!(!classes.inconsistent);
    }

    #[test]
    fn a_negative_count_makes_the_report_implausible() {
        let implausible = Some(Usage { implausible: true, ..Usage::default() });
        for text in [
            r#"{"promptTokenCount":-1,"candidatesTokenCount":5}"#,
            r#"{"promptTokenCount":1,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":-2}]}"#,
        ] {
            assert_eq!(read(text).classes(), implausible, "{text}");
        }
    }
}
