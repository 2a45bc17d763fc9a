//! From a neutral request to the body of `Converse`.

mod config;
mod files;
mod messages;
mod parts;
mod thinking;
mod tools;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use gw_types::{Loss, LossKind};

use self::{parts::Marks, thinking::Plan};
use super::model::Model;
use crate::{
    json::Writer,
    neutral::{Format, LossReport, Prompt, SchemaFormat, Setting, WriteOptions},
};

/// Writes the body of `Converse` and of `ConverseStream`, which are the same, and says what it lost.
///
/// The model stands in the path ([`super::converse_path`]). Takes one pass over the prompt.
///
/// ```
/// use gw_dialects::{bedrock::write_prompt, neutral::{Block, Content, Prompt, Role, WriteOptions}};
/// use gw_types::{Operation, OutputField, TokenCount};
///
/// let mut prompt = Prompt::new(Operation::Chat);
/// prompt.say(Role::User, vec![Block::new(Content::text("Hi"))]);
/// let options = WriteOptions {
///     model: "us.amazon.nova-2-lite-v1:0",
///     output_bound: Some(TokenCount::new(64)),
///     default_output: TokenCount::new(4_096),
///     output_field: OutputField::MaxTokens,
/// };
/// let (body, loss) = write_prompt(&prompt, &options);
/// assert_eq!(
///     body,
///     r#"{"messages":[{"role":"user","content":[{"text":"Hi"}]}],"inferenceConfig":{"maxTokens":64}}"#
/// );
/// assert!(loss.items.is_empty());
/// ```
pub fn write_prompt(prompt: &Prompt, options: &WriteOptions<'_>) -> (Bytes, Loss) {
    let model = Model::of(options.model);
    let bound = options.bound(prompt);
    let mut loss = LossReport::new(prompt.ingress);
    let mut json = Writer::default();
    let native = native_schema(prompt, model);
    let said_format = if native.is_some() { None } else { format_in_words(prompt, &mut loss) };
    let plan = Plan::of(prompt, model, bound, &mut loss);
    let mut marks = Marks::new(model);
    json.object(|json| {
        messages::write(json, prompt, said_format.as_deref(), &mut marks, &mut loss);
        config::write_inference(json, prompt, model, bound, &plan, &mut loss);
        tools::write(json, prompt, model, &mut marks, &mut loss);
        config::write_model_fields(json, prompt, model, &plan, &mut loss);
        if let Some(schema) = native {
            write_schema(json, schema);
        }
        config::write_service(json, prompt, &mut loss);
    });
    config::report_homeless(prompt, &mut loss);
    loss.rest(prompt);
    (json.into_bytes(), loss.into_loss())
}

/// Returns the schema that the model keeps to by itself.
fn native_schema(prompt: &Prompt, model: Model) -> Option<&SchemaFormat> {
    match &prompt.format {
        Format::JsonSchema(schema) if model.keeps_to_schemas() => Some(schema),
        Format::JsonSchema(_) | Format::JsonObject | Format::Text => None,
    }
}

/// Writes `outputConfig`, in which the schema stands as text.
fn write_schema(json: &mut Writer, schema: &SchemaFormat) {
    json.member_object("outputConfig", |json| {
        json.member_object("textFormat", |json| {
            json.member_string("type", "json_schema");
            json.member_object("structure", |json| {
                json.member_object("jsonSchema", |json| {
                    json.member_string("name", schema.name.as_deref().unwrap_or("answer"));
                    json.member_string("schema", schema.schema.as_str());
                    if let Some(description) = schema.description.as_deref().filter(|said| !said.is_empty()) {
                        json.member_string("description", description);
                    }
                });
            });
        });
    });
}

/// Returns the words that ask for the answer's form, where the model has no setting for it.
fn format_in_words(prompt: &Prompt, loss: &mut LossReport) -> Option<String> {
    let words = match &prompt.format {
        Format::Text => return None,
        Format::JsonObject => "Answer with one JSON object and nothing else.".to_owned(),
        Format::JsonSchema(schema) => format!(
            "Answer with one JSON value and nothing else. It must keep to this JSON schema: {}",
            schema.described(loss)
        ),
    };
    let why = "the model has no setting for the form of an answer; it is asked for in words";
    loss.setting(Setting::Format, LossKind::Emulated, why);
    Some(words)
}
