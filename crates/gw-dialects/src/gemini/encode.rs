//! From a neutral request to the body of `generateContent`.

mod config;
mod contents;
mod parts;
mod tools;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{Loss, LossKind};

use super::model::Model;
use crate::{
    json::Writer,
    neutral::{Format, LossReport, Prompt, Setting, WriteOptions},
};

/// Writes the body of `generateContent` and of `streamGenerateContent`, which are the same, and says what it lost.
///
/// The model stands in the path ([`super::gemini_endpoint`], [`super::vertex_endpoint`]) and whether to stream in the
/// method. Takes one pass over the prompt; schemas are parsed, prompts are not.
///
/// ```
/// use gw_dialects::{gemini::write_prompt, neutral::{Block, Content, Prompt, Role, WriteOptions}};
/// use gw_types::{Operation, OutputField, TokenCount};
///
/// let mut prompt = Prompt::new(Operation::Chat);
/// prompt.say(Role::User, vec![Block::new(Content::text("Hi"))]);
/// let options = WriteOptions {
///     model: "gemini-2.5-flash",
///     output_bound: Some(TokenCount::new(64)),
///     default_output: TokenCount::new(4_096),
///     output_field: OutputField::MaxTokens,
/// };
/// let (body, loss) = write_prompt(&prompt, &options);
/// assert_eq!(
///     body,
///     r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":64}}"#
/// );
/// assert!(loss.items.is_empty());
/// ```
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    write(prompt, options, true)
}

/// Writes what `countTokens` of Vertex AI takes of the body: all but `toolConfig`.
pub(super) fn write_countable(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    write(prompt, options, false)
}

fn write(prompt: &Prompt, options: &WriteOptions<'_>, with_choice: bool) -> (Bytes, Loss) {
    let model = Model::of(options.model);
    let mut loss = LossReport::new(prompt.ingress);
    let mut json = Writer::default();
    let said_format = format_in_words(prompt, model, &mut loss);
    json.object(|json| {
        contents::write(json, prompt, model, said_format.as_deref(), &mut loss);
        tools::write(json, prompt, &mut loss);
        if with_choice {
            tools::write_choice(json, prompt, &mut loss);
        }
        let bound = options.bound(prompt);
        config::write(json, prompt, model, bound, said_format.is_some(), &mut loss);
    });
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

/// Returns the words that ask for the answer's form, where the model does not take a form beside functions.
fn format_in_words(prompt: &Prompt, model: Model, loss: &mut LossReport) -> Option<String> {
    if model.formats_beside_tools() || !tools::has_functions(prompt) {
        return None;
    }
    let words = match &prompt.format {
        Format::Text => return None,
        Format::JsonObject => "Answer with one JSON object and nothing else.".to_owned(),
        Format::JsonSchema(schema) => format!(
            "Answer with one JSON value and nothing else. It must keep to this JSON schema: {}",
            schema.described(loss)
        ),
    };
    let why = "the model takes no response format beside tools; it is asked for in words";
    loss.setting(Setting::Format, LossKind::Emulated, why);
    Some(words)
}
