//! Why an answer ended.

use serde::{Deserialize, Serialize};

/// Says why an answer ended, in the words of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done, or met a stop sequence.
    Stop,
    /// The output bound was reached.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// A content filter cut the answer.
    ContentFilter,
    /// The model declined to answer.
    Refusal,
    /// A reason that gw does not know; the caller still gets it as it came.
    Other,
}

impl FinishReason {
    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Other => "other",
        }
    }
}

impl std::fmt::Display for FinishReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
