//! Collects what a translation loses.

use gw_types::{BoundedText, Loss, LossItem, LossKind, Operation};

use super::{Block, Origin, Place, Prompt, Setting, Signature, Text, Tool, ToolKind, harmless};

/// The most fields that one report names; more are not told apart.
const ITEMS_MAX: usize = 256;

/// Collects what a translation loses, in the order of the writer. Fields in the table of the harmless are not taken.
#[derive(Debug)]
pub struct LossReport {
    ingress: Operation,
    items: Vec<LossItem>,
}

impl LossReport {
    /// Returns an empty report on a request of the format.
    pub fn new(ingress: Operation) -> Self {
        Self { ingress, items: Vec::new() }
    }

    /// Returns the functions among a prompt's tools, with those of the origin's own; of another provider's own it is told.
    pub(crate) fn known_tools<'p>(&mut self, tools: &'p [Tool], own: Option<Origin>) -> Vec<&'p Tool> {
        let mut known = Vec::with_capacity(tools.len());
        for tool in tools {
            match tool.kind {
                ToolKind::Server(origin, _) if Some(origin) != own => {
                    self.block(tool.place, LossKind::Dropped, "the tool is one of another provider's own");
                }
                ToolKind::Function { .. } | ToolKind::Server(..) => known.push(tool),
            }
        }
        known
    }

    /// Adds a field that the provider's format has no place for.
    pub fn dropped(&mut self, path: &str, why: &'static str) {
        self.add(path, LossKind::Dropped, why);
    }

    /// Adds a field for which the provider's format has something near.
    pub fn approximated(&mut self, path: &str, why: &'static str) {
        self.add(path, LossKind::Approximated, why);
    }

    /// Adds a field whose effect is brought about by other means.
    pub fn emulated(&mut self, path: &str, why: &'static str) {
        self.add(path, LossKind::Emulated, why);
    }

    /// Adds a setting, by the name that the caller's format has for it.
    pub fn setting(&mut self, setting: Setting, kind: LossKind, why: &'static str) {
        self.add(setting.path(self.ingress), kind, why);
    }

    /// Adds a block.
    pub fn block(&mut self, place: Place, kind: LossKind, why: &'static str) {
        self.add(&place.to_string(), kind, why);
    }

    /// Adds how closely to look at an image, by the name that the caller's format has for it.
    pub fn detail(&mut self, place: Place, why: &'static str) {
        let field = match self.ingress {
            Operation::Chat | Operation::Completions | Operation::Embeddings => "image_url.detail",
            Operation::Responses | Operation::Messages | Operation::CountTokens => "detail",
        };
        self.dropped(&place.below(field), why);
    }

    /// Adds a document's title, by the name that the caller's format has for it.
    pub fn title(&mut self, place: Place, why: &'static str) {
        let field = match self.ingress {
            Operation::Chat | Operation::Completions | Operation::Embeddings => "file.filename",
            Operation::Responses => "filename",
            Operation::Messages | Operation::CountTokens => "title",
        };
        self.dropped(&place.below(field), why);
    }

    /// Adds what stands beside an earlier answer's text, where messages hold text alone; `same` says whether the request
    /// is of the format that is written.
    pub fn beside_text(&mut self, block: &Block, text: &Text, same: bool) {
        if !text.citations.is_empty() {
            self.dropped(&block.place.below("citations"), "citations are not sent back");
        }
        self.signature(block, text.signature.as_ref(), same);
    }

    /// Adds a signature that only its own format has a place for; `same` as for [`Self::beside_text`].
    pub fn signature(&mut self, block: &Block, signature: Option<&Signature>, same: bool) {
        if signature.is_some() && !same {
            let why = "signed reasoning goes back to its own provider only";
            self.block(block.place, LossKind::Dropped, why);
        }
    }

    /// Adds every field of the request that the neutral form has no place for.
    pub fn rest(&mut self, prompt: &Prompt) {
        for unknown in &prompt.rest {
            self.dropped(&unknown.path, "the provider's format has no such field");
        }
    }

    /// Returns the report.
    pub fn into_loss(self) -> Loss {
        Loss { items: self.items }
    }

    fn add(&mut self, path: &str, kind: LossKind, why: &'static str) {
        // What has no path is gw's own, and what two writers say of one field is one loss.
        let is_known = |item: &LossItem| item.kind == kind && item.path.as_str() == path;
        if !path.is_empty()
            && self.items.len() < ITEMS_MAX
            && harmless::reason(self.ingress, path).is_none()
            && !self.items.iter().any(is_known)
        {
            self.items.push(LossItem { path: BoundedText::new(path), kind, why });
        }
    }
}
