//! Writes the system prompt and the conversation.

use gw_types::LossKind;

use super::blocks::{self, is_written};
use crate::{
    json::Writer,
    neutral::{Block, Content, Format, LossReport, Prompt, Role, Turn},
};

/// What stands where the format wants a turn that the caller has not written.
const FILLER: &str = ".";

/// What asks for a JSON object, which the format has no setting for.
const JSON_OBJECT: &str = "Answer with one JSON object and nothing else.";

/// Writes `system` and `messages`.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let mut system: Vec<&Block> = Vec::new();
    for instruction in &prompt.instructions {
        let first = instruction.blocks.first();
        if instruction.before_turn > 0
            && let Some(block) = first
        {
            let why = "the system prompt stands before the conversation";
            loss.block(block.place, LossKind::Approximated, why);
        }
        system.extend(instruction.blocks.iter().filter(|block| is_written(block, loss)));
    }
    let turns = turns(prompt, loss);
    let asks_json = Block::new(Content::text(JSON_OBJECT));
    if prompt.format == Format::JsonObject {
        system.push(&asks_json);
    }
    // A prompt that is an instruction and nothing else is what the model is asked.
    let (system, turns) = if turns.is_empty() && !system.is_empty() {
        let place = system.first().map(|block| block.place).unwrap_or_default();
        loss.block(place, LossKind::Approximated, "the system prompt is sent as the user's turn");
        (Vec::new(), vec![(Role::User, system)])
    } else {
        (system, turns)
    };
    if !system.is_empty() {
        json.key("system");
        blocks::write_list(json, &system);
    }
    json.member_array("messages", |json| {
        let filler = Block::new(Content::text(FILLER));
        if let Some((Role::Assistant, blocks)) = turns.first() {
            let place = blocks.first().map(|block| block.place).unwrap_or_default();
            let why = "the conversation begins with a user turn of no meaning";
            loss.block(place, LossKind::Approximated, why);
            message(json, Role::User, &[&filler]);
        }
        let last = turns.len().saturating_sub(1);
        for (index, (role, blocks)) in turns.iter().enumerate() {
            if index == last && *role == Role::Assistant {
                prefill(json, blocks);
            } else {
                message(json, *role, blocks);
            }
        }
    });
}

/// Returns the turns with what of them can be written. Roles alternate still.
fn turns<'a>(prompt: &'a Prompt, loss: &mut LossReport) -> Vec<(Role, Vec<&'a Block>)> {
    let mut turns: Vec<(Role, Vec<&Block>)> = Vec::new();
    for Turn { role, blocks } in &prompt.turns {
        let blocks: Vec<&Block> = blocks.iter().filter(|block| is_written(block, loss)).collect();
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, so_far)) if last == role => so_far.extend(blocks),
            Some(_) | None => turns.push((*role, blocks)),
        }
    }
    turns
}

fn message(json: &mut Writer, role: Role, blocks: &[&Block]) {
    json.object(|json| {
        json.member_string(
            "role",
            match role {
                Role::User => "user",
                Role::Assistant => "assistant",
            },
        );
        json.key("content");
        blocks::write_list(json, blocks);
    });
}

/// Writes the beginning of the answer, which must not end with blanks.
fn prefill(json: &mut Writer, blocks: &[&Block]) {
    let trimmed = match blocks.split_last() {
        Some((last, before)) => match last.content.as_text() {
            Some(text) if text.ends_with(char::is_whitespace) => {
                let block = Block { content: Content::text(text.trim_end()), ..(*last).clone() };
                Some((block, before))
            }
            Some(_) | None => None,
        },
        None => None,
    };
    match trimmed {
        Some((block, before)) => {
            let blocks: Vec<&Block> = before.iter().copied().chain([&block]).collect();
            message(json, Role::Assistant, &blocks);
        }
        None => message(json, Role::Assistant, blocks),
    }
}
