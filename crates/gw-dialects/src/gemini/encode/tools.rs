//! Tools, and whether to call them.

use gw_types::{LossKind, Operation};

use super::super::schema;
use crate::{
    json::Writer,
    neutral::{LossReport, Origin, Prompt, Setting, Tool, ToolChoice, ToolKind},
};

/// Returns whether the request has functions of the caller's.
pub(super) fn has_functions(prompt: &Prompt) -> bool {
    prompt.tools.iter().any(|tool| matches!(tool.kind, ToolKind::Function { .. }))
}

/// Writes `tools`.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let functions = has_functions(prompt);
    let servers = prompt.tools.iter().filter_map(|tool| server_tool(tool, loss)).collect::<Vec<_>>();
    if !functions && servers.is_empty() {
        return;
    }
    json.member_array("tools", |json| {
        if functions {
            json.object(|json| {
                json.member_array("functionDeclarations", |json| {
                    prompt.tools.iter().for_each(|tool| write_function(json, tool, prompt.ingress, loss));
                });
            });
        }
        servers.into_iter().for_each(|server| json.raw(server));
    });
}

fn server_tool<'a>(tool: &'a Tool, loss: &mut LossReport) -> Option<&'a str> {
    match &tool.kind {
        ToolKind::Server(Origin::Gemini, value) => Some(value.as_str()),
        ToolKind::Server(Origin::Anthropic | Origin::Bedrock | Origin::OpenAi, _) => {
            loss.block(tool.place, LossKind::Dropped, "the tool belongs to another provider");
            None
        }
        ToolKind::Function { .. } => None,
    }
}

fn write_function(json: &mut Writer, tool: &Tool, ingress: Operation, loss: &mut LossReport) {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return };
    if tool.cache.is_some() {
        loss.dropped(&tool.place.below("cache_control"), "Gemini caches prompts by itself");
    }
    if *strict == Some(true) {
        let why = "Gemini does not promise to keep to a tool's schema";
        loss.approximated(&strict_path(tool, ingress), why);
    }
    json.object(|json| {
        json.member_string("name", name);
        if let Some(description) = description {
            json.member_string("description", description);
        }
        if let Some(parameters) = parameters {
            let converted = schema::convert(parameters.as_str());
            if converted.lossy {
                let why = "Gemini does not check every keyword of a JSON schema";
                loss.approximated(&schema_path(tool, ingress), why);
            }
            json.member_raw("parametersJsonSchema", &converted.text);
        }
    });
}

fn schema_path(tool: &Tool, ingress: Operation) -> String {
    tool.place.below(match ingress {
        Operation::Chat | Operation::Completions | Operation::Embeddings => "function.parameters",
        Operation::Responses => "parameters",
        Operation::Messages | Operation::CountTokens => "input_schema",
    })
}

fn strict_path(tool: &Tool, ingress: Operation) -> String {
    tool.place.below(match ingress {
        Operation::Chat | Operation::Completions | Operation::Embeddings => "function.strict",
        Operation::Responses | Operation::Messages | Operation::CountTokens => "strict",
    })
}

/// Writes `toolConfig`, which says whether and which function to call.
pub(super) fn write_choice(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let Some(choice) = prompt.tool_choice.as_ref().filter(|_| has_functions(prompt)) else { return };
    let known = |name: &str| {
        prompt
            .tools
            .iter()
            .any(|tool| matches!(&tool.kind, ToolKind::Function { name: own, .. } if own == name))
    };
    let (mode, only) = match choice {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Tool(name) if known(name) => ("ANY", Some(name)),
        ToolChoice::Tool(_) => {
            loss.setting(Setting::ToolChoice, LossKind::Approximated, "no function has this name");
            ("ANY", None)
        }
    };
    json.member_object("toolConfig", |json| {
        json.member_object("functionCallingConfig", |json| {
            json.member_string("mode", mode);
            if let Some(name) = only {
                json.member_array("allowedFunctionNames", |json| json.string(name));
            }
        });
    });
}
