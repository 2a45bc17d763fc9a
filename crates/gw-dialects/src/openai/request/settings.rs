//! Writes the settings of a request.

use gw_types::{LossKind, Operation, OutputField};

use crate::{
    json::Writer,
    neutral::{Effort, Format, LossReport, Prompt, Setting, Summary, WriteOptions},
};

/// The most stop sequences that OpenAI takes.
const STOPS_MAX: usize = 4;

pub(super) fn write(json: &mut Writer, prompt: &Prompt, options: &WriteOptions<'_>, loss: &mut LossReport) {
    if let Some(bound) = options.bound(prompt) {
        let field = match options.output_field {
            OutputField::MaxTokens => "max_tokens",
            OutputField::MaxCompletionTokens | OutputField::MaxOutputTokens => "max_completion_tokens",
        };
        json.member_number(field, bound);
    }
    if prompt.stream {
        json.member_bool("stream", true);
        json.member_object("stream_options", |json| json.member_bool("include_usage", true));
    }
    sampling(json, prompt, loss);
    format(json, prompt, loss);
    reasoning(json, prompt, loss);
    labels(json, prompt, loss);
}

fn sampling(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let sampling = &prompt.sampling;
    let numbers = [
        ("temperature", &sampling.temperature),
        ("top_p", &sampling.top_p),
        ("frequency_penalty", &sampling.frequency_penalty),
        ("presence_penalty", &sampling.presence_penalty),
        ("seed", &sampling.seed),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            json.member_number(name, number);
        }
    }
    if let Some(top_k) = &sampling.top_k {
        if prompt.ingress == Operation::Chat {
            json.member_number("top_k", top_k);
        } else {
            loss.setting(Setting::TopK, LossKind::Dropped, "chat completions have no `top_k`");
        }
    }
    if !sampling.stop.is_empty() {
        if sampling.stop.len() > STOPS_MAX {
            loss.setting(Setting::Stop, LossKind::Approximated, "only the first 4 stop sequences are sent");
        }
        json.member_array("stop", |json| {
            sampling.stop.iter().take(STOPS_MAX).for_each(|stop| json.string(stop));
        });
    }
    if let Some(choices) = sampling.choices {
        json.member_number("n", choices);
    }
    if let Some(logprobs) = sampling.logprobs {
        json.member_bool("logprobs", logprobs);
    }
    if let Some(top_logprobs) = sampling.top_logprobs {
        json.member_number("top_logprobs", top_logprobs);
    }
    if let Some(bias) = &sampling.logit_bias {
        json.member_raw("logit_bias", bias.as_str());
    }
}

fn format(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    match &prompt.format {
        Format::Text => {}
        Format::JsonObject => {
            json.member_object("response_format", |json| json.member_string("type", "json_object"));
        }
        Format::JsonSchema(schema) => json.member_object("response_format", |json| {
            json.member_string("type", "json_schema");
            json.member_object("json_schema", |json| {
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
            });
        }),
    }
}

fn reasoning(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let Some(reasoning) = prompt.reasoning else { return };
    let effort = match (reasoning.effort, reasoning.budget_tokens) {
        (Some(effort), _) => Some(effort),
        (None, Some(tokens)) if prompt.ingress == Operation::Chat => {
            // The caller wrote OpenRouter's object, for a server that knows it.
            json.member_object("reasoning", |json| json.member_number("max_tokens", tokens));
            None
        }
        (None, Some(tokens)) => {
            let why = "a thinking budget is sent as the effort nearest to it";
            loss.setting(Setting::Reasoning, LossKind::Approximated, why);
            Some(Effort::of_budget(tokens))
        }
        (None, None) => None,
    };
    if let Some(effort) = effort {
        json.member_string("reasoning_effort", effort.as_str());
    } else if reasoning.adaptive {
        let why = "the model thinks as it does by itself, if it does";
        loss.setting(Setting::Reasoning, LossKind::Approximated, why);
    }
    if matches!(reasoning.summary, Some(Summary::Auto | Summary::Concise | Summary::Detailed)) {
        let why = "chat completions cannot be asked to show their reasoning";
        loss.setting(Setting::Reasoning, LossKind::Dropped, why);
    }
}

fn labels(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    if let Some(metadata) = &prompt.metadata {
        json.member_raw("metadata", metadata.as_str());
    }
    let texts = [
        ("user", prompt.user.as_deref()),
        ("service_tier", prompt.service_tier.as_deref().map(tier)),
        ("prompt_cache_key", prompt.cache_key.as_deref()),
        ("verbosity", prompt.verbosity.as_deref()),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            json.member_string(name, text);
        }
    }
    match prompt.store {
        Some(store) if prompt.ingress == Operation::Chat => json.member_bool("store", store),
        Some(true) => {
            // The caller would look for the answer where its own format keeps it, and not find it.
            loss.setting(Setting::Store, LossKind::Dropped, "the answer is not kept by the provider");
        }
        Some(false) | None => {}
    }
}

/// Returns the tier in OpenAI's words.
fn tier(tier: &str) -> &str {
    if tier == "standard_only" { "default" } else { tier }
}
