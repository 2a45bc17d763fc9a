//! A request in neutral parts.

use std::borrow::Cow;

use gw_types::{LossKind, Operation, OutputField, TokenCount};
use serde_json::Number;

use super::{Block, CacheMark, LossReport, Place, RawJson, Setting, redacted};
use crate::json::{Node, Writer};

/// The name of the tool by which a schema is enforced at models that know tools and no schemas. Readers of their answers
/// turn its call back into text.
pub const ANSWER_TOOL: &str = "gw_structured_answer";

/// A request. Prints its size, not its words.
#[derive(Clone, PartialEq)]
pub struct Prompt {
    /// The format that the caller wrote it in.
    pub ingress: Operation,
    /// System and developer prompts, in order.
    pub instructions: Vec<Instruction>,
    /// The conversation. Roles alternate.
    pub turns: Vec<Turn>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// Whether and which tool to call.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several tools may be called at once.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub format: Format,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// How hard to think, and what of it to show.
    pub reasoning: Option<Reasoning>,
    /// The output bound, at least 1.
    pub max_output: Option<u64>,
    /// Whether a stream is wanted.
    pub stream: bool,
    /// Whether the caller wants the usage in its stream.
    pub include_usage: bool,
    /// The end user.
    pub user: Option<String>,
    /// The caller's labels, an object of text, the end user not among them.
    pub metadata: Option<RawJson>,
    /// The service tier, in the word of the caller's format.
    pub service_tier: Option<String>,
    /// The key of the prompt cache.
    pub cache_key: Option<String>,
    /// How wordy the answer is: `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// Whether the provider keeps the answer.
    pub store: Option<bool>,
    /// Fields that the neutral form has no place for.
    pub rest: Vec<Unknown>,
}

/// A field that the neutral form has no place for. Prints its path, not its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The path in the caller's format.
    pub path: String,
    /// The value as it was written.
    pub value: RawJson,
}

/// A system or developer prompt.
#[derive(Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Whose it is.
    pub role: InstructionRole,
    /// What it says: text blocks.
    pub blocks: Vec<Block>,
    /// The turn before which it stood; 0 for those that come first, as most do.
    pub before_turn: usize,
}

/// Says whose an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionRole {
    /// The system's.
    System,
    /// The developer's.
    Developer,
}

/// One turn of the conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct Turn {
    /// Whose it is.
    pub role: Role,
    /// What it holds, in order. In a user turn tool results stand first.
    pub blocks: Vec<Block>,
}

/// Says whose a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user's, tool results included.
    User,
    /// The model's.
    Assistant,
}

/// A tool that the model may call.
#[derive(Clone, PartialEq, Eq)]
pub struct Tool {
    /// What it is.
    pub kind: ToolKind,
    /// Whether a prompt cache shall end here.
    pub cache: Option<CacheMark>,
    /// Where it stands in the caller's body.
    pub place: Place,
}

/// Says what a tool is.
#[derive(Clone, PartialEq, Eq)]
pub enum ToolKind {
    /// A function of the caller's.
    Function {
        /// The name.
        name: String,
        /// What it does.
        description: Option<String>,
        /// The JSON schema of its arguments, an object; `None`: it takes none.
        parameters: Option<RawJson>,
        /// Whether arguments must keep to the schema.
        strict: Option<bool>,
    },
    /// A tool that only one provider knows, as it was written.
    Server(super::Origin, RawJson),
}

/// Says whether and which tool to call.
#[derive(Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// The tool of this name.
    Tool(String),
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text.
    #[default]
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that keeps to a schema.
    JsonSchema(SchemaFormat),
}

/// JSON that keeps to a schema.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaFormat {
    /// The schema's name, where the caller's format has one.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON schema.
    pub schema: RawJson,
    /// Whether the answer must keep to it.
    pub strict: Option<bool>,
}

/// How tokens are chosen. Numbers stand as the caller wrote them.
#[derive(Clone, Default, PartialEq)]
pub struct Sampling {
    /// The temperature, from 0; each format has its own upper end.
    pub temperature: Option<Number>,
    /// Nucleus sampling, 0 to 1.
    pub top_p: Option<Number>,
    /// Sampling from the k likeliest.
    pub top_k: Option<Number>,
    /// The frequency penalty, -2 to 2.
    pub frequency_penalty: Option<Number>,
    /// The presence penalty, -2 to 2.
    pub presence_penalty: Option<Number>,
    /// The seed.
    pub seed: Option<Number>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
    /// Answers at once, at least 1.
    pub choices: Option<u64>,
    /// Whether log probabilities are wanted.
    pub logprobs: Option<bool>,
    /// How many log probabilities a token.
    pub top_logprobs: Option<u64>,
    /// Biases of single tokens, an object.
    pub logit_bias: Option<RawJson>,
}

/// How hard to think, and what of it to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// How hard.
    pub effort: Option<Effort>,
    /// At most how many tokens.
    pub budget_tokens: Option<u64>,
    /// Whether the model decides how much (Anthropic's adaptive thinking).
    pub adaptive: bool,
    /// What to show.
    pub summary: Option<Summary>,
}

/// Says how hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as can be.
    Minimal,
    /// Little.
    Low,
    /// The usual.
    Medium,
    /// Much.
    High,
    /// More than much.
    ExtraHigh,
    /// All there is.
    Max,
}

impl Effort {
    const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::ExtraHigh, Self::Max];

    /// Returns the word of OpenAI's formats.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Returns the effort with the given word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name)
    }

    /// Returns the thinking budget in tokens that stands for the effort where a format only knows budgets; `None` is none.
    ///
    /// The figures are Google's for its own compatible endpoint (1,024, 8,192, 24,576), with 512 and 32,768 around them.
    pub const fn budget_tokens(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal => 512,
            Self::Low => 1_024,
            Self::Medium => 8_192,
            Self::High => 24_576,
            Self::ExtraHigh | Self::Max => 32_768,
        }
    }

    /// Returns the effort that stands for a thinking budget where a format only knows efforts.
    pub const fn of_budget(tokens: u64) -> Self {
        match tokens {
            0 => Self::None,
            1..=512 => Self::Minimal,
            513..=4_096 => Self::Low,
            4_097..=16_384 => Self::Medium,
            16_385.. => Self::High,
        }
    }
}

/// Says what of the reasoning to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// What the provider thinks right.
    Auto,
    /// Little.
    Concise,
    /// Much.
    Detailed,
    /// Nothing.
    Omitted,
}

/// What a deployment needs of a request beyond what the caller wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions<'a> {
    /// The model as the provider knows it.
    pub model: &'a str,
    /// The output bound that the pipeline decided; replaces the caller's.
    pub output_bound: Option<TokenCount>,
    /// The bound to send where neither caller nor pipeline names one and the format demands it.
    pub default_output: TokenCount,
    /// The field that carries the bound, where the format has more than one.
    pub output_field: OutputField,
}

impl WriteOptions<'_> {
    /// Returns the bound to send: the pipeline's, else the caller's.
    pub fn bound(&self, prompt: &Prompt) -> Option<u64> {
        self.output_bound.map(TokenCount::get).or(prompt.max_output)
    }
}

impl SchemaFormat {
    /// Returns the schema with what it is for as its own `description`, for formats that have no other place; reports it
    /// where the schema has one already.
    pub(crate) fn described(&self, loss: &mut LossReport) -> Cow<'_, str> {
        let schema = self.schema.as_str();
        let Some(description) = self.description.as_deref().filter(|said| !said.is_empty()) else {
            return Cow::Borrowed(schema);
        };
        let inside = schema.strip_prefix('{').filter(|_| !has_description(schema));
        let Some(inside) = inside.map(str::trim_start) else {
            let why = "the schema has a description of its own";
            loss.setting(Setting::FormatDescription, LossKind::Dropped, why);
            return Cow::Borrowed(schema);
        };
        let comma = if inside.starts_with('}') { "" } else { "," };
        let mut json = Writer::default();
        json.string(description);
        let said = String::from_utf8_lossy(&json.into_bytes()).into_owned();
        Cow::Owned(format!(r#"{{"description":{said}{comma}{inside}"#))
    }
}

fn has_description(schema: &str) -> bool {
    Node::read(schema).is_ok_and(|node| node.get("description").is_some())
}

redacted!(Instruction, Turn, Tool, ToolKind, ToolChoice, Sampling, SchemaFormat);

impl Prompt {
    /// Returns a request without any part.
    pub fn new(ingress: Operation) -> Self {
        Self {
            ingress,
            instructions: Vec::new(),
            turns: Vec::new(),
            tools: Vec::new(),
            tool_choice: None,
            parallel_tool_calls: None,
            format: Format::Text,
            sampling: Sampling::default(),
            reasoning: None,
            max_output: None,
            stream: false,
            include_usage: false,
            user: None,
            metadata: None,
            service_tier: None,
            cache_key: None,
            verbosity: None,
            store: None,
            rest: Vec::new(),
        }
    }

    /// Adds blocks to the conversation: to the last turn if that is of the same role, else as a new one. Nothing for none.
    pub fn say(&mut self, role: Role, blocks: Vec<Block>) {
        if blocks.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            Some(_) | None => self.turns.push(Turn { role, blocks }),
        }
    }

    /// Puts the tool results of every user turn first, in their order: a call's result must stand directly after the call.
    pub fn put_results_first(&mut self) {
        for turn in self.turns.iter_mut().filter(|turn| turn.role == Role::User) {
            turn.blocks.sort_by_key(|block| !matches!(block.content, super::Content::ToolResult(_)));
        }
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompt")
            .field("ingress", &self.ingress)
            .field("instructions", &self.instructions.len())
            .field("turns", &self.turns.len())
            .field("tools", &self.tools.len())
            .field("stream", &self.stream)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use gw_types::Operation;

    use super::{LossReport, RawJson, SchemaFormat};

    #[track_caller]
    fn check(schema: &str, description: Option<&str>, expected: &str, losses: usize) {
        let mut loss = LossReport::new(Operation::Chat);
        let format = SchemaFormat {
            name: None,
            description: description.map(str::to_owned),
            schema: RawJson::new(schema).unwrap(),
            strict: None,
        };
        assert_eq!(format.described(&mut loss), expected);
        assert_eq!(loss.into_loss().items.len(), losses, "{schema}");
    }

    #[test]
    fn what_a_schema_is_for_stands_in_it() {
        check(r#"{"type":"object"}"#, None, r#"{"type":"object"}"#, 0);
        check(r#"{ "type":"object"}"#, Some("a \"b\""), r#"{"description":"a \"b\"","type":"object"}"#, 0);
        check("{}", Some("d"), r#"{"description":"d"}"#, 0);
        check(r#"{"description":"own"}"#, Some("d"), r#"{"description":"own"}"#, 1);
    }
}
