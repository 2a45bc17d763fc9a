//! Writes the settings of a request.

use gw_types::{LossKind, Operation};

use crate::{
    json::Writer,
    neutral::{Effort, Format, LossReport, Prompt, Setting, Summary, WriteOptions},
};

/// The least output bound that the format takes, in tokens; other formats take 1.
const OUTPUT_MIN: u64 = 16;

pub(super) fn write(json: &mut Writer, prompt: &Prompt, options: &WriteOptions<'_>, loss: &mut LossReport) {
    if let Some(bound) = options.bound(prompt) {
        let least = if prompt.ingress == Operation::Responses { 0 } else { OUTPUT_MIN };
        if bound < least && prompt.max_output.is_some() {
            loss.setting(
                Setting::MaxOutput,
                LossKind::Approximated,
                "responses take no bound below 16 tokens",
            );
        }
        json.member_number("max_output_tokens", bound.max(least));
    }
    if prompt.stream {
        json.member_bool("stream", true);
    }
    let logprobs = sampling(json, prompt, loss);
    text(json, prompt, loss);
    reasoning(json, prompt, loss);
    labels(json, prompt, loss, logprobs);
}

/// Writes how tokens are chosen; returns whether log probabilities are wanted.
fn sampling(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) -> bool {
    let sampling = &prompt.sampling;
    for (name, number) in [("temperature", &sampling.temperature), ("top_p", &sampling.top_p)] {
        if let Some(number) = number {
            json.member_number(name, number);
        }
    }
    let logprobs = sampling.logprobs.unwrap_or(sampling.top_logprobs.is_some());
    if logprobs && let Some(count) = sampling.top_logprobs {
        json.member_number("top_logprobs", count);
    }
    const WHY: &str = "responses have no such setting";
    let lost = [
        (sampling.top_k.is_some(), Setting::TopK),
        (sampling.frequency_penalty.is_some(), Setting::FrequencyPenalty),
        (sampling.presence_penalty.is_some(), Setting::PresencePenalty),
        (sampling.seed.is_some(), Setting::Seed),
        (!sampling.stop.is_empty(), Setting::Stop),
        (sampling.choices.is_some_and(|choices| choices > 1), Setting::Choices),
        (sampling.logit_bias.is_some(), Setting::LogitBias),
    ];
    for (_, setting) in lost.into_iter().filter(|(given, _)| *given) {
        loss.setting(setting, LossKind::Dropped, WHY);
    }
    logprobs
}

fn text(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    if prompt.format == Format::Text && prompt.verbosity.is_none() {
        return;
    }
    json.member_object("text", |json| {
        match &prompt.format {
            Format::Text => {}
            Format::JsonObject => {
                json.member_object("format", |json| json.member_string("type", "json_object"));
            }
            Format::JsonSchema(schema) => json.member_object("format", |json| {
                json.member_string("type", "json_schema");
                json.member_string("name", schema.name.as_deref().unwrap_or("answer"));
                if let Some(description) = &schema.description {
                    json.member_string("description", description);
                }
                json.member_raw("schema", schema.schema.as_str());
                if let Some(strict) = schema.strict {
                    json.member_bool("strict", strict);
                } else if prompt.ingress == Operation::Messages {
                    // OpenAI's strict mode refuses schemas with optional fields, which Anthropic takes.
                    let why = "the schema is followed as far as the model can, not enforced";
                    loss.setting(Setting::Format, LossKind::Approximated, why);
                }
            }),
        }
        if let Some(verbosity) = &prompt.verbosity {
            json.member_string("verbosity", verbosity);
        }
    });
}

fn reasoning(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let Some(reasoning) = prompt.reasoning else { return };
    let effort = match (reasoning.effort, reasoning.budget_tokens) {
        (Some(effort), _) => Some(effort),
        (None, Some(tokens)) => {
            let why = "a thinking budget is sent as the effort nearest to it";
            loss.setting(Setting::Reasoning, LossKind::Approximated, why);
            Some(Effort::of_budget(tokens))
        }
        (None, None) => None,
    };
    let summary = match reasoning.summary {
        Some(Summary::Auto) => Some("auto"),
        Some(Summary::Concise) => Some("concise"),
        Some(Summary::Detailed) => Some("detailed"),
        // A caller that switches thinking on in Anthropic's format is shown it.
        None if prompt.ingress == Operation::Messages
            && effort.is_none_or(|effort| effort != Effort::None) =>
        {
            Some("auto")
        }
        Some(Summary::Omitted) | None => None,
    };
    if effort.is_none() && summary.is_none() {
        return;
    }
    json.member_object("reasoning", |json| {
        if let Some(effort) = effort {
            json.member_string("effort", effort.as_str());
        }
        if let Some(summary) = summary {
            json.member_string("summary", summary);
        }
    });
}

fn labels(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport, logprobs: bool) {
    if let Some(metadata) = &prompt.metadata {
        json.member_raw("metadata", metadata.as_str());
    }
    let texts = [
        ("user", prompt.user.as_deref()),
        ("service_tier", prompt.service_tier.as_deref().map(tier)),
        ("prompt_cache_key", prompt.cache_key.as_deref()),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            json.member_string(name, text);
        }
    }
    let same = prompt.ingress == Operation::Responses;
    let store = match prompt.store {
        Some(store) if same => store,
        Some(true) => {
            // The caller would look for the answer where its own format keeps it, and not find it.
            loss.setting(Setting::Store, LossKind::Dropped, "the answer is not kept by the provider");
            false
        }
        None if same => true,
        Some(false) | None => false,
    };
    if !store {
        // Other formats keep nothing unless they are asked to; this one keeps everything.
        json.member_bool("store", false);
    }
    if !store || logprobs {
        json.member_array("include", |json| {
            if !store {
                json.string("reasoning.encrypted_content");
            }
            if logprobs {
                json.string("message.output_text.logprobs");
            }
        });
    }
}

/// Returns the tier in OpenAI's words.
fn tier(tier: &str) -> &str {
    if tier == "standard_only" { "default" } else { tier }
}
