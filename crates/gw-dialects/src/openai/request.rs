//! Writes a request out of neutral parts as chat completions.

mod settings;
mod turns;

pub(crate) use self::turns::google_signature;

use bytes::Bytes;
use gw_types::Loss;

use crate::{
    json::Writer,
    neutral::{LossReport, Prompt, Tool, ToolChoice, ToolKind, WriteOptions},
};

/// Returns the body to send, and what of the request it does not carry.
///
/// A stream always asks for its usage: what it cost is known from nothing else. Reasoning of earlier turns, cache marks
/// and fields that only some servers know are written only for a caller of the same format.
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    let mut loss = LossReport::new(prompt.ingress);
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("model", options.model);
        json.member_array("messages", |json| turns::write(json, prompt, &mut loss));
        tools(json, prompt, &mut loss);
        settings::write(json, prompt, options, &mut loss);
    });
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

fn tools(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let known = loss.known_tools(&prompt.tools, None);
    if known.is_empty() {
        return;
    }
    json.member_array("tools", |json| known.iter().for_each(|tool| function(json, tool, loss)));
    if let Some(choice) = &prompt.tool_choice {
        json.key("tool_choice");
        match choice {
            ToolChoice::Auto => json.string("auto"),
            ToolChoice::None => json.string("none"),
            ToolChoice::Required => json.string("required"),
            ToolChoice::Tool(name) => json.object(|json| {
                json.member_string("type", "function");
                json.member_object("function", |json| json.member_string("name", name));
            }),
        }
    }
    if let Some(parallel) = prompt.parallel_tool_calls {
        json.member_bool("parallel_tool_calls", parallel);
    }
}

fn function(json: &mut Writer, tool: &Tool, loss: &mut LossReport) {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return };
    if tool.cache.is_some() {
        loss.dropped(&tool.place.below("cache_control"), turns::NO_CACHE_MARKS);
    }
    json.object(|json| {
        json.member_string("type", "function");
        json.member_object("function", |json| {
            json.member_string("name", name);
            if let Some(description) = description {
                json.member_string("description", description);
            }
            if let Some(parameters) = parameters {
                json.member_raw("parameters", parameters.as_str());
            }
            if let Some(strict) = strict {
                json.member_bool("strict", *strict);
            }
        });
    });
}
