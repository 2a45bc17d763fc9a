//! `generationConfig`: everything that is a number, a word or a form.

use gw_types::LossKind;

use super::super::{model::Model, schema};
use crate::{
    json::Writer,
    neutral::{Effort, Format, LossReport, Prompt, Reasoning, Sampling, Setting, Summary},
};

/// The most stop sequences that Gemini takes.
const STOP_MAX: usize = 5;

const NO_FIELD: &str = "the provider's format has no such field";

/// Writes the settings, and reports those that have no place.
pub(super) fn write(
    json: &mut Writer,
    prompt: &Prompt,
    model: Model,
    bound: Option<u64>,
    format_is_said: bool,
    loss: &mut LossReport,
) {
    json.member_object("generationConfig", |json| {
        if let Some(bound) = bound {
            json.member_number("maxOutputTokens", bound);
        }
        write_sampling(json, &prompt.sampling, loss);
        if !format_is_said {
            write_format(json, &prompt.format, loss);
        }
        if let Some(reasoning) = &prompt.reasoning {
            write_thinking(json, reasoning, model, loss);
        }
    });
    report_homeless(prompt, loss);
}

fn write_sampling(json: &mut Writer, sampling: &Sampling, loss: &mut LossReport) {
    let numbers = [
        ("temperature", &sampling.temperature),
        ("topP", &sampling.top_p),
        ("topK", &sampling.top_k),
        ("presencePenalty", &sampling.presence_penalty),
        ("frequencyPenalty", &sampling.frequency_penalty),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            json.member_number(name, number);
        }
    }
    if let Some(seed) = &sampling.seed {
        write_seed(json, seed, loss);
    }
    if sampling.stop.len() > STOP_MAX {
        loss.setting(Setting::Stop, LossKind::Approximated, "Gemini takes five stop sequences");
    }
    if !sampling.stop.is_empty() {
        json.member_array("stopSequences", |json| {
            sampling.stop.iter().take(STOP_MAX).for_each(|stop| json.string(stop));
        });
    }
    if let Some(choices) = sampling.choices.filter(|choices| *choices > 1) {
        json.member_number("candidateCount", choices);
    }
    if sampling.logprobs == Some(true) {
        json.member_bool("responseLogprobs", true);
        if let Some(top) = sampling.top_logprobs.filter(|top| *top > 0) {
            json.member_number("logprobs", top);
        }
    }
}

/// Writes a seed, which is a 32-bit number here.
fn write_seed(json: &mut Writer, seed: &serde_json::Number, loss: &mut LossReport) {
    let Some(number) = seed.as_i64() else {
        loss.setting(Setting::Seed, LossKind::Dropped, "Gemini takes whole numbers as seeds");
        return;
    };
    let fits = i32::try_from(number).is_ok();
    if !fits {
        loss.setting(Setting::Seed, LossKind::Approximated, "Gemini takes seeds of 32 bits");
    }
    // Equal seeds stay equal.
    json.member_number("seed", if fits { number } else { number & i64::from(i32::MAX) });
}

fn write_format(json: &mut Writer, format: &Format, loss: &mut LossReport) {
    match format {
        Format::Text => {}
        Format::JsonObject => json.member_string("responseMimeType", "application/json"),
        Format::JsonSchema(asked) => {
            let converted = schema::convert(&asked.described(loss));
            if converted.lossy {
                let why = "Gemini does not check every keyword of a JSON schema";
                loss.setting(Setting::Format, LossKind::Approximated, why);
            }
            json.member_string("responseMimeType", "application/json");
            json.member_raw("responseJsonSchema", &converted.text);
        }
    }
}

/// How Gemini is told to think.
#[derive(Debug, Default, PartialEq, Eq)]
struct Thinking {
    budget: Option<i64>,
    level: Option<&'static str>,
    exact: bool,
}

fn write_thinking(json: &mut Writer, reasoning: &Reasoning, model: Model, loss: &mut LossReport) {
    if !model.thinks() {
        if reasoning.effort != Some(Effort::None) {
            loss.setting(Setting::Reasoning, LossKind::Dropped, "the model does not think");
        }
        return;
    }
    let thinking = thinking(reasoning, model);
    if !thinking.exact {
        let why = "Gemini has another scale of thinking";
        loss.setting(Setting::Reasoning, LossKind::Approximated, why);
    }
    let shown = reasoning.summary.map(|summary| match summary {
        Summary::Auto | Summary::Concise | Summary::Detailed => true,
        Summary::Omitted => false,
    });
    if thinking.budget.is_none() && thinking.level.is_none() && shown.is_none() {
        return;
    }
    json.member_object("thinkingConfig", |json| {
        if let Some(shown) = shown {
            json.member_bool("includeThoughts", shown);
        }
        if let Some(budget) = thinking.budget {
            json.member_number("thinkingBudget", budget);
        }
        if let Some(level) = thinking.level {
            json.member_string("thinkingLevel", level);
        }
    });
}

/// Returns the setting that is nearest. A budget in tokens counts before an effort, because it is the exacter word.
fn thinking(reasoning: &Reasoning, model: Model) -> Thinking {
    let budget = |tokens: u64| {
        let nearest = model.thinking_budget(tokens);
        let budget = Some(i64::try_from(nearest).unwrap_or(i64::MAX));
        Thinking { budget, level: None, exact: nearest == tokens }
    };
    match (reasoning.budget_tokens, reasoning.effort) {
        (Some(tokens), _) => budget(tokens),
        (None, Some(effort)) if model.has_thinking_levels() => level(effort, model),
        // The budgets are the provider's own translation of efforts, so one inside the model's range is exact.
        (None, Some(effort)) => budget(effort.budget_tokens()),
        // -1 lets a model that knows budgets decide; one that knows levels decides by itself.
        (None, None) if reasoning.adaptive && !model.has_thinking_levels() => {
            Thinking { budget: Some(-1), level: None, exact: true }
        }
        (None, None) => Thinking { exact: true, ..Thinking::default() },
    }
}

fn level(effort: Effort, model: Model) -> Thinking {
    let least = if model.can_think_minimally() { "minimal" } else { "low" };
    let (level, exact) = match effort {
        Effort::None => (least, false),
        Effort::Minimal => (least, least == "minimal"),
        Effort::Low => ("low", true),
        Effort::Medium => ("medium", true),
        Effort::High => ("high", true),
        Effort::ExtraHigh | Effort::Max => ("high", false),
    };
    Thinking { budget: None, level: Some(level), exact }
}

/// Reports the settings that Gemini has no place for.
fn report_homeless(prompt: &Prompt, loss: &mut LossReport) {
    let asked = |service_tier: &Option<String>| {
        service_tier.as_deref().is_some_and(|tier| !matches!(tier, "auto" | "default" | "standard_only"))
    };
    let homeless = [
        (Setting::LogitBias, prompt.sampling.logit_bias.is_some()),
        (Setting::ParallelToolCalls, prompt.parallel_tool_calls == Some(false)),
        (Setting::Verbosity, prompt.verbosity.is_some()),
        (Setting::User, prompt.user.is_some()),
        (Setting::Metadata, prompt.metadata.is_some()),
        (Setting::ServiceTier, asked(&prompt.service_tier)),
        (Setting::CacheKey, prompt.cache_key.is_some()),
        (Setting::Store, prompt.store == Some(true)),
    ];
    for (setting, _) in homeless.into_iter().filter(|(_, is_set)| *is_set) {
        loss.setting(setting, LossKind::Dropped, NO_FIELD);
    }
}
