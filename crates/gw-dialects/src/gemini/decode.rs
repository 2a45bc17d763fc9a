//! From Gemini's answers to neutral events.
//!
//! A whole answer is read as a stream of one document, so that both forms of an answer give the same parts.

mod choice;
mod grounding;
mod logprobs;
mod partial;
mod unread;

use gw_types::{GatewayError, Usage};

use self::choice::Choice;
use super::{classify, usage::WireUsage};
use crate::{
    collect::Collector,
    failure::{malformed, tree_of},
    json::Node,
    neutral::{Event, Message, TierReport, UnreadFields},
};

/// The most candidates of one answer.
const CHOICES_MAX: usize = 128;

/// Reads the body of a 2xx answer of `generateContent`.
///
/// Calls without an id get one that depends on the answer alone. A candidate that a filter stopped may be empty.
///
/// # Errors
/// `ContentFiltered`, if the prompt was blocked; what an error inside of the body says; `MalformedResponse`, if there is no
/// whole answer, also where Gemini says that it could not read what the model wrote.
///
/// ```
/// use gw_dialects::gemini::read_message;
/// use gw_types::FinishReason;
///
/// let body = br#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#;
/// let message = read_message(body).unwrap();
/// assert_eq!(message.choices[0].blocks[0].as_text(), Some("Hi"));
/// assert_eq!(message.choices[0].finish, FinishReason::Stop);
/// ```
pub fn read_message(body: &[u8]) -> Result<Message, GatewayError> {
    let node = tree_of(body)?;
    let mut reading = Reading::default();
    let mut events = Vec::new();
    // An array is what a stream without `alt=sse` sends.
    match node.items() {
        [] => reading.document(&node, &mut events)?,
        documents => documents.iter().try_for_each(|document| reading.document(document, &mut events))?,
    }
    if !reading.is_complete() {
        return Err(malformed("the provider's answer holds no whole candidate"));
    }
    reading.finish(&mut events)?;
    let mut collector = Collector::default();
    collector.extend(events);
    Ok(collector.finish())
}

/// What is known of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    started: bool,
    /// The answer's id, for the ids of calls.
    id: String,
    choices: Vec<Choice>,
    usage: WireUsage,
    tier: TierReport,
    reported: Option<Usage>,
    unread: UnreadFields,
}

impl Reading {
    /// Reads one document: the whole answer, or the next piece of it.
    ///
    /// # Errors
    /// What the document says went wrong. Nothing can be read after it.
    pub(super) fn document(&mut self, node: &Node<'_>, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        if !node.is_object() {
            return Err(malformed("the provider's answer is not a JSON object"));
        }
        if node.get("error").is_some() {
            return Err(classify::in_band(node));
        }
        let candidates = node.get("candidates").map(Node::items).unwrap_or_default();
        if let Some(feedback) = node.get("promptFeedback")
            && candidates.is_empty()
            && feedback.get("blockReason").is_some()
        {
            return Err(classify::blocked(feedback));
        }
        if !self.started {
            self.started = true;
            self.id = node.filled("responseId").unwrap_or_default();
            let id = Some(self.id.clone()).filter(|id| !id.is_empty());
            events.push(Event::Start { id, model: node.filled("modelVersion") });
        }
        let usage = node.get("usageMetadata");
        events.extend(self.tier.news(usage.and_then(|usage| usage.filled("serviceTier"))));
        for (place, candidate) in candidates.iter().enumerate() {
            let index = candidate.count("index").and_then(|index| usize::try_from(index).ok());
            self.candidate(index.unwrap_or(place), candidate, events)?;
        }
        if let Some(usage) = usage {
            self.usage.merge(&WireUsage::read(usage));
            let classes = self.usage.classes();
            if classes != self.reported {
                self.reported = classes;
                events.extend(classes.map(Event::Usage));
            }
        }
        unread::look(node, &mut self.unread);
        events.extend(self.unread.news().map(Event::Unread));
        Ok(())
    }

    fn candidate(
        &mut self,
        index: usize,
        node: &Node<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), GatewayError> {
        if index >= CHOICES_MAX {
            return Err(malformed("the provider's answer holds too many candidates"));
        }
        for next in self.choices.len()..=index {
            self.choices.push(Choice::new(u32::try_from(next).unwrap_or(u32::MAX)));
        }
        match self.choices.get_mut(index) {
            Some(choice) => choice.read(node, &self.id, events),
            None => Ok(()),
        }
    }

    /// Returns whether there is an answer, and every candidate of it has ended.
    pub(super) fn is_complete(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(Choice::has_ended)
    }

    /// Ends a complete answer: closes what is open and says why each candidate ended. Only now is that known, because
    /// every piece of a stream may carry a reason.
    ///
    /// # Errors
    /// `MalformedResponse`, if a candidate ended in a way that leaves no answer.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), GatewayError> {
        self.choices.iter_mut().try_for_each(|choice| choice.finish(events))
    }
}
