//! What the name of a model says about what it takes.

/// What is known of a model by its name. Names that say nothing are taken for the newest generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// Generation and its minor number, such as `(2, 5)`.
    generation: Option<(u32, u32)>,
    pro: bool,
    lite: bool,
}

impl Model {
    /// Reads a name such as `gemini-2.5-flash-lite` or `models/gemini-3-pro-preview`.
    pub(super) fn of(name: &str) -> Self {
        let name = name.rsplit('/').next().unwrap_or(name);
        let number = name.strip_prefix("gemini-").map(|rest| rest.split('-').next().unwrap_or(rest));
        let generation = number.and_then(|number| {
            let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        let has = |word| name.split('-').any(|part| part == word);
        Self { generation, pro: has("pro"), lite: has("lite") }
    }

    /// Whether the model is known to be of this generation or a later one.
    fn is_since(self, generation: (u32, u32)) -> bool {
        self.generation.is_some_and(|own| own >= generation)
    }

    /// Whether the model is known to be older than this generation.
    fn is_before(self, generation: (u32, u32)) -> bool {
        self.generation.is_some_and(|own| own < generation)
    }

    /// Whether the model can think at all.
    pub(super) fn thinks(self) -> bool {
        !self.is_before((2, 5))
    }

    /// Whether thinking is set by level; older models know budgets only, and newer ones take both.
    pub(super) fn has_thinking_levels(self) -> bool {
        self.is_since((3, 0))
    }

    /// Whether the model takes thinking to be as good as off.
    pub(super) fn can_think_minimally(self) -> bool {
        !self.pro
    }

    /// Whether a call of a tool in the history must carry a signature.
    pub(super) fn demands_signatures(self) -> bool {
        !self.is_before((3, 0))
    }

    /// Whether the model takes functions and a response format at once.
    pub(super) fn formats_beside_tools(self) -> bool {
        !self.is_before((3, 0))
    }

    /// Returns the budget in the model's range that is nearest to the one asked for.
    pub(super) fn thinking_budget(self, tokens: u64) -> u64 {
        let (least, most) = if self.pro { (128, 32_768) } else { (0, 24_576) };
        let floor = if self.lite && tokens > 0 { 512 } else { least };
        tokens.clamp(floor, most)
    }
}

#[cfg(test)]
mod tests {
    use super::Model;

    #[track_caller]
    fn check(name: &str, thinks: bool, levels: bool, signatures: bool) {
        let model = Model::of(name);
        let found = (model.thinks(), model.has_thinking_levels(), model.demands_signatures());
        assert_eq!(found, (thinks, levels, signatures), "{name}");
    }

    #[test]
    fn generations_are_read_from_the_name() {
        check("gemini-1.5-flash", false, false, false);
        check("gemini-2.0-flash", false, false, false);
        check("gemini-2.5-flash", true, false, false);
        check("publishers/google/models/gemini-2.5-pro", true, false, false);
        check("gemini-3-pro-preview", true, true, true);
        check("models/gemini-3.5-flash", true, true, true);
        check("gemini-10-flash", true, true, true);
    }

    #[test]
    fn unknown_names_are_taken_for_new_ones() {
        check("gemini-flash-latest", true, false, true);
        check("endpoints/123456", true, false, true);
    }

    #[test]
    fn budgets_keep_to_the_models_range() {
        assert_eq!(Model::of("gemini-2.5-pro").thinking_budget(0), 128);
        assert_eq!(Model::of("gemini-2.5-pro").thinking_budget(40_000), 32_768);
        assert_eq!(Model::of("gemini-2.5-flash").thinking_budget(0), 0);
        assert_eq!(Model::of("gemini-2.5-flash").thinking_budget(40_000), 24_576);
        assert_eq!(Model::of("gemini-2.5-flash-lite").thinking_budget(1), 512);
        assert_eq!(Model::of("gemini-2.5-flash-lite").thinking_budget(0), 0);
    }
}
