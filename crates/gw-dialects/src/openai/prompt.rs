//! Reads a chat-completions request into neutral parts.

mod parts;
mod turns;

use gw_types::{GatewayError, Operation};

use super::{facts::body_text, refusal::Refusal};
use crate::{
    json::{Node, Value},
    members::{Members, string},
    neutral::{Effort, Format, Place, Prompt, RawJson, Reasoning, SchemaFormat, Tool, ToolChoice, ToolKind},
};

pub(crate) use self::parts::{cache_mark, media};

/// Reads a request into neutral parts. One pass over the body; text is copied once.
///
/// # Errors
/// `InvalidRequest` with the path of the field at fault: everything that [`super::read_chat`] refuses, and what has no
/// meaning outside of the caller's own provider: the functions that tools have replaced, and tool arguments that are
/// neither blank nor a JSON object.
pub fn read_prompt(body: &[u8]) -> Result<Prompt, GatewayError> {
    let text = body_text(body)?;
    let read = || {
        let mut members = Members::of(Node::read(text)?)?;
        let mut prompt = Prompt::new(Operation::Chat);
        members.take("model")?;
        settings(&mut members, &mut prompt)?;
        sampling(&mut members, &mut prompt)?;
        tools(&mut members, &mut prompt)?;
        let messages = members.array("messages")?.ok_or_else(|| members.missing("messages"))?;
        turns::read(messages, &mut prompt).map_err(|refusal| refusal.within("messages"))?;
        members.leave("", &mut prompt.rest);
        Ok(prompt)
    };
    read().map_err(|refusal: Refusal| refusal.into_error(text))
}

fn settings(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    let newer = members.whole("max_completion_tokens")?;
    let older = members.whole("max_tokens")?;
    prompt.max_output = newer.or(older);
    prompt.stream = members.boolean("stream")?.unwrap_or(false);
    if let Some(mut options) = members.object("stream_options")? {
        prompt.include_usage = options.boolean("include_usage")?.unwrap_or(false);
        options.leave("stream_options", &mut prompt.rest);
    }
    prompt.reasoning = reasoning(members, prompt)?;
    if let Some(format) = members.object("response_format")? {
        prompt.format = format_of(format, prompt).map_err(|refusal| refusal.within("response_format"))?;
    }
    // OpenAI is replacing `user` by two fields; the end user stands in the first that is there.
    prompt.user = members.string("safety_identifier")?;
    let user = members.string("user")?;
    prompt.user = prompt.user.take().or(user);
    prompt.metadata = members.raw_object("metadata")?;
    prompt.service_tier = members.string("service_tier")?;
    prompt.cache_key = members.string("prompt_cache_key")?;
    prompt.verbosity = members.string("verbosity")?;
    prompt.store = members.boolean("store")?;
    Ok(())
}

/// Reads `reasoning_effort`, or OpenRouter's object.
fn reasoning(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<Option<Reasoning>, Refusal> {
    let mut reasoning = Reasoning::default();
    if let Some(effort) = members.string("reasoning_effort")? {
        reasoning.effort = Some(effort_of(&effort, members.at)?);
    }
    if let Some(mut object) = members.object("reasoning")? {
        let mut read = |object: &mut Members<'_>| {
            if let Some(effort) = object.string("effort")? {
                reasoning.effort = Some(effort_of(&effort, object.at)?);
            }
            reasoning.budget_tokens = object.whole("max_tokens")?;
            Ok(())
        };
        read(&mut object).map_err(|refusal: Refusal| refusal.within("reasoning"))?;
        object.leave("reasoning", &mut prompt.rest);
    }
    Ok((reasoning != Reasoning::default()).then_some(reasoning))
}

fn effort_of(name: &str, at: usize) -> Result<Effort, Refusal> {
    Effort::from_name(name).ok_or_else(|| Refusal::new(at, "unknown effort").within("reasoning_effort"))
}

fn format_of(mut format: Members<'_>, prompt: &mut Prompt) -> Result<Format, Refusal> {
    let kind = format.required_string("type")?;
    let read = match kind.as_str() {
        "text" => Format::Text,
        "json_object" => Format::JsonObject,
        "json_schema" => {
            let mut wrapped = format.object("json_schema")?.ok_or_else(|| format.missing("json_schema"))?;
            Format::JsonSchema(schema_of(&mut wrapped).map_err(|refusal| refusal.within("json_schema"))?)
        }
        _ => return Err(Refusal::new(format.at, "unknown response format").within("type")),
    };
    format.leave("response_format", &mut prompt.rest);
    Ok(read)
}

/// Reads a schema with its name, as chat wraps it and responses does not.
pub(crate) fn schema_of(wrapped: &mut Members<'_>) -> Result<SchemaFormat, Refusal> {
    Ok(SchemaFormat {
        name: wrapped.string("name")?,
        description: wrapped.string("description")?,
        schema: wrapped.raw_object("schema")?.unwrap_or_else(RawJson::empty_object),
        strict: wrapped.boolean("strict")?,
    })
}

fn sampling(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    let sampling = &mut prompt.sampling;
    sampling.temperature = members.number("temperature")?;
    sampling.top_p = members.number("top_p")?;
    sampling.top_k = members.number("top_k")?;
    sampling.frequency_penalty = members.number("frequency_penalty")?;
    sampling.presence_penalty = members.number("presence_penalty")?;
    sampling.seed = members.number("seed")?;
    sampling.choices = members.whole("n")?;
    sampling.logprobs = members.boolean("logprobs")?;
    sampling.top_logprobs = members.whole("top_logprobs")?;
    sampling.logit_bias = members.raw_object("logit_bias")?;
    if let Some(stop) = members.take("stop")? {
        sampling.stop = texts(&stop).map_err(|refusal| refusal.within("stop"))?;
    }
    Ok(())
}

/// Reads one text, or a list of them.
pub(crate) fn texts(node: &Node<'_>) -> Result<Vec<String>, Refusal> {
    match &node.value {
        Value::String(text) => Ok(vec![text.decoded().into_owned()]),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| string(item).map_err(|refusal| refusal.within_item(index)))
            .collect(),
        Value::Object(_) | Value::Number | Value::Bool(_) | Value::Null => {
            Err(Refusal::new(node.at, "expected a string or an array of strings"))
        }
    }
}

fn tools(members: &mut Members<'_>, prompt: &mut Prompt) -> Result<(), Refusal> {
    for field in ["functions", "function_call"] {
        if let Some(node) = members.take(field)? {
            let message = "functions cannot be translated for this provider; use `tools` and `tool_choice`";
            return Err(Refusal::new(node.at, message).within(field));
        }
    }
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
    let kind = tool.string("type")?;
    if kind.as_deref().is_some_and(|kind| kind != "function") {
        let raw = RawJson::new(raw).unwrap_or_else(RawJson::empty_object);
        return Ok(Tool { kind: ToolKind::Server(crate::neutral::Origin::OpenAi, raw), cache: None, place });
    }
    let cache = cache_mark(&mut tool)?;
    let mut function = tool.object("function")?.ok_or_else(|| tool.missing("function"))?;
    let kind = function_of(&mut function).map_err(|refusal| refusal.within("function"))?;
    function.leave(&place.below("function"), &mut prompt.rest);
    tool.leave(&place.to_string(), &mut prompt.rest);
    Ok(Tool { kind, cache, place })
}

/// Reads a function's definition, which chat wraps and responses does not.
pub(crate) fn function_of(function: &mut Members<'_>) -> Result<ToolKind, Refusal> {
    Ok(ToolKind::Function {
        name: function.required_string("name")?,
        description: function.string("description")?,
        parameters: function.raw_object("parameters")?,
        strict: function.boolean("strict")?,
    })
}

fn tool_choice(node: Node<'_>) -> Result<ToolChoice, Refusal> {
    if let Some(word) = node.as_str() {
        return match &*word {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            // Mistral's word.
            "required" | "any" => Ok(ToolChoice::Required),
            _ => Err(Refusal::new(node.at, "expected `auto`, `none`, `required` or a function")),
        };
    }
    let at = node.at;
    let mut choice = Members::of(node)?;
    if choice.string("type")?.is_none_or(|kind| kind == "function")
        && let Some(mut function) = choice.object("function")?
    {
        return Ok(ToolChoice::Tool(function.required_string("name")?));
    }
    Err(Refusal::new(at, "this tool choice cannot be translated; name a function"))
}
