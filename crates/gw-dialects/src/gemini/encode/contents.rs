//! The conversation: system instruction and contents.

use std::collections::BTreeMap;

use gw_types::LossKind;

use super::{
    super::model::Model,
    parts::{Part, TurnParts, user_part},
};
use crate::{
    json::Writer,
    neutral::{Block, Content, Instruction, LossReport, Prompt, Role, ToolResult, Turn},
};

/// Writes `systemInstruction` and `contents`; `said_format` are words that ask for the answer's form.
pub(super) fn write(
    json: &mut Writer,
    prompt: &Prompt,
    model: Model,
    said_format: Option<&str>,
    loss: &mut LossReport,
) {
    let mut instructions = instruction_parts(&prompt.instructions, loss);
    instructions.extend(said_format.map(Part::text));
    let contents = contents(prompt, model, loss);
    // Gemini refuses a request without contents, so an instruction alone is what the user says.
    let alone = contents.is_empty();
    if !alone && !instructions.is_empty() {
        json.member_object("systemInstruction", |json| write_parts(json, &instructions));
    }
    json.member_array("contents", |json| {
        if alone {
            write_content(json, Role::User, &instructions);
        }
        contents.iter().for_each(|(role, parts)| write_content(json, *role, parts));
    });
}

fn write_content(json: &mut Writer, role: Role, parts: &[Part<'_>]) {
    json.object(|json| {
        json.member_string(
            "role",
            match role {
                Role::User => "user",
                Role::Assistant => "model",
            },
        );
        write_parts(json, parts);
    });
}

fn write_parts(json: &mut Writer, parts: &[Part<'_>]) {
    json.member_array("parts", |json| parts.iter().for_each(|part| part.write(json)));
}

fn instruction_parts<'a>(instructions: &'a [Instruction], loss: &mut LossReport) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for instruction in instructions {
        for block in &instruction.blocks {
            report_cache(block, loss);
            if instruction.before_turn > 0 {
                let why = "Gemini takes instructions before the conversation only";
                loss.block(block.place, LossKind::Approximated, why);
            }
            match block.content.as_text() {
                Some("") => {}
                Some(text) => parts.push(Part::text(text)),
                None => loss.block(block.place, LossKind::Dropped, "Gemini takes instructions as text only"),
            }
        }
    }
    parts
}

/// A call of the history: the tool's name, and the call's place among all.
type Calls<'a> = BTreeMap<&'a str, (&'a str, usize)>;

fn calls(turns: &[Turn]) -> Calls<'_> {
    let mut calls = Calls::new();
    for block in turns.iter().flat_map(|turn| &turn.blocks) {
        if let Content::ToolUse(call) = &block.content {
            let place = calls.len();
            calls.entry(&call.id).or_insert((&call.name, place));
        }
    }
    calls
}

fn contents<'a>(prompt: &'a Prompt, model: Model, loss: &mut LossReport) -> Vec<(Role, Vec<Part<'a>>)> {
    let calls = calls(&prompt.turns);
    let mut contents = Vec::new();
    for turn in &prompt.turns {
        turn.blocks.iter().for_each(|block| report_cache(block, loss));
        match turn.role {
            Role::Assistant => {
                let mut parts = TurnParts::new(model);
                turn.blocks.iter().for_each(|block| parts.add(block, loss));
                contents.push((Role::Assistant, parts.finish()));
            }
            Role::User => {
                let (results, others) = user_parts(turn, &calls, loss);
                contents.push((Role::User, results));
                contents.push((Role::User, others));
            }
        }
    }
    contents.retain(|(_, parts)| !parts.is_empty());
    contents
}

/// Returns the results of tools, in the order of their calls, and everything else.
///
/// Results stand in a content of their own, because Gemini wants as many as there were calls and nothing beside them.
fn user_parts<'a>(
    turn: &'a Turn,
    calls: &Calls<'a>,
    loss: &mut LossReport,
) -> (Vec<Part<'a>>, Vec<Part<'a>>) {
    let mut results = Vec::new();
    let mut others = Vec::new();
    for block in &turn.blocks {
        match &block.content {
            Content::ToolResult(result) => {
                let call = calls.get(result.id.as_str());
                if call.is_none() {
                    let why = "no call has this id; the id stands in the place of the tool's name";
                    loss.block(block.place, LossKind::Approximated, why);
                }
                let (name, place) = call.copied().unwrap_or((&result.id, usize::MAX));
                results.push((place, result_part(name, result, &mut others, loss)));
            }
            content => others.extend(user_part(block, content, loss)),
        }
    }
    // The sort is stable, so that results of unknown calls keep their order.
    results.sort_by_key(|(place, _)| *place);
    (results.into_iter().map(|(_, part)| part).collect(), others)
}

/// Returns a result as the function's response; what is not text follows the responses.
fn result_part<'a>(
    name: &'a str,
    result: &'a ToolResult,
    others: &mut Vec<Part<'a>>,
    loss: &mut LossReport,
) -> Part<'a> {
    let mut text = String::new();
    for block in &result.blocks {
        match &block.content {
            Content::Text(said) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&said.text);
            }
            content => {
                if let Some(part) = user_part(block, content, loss) {
                    let why = "what a tool brings back is text; the rest follows it";
                    loss.block(block.place, LossKind::Emulated, why);
                    others.push(part);
                }
            }
        }
    }
    Part::Response { name, text, is_error: result.is_error }
}

fn report_cache(block: &Block, loss: &mut LossReport) {
    if block.cache.is_some() {
        loss.dropped(&block.place.below("cache_control"), "Gemini caches prompts by itself");
    }
}
