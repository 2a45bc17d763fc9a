//! Writes the conversation as messages.

use gw_types::{LossKind, Operation};

use crate::{
    json::Writer,
    neutral::{
        Block, Content, Document, DocumentSource, Image, InstructionRole, LossReport, MediaSource, Origin,
        Place, Prompt, Role, Signature, ToolResult, ToolUse, Turn,
    },
};

pub(super) const NO_CACHE_MARKS: &str = "the provider caches prompts by itself";

/// Writes the items of `messages`.
pub(super) fn write(json: &mut Writer, prompt: &Prompt, loss: &mut LossReport) {
    let same = prompt.ingress == Operation::Chat;
    let mut messages = Messages { json, loss, same };
    for (index, turn) in prompt.turns.iter().enumerate() {
        messages.instructions(prompt, |before| before == index);
        match turn.role {
            Role::User => messages.user(turn),
            Role::Assistant => messages.assistant(turn),
        }
    }
    let turns = prompt.turns.len();
    messages.instructions(prompt, |before| before >= turns);
}

struct Messages<'a> {
    json: &'a mut Writer,
    loss: &'a mut LossReport,
    /// Whether the caller writes chat completions too.
    same: bool,
}

impl Messages<'_> {
    fn instructions(&mut self, prompt: &Prompt, here: impl Fn(usize) -> bool) {
        for instruction in prompt.instructions.iter().filter(|one| here(one.before_turn)) {
            let role = match instruction.role {
                InstructionRole::System => "system",
                InstructionRole::Developer => "developer",
            };
            let parts: Vec<&Block> = instruction.blocks.iter().collect();
            self.message(role, &parts, |_| {});
        }
    }

    /// Writes one message with its parts and whatever else `more` adds.
    fn message(&mut self, role: &str, parts: &[&Block], more: impl FnOnce(&mut Messages<'_>)) {
        // The writer's closures would borrow the whole of `self`; the fields are taken apart instead.
        self.json.object(|json| {
            json.member_string("role", role);
            let mut inner = Messages { json, loss: &mut *self.loss, same: self.same };
            if !parts.is_empty() {
                inner.json.key("content");
                inner.parts(parts);
            }
            more(&mut inner);
        });
    }

    fn user(&mut self, turn: &Turn) {
        // Pictures that tools brought back; tool messages hold text alone.
        let mut moved: Vec<(&ToolResult, &Block)> = Vec::new();
        for block in &turn.blocks {
            if let Content::ToolResult(result) = &block.content {
                self.tool(result, block, &mut moved);
            }
        }
        let rest: Vec<&Block> =
            turn.blocks.iter().filter(|block| !matches!(block.content, Content::ToolResult(_))).collect();
        if moved.is_empty() {
            if !rest.is_empty() {
                self.message("user", &rest, |_| {});
            }
            return;
        }
        let labels: Vec<Block> = moved.iter().map(|(result, block)| label(result, block.place)).collect();
        let shown = labels.iter().zip(&moved).flat_map(|(label, (_, block))| [label, *block]);
        let parts: Vec<&Block> = shown.chain(rest).collect();
        self.message("user", &parts, |_| {});
    }

    fn tool<'b>(
        &mut self,
        result: &'b ToolResult,
        block: &'b Block,
        moved: &mut Vec<(&'b ToolResult, &'b Block)>,
    ) {
        self.cache_mark(block);
        let mut texts: Vec<&Block> = Vec::new();
        for inner in &result.blocks {
            match &inner.content {
                Content::Text(_) => texts.push(inner),
                Content::Image(_) | Content::Document(_) | Content::Audio(_) => {
                    let why = "tool messages hold text alone; it stands in the user message that follows";
                    self.loss.block(inner.place, LossKind::Approximated, why);
                    moved.push((result, inner));
                }
                Content::ToolUse(_)
                | Content::ToolResult(_)
                | Content::Thinking(_)
                | Content::RedactedThinking(_)
                | Content::Refusal(_)
                | Content::Opaque(_) => {
                    self.loss.block(inner.place, LossKind::Dropped, "tool messages hold text alone");
                }
            }
        }
        let mark;
        if result.is_error {
            let why = "tool messages have no error mark; the text says so";
            self.loss.emulated(&block.place.below("is_error"), why);
            mark = Block::new(Content::text("The tool failed:"));
            texts.insert(0, &mark);
        }
        self.json.object(|json| {
            json.member_string("role", "tool");
            json.member_string("tool_call_id", &result.id);
            json.key("content");
            let mut inner = Messages { json, loss: &mut *self.loss, same: self.same };
            if texts.is_empty() { inner.json.string("") } else { inner.parts(&texts) }
        });
    }

    fn assistant(&mut self, turn: &Turn) {
        let mut texts: Vec<&Block> = Vec::new();
        let mut calls: Vec<(&ToolUse, &Block)> = Vec::new();
        let mut thoughts: Vec<&Block> = Vec::new();
        for block in &turn.blocks {
            match &block.content {
                Content::Text(_) | Content::Refusal(_) => {
                    if !calls.is_empty() && !self.same {
                        let why = "text after a call stands before it";
                        self.loss.block(block.place, LossKind::Approximated, why);
                    }
                    if let Content::Text(text) = &block.content {
                        self.loss.beside_text(block, text, self.same);
                    }
                    texts.push(block);
                }
                Content::ToolUse(call) => calls.push((call, block)),
                Content::Thinking(_) | Content::RedactedThinking(_) if self.same => thoughts.push(block),
                // Mistral's reasoning is a part among the others.
                Content::Opaque(opaque) if self.same && opaque.origin == Origin::OpenAi => texts.push(block),
                Content::Thinking(_) | Content::RedactedThinking(_) => {
                    let why = "reasoning goes back to its own provider alone";
                    self.loss.block(block.place, LossKind::Dropped, why);
                }
                Content::Image(_)
                | Content::Document(_)
                | Content::Audio(_)
                | Content::ToolResult(_)
                | Content::Opaque(_) => {
                    let why = "assistant messages hold text and tool calls alone";
                    self.loss.block(block.place, LossKind::Dropped, why);
                }
            }
        }
        if texts.is_empty() && calls.is_empty() && thoughts.is_empty() {
            return;
        }
        self.message("assistant", &texts, |inner| {
            if texts.is_empty() {
                inner.json.member_null("content");
            }
            inner.reasoning(&thoughts);
            if !calls.is_empty() {
                inner.calls(&calls);
            }
        });
    }

    fn calls(&mut self, calls: &[(&ToolUse, &Block)]) {
        for (call, block) in calls {
            self.cache_mark(block);
            self.loss.signature(block, call.signature.as_ref(), self.same);
        }
        let same = self.same;
        self.json.member_array("tool_calls", |json| {
            for (call, _) in calls {
                json.object(|json| {
                    json.member_string("id", &call.id);
                    json.member_string("type", "function");
                    json.member_object("function", |json| {
                        json.member_string("name", &call.name);
                        json.member_string("arguments", &call.arguments);
                    });
                    if let Some(signature) = call.signature.as_ref().filter(|_| same) {
                        google_signature(json, signature);
                    }
                });
            }
        });
    }

    fn reasoning(&mut self, thoughts: &[&Block]) {
        if thoughts.is_empty() {
            return;
        }
        let mut text = String::new();
        let mut signed = false;
        for block in thoughts {
            if let Content::Thinking(thinking) = &block.content {
                text.push_str(&thinking.text);
                signed |= thinking.signature.is_some();
            } else {
                signed = true;
            }
        }
        if !text.is_empty() {
            self.json.member_string("reasoning_content", &text);
        }
        if signed || thoughts.len() > 1 {
            let contents = thoughts.iter().map(|block| &block.content);
            super::super::thoughts::write(self.json, contents);
        }
    }

    /// Writes text alone as a string, as every server takes it, and anything else as parts.
    fn parts(&mut self, parts: &[&Block]) {
        if let [Block { content: Content::Text(text), cache: None, .. }] = parts {
            return self.json.string(&text.text);
        }
        self.json.array(|json| {
            let mut inner = Messages { json, loss: &mut *self.loss, same: self.same };
            parts.iter().for_each(|part| inner.part(part));
            if json.is_at_start() {
                // Everything was lost, and an empty list is refused.
                json.object(|json| {
                    json.member_string("type", "text");
                    json.member_string("text", "");
                });
            }
        });
    }

    fn part(&mut self, block: &Block) {
        let place = block.place;
        match &block.content {
            Content::Text(text) => self.typed(block, "text", |json| json.member_string("text", &text.text)),
            Content::Refusal(text) => {
                self.typed(block, "refusal", |json| json.member_string("refusal", text));
            }
            Content::Image(image) => self.image(block, image),
            Content::Audio(audio) => self.typed(block, "input_audio", |json| {
                json.member_object("input_audio", |json| {
                    json.member_string("data", &audio.base64);
                    json.member_string("format", &audio.format);
                });
            }),
            Content::Document(document) => self.document(block, document),
            Content::Opaque(opaque) if self.same && opaque.origin == Origin::OpenAi => {
                self.json.raw(opaque.value.as_str());
            }
            Content::Opaque(_) => {
                self.loss.block(place, LossKind::Dropped, "the block is one of another provider's own");
            }
            Content::ToolUse(_)
            | Content::ToolResult(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_) => {
                self.loss.block(place, LossKind::Dropped, "such a block has no place in this message");
            }
        }
    }

    fn typed(&mut self, block: &Block, kind: &str, members: impl FnOnce(&mut Writer)) {
        let mark = self.same && block.cache.is_some();
        self.cache_mark(block);
        self.json.object(|json| {
            json.member_string("type", kind);
            members(json);
            if mark {
                super::super::thoughts::cache_mark(json, block.cache);
            }
        });
    }

    fn cache_mark(&mut self, block: &Block) {
        if block.cache.is_some() && !self.same {
            self.loss.dropped(&block.place.below("cache_control"), NO_CACHE_MARKS);
        }
    }

    fn image(&mut self, block: &Block, image: &Image) {
        let Some(url) = image.source.to_url() else {
            let why = "the image is a file that only another provider knows";
            return self.loss.block(block.place, LossKind::Dropped, why);
        };
        self.typed(block, "image_url", |json| {
            json.member_object("image_url", |json| {
                json.member_string("url", &url);
                if let Some(detail) = &image.detail {
                    json.member_string("detail", detail);
                }
            });
        });
    }

    fn document(&mut self, block: &Block, document: &Document) {
        let place = block.place;
        if document.citations {
            let why = "chat completions do not cite documents";
            self.loss.dropped(&place.below("citations"), why);
        }
        if document.context.is_some() {
            self.loss.dropped(&place.below("context"), "chat completions have no such field");
        }
        let title = document.title.as_deref();
        match &document.source {
            DocumentSource::Media(MediaSource::Data { media_type, base64 }) => {
                self.typed(block, "file", |json| {
                    json.member_object("file", |json| {
                        json.member_string("filename", title.unwrap_or("document.pdf"));
                        json.member_string("file_data", &format!("data:{media_type};base64,{base64}"));
                    });
                });
            }
            DocumentSource::Media(MediaSource::File(Origin::OpenAi, id)) => {
                self.typed(block, "file", |json| {
                    json.member_object("file", |json| json.member_string("file_id", id));
                });
            }
            DocumentSource::Media(MediaSource::Url(url)) if self.same => {
                self.typed(block, "file", |json| {
                    json.member_object("file", |json| json.member_string("file_data", url));
                });
            }
            DocumentSource::Media(MediaSource::Url(_) | MediaSource::File(..)) => {
                let why = "chat completions take documents in the request alone";
                self.loss.block(place, LossKind::Dropped, why);
            }
            DocumentSource::Text(text) => {
                let why = "the document stands as text";
                self.loss.block(place, LossKind::Approximated, why);
                let text = match title {
                    Some(title) => format!("{title}\n\n{text}"),
                    None => text.clone(),
                };
                self.typed(block, "text", |json| json.member_string("text", &text));
            }
            DocumentSource::Blocks(blocks) => {
                self.loss.block(place, LossKind::Approximated, "the document stands as its parts");
                blocks.iter().for_each(|block| self.part(block));
            }
        }
    }
}

/// Says which call a picture belongs to that was moved out of its result.
fn label(result: &ToolResult, place: Place) -> Block {
    Block::at(place, Content::text(format!("From the result of the tool call {}:", result.id)))
}

/// Writes a signature where Google's compatible endpoint has it.
pub(crate) fn google_signature(json: &mut Writer, signature: &Signature) {
    json.member_object("extra_content", |json| {
        json.member_object("google", |json| {
            json.member_string("thought_signature", &signature.to_wire(Origin::Gemini));
        });
    });
}
