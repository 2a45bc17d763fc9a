//! `countTokens`: asking for the tokens of a prompt, and reading them.

use bytes::Bytes;
use gw_types::{ErrorKind, GatewayError, Loss, TokenCount};

use super::{classify, encode};
use crate::{
    json::{Node, Writer},
    neutral::{Prompt, WriteOptions},
};

/// Writes the body of `countTokens` for a prompt, and says what it lost.
///
/// The Gemini API counts instructions and tools only where the whole request stands in `generateContentRequest`, which
/// names the model again; Vertex AI takes the request as it is, but knows no `toolConfig` here.
pub fn write_token_count(prompt: &Prompt, options: &WriteOptions<'_>, is_vertex: bool) -> (Bytes, Loss) {
    if is_vertex {
        return encode::write_countable(prompt, options);
    }
    let (request, loss) = encode::write_prompt(prompt, options);
    let members = request.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default();
    let collection = if options.model.contains('/') { "" } else { "models/" };
    let mut json = Writer::default();
    json.object(|json| {
        json.member_object("generateContentRequest", |json| {
            json.member_string("model", &format!("{collection}{}", options.model));
            json.raw(std::str::from_utf8(members).unwrap_or_default());
        });
    });
    (json.into_bytes(), loss)
}

/// Reads the answer of `countTokens`.
///
/// # Errors
/// `MalformedResponse`, if it holds no count; what an error inside of it says.
pub fn read_token_count(body: &[u8]) -> Result<TokenCount, GatewayError> {
    let message = "the provider's answer holds no token count";
    let malformed = || GatewayError::new(ErrorKind::MalformedResponse, message);
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let node = Node::read(text).map_err(|_| malformed())?;
    if node.get("error").is_some() {
        return Err(classify::in_band(&node));
    }
    node.count("totalTokens").map(TokenCount::new).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use gw_types::{ErrorKind, Operation, OutputField, TokenCount};

    use super::{read_token_count, write_token_count};
    use crate::neutral::{
        Block, Content, Place, Prompt, RawJson, Role, Tool, ToolChoice, ToolKind, WriteOptions,
    };

    fn written(model: &str, is_vertex: bool) -> String {
        let mut prompt = Prompt::new(Operation::CountTokens);
        prompt.say(Role::User, vec![Block::new(Content::text("Hi"))]);
        let parameters = Some(RawJson::empty_object());
        let kind = ToolKind::Function { name: "f".to_owned(), description: None, parameters, strict: None };
        prompt.tools.push(Tool { kind, cache: None, place: Place::default() });
        prompt.tool_choice = Some(ToolChoice::Auto);
        let options = WriteOptions {
            model,
            output_bound: None,
            default_output: TokenCount::new(1),
            output_field: OutputField::MaxTokens,
        };
        String::from_utf8(write_token_count(&prompt, &options, is_vertex).0.to_vec()).unwrap()
    }

    const CONTENTS: &str = r#""contents":[{"role":"user","parts":[{"text":"Hi"}]}]"#;
    const TOOLS: &str = r#""tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{}}]}]"#;
    const CHOICE: &str = r#""toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}"#;

    #[test]
    fn the_gemini_api_counts_a_whole_request() {
        let request = |model: &str| {
            format!(
                r#"{{"generateContentRequest":{{"model":"{model}",{CONTENTS},{TOOLS},{CHOICE},"generationConfig":{{}}}}}}"#
            )
        };
        assert_eq!(written("m", false), request("models/m"));
        assert_eq!(written("tunedModels/m", false), request("tunedModels/m"));
    }

    #[test]
    fn vertex_takes_the_request_without_the_choice() {
        assert_eq!(written("m", true), format!(r#"{{{CONTENTS},{TOOLS},"generationConfig":{{}}}}"#));
    }

    #[test]
    fn counts_are_read() {
        assert_eq!(read_token_count(br#"{"totalTokens":8}"#).unwrap().get(), 8);
        let kind = |body: &[u8]| read_token_count(body).unwrap_err().kind();
        assert_eq!(kind(b"{}"), ErrorKind::MalformedResponse);
        assert_eq!(kind(b"<html>"), ErrorKind::MalformedResponse);
        assert_eq!(kind(br#"{"error":{"code":404}}"#), ErrorKind::DeploymentMissing);
    }
}
