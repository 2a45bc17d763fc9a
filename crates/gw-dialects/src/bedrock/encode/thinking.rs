//! Whether and how to think.

use gw_types::{LossKind, Operation};

use super::super::model::{Line, Model};
use crate::neutral::{
    Content, Effort, LossReport, Origin, Prompt, Reasoning, Role, Setting, Summary, ToolChoice, Turn,
};

/// The least thinking budget that Claude takes.
const BUDGET_MIN: u64 = 1_024;

/// How the model is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Not at all, or as it does by itself.
    Silent,
    /// Claude: at most so many tokens.
    Budget(u64),
    /// Claude: as much as it decides, with this effort.
    Adaptive(Option<&'static str>),
    /// Claude: no thinking, but this effort for the whole answer.
    Effort(&'static str),
    /// Nova: this effort.
    Nova(&'static str),
    /// OpenAI's open-weight models: this effort.
    OpenAi(&'static str),
}

impl Plan {
    /// Decides, and reports what does not survive.
    pub(super) fn of(prompt: &Prompt, model: Model, bound: Option<u64>, loss: &mut LossReport) -> Self {
        let Some(reasoning) = &prompt.reasoning else { return Self::Silent };
        if reasoning.effort == Some(Effort::None)
            || (reasoning.budget_tokens == Some(0) && !reasoning.adaptive)
        {
            return Self::Silent;
        }
        let plan = match model.line {
            Line::Claude => Self::claude(prompt, reasoning, model, bound, loss),
            Line::Nova if model.is_thinking_nova() => Self::nova(reasoning, bound, loss),
            Line::OpenAi => Self::OpenAi(word(reasoning, loss)),
            Line::Nova | Line::Other => {
                loss.setting(Setting::Reasoning, LossKind::Dropped, "the model has no setting for thinking");
                Self::Silent
            }
        };
        plan.report_shown(reasoning.summary, loss);
        plan
    }

    /// Reports where reasoning is shown though it shall not be, or the other way round.
    fn report_shown(self, summary: Option<Summary>, loss: &mut LossReport) {
        let why = match (self, summary) {
            (Self::Nova(_), Some(Summary::Auto | Summary::Concise | Summary::Detailed)) => {
                "Nova does not show its reasoning"
            }
            (Self::Budget(_) | Self::Adaptive(_) | Self::OpenAi(_), Some(Summary::Omitted)) => {
                "the model shows its reasoning"
            }
            (
                Self::Silent
                | Self::Effort(_)
                | Self::Nova(_)
                | Self::Budget(_)
                | Self::Adaptive(_)
                | Self::OpenAi(_),
                _,
            ) => return,
        };
        loss.setting(Setting::Reasoning, LossKind::Approximated, why);
    }

    /// Whether Claude thinks, which excludes some settings.
    pub(super) fn is_claude_thinking(self) -> bool {
        matches!(self, Self::Budget(_) | Self::Adaptive(_))
    }

    fn claude(
        prompt: &Prompt,
        reasoning: &Reasoning,
        model: Model,
        bound: Option<u64>,
        loss: &mut LossReport,
    ) -> Self {
        let dropped = |loss: &mut LossReport, why| {
            loss.setting(Setting::Reasoning, LossKind::Dropped, why);
            Self::Silent
        };
        if !model.thinks_by_budget() && !model.thinks_adaptively() {
            return dropped(loss, "the model does not think");
        }
        let asked = reasoning.budget_tokens;
        if prompt.ingress == Operation::Messages && !reasoning.adaptive && asked.is_none() {
            // An effort that the caller has set beside thinking, not by way of it.
            return match reasoning.effort {
                Some(effort) if model.thinks_adaptively() => Self::Effort(claude_word(effort)),
                Some(_) => dropped(loss, "the model has no setting for the effort"),
                None => Self::Silent,
            };
        }
        if matches!(prompt.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_))) {
            return dropped(loss, "Claude does not think where a tool must be called");
        }
        if model.thinks_adaptively() && (asked.is_none() || !model.thinks_by_budget()) {
            let effort = reasoning.effort.or(asked.map(Effort::of_budget));
            if asked.is_some() {
                let why = "the model decides how much it thinks; the budget is sent as an effort";
                loss.setting(Setting::Reasoning, LossKind::Approximated, why);
            }
            return Self::Adaptive(effort.map(claude_word));
        }
        if goes_on_without_thinking(&prompt.turns) {
            return dropped(loss, "the conversation's reasoning belongs to another provider");
        }
        let tokens = asked.unwrap_or_else(|| reasoning.effort.unwrap_or(Effort::Medium).budget_tokens());
        // The budget is part of the output bound and must leave room for an answer.
        let most = bound.map_or(u64::MAX, |bound| bound.saturating_sub(1));
        if most < BUDGET_MIN {
            return dropped(loss, "the output bound leaves no room for thinking");
        }
        let budget = tokens.clamp(BUDGET_MIN, most);
        if budget != tokens || asked.is_none() {
            let why = "Claude thinks with a budget of at least 1,024 tokens and below the output bound";
            loss.setting(Setting::Reasoning, LossKind::Approximated, why);
        }
        Self::Budget(budget)
    }

    fn nova(reasoning: &Reasoning, bound: Option<u64>, loss: &mut LossReport) -> Self {
        match word(reasoning, loss) {
            "high" if bound.is_some() => {
                let why = "Nova takes no output bound with high effort, so the effort is medium";
                loss.setting(Setting::Reasoning, LossKind::Approximated, why);
                Self::Nova("medium")
            }
            word => Self::Nova(word),
        }
    }
}

/// Returns the nearest of three efforts.
fn word(reasoning: &Reasoning, loss: &mut LossReport) -> &'static str {
    let effort = reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget));
    let (word, exact) = match effort {
        Some(Effort::None | Effort::Minimal) => ("low", false),
        Some(Effort::Low) => ("low", true),
        Some(Effort::Medium) => ("medium", true),
        None => ("medium", reasoning.adaptive),
        Some(Effort::High) => ("high", true),
        Some(Effort::ExtraHigh | Effort::Max) => ("high", false),
    };
    if !exact || reasoning.effort.is_none() && reasoning.budget_tokens.is_some() {
        let why = "the model has another scale of thinking";
        loss.setting(Setting::Reasoning, LossKind::Approximated, why);
    }
    word
}

const fn claude_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::ExtraHigh => "xhigh",
        Effort::Max => "max",
    }
}

/// Returns whether the last turn of the model calls tools and does not begin with reasoning of Claude's own: with a budget
/// it refuses to think then.
fn goes_on_without_thinking(turns: &[Turn]) -> bool {
    let Some(last) = turns.iter().rfind(|turn| turn.role == Role::Assistant) else { return false };
    let calls = last.blocks.iter().any(|block| matches!(block.content, Content::ToolUse(_)));
    let begins = last.blocks.first().is_some_and(|block| match &block.content {
        Content::Thinking(thinking) => {
            thinking.signature.as_ref().is_some_and(|signature| signature.origin == Origin::Bedrock)
        }
        Content::RedactedThinking(signature) => signature.origin == Origin::Bedrock,
        Content::Text(_)
        | Content::Image(_)
        | Content::Document(_)
        | Content::Audio(_)
        | Content::ToolUse(_)
        | Content::ToolResult(_)
        | Content::Refusal(_)
        | Content::Opaque(_) => false,
    });
    calls && !begins
}
