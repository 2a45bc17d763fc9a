//! From a neutral request to the body of `/api/chat`.

mod messages;
mod settings;

use bytes::Bytes;
use gw_types::{Loss, LossKind, Operation};

use crate::{
    json::Writer,
    neutral::{LossReport, Prompt, Setting, Tool, ToolChoice, ToolKind, WriteOptions},
};

/// Returns the body to send, and what of the request it does not carry.
///
/// ```
/// use gw_dialects::{neutral::{Block, Content, Prompt, Role, WriteOptions}, ollama::write_prompt};
/// use gw_types::{Operation, OutputField, TokenCount};
///
/// let mut prompt = Prompt::new(Operation::Chat);
/// prompt.say(Role::User, vec![Block::new(Content::text("Hi"))]);
/// let options = WriteOptions {
///     model: "llama3.2",
///     output_bound: Some(TokenCount::new(64)),
///     default_output: TokenCount::new(4_096),
///     output_field: OutputField::MaxTokens,
/// };
/// let (body, loss) = write_prompt(&prompt, &options);
/// assert_eq!(
///     body,
///     r#"{"model":"llama3.2","messages":[{"role":"user","content":"Hi"}],"stream":false,"options":{"num_predict":64}}"#
/// );
/// assert!(loss.items.is_empty());
/// ```
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    let mut loss = LossReport::new(prompt.ingress);
    let mut json = Writer::default();
    json.object(|json| {
        json.member_string("model", options.model);
        json.member_array("messages", |json| messages::write(json, prompt, &mut loss));
        tools(json, prompt, &mut loss);
        settings::write(json, prompt, options, &mut loss);
    });
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

/// Writes the tools. Whoever wants none called has none offered; there is no word for more than that.
fn tools(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    match prompt.tool_choice {
        Some(ToolChoice::None) => return,
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {
            let why = "Ollama lets the model decide whether to call a tool";
            loss.setting(Setting::ToolChoice, LossKind::Dropped, why);
        }
        Some(ToolChoice::Auto) | None => {}
    }
    let known = loss.known_tools(&prompt.tools, None);
    if !known.is_empty() {
        json.member_array("tools", |json| known.iter().for_each(|tool| function(json, tool, prompt, loss)));
    }
}

fn function(json: &mut Writer, tool: &Tool, prompt: &Prompt, loss: &mut LossReport) {
    let ToolKind::Function { name, description, parameters, strict } = &tool.kind else { return };
    if tool.cache.is_some() {
        loss.dropped(&tool.place.below("cache_control"), "Ollama caches prompts by itself");
    }
    if *strict == Some(true) {
        let field = match prompt.ingress {
            Operation::Chat | Operation::Completions | Operation::Embeddings => "function.strict",
            Operation::Responses | Operation::Messages | Operation::CountTokens => "strict",
        };
        loss.approximated(&tool.place.below(field), "Ollama does not promise to keep to a tool's schema");
    }
    json.object(|json| {
        json.member_string("type", "function");
        json.member_object("function", |json| {
            json.member_string("name", name);
            json.member_string("description", description.as_deref().unwrap_or_default());
            let nothing = r#"{"type":"object","properties":{}}"#;
            json.member_raw("parameters", parameters.as_ref().map_or(nothing, |schema| schema.as_str()));
        });
    });
}
