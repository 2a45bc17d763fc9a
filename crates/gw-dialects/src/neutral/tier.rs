//! The tier that served an answer: how each caller's format says it.

use gw_types::Operation;

use super::Event;

/// What a stream has said of its tier; each word is passed on once.
#[derive(Debug, Default)]
pub(crate) struct TierReport(Option<String>);

impl TierReport {
    /// Returns the event that a tier brings, where it was not said before.
    pub(crate) fn news(&mut self, tier: Option<String>) -> Option<Event> {
        let tier = tier.filter(|tier| self.0.as_ref() != Some(tier))?;
        self.0 = Some(tier.clone());
        Some(Event::ServiceTier(tier))
    }
}

/// Returns whether a tier is the one that everybody gets who asks for none.
pub(super) fn is_usual(tier: &str) -> bool {
    ["default", "standard", "auto", "on_demand", "on-demand"].iter().any(|one| tier.eq_ignore_ascii_case(one))
}

/// Returns a tier in the words of a caller's format, where it has one for it.
pub(crate) fn tier_for(to: Operation, tier: &str) -> Option<&'static str> {
    const CHAT: &[&str] = &["auto", "default", "flex", "scale", "priority", "fast"];
    const RESPONSES: &[&str] = &["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"];
    const MESSAGES: &[&str] = &["standard", "priority", "batch"];
    let (words, usual) = match to {
        Operation::Chat => (CHAT, "default"),
        Operation::Responses => (RESPONSES, "default"),
        Operation::Messages => (MESSAGES, "standard"),
        Operation::Completions | Operation::Embeddings | Operation::CountTokens => return None,
    };
    let word = words.iter().find(|word| tier.eq_ignore_ascii_case(word)).copied();
    word.or(is_usual(tier).then_some(usual))
}

#[cfg(test)]
mod tests {
    use gw_types::Operation;

    use super::{TierReport, tier_for};

    #[test]
    fn each_format_has_words_of_its_own() {
        let check = |tier: &str, chat, responses, messages| {
            let said = [Operation::Chat, Operation::Responses, Operation::Messages];
            let words = said.map(|to| tier_for(to, tier));
            assert_eq!(words, [chat, responses, messages], "{tier}");
        };
        check("default", Some("default"), Some("default"), Some("standard"));
        check("on_demand", Some("default"), Some("default"), Some("standard"));
        check("standard", Some("default"), Some("default"), Some("standard"));
        check("STANDARD", Some("default"), Some("default"), Some("standard"));
        check("auto", Some("auto"), Some("auto"), Some("standard"));
        check("priority", Some("priority"), Some("priority"), Some("priority"));
        check("flex", Some("flex"), Some("flex"), None);
        check("fast", Some("fast"), Some("fast"), None);
        check("batch", None, None, Some("batch"));
        check("reserved", None, None, None);
    }

    #[test]
    fn a_tier_is_said_once() {
        let mut report = TierReport::default();
        assert!(report.news(None).is_none());
        assert!(report.news(Some("flex".to_owned())).is_some());
        assert!(report.news(Some("flex".to_owned())).is_none());
        assert!(report.news(Some("default".to_owned())).is_some());
    }
}
