//! Reads a responses request into neutral parts.

pub(super) mod items;
#[cfg(test)]
mod tests;

use gw_types::{GatewayError, Operation};

use crate::{
    json::{Node, Value},
    members::Members,
    neutral::{
        Block, Content, Effort, Format, Instruction, InstructionRole, Origin, Place, Prompt, RawJson,
        Reasoning, Role, Summary, Tool, ToolChoice, ToolKind,
    },
    openai::{
        facts::body_text,
        prompt::{function_of, schema_of},
        refusal::Refusal,
    },
};

/// Reads a request into neutral parts. One pass over the body; text is copied once.
///
/// # Errors
/// `InvalidRequest` with the path of the field at fault: everything that [`super::read_request`] refuses, and what can only
/// be answered where the provider keeps something for the caller: `previous_response_id`, `conversation`, `prompt`,
/// `background`, references to items; and tool arguments that are neither blank nor a JSON object.
pub fn read_prompt(body: &[u8]) -> Result<Prompt, GatewayError> {
    let text = body_text(body)?;
    let read = || {
        let mut members = Members::of(Node::read(text)?)?;
        let mut prompt = Prompt::new(Operation::Responses);
        members.take("model")?;
        state(&mut members)?;
        settings(&mut members, &mut prompt)?;
        form(&mut members, &mut prompt)?;
        tools(&mut members, &mut prompt)?;
        conversation(&mut members, &mut prompt)?;
        members.leave("", &mut prompt.rest);
        Ok(prompt)
    };
    read().map_err(|refusal: Refusal| refusal.into_error(text))
}

/// Refuses what goes on from something that only one provider keeps.
fn state(members: &mut Members<'_>) -> Result<(), Refusal> {
    for field in ["previous_response_id", "conversation", "prompt"] {
        if let Some(node) = members.take(field)? {
            let message = "what it names is kept by one provider, and this deployment is another's";
            return Err(Refusal::new(node.at, message).within(field));
        }
    }
    if members.boolean("background")?.unwrap_or(false) {
        let message = "answers in the background are kept by one provider, and this deployment is another's";
        return Err(Refusal::new(members.at, message).within("background"));
    }
    Ok(())
}

fn settings(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    prompt.max_output = members.whole("max_output_tokens")?;
    prompt.stream = members.boolean("stream")?.unwrap_or(false);
    prompt.include_usage = true;
    prompt.sampling.temperature = members.number("temperature")?;
    prompt.sampling.top_p = members.number("top_p")?;
    prompt.sampling.top_logprobs = members.whole("top_logprobs")?;
    prompt.sampling.logprobs = prompt.sampling.top_logprobs.map(|_| true);
    let user = members.string("user")?;
    prompt.user = members.string("safety_identifier")?.or(user);
    prompt.metadata = members.raw_object("metadata")?.filter(|metadata| metadata.as_str() != "{}");
    prompt.service_tier = members.string("service_tier")?;
    prompt.cache_key = members.string("prompt_cache_key")?;
    prompt.store = members.boolean("store")?;
    Ok(())
}

/// Reads what the answer shall look like: `text` and `reasoning`.
fn form(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    if let Some(mut text) = members.object("text")? {
        prompt.verbosity = text.string("verbosity").map_err(|refusal| refusal.within("text"))?;
        if let Some(format) = text.object("format").map_err(|refusal| refusal.within("text"))? {
            prompt.format =
                format_of(format, prompt).map_err(|refusal| refusal.within("format").within("text"))?;
        }
        text.leave("text", &mut prompt.rest);
    }
    if let Some(mut reasoning) = members.object("reasoning")? {
        prompt.reasoning = reasoning_of(&mut reasoning).map_err(|refusal| refusal.within("reasoning"))?;
        reasoning.leave("reasoning", &mut prompt.rest);
    }
    Ok(())
}

fn format_of(mut format: Members<'_>, prompt: &mut Prompt) -> Result<Format, Refusal> {
    let kind = format.required_string("type")?;
    let read = match kind.as_str() {
        "text" => Format::Text,
        "json_object" => Format::JsonObject,
        "json_schema" => Format::JsonSchema(schema_of(&mut format)?),
        _ => return Err(Refusal::new(format.at, "unknown format of the answer").within("type")),
    };
    format.leave("text.format", &mut prompt.rest);
    Ok(read)
}

fn reasoning_of(reasoning: &mut Members<'_>) -> Result<Option<Reasoning>, Refusal> {
    let mut read = Reasoning::default();
    if let Some(effort) = reasoning.string("effort")? {
        let known = Effort::from_name(&effort);
        read.effort =
            Some(known.ok_or_else(|| Refusal::new(reasoning.at, "unknown effort").within("effort"))?);
    }
    let older = reasoning.string("generate_summary")?;
    if let Some(summary) = reasoning.string("summary")?.or(older) {
        read.summary = Some(match summary.as_str() {
            "auto" => Summary::Auto,
            "concise" => Summary::Concise,
            "detailed" => Summary::Detailed,
            _ => {
                let message = "expected `auto`, `concise` or `detailed`";
                return Err(Refusal::new(reasoning.at, message).within("summary"));
            }
        });
    }
    Ok((read != Reasoning::default()).then_some(read))
}

fn tools(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    prompt.parallel_tool_calls = members.boolean("parallel_tool_calls")?;
    for (index, node) in members.array("tools")?.unwrap_or_default().into_iter().enumerate() {
        let tool = tool(node, index, prompt).map_err(|refusal| refusal.within_item(index).within("tools"))?;
        prompt.tools.push(tool);
    }
    if let Some(node) = members.take("tool_choice")? {
        prompt.tool_choice = Some(tool_choice(node).map_err(|refusal| refusal.within("tool_choice"))?);
    }
    Ok(())
}

fn tool(node: Node<'_>, index: usize, prompt: &mut Prompt) -> Result<Tool, Refusal> {
    let place = Place::item("tools", index);
    let raw = node.raw;
    let mut tool = Members::of(node)?;
    let kind = tool.required_string("type")?;
    if kind != "function" {
        let raw = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
        return Ok(Tool { kind: ToolKind::Server(Origin::OpenAi, raw), cache: None, place });
    }
    let kind = function_of(&mut tool)?;
    tool.leave(&place.to_string(), &mut prompt.rest);
    Ok(Tool { kind, cache: None, place })
}

fn tool_choice(node: Node<'_>) -> Result<ToolChoice, Refusal> {
    if let Some(word) = node.as_str() {
        return match &*word {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => Err(Refusal::new(node.at, "expected `auto`, `none`, `required` or a function")),
        };
    }
    let at = node.at;
    let mut choice = Members::of(node)?;
    if choice.string("type")?.is_some_and(|kind| kind == "function") {
        return Ok(ToolChoice::Tool(choice.required_string("name")?));
    }
    Err(Refusal::new(at, "this tool choice cannot be translated; name a function"))
}

fn conversation(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    if let Some(text) = members.string("instructions")? {
        prompt.instructions.push(Instruction {
            role: InstructionRole::System,
            blocks: vec![Block::at(Place::field("instructions"), Content::text(text))],
            before_turn: 0,
        });
    }
    let Some(input) = members.take("input")? else { return Err(members.missing("input")) };
    let at = input.at;
    match input.value {
        Value::String(text) => {
            let text = Content::text(text.decoded().into_owned());
            prompt.say(Role::User, vec![Block::at(Place::field("input"), text)]);
        }
        Value::Array(nodes) => {
            items::read(nodes, prompt).map_err(|refusal| refusal.within("input"))?;
        }
        Value::Object(_) | Value::Number | Value::Bool(_) | Value::Null => {
            return Err(Refusal::new(at, "expected a string or an array of items").within("input"));
        }
    }
    Ok(())
}
