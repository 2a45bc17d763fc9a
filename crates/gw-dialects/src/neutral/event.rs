//! One step of a streamed answer in neutral parts.

use gw_types::{FinishReason, GatewayError, Usage};

use super::{Citation, Origin, RawJson, Signature, redacted};

/// Names a block of a streamed answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    /// The choice, from 0.
    pub choice: u32,
    /// The block of the choice, from 0 and without gaps, in order of first appearance.
    pub block: u32,
}

/// Says what a block of a streamed answer will hold.
#[derive(Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Reasoning that is shown.
    Thinking,
    /// Reasoning that only its provider can read; whole.
    RedactedThinking(Signature),
    /// A call of a tool.
    ToolUse {
        /// The call's id; never empty.
        id: String,
        /// The tool's name.
        name: String,
        /// Opaque state that belongs to the call (Gemini).
        signature: Option<Signature>,
    },
    /// The model declines, and says so.
    Refusal,
    /// A block that only one provider knows; whole, as it would stand in an answer.
    Opaque(Origin, RawJson),
}

/// One step of a streamed answer.
///
/// A reader keeps to this order: `Start` first and once; each block starts before its deltas and stops once, before the
/// `Finish` of its choice; blocks of one choice may overlap only where several tools are called. `Usage` and `ServiceTier`
/// may come at any time, merged and absolute. `End` or `Error` is last.
#[derive(Clone, PartialEq, Eq)]
pub enum Event {
    /// The answer begins.
    Start {
        /// The provider's id of the answer.
        id: Option<String>,
        /// The model that the provider says is answering.
        model: Option<String>,
    },
    /// A block begins.
    BlockStart(At, BlockKind),
    /// More text.
    TextDelta(At, String),
    /// More reasoning.
    ThinkingDelta(At, String),
    /// More of the block's signature, which may come in pieces.
    SignatureDelta(At, Signature),
    /// More of a call's arguments, as JSON text.
    ArgumentsDelta(At, String),
    /// More of a refusal.
    RefusalDelta(At, String),
    /// What the text so far is taken from.
    Citation(At, Citation),
    /// A block is complete.
    BlockStop(At),
    /// Log probabilities of the text just sent, as OpenAI chat writes them.
    Logprobs(u32, RawJson),
    /// A choice is complete.
    Finish {
        /// The choice.
        choice: u32,
        /// Why it ended.
        reason: FinishReason,
        /// The stop sequence that was met, where the provider says so.
        stop_sequence: Option<String>,
    },
    /// What the call used so far.
    Usage(Usage),
    /// The tier that serves the answer, in the provider's word; the last one counts.
    ServiceTier(String),
    /// A field of the provider's answer that the neutral form has no place for: its path in the provider's format. Each is
    /// said once.
    Unread(String),
    /// The provider failed; nothing follows.
    Error(GatewayError),
    /// The answer is complete; nothing follows.
    End,
}

redacted!(BlockKind);

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Start { .. } => "Start",
            Self::BlockStart(at, kind) => return write!(f, "BlockStart({at:?}, {kind:?})"),
            Self::TextDelta(..) => "TextDelta",
            Self::ThinkingDelta(..) => "ThinkingDelta",
            Self::SignatureDelta(..) => "SignatureDelta",
            Self::ArgumentsDelta(..) => "ArgumentsDelta",
            Self::RefusalDelta(..) => "RefusalDelta",
            Self::Citation(..) => "Citation",
            Self::BlockStop(at) => return write!(f, "BlockStop({at:?})"),
            Self::Logprobs(..) => "Logprobs",
            Self::Finish { choice, reason, .. } => return write!(f, "Finish({choice}, {reason})"),
            Self::Usage(usage) => return write!(f, "Usage({usage:?})"),
            Self::ServiceTier(_) => "ServiceTier",
            Self::Unread(path) => return write!(f, "Unread({path})"),
            Self::Error(error) => return write!(f, "Error({error:?})"),
            Self::End => "End",
        };
        f.write_str(name)
    }
}
