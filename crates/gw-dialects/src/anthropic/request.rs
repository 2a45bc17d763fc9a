//! Writes a request out of neutral parts as messages.

mod blocks;
mod settings;
mod turns;

use bytes::Bytes;
use gw_types::{Loss, LossKind, Operation};

use crate::{
    json::{Node, Writer},
    neutral::{
        ANSWER_TOOL, Format, LossReport, Origin, Prompt, RawJson, Setting, Tool, ToolChoice, ToolKind,
        WriteOptions,
    },
    openai::thoughts::cache_mark,
};

/// Returns the body to send, and what of the request it does not carry.
///
/// The format demands an output bound: the pipeline's, else the caller's, else the default of the options. A schema is
/// sent as such to the models that take one, and as a forced tool to those that do not; the readers of this format turn
/// the call of that tool back into text.
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    let mut loss = LossReport::new(prompt.ingress);
    let plan = settings::Plan::of(prompt, options, &mut loss);
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("model", options.model);
        json.member_number("max_tokens", plan.max_tokens);
        turns::write(json, prompt, &mut loss);
        tools(json, prompt, &plan, &mut loss);
        settings::write(json, prompt, &plan, &mut loss);
    });
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

fn tools(json: &mut Writer, prompt: &Prompt, plan: &settings::Plan, loss: &mut LossReport) {
    let known = loss.known_tools(&prompt.tools, Some(Origin::Anthropic));
    if plan.schema_as_tool
        && let Format::JsonSchema(format) = &prompt.format
    {
        json.member_array("tools", |json| {
            known.iter().for_each(|tool| self::tool(json, tool, plan, loss));
            json.object(|json| {
                json.member_string("name", ANSWER_TOOL);
                let said = format.description.as_deref().filter(|said| !said.is_empty());
                let what = "Gives the answer to the user. Call it once, at the end.";
                match said {
                    Some(said) => json.member_string("description", &format!("{what} {said}")),
                    None => json.member_string("description", what),
                }
                json.key("input_schema");
                input_schema(json, Some(&format.schema));
            });
        });
        let forced = if known.is_empty() { "tool" } else { "any" };
        json.member_object("tool_choice", |json| {
            json.member_string("type", forced);
            if known.is_empty() {
                json.member_string("name", ANSWER_TOOL);
            }
        });
        return;
    }
    if known.is_empty() {
        return;
    }
    json.member_array("tools", |json| known.iter().for_each(|tool| self::tool(json, tool, plan, loss)));
    tool_choice(json, prompt);
}

fn tool_choice(json: &mut Writer, prompt: &Prompt) {
    let one_by_one = prompt.parallel_tool_calls.map(|parallel| !parallel);
    // What the format does by itself need not be said, unless the caller has said it in so many words.
    let said = one_by_one.filter(|disabled| *disabled || prompt.ingress == Operation::Messages);
    let choice = match (&prompt.tool_choice, said) {
        (None, None) => return,
        (None, Some(_)) => &ToolChoice::Auto,
        (Some(choice), _) => choice,
    };
    json.member_object("tool_choice", |json| {
        match choice {
            ToolChoice::Auto => json.member_string("type", "auto"),
            ToolChoice::None => return json.member_string("type", "none"),
            ToolChoice::Required => json.member_string("type", "any"),
            ToolChoice::Tool(name) => {
                json.member_string("type", "tool");
                json.member_string("name", name);
            }
        }
        if let Some(disabled) = said {
            json.member_bool("disable_parallel_tool_use", disabled);
        }
    });
}

fn tool(json: &mut Writer, tool: &Tool, plan: &settings::Plan, loss: &mut LossReport) {
    let (name, description, parameters, strict) = match &tool.kind {
        ToolKind::Function { name, description, parameters, strict } => {
            (name, description, parameters, strict)
        }
        ToolKind::Server(_, raw) => return json.raw(raw.as_str()),
    };
    json.object(|json| {
        json.member_string("name", name);
        if let Some(description) = description {
            json.member_string("description", description);
        }
        json.key("input_schema");
        input_schema(json, parameters.as_ref());
        match strict {
            Some(strict) if plan.takes_schemas => json.member_bool("strict", *strict),
            Some(true) => {
                let why = "the schema is followed as far as the model can, not enforced";
                loss.setting(Setting::Tools, LossKind::Approximated, why);
            }
            Some(false) | None => {}
        }
        cache_mark(json, tool.cache);
    });
}

/// Writes a schema of arguments, which the format wants to say that it is one of an object.
fn input_schema(json: &mut Writer, schema: Option<&RawJson>) {
    let Some(schema) = schema else {
        return json.raw(r#"{"type":"object","properties":{}}"#);
    };
    let says_type = Node::read(schema.as_str()).is_ok_and(|node| node.get("type").is_some());
    if says_type {
        return json.raw(schema.as_str());
    }
    let inside = schema.as_str().strip_prefix('{').map_or("", str::trim_start);
    let comma = if inside.starts_with('}') { "" } else { "," };
    json.raw(&format!(r#"{{"type":"object"{comma}{inside}"#));
}
