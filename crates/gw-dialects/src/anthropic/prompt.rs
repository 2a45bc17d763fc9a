//! Reads a messages request into neutral parts.

mod blocks;

pub(super) use self::blocks::citation;

use gw_types::{GatewayError, Operation};

use crate::{
    json::Node,
    members::Members,
    neutral::{
        Effort, Format, Instruction, InstructionRole, Origin, Place, Prompt, RawJson, Reasoning, Role,
        SchemaFormat, Summary, Tool, ToolChoice, ToolKind,
    },
    openai::{
        facts::body_text,
        prompt::{cache_mark, texts},
        refusal::Refusal,
    },
};

/// Reads a request into neutral parts. One pass over the body; text is copied once.
///
/// # Errors
/// `InvalidRequest` with the path of the field at fault: everything that [`super::read_messages`] refuses, and blocks and
/// settings that are not what the format says.
pub fn read_prompt(body: &[u8]) -> Result<Prompt, GatewayError> {
    let text = body_text(body)?;
    let read = || {
        let mut members = Members::of(Node::read(text)?)?;
        let mut prompt = Prompt::new(Operation::Messages);
        members.take("model")?;
        settings(&mut members, &mut prompt)?;
        tools(&mut members, &mut prompt)?;
        system(&mut members, &mut prompt)?;
        let messages = members.array("messages")?.ok_or_else(|| members.missing("messages"))?;
        for (index, node) in messages.into_iter().enumerate() {
            message(node, Place::item("messages", index), &mut prompt)
                .map_err(|refusal| refusal.within_item(index).within("messages"))?;
        }
        prompt.put_results_first();
        members.leave("", &mut prompt.rest);
        Ok(prompt)
    };
    read().map_err(|refusal: Refusal| refusal.into_error(text))
}

fn settings(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    prompt.max_output = members.whole("max_tokens")?;
    prompt.stream = members.boolean("stream")?.unwrap_or(false);
    prompt.include_usage = true;
    let sampling = &mut prompt.sampling;
    sampling.temperature = members.number("temperature")?;
    sampling.top_p = members.number("top_p")?;
    sampling.top_k = members.number("top_k")?;
    if let Some(stop) = members.take("stop_sequences")? {
        sampling.stop = texts(&stop).map_err(|refusal| refusal.within("stop_sequences"))?;
    }
    prompt.service_tier = members.string("service_tier")?;
    if let Some(mut metadata) = members.object("metadata")? {
        prompt.user = metadata.string("user_id").map_err(|refusal| refusal.within("metadata"))?;
        metadata.leave("metadata", &mut prompt.rest);
    }
    let mut reasoning = thinking(members, prompt)?;
    if let Some(mut config) = members.object("output_config")? {
        output_config(&mut config, prompt, &mut reasoning)
            .map_err(|refusal| refusal.within("output_config"))?;
        config.leave("output_config", &mut prompt.rest);
    }
    // Where older clients put the schema.
    if let Some(format) = members.object("output_format")? {
        prompt.format = format_of(format, prompt).map_err(|refusal| refusal.within("output_format"))?;
    }
    prompt.reasoning = (reasoning != Reasoning::default()).then_some(reasoning);
    Ok(())
}

fn thinking(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<Reasoning, Refusal> {
    let mut reasoning = Reasoning::default();
    let Some(mut thinking) = members.object("thinking")? else { return Ok(reasoning) };
    let mut read = || {
        match thinking.required_string("type")?.as_str() {
            "enabled" => {
                let budget = thinking.whole("budget_tokens")?;
                reasoning.budget_tokens = Some(budget.ok_or_else(|| thinking.missing("budget_tokens"))?);
            }
            // Thinking between calls alone is near to thinking as much as is right.
            "adaptive" | "between_tools" => reasoning.adaptive = true,
            "disabled" => reasoning.effort = Some(Effort::None),
            _ => return Err(Refusal::new(thinking.at, "unknown type of thinking").within("type")),
        }
        reasoning.summary = match thinking.string("display")?.as_deref() {
            Some("omitted") => Some(Summary::Omitted),
            Some(_) => Some(Summary::Auto),
            None => None,
        };
        Ok(())
    };
    read().map_err(|refusal: Refusal| refusal.within("thinking"))?;
    thinking.leave("thinking", &mut prompt.rest);
    Ok(reasoning)
}

fn output_config(
    config: &mut Members<'_>,
    prompt: &mut Prompt,
    reasoning: &mut Reasoning,
) -> Result<(), Refusal> {
    if let Some(effort) = config.string("effort")? {
        let effort = Effort::from_name(&effort)
            .ok_or_else(|| Refusal::new(config.at, "unknown effort").within("effort"))?;
        // Thinking that is switched off stays off.
        reasoning.effort = reasoning.effort.or(Some(effort));
    }
    if let Some(format) = config.object("format")? {
        prompt.format = format_of(format, prompt).map_err(|refusal| refusal.within("format"))?;
    }
    Ok(())
}

fn format_of(mut format: Members<'_>, prompt: &mut Prompt) -> Result<Format, Refusal> {
    if format.required_string("type")? != "json_schema" {
        return Err(Refusal::new(format.at, "expected `json_schema`").within("type"));
    }
    let schema = format.raw_object("schema")?.ok_or_else(|| format.missing("schema"))?;
    format.leave("output_config.format", &mut prompt.rest);
    Ok(Format::JsonSchema(SchemaFormat { name: None, description: None, schema, strict: None }))
}

fn tools(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    for (index, node) in members.array("tools")?.unwrap_or_default().into_iter().enumerate() {
        let tool = tool(node, index, prompt).map_err(|refusal| refusal.within_item(index).within("tools"))?;
        prompt.tools.push(tool);
    }
    if let Some(choice) = members.object("tool_choice")? {
        tool_choice(choice, prompt).map_err(|refusal| refusal.within("tool_choice"))?;
    }
    Ok(())
}

fn tool(node: Node<'_>, index: usize, prompt: &mut Prompt) -> Result<Tool, Refusal> {
    let place = Place::item("tools", index);
    let raw = node.raw;
    let mut tool = Members::of(node)?;
    let kind = tool.string("type")?;
    if kind.as_deref().is_some_and(|kind| kind != "custom") {
        let raw = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
        return Ok(Tool { kind: ToolKind::Server(Origin::Anthropic, raw), cache: None, place });
    }
    let cache = cache_mark(&mut tool)?;
    let kind = ToolKind::Function {
        name: tool.required_string("name")?,
        description: tool.string("description")?,
        parameters: tool.raw_object("input_schema")?,
        strict: tool.boolean("strict")?,
    };
    tool.leave(&place.to_string(), &mut prompt.rest);
    Ok(Tool { kind, cache, place })
}

fn tool_choice(mut choice: Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    prompt.tool_choice = Some(match choice.required_string("type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Tool(choice.required_string("name")?),
        _ => return Err(Refusal::new(choice.at, "expected `auto`, `any`, `tool` or `none`").within("type")),
    });
    prompt.parallel_tool_calls = choice.boolean("disable_parallel_tool_use")?.map(|disabled| !disabled);
    choice.leave("tool_choice", &mut prompt.rest);
    Ok(())
}

fn system(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    let Some(node) = members.take("system")? else { return Ok(()) };
    let blocks = blocks::system(node, &mut prompt.rest).map_err(|refusal| refusal.within("system"))?;
    prompt.instructions.push(Instruction { role: InstructionRole::System, blocks, before_turn: 0 });
    Ok(())
}

fn message(node: Node<'_>, place: Place, prompt: &mut Prompt) -> Result<(), Refusal> {
    let mut message = Members::of(node)?;
    let at = message.at;
    let role = message.required_string("role")?;
    let content = message.take("content")?.ok_or_else(|| message.missing("content"))?;
    let blocks =
        blocks::content(content, place, &mut prompt.rest).map_err(|refusal| refusal.within("content"))?;
    message.leave(&place.to_string(), &mut prompt.rest);
    match role.as_str() {
        "user" => prompt.say(Role::User, blocks),
        "assistant" => prompt.say(Role::Assistant, blocks::reattach(blocks)),
        "system" => prompt.instructions.push(Instruction {
            role: InstructionRole::System,
            blocks,
            before_turn: prompt.turns.len(),
        }),
        _ => {
            let text = "expected the role `user`, `assistant` or `system`";
            return Err(Refusal::new(at, text).within("role"));
        }
    }
    Ok(())
}
