//! The conversation: messages of one text each, with images beside it.

use std::collections::BTreeMap;

use gw_types::LossKind;

use crate::{
    json::Writer,
    neutral::{
        Block, Content, Document, DocumentSource, Image, LossReport, MediaSource, Prompt, Role, Signature,
        ToolResult, ToolUse, Turn,
    },
};

/// What separates texts that are joined.
const BETWEEN: &str = "\n\n";

/// Writes the messages, instructions where they stand in the conversation.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let names = names(&prompt.turns);
    let mut messages = Messages { json, loss, names };
    for place in 0..=prompt.turns.len() {
        for instruction in
            prompt.instructions.iter().filter(|one| one.before_turn.min(prompt.turns.len()) == place)
        {
            messages.instruction(&instruction.blocks);
        }
        match prompt.turns.get(place) {
            Some(turn) if turn.role == Role::Assistant => messages.assistant(turn),
            Some(turn) => messages.user(turn),
            None => {}
        }
    }
}

/// Returns the names of the tools that were called, by the ids of the calls.
fn names(turns: &[Turn]) -> BTreeMap<&str, &str> {
    let mut names = BTreeMap::new();
    for block in turns.iter().flat_map(|turn| &turn.blocks) {
        if let Content::ToolUse(call) = &block.content {
            names.insert(call.id.as_str(), call.name.as_str());
        }
    }
    names
}

struct Messages<'a, 'w> {
    json: &'w mut Writer,
    loss: &'w mut LossReport,
    names: BTreeMap<&'a str, &'a str>,
}

/// What one message says and shows.
#[derive(Default)]
struct Said<'a> {
    text: String,
    images: Vec<&'a str>,
}

impl Said<'_> {
    fn add(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push_str(BETWEEN);
        }
        self.text.push_str(text);
    }

    fn write(&self, json: &mut Writer, role: &str) {
        json.member_string("role", role);
        json.member_string("content", &self.text);
        if !self.images.is_empty() {
            json.member_array("images", |json| self.images.iter().for_each(|image| json.string(image)));
        }
    }
}

impl<'a> Messages<'a, '_> {
    fn instruction(&mut self, blocks: &'a [Block]) {
        let mut said = Said::default();
        blocks.iter().for_each(|block| self.part(block, &mut said));
        if !said.text.is_empty() {
            self.json.object(|json| said.write(json, "system"));
        }
    }

    fn user(&mut self, turn: &'a Turn) {
        let mut said = Said::default();
        let mut has_parts = false;
        for block in &turn.blocks {
            if let Content::ToolResult(result) = &block.content {
                self.result(block, result, &mut said);
            } else {
                has_parts = true;
                self.part(block, &mut said);
            }
        }
        if has_parts || !said.text.is_empty() || !said.images.is_empty() {
            self.json.object(|json| said.write(json, "user"));
        }
    }

    /// Writes what a tool brought back; pictures follow in the user's message.
    fn result(&mut self, block: &'a Block, result: &'a ToolResult, user: &mut Said<'a>) {
        self.cache_mark(block);
        let mut said = Said::default();
        if result.is_error {
            let why = "tool messages have no error mark; the text says so";
            self.loss.emulated(&block.place.below("is_error"), why);
            said.add("The tool failed:");
        }
        for inner in &result.blocks {
            if let Content::Image(_) = inner.content {
                let before = user.images.len();
                self.part(inner, user);
                if user.images.len() > before {
                    user.add(&format!("From the result of the tool call {}: an image.", result.id));
                    let why = "what a tool brings back is text; the picture follows it";
                    self.loss.block(inner.place, LossKind::Emulated, why);
                }
            } else {
                self.part(inner, &mut said);
            }
        }
        let name = self.names.get(result.id.as_str()).copied();
        self.json.object(|json| {
            said.write(json, "tool");
            if let Some(name) = name {
                json.member_string("tool_name", name);
            }
            json.member_string("tool_call_id", &result.id);
        });
    }

    fn assistant(&mut self, turn: &'a Turn) {
        let mut said = Said::default();
        let mut thoughts = String::new();
        let mut calls: Vec<&ToolUse> = Vec::new();
        for block in &turn.blocks {
            match &block.content {
                Content::Text(text) => {
                    if !calls.is_empty() {
                        let why = "text after a call stands before it";
                        self.loss.block(block.place, LossKind::Approximated, why);
                    }
                    self.loss.beside_text(block, text, false);
                    self.part(block, &mut said);
                }
                Content::Refusal(text) => {
                    let why = "Ollama has no refusals; it is text";
                    self.loss.block(block.place, LossKind::Emulated, why);
                    said.add(text);
                }
                Content::Thinking(thinking) if thinking.signature.is_none() => {
                    thoughts.push_str(&thinking.text);
                }
                Content::Thinking(_) | Content::RedactedThinking(_) => self.signed(block),
                Content::ToolUse(call) => {
                    self.cache_mark(block);
                    self.call_signature(block, call.signature.as_ref());
                    calls.push(call);
                }
                Content::Image(_)
                | Content::Document(_)
                | Content::Audio(_)
                | Content::ToolResult(_)
                | Content::Opaque(_) => self.no_place(block),
            }
        }
        if said.text.is_empty() && calls.is_empty() && thoughts.is_empty() {
            return;
        }
        self.json.object(|json| {
            said.write(json, "assistant");
            if !thoughts.is_empty() {
                json.member_string("thinking", &thoughts);
            }
            if !calls.is_empty() {
                json.member_array("tool_calls", |json| calls.iter().for_each(|call| write_call(json, call)));
            }
        });
    }

    fn part(&mut self, block: &'a Block, said: &mut Said<'a>) {
        self.cache_mark(block);
        match &block.content {
            Content::Text(text) => said.add(&text.text),
            Content::Refusal(text) => said.add(text),
            Content::Image(image) => self.image(block, image, said),
            Content::Document(document) => self.document(block, document, said),
            Content::Audio(_) => {
                self.loss.block(block.place, LossKind::Dropped, "Ollama takes no sound");
            }
            Content::ToolUse(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::Opaque(_) => self.no_place(block),
        }
    }

    fn image(&mut self, block: &Block, image: &'a Image, said: &mut Said<'a>) {
        if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
            self.loss.detail(block.place, "Ollama decides how closely it looks");
        }
        match &image.source {
            MediaSource::Data { base64, .. } => said.images.push(base64),
            MediaSource::Url(_) | MediaSource::File(..) => {
                let why = "Ollama takes images in the request only";
                self.loss.block(block.place, LossKind::Dropped, why);
            }
        }
    }

    fn document(&mut self, block: &'a Block, document: &'a Document, said: &mut Said<'a>) {
        const WHY: &str = "Ollama takes texts and images, and nothing about them";
        let notes = [("context", document.context.is_some()), ("citations", document.citations)];
        for (field, _) in notes.into_iter().filter(|(_, is_set)| *is_set) {
            self.loss.dropped(&block.place.below(field), WHY);
        }
        match &document.source {
            DocumentSource::Media(_) => {
                if document.title.is_some() {
                    self.loss.title(block.place, WHY);
                }
                self.loss.block(block.place, LossKind::Dropped, "Ollama takes no documents");
            }
            DocumentSource::Text(text) => {
                self.loss.block(block.place, LossKind::Approximated, "the document stands as its text");
                document.title.iter().for_each(|title| said.add(title));
                said.add(text);
            }
            DocumentSource::Blocks(blocks) => {
                self.loss.block(block.place, LossKind::Approximated, "the document stands as its parts");
                document.title.iter().for_each(|title| said.add(title));
                blocks.iter().for_each(|block| self.part(block, said));
            }
        }
    }

    fn signed(&mut self, block: &Block) {
        let why = "signed reasoning goes back to its own provider only";
        self.loss.block(block.place, LossKind::Dropped, why);
    }

    fn call_signature(&mut self, block: &Block, signature: Option<&Signature>) {
        self.loss.signature(block, signature, false);
    }

    fn no_place(&mut self, block: &Block) {
        self.loss.block(block.place, LossKind::Dropped, "such a block has no place in this message");
    }

    fn cache_mark(&mut self, block: &Block) {
        if block.cache.is_some() {
            self.loss.dropped(&block.place.below("cache_control"), "Ollama caches prompts by itself");
        }
    }
}

fn write_call(json: &mut Writer, call: &ToolUse) {
    json.object(|json| {
        json.member_string("id", &call.id);
        json.member_object("function", |json| {
            json.member_string("name", &call.name);
            json.member_raw("arguments", call.arguments_object().as_str());
        });
    });
}
