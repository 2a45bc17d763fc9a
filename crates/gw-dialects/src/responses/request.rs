//! Writes a request out of neutral parts as responses.

mod items;
mod settings;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{Loss, Operation};

use crate::{
    json::Writer,
    neutral::{LossReport, Origin, Prompt, Tool, ToolChoice, ToolKind, WriteOptions},
};

/// Returns the body to send, and what of the request it does not carry.
///
/// Nothing is kept at the provider unless a caller of the same format wants it, so reasoning is asked for in the form in which
/// it can be given back. Reasoning that another provider has signed or encrypted does not travel.
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    let mut loss = LossReport::new(prompt.ingress);
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("model", options.model);
        items::write(json, prompt, &mut loss);
        tools(json, prompt, &mut loss);
        settings::write(json, prompt, options, &mut loss);
    });
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

fn tools(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    // Chat has a few tools of its own, which are not written alike.
    let same = prompt.ingress == Operation::Responses;
    let known = loss.known_tools(&prompt.tools, same.then_some(Origin::OpenAi));
    if known.is_empty() {
        return;
    }
    json.member_array("tools", |json| known.iter().for_each(|tool| write_tool(json, tool, same, loss)));
    if let Some(choice) = &prompt.tool_choice {
        json.key("tool_choice");
        match choice {
            ToolChoice::Auto => json.string("auto"),
            ToolChoice::None => json.string("none"),
            ToolChoice::Required => json.string("required"),
            ToolChoice::Tool(name) => json.object(|json| {
                json.member_string("type", "function");
                json.member_string("name", name);
            }),
        }
    }
    if let Some(parallel) = prompt.parallel_tool_calls {
        json.member_bool("parallel_tool_calls", parallel);
    }
}

/// Writes a tool; `same` says that its caller wrote it in this format.
fn write_tool(json: &mut Writer, tool: &Tool, same: bool, loss: &mut LossReport) {
    if tool.cache.is_some() {
        loss.dropped(&tool.place.below("cache_control"), items::NO_CACHE_MARKS);
    }
    let (name, description, parameters, strict) = match &tool.kind {
        ToolKind::Function { name, description, parameters, strict } => {
            (name, description, parameters, strict)
        }
        ToolKind::Server(_, raw) => return json.raw(raw.as_str()),
    };
    json.object(|json| {
        json.member_string("type", "function");
        json.member_string("name", name);
        if let Some(description) = description {
            json.member_string("description", description);
        }
        match parameters {
            Some(parameters) => json.member_raw("parameters", parameters.as_str()),
            None => json.member_null("parameters"),
        }
        // Absent means strict here, and not strict everywhere else.
        if let Some(strict) = strict.or((!same).then_some(false)) {
            json.member_bool("strict", strict);
        }
    });
}
