//! Writes the conversation as instructions and input items.

use gw_types::{LossKind, Operation};

use crate::{
    json::Writer,
    neutral::{
        Block, Content, Document, DocumentSource, Image, Instruction, InstructionRole, LossReport,
        MediaSource, Origin, Prompt, Role, Signature, ToolResult, ToolUse, Turn,
    },
    openai::request::google_signature,
};

pub(super) const NO_CACHE_MARKS: &str = "the provider caches prompts by itself";

/// Writes `instructions` and `input`. The first system prompt is the instructions, where it is one text before all turns.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let same = prompt.ingress == Operation::Responses;
    let mut instructions = prompt.instructions.as_slice();
    if let Some((first, rest)) = instructions.split_first()
        && first.role == InstructionRole::System
        && first.before_turn == 0
        && let [block] = first.blocks.as_slice()
        && let Some(text) = block.content.as_text()
    {
        if block.cache.is_some() {
            loss.dropped(&block.place.below("cache_control"), NO_CACHE_MARKS);
        }
        json.member_string("instructions", text);
        instructions = rest;
    }
    json.member_array("input", |json| {
        let mut items = Items { json, loss, same };
        for (index, turn) in prompt.turns.iter().enumerate() {
            items.instructions(instructions, |before| before == index);
            items.turn(turn);
        }
        let turns = prompt.turns.len();
        items.instructions(instructions, |before| before >= turns);
    });
}

struct Items<'a> {
    json: &'a mut Writer,
    loss: &'a mut LossReport,
    /// Whether the caller writes responses too.
    same: bool,
}

impl Items<'_> {
    fn instructions(&mut self, instructions: &[Instruction], here: impl Fn(usize) -> bool) {
        for instruction in instructions.iter().filter(|one| here(one.before_turn)) {
            let role = match instruction.role {
                InstructionRole::System => "system",
                InstructionRole::Developer => "developer",
            };
            let parts: Vec<&Block> = instruction.blocks.iter().collect();
            self.message(role, &parts);
        }
    }

    /// Writes a turn: what is part of a message goes into messages, everything else is an item of its own.
    fn turn(&mut self, turn: &Turn) {
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let mut parts: Vec<&Block> = Vec::new();
        for block in &turn.blocks {
            if let Content::Text(text) = &block.content {
                self.loss.beside_text(block, text, self.same);
            }
            match &block.content {
                Content::Text(_)
                | Content::Refusal(_)
                | Content::Image(_)
                | Content::Document(_)
                | Content::Audio(_) => {
                    parts.push(block);
                    continue;
                }
                // A part of a message that gw does not know, and not an item.
                Content::Opaque(_) if block.place.is_part() => {
                    parts.push(block);
                    continue;
                }
                Content::ToolUse(_)
                | Content::ToolResult(_)
                | Content::Thinking(_)
                | Content::RedactedThinking(_)
                | Content::Opaque(_) => {}
            }
            self.message(role, &std::mem::take(&mut parts));
            self.item(block);
        }
        self.message(role, &parts);
    }

    fn item(&mut self, block: &Block) {
        if block.cache.is_some() {
            self.loss.dropped(&block.place.below("cache_control"), NO_CACHE_MARKS);
        }
        match &block.content {
            Content::ToolUse(call) => {
                self.loss.signature(block, call.signature.as_ref(), self.same);
                self.call(call);
            }
            Content::ToolResult(result) => self.result(block, result),
            Content::Thinking(thinking) => {
                self.reasoning(block, &thinking.text, thinking.signature.as_ref());
            }
            Content::RedactedThinking(data) => self.reasoning(block, "", Some(data)),
            Content::Opaque(opaque) if self.same && opaque.origin == Origin::OpenAi => {
                self.json.raw(opaque.value.as_str());
            }
            Content::Opaque(_)
            | Content::Text(_)
            | Content::Refusal(_)
            | Content::Image(_)
            | Content::Document(_)
            | Content::Audio(_) => {
                let why = "the block is one of another provider's own";
                self.loss.block(block.place, LossKind::Dropped, why);
            }
        }
    }

    fn call(&mut self, call: &ToolUse) {
        let signature = call.signature.as_ref().filter(|_| self.same);
        self.json.object(|json| {
            json.member_string("type", "function_call");
            json.member_string("call_id", &call.id);
            json.member_string("name", &call.name);
            json.member_string("arguments", &call.arguments);
            if let Some(signature) = signature {
                google_signature(json, signature);
            }
        });
    }

    fn result(&mut self, block: &Block, result: &ToolResult) {
        let mark;
        let mut parts: Vec<&Block> = result.blocks.iter().collect();
        if result.is_error {
            let why = "tool outputs have no error mark; the text says so";
            self.loss.emulated(&block.place.below("is_error"), why);
            mark = Block::new(Content::text("The tool failed:"));
            parts.insert(0, &mark);
        }
        self.json.object(|json| {
            json.member_string("type", "function_call_output");
            json.member_string("call_id", &result.id);
            json.key("output");
            let mut inner = Items { json, loss: &mut *self.loss, same: self.same };
            match parts.as_slice() {
                [] => inner.json.string(""),
                [Block { content: Content::Text(text), .. }] => inner.json.string(&text.text),
                parts => inner.parts("user", parts),
            }
        });
    }

    fn reasoning(&mut self, block: &Block, text: &str, signature: Option<&Signature>) {
        let own = signature.filter(|signature| signature.origin == Origin::OpenAi);
        // Without the encrypted form the text alone says nothing to a provider, but its own caller may want it there.
        if own.is_none() && !(self.same && signature.is_none()) {
            let why = "reasoning goes back to its own provider alone";
            return self.loss.block(block.place, LossKind::Dropped, why);
        }
        self.json.object(|json| {
            json.member_string("type", "reasoning");
            json.member_array("summary", |json| {
                if !text.is_empty() {
                    json.object(|json| {
                        json.member_string("type", "summary_text");
                        json.member_string("text", text);
                    });
                }
            });
            if let Some(own) = own {
                json.member_string("encrypted_content", &own.data);
            }
        });
    }

    /// Writes one message; none for no parts, and none of the model's own if none of its parts has a place here.
    fn message(&mut self, role: &str, parts: &[&Block]) {
        let (parts, lost): (Vec<&Block>, Vec<&Block>) = parts.iter().partition(|part| self.has_place(part));
        // Says what is lost, and writes nothing.
        lost.iter().for_each(|part| self.part("", part));
        if parts.is_empty() && (lost.is_empty() || role == "assistant") {
            return;
        }
        self.json.object(|json| {
            json.member_string("role", role);
            json.key("content");
            let mut inner = Items { json, loss: &mut *self.loss, same: self.same };
            match &*parts {
                [Block { content: Content::Text(text), cache, place }] => {
                    if cache.is_some() {
                        inner.loss.dropped(&place.below("cache_control"), NO_CACHE_MARKS);
                    }
                    inner.json.string(&text.text);
                }
                parts => inner.parts(role, parts),
            }
        });
    }

    fn has_place(&self, part: &Block) -> bool {
        match &part.content {
            Content::Opaque(opaque) => self.same && opaque.origin == Origin::OpenAi,
            Content::Audio(_) => self.same,
            Content::Text(_)
            | Content::Refusal(_)
            | Content::Image(_)
            | Content::Document(_)
            | Content::ToolUse(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_) => true,
        }
    }

    fn parts(&mut self, role: &str, parts: &[&Block]) {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        self.json.array(|json| {
            let mut inner = Items { json, loss: &mut *self.loss, same: self.same };
            parts.iter().for_each(|part| inner.part(kind, part));
            if json.is_at_start() {
                // Everything was lost, and an empty list is refused.
                json.object(|json| {
                    json.member_string("type", kind);
                    json.member_string("text", "");
                });
            }
        });
    }

    fn part(&mut self, kind: &str, block: &Block) {
        if block.cache.is_some() {
            self.loss.dropped(&block.place.below("cache_control"), NO_CACHE_MARKS);
        }
        match &block.content {
            Content::Text(text) => self.typed(kind, |json| json.member_string("text", &text.text)),
            Content::Refusal(text) => self.typed("refusal", |json| json.member_string("refusal", text)),
            Content::Image(image) => self.image(block, image),
            Content::Document(document) => self.document(kind, block, document),
            Content::Audio(audio) if self.same => self.typed("input_audio", |json| {
                json.member_object("input_audio", |json| {
                    json.member_string("data", &audio.base64);
                    json.member_string("format", &audio.format);
                });
            }),
            Content::Audio(_) => {
                self.loss.block(block.place, LossKind::Dropped, "responses take no sound");
            }
            Content::Opaque(opaque) if self.same && opaque.origin == Origin::OpenAi => {
                self.json.raw(opaque.value.as_str());
            }
            Content::Opaque(_)
            | Content::ToolUse(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_) => {
                let why = "such a block has no place in this item";
                self.loss.block(block.place, LossKind::Dropped, why);
            }
        }
    }

    fn typed(&mut self, kind: &str, members: impl FnOnce(&mut Writer)) {
        self.json.object(|json| {
            json.member_string("type", kind);
            members(json);
        });
    }

    fn image(&mut self, block: &Block, image: &Image) {
        let source = match &image.source {
            MediaSource::File(Origin::OpenAi, id) => Some(("file_id", id.clone())),
            source => source.to_url().map(|url| ("image_url", url)),
        };
        let Some((field, source)) = source else {
            let why = "the image is a file that only another provider knows";
            return self.loss.block(block.place, LossKind::Dropped, why);
        };
        self.typed("input_image", |json| {
            json.member_string(field, &source);
            json.member_string("detail", image.detail.as_deref().unwrap_or("auto"));
        });
    }

    fn document(&mut self, kind: &str, block: &Block, document: &Document) {
        let place = block.place;
        if document.citations {
            self.loss.dropped(&place.below("citations"), "responses do not cite documents of the request");
        }
        if document.context.is_some() {
            self.loss.dropped(&place.below("context"), "responses have no such field");
        }
        let title = document.title.as_deref();
        match &document.source {
            DocumentSource::Media(MediaSource::Data { media_type, base64 }) => {
                self.typed("input_file", |json| {
                    json.member_string("filename", title.unwrap_or("document.pdf"));
                    json.member_string("file_data", &format!("data:{media_type};base64,{base64}"));
                });
            }
            DocumentSource::Media(MediaSource::Url(url)) => self.typed("input_file", |json| {
                if let Some(title) = title {
                    json.member_string("filename", title);
                }
                json.member_string("file_url", url);
            }),
            DocumentSource::Media(MediaSource::File(Origin::OpenAi, id)) => {
                self.typed("input_file", |json| json.member_string("file_id", id));
            }
            DocumentSource::Media(MediaSource::File(..)) => {
                let why = "the document is a file that only another provider knows";
                self.loss.block(place, LossKind::Dropped, why);
            }
            DocumentSource::Text(text) => {
                self.loss.block(place, LossKind::Approximated, "the document stands as text");
                let text = match title {
                    Some(title) => format!("{title}\n\n{text}"),
                    None => text.clone(),
                };
                self.typed(kind, |json| json.member_string("text", &text));
            }
            DocumentSource::Blocks(blocks) => {
                self.loss.block(place, LossKind::Approximated, "the document stands as its parts");
                blocks.iter().for_each(|block| self.part(kind, block));
            }
        }
    }
}
