//! What gw writes into an answer that it puts together itself.

use std::sync::Arc;

use gw_dialects::neutral::AnswerStamp;
use gw_exec::ReplyHead;
use gw_types::{Completion, Operation};

/// The identity of an answer that gw puts together.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    id: String,
    created: i64,
    model: Arc<str>,
}

impl Stamp {
    /// Returns the stamp of an answer to a request for the model.
    pub(crate) fn new(operation: Operation, head: &ReplyHead, model: &Arc<str>) -> Self {
        let id = head.id.as_str();
        let prefix = match operation {
            Operation::Chat => "chatcmpl-",
            Operation::Completions => "cmpl-",
            Operation::Messages | Operation::CountTokens => "msg_",
            Operation::Responses => "resp_",
            Operation::Embeddings => "embd-",
        };
        Self {
            id: format!("{prefix}{}", id.strip_prefix("req_").unwrap_or(id)),
            created: head.started.seconds(),
            model: Arc::clone(model),
        }
    }

    /// Names the model that gave the answer, where that is known.
    pub(crate) fn served(mut self, completion: &Completion) -> Self {
        if let Some(model) = &completion.served_model {
            self.model = Arc::from(model.as_str());
        }
        self
    }

    pub(crate) fn as_answer_stamp(&self) -> AnswerStamp<'_> {
        AnswerStamp { id: &self.id, created: self.created, model: &self.model }
    }
}
