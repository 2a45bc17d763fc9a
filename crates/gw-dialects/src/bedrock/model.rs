//! What the id of a model says about what it takes.

/// The maker's line of models, as far as requests differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Anthropic's Claude.
    Claude,
    /// Amazon's Nova.
    Nova,
    /// OpenAI's open-weight models.
    OpenAi,
    /// Anything else, and ids that do not say.
    Other,
}

/// What is known of a model by its id. A Claude without a version is taken for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) line: Line,
    /// Major and minor number, such as `(4, 5)`.
    version: Option<(u32, u32)>,
}

impl Model {
    /// Reads an id such as `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, also as the end of an ARN.
    pub(super) fn of(id: &str) -> Self {
        let name = id.rsplit('/').next().unwrap_or(id);
        let after = |mark: &str| name.split_once(mark).map(|(_, rest)| rest);
        if let Some(rest) = after("anthropic.claude") {
            return Self { line: Line::Claude, version: version(rest) };
        }
        if let Some(rest) = after("amazon.nova") {
            return Self { line: Line::Nova, version: version(rest) };
        }
        let line = if after("openai.").is_some() { Line::OpenAi } else { Line::Other };
        Self { line, version: None }
    }

    fn is_claude_since(self, version: (u32, u32)) -> bool {
        self.line == Line::Claude && self.version.is_none_or(|own| own >= version)
    }

    /// Whether thinking can be asked for with a budget.
    pub(super) fn thinks_by_budget(self) -> bool {
        self.is_claude_since((3, 7)) && !self.is_claude_since((4, 7))
    }

    /// Whether the model can be left to decide how much it thinks.
    pub(super) fn thinks_adaptively(self) -> bool {
        self.is_claude_since((4, 6))
    }

    /// Whether thinking can be asked for with an effort of Nova's.
    pub(super) fn is_thinking_nova(self) -> bool {
        self.line == Line::Nova && self.version.is_some_and(|own| own >= (2, 0))
    }

    /// Whether the model keeps to a JSON schema by itself.
    pub(super) fn keeps_to_schemas(self) -> bool {
        self.is_claude_since((4, 5))
    }

    /// Whether the model refuses a temperature and nucleus sampling at once.
    pub(super) fn takes_one_randomness(self) -> bool {
        self.is_claude_since((4, 1))
    }

    /// Whether prompts can be cached at marks.
    pub(super) fn caches(self) -> bool {
        matches!(self.line, Line::Claude | Line::Nova)
    }

    /// Whether a cache can be kept for an hour.
    pub(super) fn caches_long(self) -> bool {
        self.is_claude_since((4, 5))
    }
}

/// Reads the first one or two numbers of at most two digits: dates have more.
fn version(rest: &str) -> Option<(u32, u32)> {
    let number = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        (digits && matches!(part.len(), 1 | 2)).then(|| part.parse().ok()).flatten()
    };
    let mut parts = rest.split('-').skip_while(|part| number(part).is_none());
    let major = number(parts.next()?)?;
    Some((major, parts.next().and_then(number).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::{Line, Model};

    #[track_caller]
    fn check(id: &str, line: Line, version: Option<(u32, u32)>) {
        assert_eq!(Model::of(id), Model { line, version }, "{id}");
    }

    #[test]
    fn ids_say_line_and_version() {
        check("anthropic.claude-3-sonnet-20240229-v1:0", Line::Claude, Some((3, 0)));
        check("us.anthropic.claude-3-5-haiku-20241022-v1:0", Line::Claude, Some((3, 5)));
        check("us.anthropic.claude-sonnet-4-20250514-v1:0", Line::Claude, Some((4, 0)));
        check("global.anthropic.claude-haiku-4-5-20251001-v1:0", Line::Claude, Some((4, 5)));
        check(
            "arn:aws:bedrock:us-east-1:0:inference-profile/eu.anthropic.claude-opus-5-v1",
            Line::Claude,
            Some((5, 0)),
        );
        check("anthropic.claude-instant-v1", Line::Claude, None);
        check("us.amazon.nova-2-lite-v1:0", Line::Nova, Some((2, 0)));
        check("amazon.nova-lite-v1:0", Line::Nova, None);
        check("openai.gpt-oss-120b-1:0", Line::OpenAi, None);
        check("amazon.titan-text-lite-v1", Line::Other, None);
        check("arn:aws:bedrock:us-east-1:0:application-inference-profile/abc", Line::Other, None);
    }

    #[test]
    fn versions_say_what_a_model_takes() {
        let facts = |id: &str| {
            let model = Model::of(id);
            (
                model.thinks_by_budget(),
                model.thinks_adaptively(),
                model.keeps_to_schemas(),
                model.caches_long(),
            )
        };
        assert_eq!(facts("anthropic.claude-3-5-sonnet-20240620-v1:0"), (false, false, false, false));
        assert_eq!(facts("anthropic.claude-3-7-sonnet-20250219-v1:0"), (true, false, false, false));
        assert_eq!(facts("anthropic.claude-sonnet-4-5-20250929-v1:0"), (true, false, true, true));
        assert_eq!(facts("anthropic.claude-opus-4-6-v1"), (true, true, true, true));
        assert_eq!(facts("anthropic.claude-opus-4-7"), (false, true, true, true));
        assert_eq!(facts("amazon.nova-pro-v1:0"), (false, false, false, false));
        assert!(Model::of("us.amazon.nova-2-lite-v1:0").is_thinking_nova());
        assert!(!Model::of("amazon.nova-lite-v1:0").is_thinking_nova());
    }
}
