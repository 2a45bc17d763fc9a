//! One item of a batch, as it goes in.

use gw_types::{BoundedText, NormalizedRequest};

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct GenerationRequest {
    /// The caller's id of the item; one result bears it.
    pub request_id: String,
    /// The task that the item belongs to.
    pub task_id: Option<String>,
    /// What the answer is an answer of.
    pub identity: ModelIdentity,
    /// The request itself: prompt or messages, model and sampling settings in a wire format.
    pub request: NormalizedRequest,
}

/// What an evaluation must know of a model beside its name. Set once and copied to the result; nothing is looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelIdentity {
    endpoint_type: Option<BoundedText>,
    model_revision: Option<BoundedText>,
    tokenizer_revision: Option<BoundedText>,
}

impl ModelIdentity {
    /// Returns an identity; what is not known is `None`.
    pub const fn new(
        endpoint_type: Option<BoundedText>,
        model_revision: Option<BoundedText>,
        tokenizer_revision: Option<BoundedText>,
    ) -> Self {
        Self { endpoint_type, model_revision, tokenizer_revision }
    }

    /// Returns the kind of endpoint, such as `openai-chat`.
    pub fn endpoint_type(&self) -> Option<&str> {
        self.endpoint_type.as_ref().map(BoundedText::as_str)
    }

    /// Returns the revision of the model's weights.
    pub fn model_revision(&self) -> Option<&str> {
        self.model_revision.as_ref().map(BoundedText::as_str)
    }

    /// Returns the revision of the tokenizer.
    pub fn tokenizer_revision(&self) -> Option<&str> {
        self.tokenizer_revision.as_ref().map(BoundedText::as_str)
    }
}
