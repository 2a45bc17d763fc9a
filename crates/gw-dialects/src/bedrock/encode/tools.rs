//! Tools, and whether to call them.

use std::collections::BTreeSet;

use gw_types::{LossKind, Operation};

use super::{super::model::Model, parts::Marks};
use crate::{
    json::Writer,
    neutral::{Content, LossReport, Origin, Prompt, Setting, Tool, ToolChoice, ToolKind},
};

/// Writes `toolConfig`.
///
/// Bedrock refuses calls in the history without it, so that then tools are declared by the names that were called; and
/// it has no word for calling none, so that then, where it can, nothing is declared.
pub(super) fn write(
    json: &mut Writer,
    prompt: &Prompt,
    model: Model,
    marks: &mut Marks,
    loss: &mut LossReport,
) {
    let called = called_names(prompt);
    let forbids = prompt.tool_choice == Some(ToolChoice::None);
    if forbids && called.is_empty() {
        return;
    }
    let servers: Vec<Option<&str>> = prompt.tools.iter().map(|tool| server_tool(tool, loss)).collect();
    let has_functions = prompt.tools.iter().any(|tool| matches!(tool.kind, ToolKind::Function { .. }));
    let has_tools = has_functions || servers.iter().any(Option::is_some);
    if !has_tools && called.is_empty() {
        return;
    }
    if forbids {
        let why = "Bedrock has no word for calling no tool";
        loss.setting(Setting::ToolChoice, LossKind::Dropped, why);
    }
    json.member_object("toolConfig", |json| {
        json.member_array("tools", |json| {
            for (tool, server) in prompt.tools.iter().zip(servers) {
                match server {
                    Some(server) => json.raw(server),
                    None => write_function(json, tool, prompt.ingress, model, loss),
                }
                if let Some(mark) = tool.cache {
                    marks.write(json, mark, tool.place, loss);
                }
            }
            if !has_tools {
                called.iter().for_each(|name| write_called(json, name));
            }
        });
        if has_functions && let Some(choice) = &prompt.tool_choice {
            write_choice(json, choice);
        }
    });
}

/// Returns the names of the tools that the history calls.
fn called_names(prompt: &Prompt) -> BTreeSet<&str> {
    let blocks = prompt.turns.iter().flat_map(|turn| &turn.blocks);
    blocks
        .filter_map(|block| match &block.content {
            Content::ToolUse(call) => Some(call.name.as_str()),
            Content::Text(_)
            | Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::Refusal(_)
            | Content::Opaque(_) => None,
        })
        .collect()
}

fn server_tool<'a>(tool: &'a Tool, loss: &mut LossReport) -> Option<&'a str> {
    match &tool.kind {
        ToolKind::Server(Origin::Bedrock, value) => Some(value.as_str()),
        ToolKind::Server(Origin::Anthropic | Origin::Gemini | Origin::OpenAi, _) => {
            loss.block(tool.place, LossKind::Dropped, "the tool belongs to another provider");
            None
        }
        ToolKind::Function { .. } => None,
    }
}

fn write_function(json: &mut Writer, tool: &Tool, ingress: Operation, model: Model, loss: &mut LossReport) {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return };
    let keeps = *strict == Some(true) && model.keeps_to_schemas();
    if *strict == Some(true) && !keeps {
        let why = "the model does not promise to keep to a tool's schema";
        let field = match ingress {
            Operation::Chat | Operation::Completions | Operation::Embeddings => "function.strict",
            Operation::Responses | Operation::Messages | Operation::CountTokens => "strict",
        };
        loss.approximated(&tool.place.below(field), why);
    }
    json.object(|json| {
        json.member_object("toolSpec", |json| {
            json.member_string("name", name);
            if let Some(description) = description.as_deref().filter(|said| !said.is_empty()) {
                json.member_string("description", description);
            }
            json.member_object("inputSchema", |json| {
                let nothing = r#"{"type":"object","properties":{}}"#;
                json.member_raw("json", parameters.as_ref().map_or(nothing, |schema| schema.as_str()));
            });
            if keeps {
                json.member_bool("strict", true);
            }
        });
    });
}

/// Declares a tool of which only the name is known.
fn write_called(json: &mut Writer, name: &str) {
    json.object(|json| {
        json.member_object("toolSpec", |json| {
            json.member_string("name", name);
            json.member_object("inputSchema", |json| json.member_raw("json", r#"{"type":"object"}"#));
        });
    });
}

fn write_choice(json: &mut Writer, choice: &ToolChoice) {
    let nothing = |_: &mut Writer| {};
    match choice {
        ToolChoice::None => {}
        ToolChoice::Auto => json.member_object("toolChoice", |json| json.member_object("auto", nothing)),
        ToolChoice::Required => json.member_object("toolChoice", |json| json.member_object("any", nothing)),
        ToolChoice::Tool(name) => json.member_object("toolChoice", |json| {
            json.member_object("tool", |json| json.member_string("name", name));
        }),
    }
}
