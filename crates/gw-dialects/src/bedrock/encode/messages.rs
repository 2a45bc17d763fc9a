//! The conversation: system prompt and messages.

use gw_types::LossKind;

use super::parts::{Marks, Part, Parts};
use crate::{
    json::Writer,
    neutral::{CacheMark, Content, LossReport, Place, Prompt, Role},
};

/// Writes `system` and `messages`; `said_format` are words that ask for the answer's form.
pub(super) fn write(
    json: &mut Writer,
    prompt: &Prompt,
    said_format: Option<&str>,
    marks: &mut Marks,
    loss: &mut LossReport,
) {
    let system = system(prompt, loss);
    if !system.is_empty() || said_format.is_some() {
        json.member_array("system", |json| {
            for (text, mark, place) in system {
                json.object(|json| json.member_string("text", text));
                if let Some(mark) = mark {
                    marks.write(json, mark, place, loss);
                }
            }
            if let Some(said) = said_format {
                json.object(|json| json.member_string("text", said));
            }
        });
    }
    let messages = messages(prompt, loss);
    json.member_array("messages", |json| {
        for (role, parts) in messages {
            json.object(|json| {
                json.member_string(
                    "role",
                    match role {
                        Role::User => "user",
                        Role::Assistant => "assistant",
                    },
                );
                json.member_array("content", |json| {
                    parts.iter().for_each(|part| part.write(json, marks, loss));
                });
            });
        }
    });
}

/// Returns the texts of the system prompt, and where a cache shall end.
fn system<'a>(prompt: &'a Prompt, loss: &mut LossReport) -> Vec<(&'a str, Option<CacheMark>, Place)> {
    let mut texts = Vec::new();
    for instruction in &prompt.instructions {
        for block in &instruction.blocks {
            if instruction.before_turn > 0 {
                let why = "Bedrock takes instructions before the conversation only";
                loss.block(block.place, LossKind::Approximated, why);
            }
            match block.content.as_text() {
                // Blank text is refused.
                Some(text) if text.trim().is_empty() => {}
                Some(text) => texts.push((text, block.cache, block.place)),
                None => loss.block(block.place, LossKind::Dropped, "Bedrock takes instructions as text only"),
            }
        }
    }
    texts
}

/// Returns the messages. Roles alternate: a turn of which nothing is left joins its neighbours.
fn messages<'a>(prompt: &'a Prompt, loss: &mut LossReport) -> Vec<(Role, Vec<Part<'a>>)> {
    let mut parts = Parts::default();
    let mut messages: Vec<(Role, Vec<Part<'a>>)> = Vec::new();
    for turn in &prompt.turns {
        let mut said: Vec<Part<'a>> = Vec::new();
        for block in &turn.blocks {
            said.extend(parts.part(block, turn.role, loss));
            if let Some(mark) = block.cache
                && !matches!(block.content, Content::Thinking(_) | Content::RedactedThinking(_))
            {
                said.push(Part::Mark(mark, block.place));
            }
        }
        if said.iter().all(|part| matches!(part, Part::Mark(..))) {
            continue;
        }
        // A document needs text beside it.
        if said.iter().any(|part| matches!(part, Part::Document { .. }))
            && !said.iter().any(|part| matches!(part, Part::Text(_)))
        {
            said.push(Part::text("Read the document."));
        }
        match messages.last_mut() {
            Some((role, last)) if *role == turn.role => last.append(&mut said),
            Some(_) | None => messages.push((turn.role, said)),
        }
    }
    messages
}
