//! What a cache remembers of an answer.

use std::sync::Arc;

use crate::key::short_digest_u64;
use bytes::Bytes;
use gw_types::{AnswerFacts, BoundedText, Completion, DeploymentName, RequestId};

/// An answer as a cache keeps it. Prints without its content.
///
/// There is no cost, no attempt and no latency here: those are facts of the call that made the answer, and wrong for
/// the request that it serves later (I8). What stays true is who answered and in which request.
#[derive(Clone, PartialEq, Eq)]
pub struct CachedAnswer {
    /// The plain body in the wire format of the operation, byte for byte, where the answer came as one.
    pub raw: Option<Bytes>,
    /// The neutral parts, where they were read: needed to answer with a stream, or in another dialect.
    pub completion: Option<Arc<Completion>>,
    /// What the pipeline acts on.
    pub facts: AnswerFacts,
    /// The deployment that really answered; after a failover not the one in the key.
    pub serving: DeploymentName,
    /// The version of the model that answered.
    pub model_version: Option<BoundedText>,
    /// The request whose call made the answer.
    pub origin: RequestId,
}

impl CachedAnswer {
    /// What an entry costs beside its content, in bytes: the key, its places in map and queue, this struct.
    pub(crate) const OVERHEAD_BYTES: usize = 512;

    /// Returns what the answer weighs against a bound, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        let raw = self.raw.as_ref().map_or(0, Bytes::len);
        let parts = self.completion.as_ref().map_or(0, |completion| completion.bytes());
        let lost: usize =
            self.facts.loss.items.iter().map(|item| size_of_val(item) + item.path.as_str().len()).sum();
        u64::try_from(raw.saturating_add(parts).saturating_add(lost).saturating_add(Self::OVERHEAD_BYTES))
            .unwrap_or(u64::MAX)
    }
}

impl CachedAnswer {
    /// Returns 64 bits of the digest of what the answer says: its texts where the neutral parts are at hand, else its
    /// bytes, which hold an id and a time and so are equal for the same answer only.
    pub(crate) fn says(&self) -> u64 {
        let mut said = Vec::new();
        match (&self.completion, &self.raw) {
            (Some(completion), _) => {
                for choice in &completion.choices {
                    said.extend_from_slice(
                        &u64::try_from(choice.text.len()).unwrap_or(u64::MAX).to_le_bytes(),
                    );
                    said.extend_from_slice(choice.text.as_bytes());
                }
            }
            (None, Some(raw)) => said.extend_from_slice(raw),
            (None, None) => {}
        }
        short_digest_u64(&said)
    }
}

impl std::fmt::Debug for CachedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedAnswer")
            .field("raw", &format_args!("[{} bytes redacted]", self.raw.as_ref().map_or(0, Bytes::len)))
            .field("completion", &self.completion)
            .field("facts", &self.facts)
            .field("serving", &self.serving)
            .field("model_version", &self.model_version)
            .field("origin", &self.origin)
            .finish()
    }
}
