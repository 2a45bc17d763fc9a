//! Decides and writes the settings of a request.

use gw_types::{LossKind, Operation};
use serde_json::Number;

use crate::{
    json::Writer,
    neutral::{
        Content, Effort, Format, LossReport, Origin, Prompt, Role, Setting, Summary, ToolChoice, WriteOptions,
    },
};

/// The least thinking budget that the format takes, in tokens.
const BUDGET_MIN: u64 = 1_024;

/// What a model's name says of it: those that think by a budget of tokens, and do not decide themselves how much.
const BUDGET_MODELS: [&str; 7] = ["claude-3", "-4-0", "-4-1", "-4-5", "-4-2025", "-4@2025", "claude-2"];

/// Those that take no schema for their answer, nor for the arguments of a tool.
const NO_SCHEMA_MODELS: [&str; 5] = ["claude-3", "-4-0", "-4-2025", "-4@2025", "claude-2"];

/// What is decided before anything is written, because settings depend on each other.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) max_tokens: u64,
    pub(super) takes_schemas: bool,
    pub(super) schema_as_tool: bool,
    thinking: Thinking,
    effort: Option<Effort>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    /// The caller has not said anything.
    Unsaid,
    Disabled,
    Budget(u64),
    Adaptive,
}

impl Plan {
    pub(super) fn of(prompt: &Prompt, options: &WriteOptions<'_>, loss: &mut LossReport) -> Self {
        let is_one_of = |names: &[&str]| names.iter().any(|name| options.model.contains(name));
        let takes_schemas = !is_one_of(&NO_SCHEMA_MODELS);
        let schema_as_tool = !takes_schemas && matches!(prompt.format, Format::JsonSchema(_));
        let bound = options.bound(prompt);
        let mut plan = Self {
            max_tokens: bound.unwrap_or_else(|| options.default_output.get().max(1)),
            takes_schemas,
            schema_as_tool,
            thinking: Thinking::Unsaid,
            effort: None,
        };
        plan.think(prompt, is_one_of(&BUDGET_MODELS), bound.is_some(), loss);
        if plan.thinks()
            && let Some(why) = plan.obstacle(prompt)
        {
            loss.setting(Setting::Reasoning, LossKind::Dropped, why);
            plan.thinking = Thinking::Unsaid;
        }
        plan
    }

    fn think(&mut self, prompt: &Prompt, by_budget: bool, is_bounded: bool, loss: &mut LossReport) {
        let Some(reasoning) = prompt.reasoning else { return };
        if reasoning.effort == Some(Effort::None) {
            self.thinking = Thinking::Disabled;
            return;
        }
        if prompt.ingress == Operation::Messages && !reasoning.adaptive && reasoning.budget_tokens.is_none() {
            // An effort that the caller has set beside thinking, not by way of it.
            self.effort = reasoning.effort;
            return;
        }
        if !by_budget && reasoning.budget_tokens.is_none() {
            self.thinking = Thinking::Adaptive;
            self.effort = reasoning.effort.map(known_effort);
            return;
        }
        let budget = reasoning.budget_tokens.or(reasoning.effort.map(Effort::budget_tokens));
        let wanted = budget.unwrap_or(Effort::Medium.budget_tokens()).max(BUDGET_MIN);
        if reasoning.budget_tokens.is_none() {
            let why = "the effort is sent as a thinking budget";
            loss.setting(Setting::Reasoning, LossKind::Approximated, why);
        } else if prompt.ingress == Operation::Messages {
            self.effort = reasoning.effort;
        }
        self.thinking = Thinking::Budget(wanted);
        if !is_bounded {
            self.max_tokens = self.max_tokens.saturating_add(wanted);
        } else if wanted >= self.max_tokens {
            // The budget is part of the bound, and something must be left for the answer.
            if self.max_tokens > BUDGET_MIN {
                self.thinking = Thinking::Budget(self.max_tokens - 1);
                let why = "the thinking budget is cut to the output bound";
                loss.setting(Setting::Reasoning, LossKind::Approximated, why);
            } else {
                self.thinking = Thinking::Unsaid;
                let why = "the output bound leaves no room to think";
                loss.setting(Setting::Reasoning, LossKind::Dropped, why);
            }
        }
    }

    const fn thinks(&self) -> bool {
        matches!(self.thinking, Thinking::Budget(_) | Thinking::Adaptive)
    }

    /// Returns why the format would refuse thinking for this request.
    fn obstacle(&self, prompt: &Prompt) -> Option<&'static str> {
        let forced = matches!(prompt.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        if forced || self.schema_as_tool {
            return Some("a model that thinks cannot be forced to call a tool");
        }
        let last = prompt.turns.iter().rev().find(|turn| turn.role == Role::Assistant)?;
        let calls = last.blocks.iter().any(|block| matches!(block.content, Content::ToolUse(_)));
        let begins = last.blocks.first().is_some_and(|block| match &block.content {
            Content::Thinking(thinking) => {
                thinking.signature.as_ref().is_some_and(|one| one.origin == Origin::Anthropic)
            }
            Content::RedactedThinking(data) => data.origin == Origin::Anthropic,
            Content::Text(_)
            | Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolUse(_)
            | Content::ToolResult(_)
            | Content::Refusal(_)
            | Content::Opaque(_) => false,
        });
        let by_budget = matches!(self.thinking, Thinking::Budget(_));
        (by_budget && calls && !begins)
            .then_some("the turn that is gone on with has none of this model's own")
    }
}

pub(super) fn write(json: &mut Writer, prompt: &Prompt, plan: &Plan, loss: &mut LossReport) {
    if prompt.stream {
        json.member_bool("stream", true);
    }
    sampling(json, prompt, plan, loss);
    let shown = prompt.reasoning.and_then(|reasoning| reasoning.summary);
    match plan.thinking {
        Thinking::Unsaid => {}
        Thinking::Disabled => json.member_object("thinking", |json| json.member_string("type", "disabled")),
        Thinking::Budget(tokens) => json.member_object("thinking", |json| {
            json.member_string("type", "enabled");
            json.member_number("budget_tokens", tokens);
            display(json, shown);
        }),
        Thinking::Adaptive => json.member_object("thinking", |json| {
            json.member_string("type", "adaptive");
            display(json, shown);
        }),
    }
    output_config(json, prompt, plan, loss);
    if let Some(user) = &prompt.user {
        json.member_object("metadata", |json| json.member_string("user_id", user));
    }
    labels(json, prompt, loss);
}

fn display(json: &mut Writer, shown: Option<Summary>) {
    match shown {
        Some(Summary::Omitted) => json.member_string("display", "omitted"),
        Some(Summary::Auto | Summary::Concise | Summary::Detailed) => {
            json.member_string("display", "summarized");
        }
        None => {}
    }
}

fn sampling(json: &mut Writer, prompt: &Prompt, plan: &Plan, loss: &mut LossReport) {
    let sampling = &prompt.sampling;
    let foreign = prompt.ingress != Operation::Messages;
    if plan.thinks() && foreign {
        let fixed = [
            (Setting::Temperature, &sampling.temperature),
            (Setting::TopP, &sampling.top_p),
            (Setting::TopK, &sampling.top_k),
        ];
        for (setting, _) in fixed.iter().filter(|(_, number)| number.is_some()) {
            loss.setting(*setting, LossKind::Dropped, "a model that thinks chooses tokens in one way only");
        }
    } else {
        if let Some(temperature) = &sampling.temperature {
            self::temperature(json, temperature, loss);
        }
        match &sampling.top_p {
            Some(_) if foreign && sampling.temperature.is_some() => {
                let why = "newer models take a temperature or `top_p`, not both";
                loss.setting(Setting::TopP, LossKind::Dropped, why);
            }
            Some(top_p) => json.member_number("top_p", top_p),
            None => {}
        }
        if let Some(top_k) = &sampling.top_k {
            json.member_number("top_k", top_k);
        }
    }
    // Sequences of blanks alone are refused.
    let (blank, stop): (Vec<&String>, Vec<&String>) =
        sampling.stop.iter().partition(|stop| stop.trim().is_empty());
    if !blank.is_empty() {
        loss.setting(Setting::Stop, LossKind::Approximated, "stop sequences of blanks alone are left out");
    }
    if !stop.is_empty() {
        json.member_array("stop_sequences", |json| stop.iter().for_each(|stop| json.string(stop)));
    }
    let unknown = [
        (Setting::FrequencyPenalty, sampling.frequency_penalty.is_some()),
        (Setting::PresencePenalty, sampling.presence_penalty.is_some()),
        (Setting::Seed, sampling.seed.is_some()),
        (Setting::Choices, sampling.choices.is_some_and(|choices| choices > 1)),
        (Setting::Logprobs, sampling.logprobs == Some(true)),
        (Setting::TopLogprobs, sampling.top_logprobs.is_some_and(|top| top > 0)),
        (Setting::LogitBias, sampling.logit_bias.is_some()),
    ];
    for (setting, _) in unknown.iter().filter(|(_, is_set)| *is_set) {
        loss.setting(*setting, LossKind::Dropped, "the provider's format has no such setting");
    }
}

/// Writes a temperature, which ends at 1 here and at 2 elsewhere.
fn temperature(json: &mut Writer, temperature: &Number, loss: &mut LossReport) {
    if temperature.as_f64().is_some_and(|value| value > 1.0) {
        loss.setting(Setting::Temperature, LossKind::Approximated, "the temperature is cut to 1");
        return json.member_raw("temperature", "1");
    }
    json.member_number("temperature", temperature);
}

fn output_config(json: &mut Writer, prompt: &Prompt, plan: &Plan, loss: &mut LossReport) {
    let schema = match &prompt.format {
        Format::Text => None,
        Format::JsonObject => {
            // The system prompt asks for it; see there.
            loss.setting(Setting::Format, LossKind::Emulated, "the system prompt asks for a JSON object");
            None
        }
        Format::JsonSchema(_) if plan.schema_as_tool => {
            loss.setting(Setting::Format, LossKind::Emulated, "the schema is sent as a tool that is forced");
            None
        }
        Format::JsonSchema(format) => Some(format.described(loss)),
    };
    if schema.is_none() && plan.effort.is_none() {
        return;
    }
    json.member_object("output_config", |json| {
        if let Some(effort) = plan.effort {
            json.member_string("effort", effort.as_str());
        }
        if let Some(schema) = schema {
            json.member_object("format", |json| {
                json.member_string("type", "json_schema");
                json.member_raw("schema", &schema);
            });
        }
    });
}

/// Returns the nearest effort that the format has a word for.
const fn known_effort(effort: Effort) -> Effort {
    match effort {
        Effort::None | Effort::Minimal => Effort::Low,
        Effort::Low | Effort::Medium | Effort::High | Effort::ExtraHigh | Effort::Max => effort,
    }
}

fn labels(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    match prompt.service_tier.as_deref() {
        Some("auto") => json.member_string("service_tier", "auto"),
        Some("default" | "standard_only") => json.member_string("service_tier", "standard_only"),
        Some(_) => {
            loss.setting(Setting::ServiceTier, LossKind::Dropped, "the provider has no such tier");
        }
        None => {}
    }
    let unknown = [
        (Setting::Verbosity, prompt.verbosity.is_some()),
        (Setting::Metadata, prompt.metadata.is_some()),
        (Setting::CacheKey, prompt.cache_key.is_some()),
        (Setting::Store, prompt.store == Some(true)),
    ];
    for (setting, _) in unknown.iter().filter(|(_, is_set)| *is_set) {
        loss.setting(*setting, LossKind::Dropped, "the provider's format has no such setting");
    }
}
