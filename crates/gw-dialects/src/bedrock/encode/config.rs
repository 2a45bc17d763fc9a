//! Everything that is a number or a word.

use gw_types::LossKind;
use serde_json::Number;

use super::{
    super::model::{Line, Model},
    thinking::Plan,
};
use crate::{
    json::{Node, Value, Writer},
    neutral::{LossReport, Prompt, RawJson, Setting},
};

const NO_FIELD: &str = "the provider's format has no such field";

/// Writes `inferenceConfig`.
pub(super) fn write_inference(
    json: &mut Writer,
    prompt: &Prompt,
    model: Model,
    bound: Option<u64>,
    plan: &Plan,
    loss: &mut LossReport,
) {
    let (temperature, top_p) = randomness(prompt, model, plan, loss);
    let stops: Vec<&String> = prompt.sampling.stop.iter().filter(|stop| !stop.is_empty()).collect();
    json.member_object("inferenceConfig", |json| {
        if let Some(bound) = bound {
            json.member_number("maxTokens", bound);
        }
        if let Some(temperature) = temperature {
            json.member_number("temperature", temperature);
        }
        if let Some(top_p) = top_p {
            json.member_number("topP", top_p);
        }
        if !stops.is_empty() {
            json.member_array("stopSequences", |json| stops.iter().for_each(|stop| json.string(stop)));
        }
    });
}

/// Returns temperature and nucleus sampling as the model takes them.
fn randomness(
    prompt: &Prompt,
    model: Model,
    plan: &Plan,
    loss: &mut LossReport,
) -> (Option<Number>, Option<Number>) {
    let (temperature, top_p) = (&prompt.sampling.temperature, &prompt.sampling.top_p);
    if plan.is_claude_thinking() {
        for (setting, _) in [(Setting::Temperature, temperature), (Setting::TopP, top_p)]
            .iter()
            .filter(|(_, set)| set.is_some())
        {
            loss.setting(*setting, LossKind::Dropped, "Claude thinks at its own temperature");
        }
        return (None, None);
    }
    let temperature = temperature.as_ref().map(|asked| {
        // The range ends at 1 here.
        if asked.as_f64().is_some_and(|number| number > 1.0) {
            loss.setting(Setting::Temperature, LossKind::Approximated, "Bedrock takes temperatures up to 1");
            return Number::from(1);
        }
        asked.clone()
    });
    if temperature.is_some() && top_p.is_some() && model.takes_one_randomness() {
        let why = "the model takes a temperature or nucleus sampling, not both";
        loss.setting(Setting::TopP, LossKind::Dropped, why);
        return (temperature, None);
    }
    (temperature, top_p.clone())
}

/// Writes `additionalModelRequestFields`: what only the model's maker knows.
pub(super) fn write_model_fields(
    json: &mut Writer,
    prompt: &Prompt,
    model: Model,
    plan: &Plan,
    loss: &mut LossReport,
) {
    let top_k = top_k(prompt, model, plan, loss);
    if *plan == Plan::Silent && top_k.is_none() {
        return;
    }
    json.member_object("additionalModelRequestFields", |json| {
        match plan {
            Plan::Silent => {}
            Plan::Budget(tokens) => json.member_object("thinking", |json| {
                json.member_string("type", "enabled");
                json.member_number("budget_tokens", tokens);
            }),
            Plan::Adaptive(effort) => {
                json.member_object("thinking", |json| json.member_string("type", "adaptive"));
                if let Some(effort) = effort {
                    json.member_object("output_config", |json| json.member_string("effort", effort));
                }
            }
            Plan::Effort(effort) => {
                json.member_object("output_config", |json| json.member_string("effort", effort));
            }
            Plan::Nova(effort) => json.member_object("reasoningConfig", |json| {
                json.member_string("type", "enabled");
                json.member_string("maxReasoningEffort", effort);
            }),
            Plan::OpenAi(effort) => json.member_string("reasoning_effort", effort),
        }
        match (top_k, model.line) {
            (Some(top_k), Line::Nova) => {
                json.member_object("inferenceConfig", |json| json.member_number("topK", top_k));
            }
            (Some(top_k), Line::Claude | Line::OpenAi | Line::Other) => json.member_number("top_k", top_k),
            (None, _) => {}
        }
    });
}

fn top_k<'a>(prompt: &'a Prompt, model: Model, plan: &Plan, loss: &mut LossReport) -> Option<&'a Number> {
    let top_k = prompt.sampling.top_k.as_ref()?;
    let why = match model.line {
        Line::Claude if plan.is_claude_thinking() => "Claude thinks with its own sampling",
        Line::Claude | Line::Nova => return Some(top_k),
        Line::OpenAi | Line::Other => "the model is not known to sample from the likeliest",
    };
    loss.setting(Setting::TopK, LossKind::Dropped, why);
    None
}

/// Writes `requestMetadata` and `serviceTier`.
pub(super) fn write_service(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    if let Some(metadata) = &prompt.metadata {
        if is_request_metadata(metadata) {
            json.member_raw("requestMetadata", metadata.as_str());
        } else {
            let why = "Bedrock takes 16 short labels of plain characters";
            loss.setting(Setting::Metadata, LossKind::Dropped, why);
        }
    }
    match prompt.service_tier.as_deref() {
        None | Some("auto" | "standard_only") => {}
        Some(tier @ ("default" | "flex" | "priority" | "reserved")) => {
            json.member_object("serviceTier", |json| json.member_string("type", tier));
        }
        Some(_) => loss.setting(Setting::ServiceTier, LossKind::Dropped, "Bedrock knows no such tier"),
    }
}

/// Returns whether labels are within what Bedrock takes: at most 16, names of 1 to 256 and values of up to 256 characters
/// out of letters, digits, blanks and `:_@$#=/+,-.` (API reference, `Converse`).
fn is_request_metadata(metadata: &RawJson) -> bool {
    let plain = |text: &str| {
        text.len() <= 256
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" :_@$#=/+,-.".contains(&byte))
    };
    let Ok(node) = Node::read(metadata.as_str()) else { return false };
    let Value::Object(members) = &node.value else { return false };
    (1..=16).contains(&members.len())
        && members.iter().all(|(key, value)| {
            let key = key.decoded();
            !key.is_empty() && plain(&key) && value.as_str().is_some_and(|value| plain(&value))
        })
}

/// Reports the settings that Bedrock has no place for.
pub(super) fn report_homeless(prompt: &Prompt, loss: &mut LossReport) {
    let sampling = &prompt.sampling;
    let homeless = [
        (Setting::FrequencyPenalty, sampling.frequency_penalty.is_some()),
        (Setting::PresencePenalty, sampling.presence_penalty.is_some()),
        (Setting::Seed, sampling.seed.is_some()),
        (Setting::Choices, sampling.choices.is_some_and(|choices| choices > 1)),
        (Setting::Logprobs, sampling.logprobs == Some(true)),
        (Setting::TopLogprobs, sampling.top_logprobs.is_some_and(|top| top > 0)),
        (Setting::LogitBias, sampling.logit_bias.is_some()),
        (Setting::ParallelToolCalls, prompt.parallel_tool_calls == Some(false)),
        (Setting::Verbosity, prompt.verbosity.is_some()),
        (Setting::User, prompt.user.is_some()),
        (Setting::CacheKey, prompt.cache_key.is_some()),
        (Setting::Store, prompt.store == Some(true)),
    ];
    for (setting, _) in homeless.into_iter().filter(|(_, is_set)| *is_set) {
        loss.setting(setting, LossKind::Dropped, NO_FIELD);
    }
}
