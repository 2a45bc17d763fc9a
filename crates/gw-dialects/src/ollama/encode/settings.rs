//! Settings: those of the sampler stand in `options`, the others on top.

use gw_types::LossKind;

use crate::{
    json::Writer,
    neutral::{Effort, Format, LossReport, Prompt, Reasoning, Sampling, Setting, WriteOptions},
};

const NO_FIELD: &str = "the provider's format has no such field";

/// Writes the settings, and reports those that have no place.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, options: &WriteOptions<'_>, loss: &mut LossReport) {
    json.member_bool("stream", prompt.stream);
    match &prompt.format {
        Format::Text => {}
        Format::JsonObject => json.member_string("format", "json"),
        Format::JsonSchema(asked) => json.member_raw("format", &asked.described(loss)),
    }
    if let Some(reasoning) = &prompt.reasoning {
        think(json, reasoning, options.model, loss);
    }
    if prompt.sampling.logprobs == Some(true) {
        json.member_bool("logprobs", true);
        if let Some(top) = prompt.sampling.top_logprobs.filter(|top| *top > 0) {
            json.member_number("top_logprobs", top);
        }
    }
    let bound = options.bound(prompt);
    if bound.is_some() || has_options(&prompt.sampling) {
        json.member_object("options", |json| {
            if let Some(bound) = bound {
                json.member_number("num_predict", bound);
            }
            sampler(json, &prompt.sampling);
        });
    }
    report_homeless(prompt, loss);
}

fn numbers(sampling: &Sampling) -> [(&'static str, &Option<serde_json::Number>); 6] {
    [
        ("temperature", &sampling.temperature),
        ("top_p", &sampling.top_p),
        ("top_k", &sampling.top_k),
        ("frequency_penalty", &sampling.frequency_penalty),
        ("presence_penalty", &sampling.presence_penalty),
        ("seed", &sampling.seed),
    ]
}

fn has_options(sampling: &Sampling) -> bool {
    !sampling.stop.is_empty() || numbers(sampling).iter().any(|(_, number)| number.is_some())
}

fn sampler(json: &mut Writer, sampling: &Sampling) {
    for (name, number) in numbers(sampling) {
        if let Some(number) = number {
            json.member_number(name, number);
        }
    }
    if !sampling.stop.is_empty() {
        json.member_array("stop", |json| sampling.stop.iter().for_each(|stop| json.string(stop)));
    }
}

/// Writes whether to think. The models of OpenAI's that Ollama serves know three efforts, all others yes and no; whoever
/// leaves it to the model says nothing.
fn think(json: &mut Writer, reasoning: &Reasoning, model: &str, loss: &mut LossReport) {
    let effort = reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget));
    let Some(effort) = effort else { return };
    let knows_efforts = model.contains("gpt-oss");
    let (level, exact) = match effort {
        Effort::None if knows_efforts => (Some("low"), false),
        Effort::None => {
            json.member_bool("think", false);
            return;
        }
        Effort::Minimal => (Some("low"), false),
        Effort::Low => (Some("low"), true),
        Effort::Medium => (Some("medium"), true),
        Effort::High => (Some("high"), true),
        Effort::ExtraHigh | Effort::Max => (Some("high"), false),
    };
    match level.filter(|_| knows_efforts) {
        Some(level) => json.member_string("think", level),
        None => json.member_bool("think", true),
    }
    if !exact || !knows_efforts || reasoning.budget_tokens.is_some() {
        let why =
            if knows_efforts { "the model knows three efforts" } else { "the model thinks, or does not" };
        loss.setting(Setting::Reasoning, LossKind::Approximated, why);
    }
}

fn report_homeless(prompt: &Prompt, loss: &mut LossReport) {
    let asked = prompt
        .service_tier
        .as_deref()
        .is_some_and(|tier| !matches!(tier, "auto" | "default" | "standard_only"));
    let homeless = [
        (Setting::Choices, prompt.sampling.choices.is_some_and(|choices| choices > 1)),
        (Setting::LogitBias, prompt.sampling.logit_bias.is_some()),
        (Setting::ParallelToolCalls, prompt.parallel_tool_calls == Some(false)),
        (Setting::Verbosity, prompt.verbosity.is_some()),
        (Setting::User, prompt.user.is_some()),
        (Setting::Metadata, prompt.metadata.is_some()),
        (Setting::ServiceTier, asked),
        (Setting::CacheKey, prompt.cache_key.is_some()),
        (Setting::Store, prompt.store == Some(true)),
    ];
    for (setting, _) in homeless.into_iter().filter(|(_, is_set)| *is_set) {
        loss.setting(setting, LossKind::Dropped, NO_FIELD);
    }
}
