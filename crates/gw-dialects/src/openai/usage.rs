//! Usage: the many shapes in which servers report it, brought into classes that do not overlap.

#[cfg(test)]
mod tests;

use gw_types::{TokenCount, Usage};

use crate::json::{Fault, Kind, Reader, whole};

/// What a server reported, as it reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireUsage {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
    audio_input: Option<u64>,
    image_input: Option<u64>,
    audio_output: Option<u64>,
    reasoning: Option<u64>,
}

impl WireUsage {
    /// Reads the value of a `usage` field; anything but an object is none.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Fault> {
        if reader.kind()? != Kind::Object {
            reader.skip()?;
            return Ok(None);
        }
        let mut usage = Self::default();
        reader.object::<Fault>(|reader, key| {
            match key.raw() {
                "prompt_tokens" => set(&mut usage.prompt, reader),
                "completion_tokens" => set(&mut usage.completion, reader),
                "total_tokens" => set(&mut usage.total, reader),
                // Beside the details: Together and Moonshot, DeepSeek.
                "cached_tokens" | "prompt_cache_hit_tokens" => set(&mut usage.cached, reader),
                "prompt_tokens_details" => usage.prompt_details(reader),
                "completion_tokens_details" => usage.completion_details(reader),
                _ => reader.skip().map(drop),
            }
        })?;
        Ok(Some(usage))
    }

    /// Reads the value of a response's `usage`, whose figures have names of their own; anything but an object is none.
    pub(crate) fn read_responses(reader: &mut Reader<'_>) -> Result<Option<Self>, Fault> {
        if reader.kind()? != Kind::Object {
            reader.skip()?;
            return Ok(None);
        }
        let mut usage = Self::default();
        reader.object::<Fault>(|reader, key| match key.raw() {
            "input_tokens" => set(&mut usage.prompt, reader),
            "output_tokens" => set(&mut usage.completion, reader),
            "total_tokens" => set(&mut usage.total, reader),
            "input_tokens_details" => usage.prompt_details(reader),
            "output_tokens_details" => usage.completion_details(reader),
            _ => reader.skip().map(drop),
        })?;
        Ok(Some(usage))
    }

    fn prompt_details(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| match key.raw() {
            "cached_tokens" => set(&mut self.cached, reader),
            "cache_write_tokens" => set(&mut self.cache_write, reader),
            "audio_tokens" => set(&mut self.audio_input, reader),
            "image_tokens" => set(&mut self.image_input, reader),
            _ => reader.skip().map(drop),
        })
    }

    fn completion_details(&mut self, reader: &mut Reader<'_>) -> Result<(), Fault> {
        if reader.kind()? != Kind::Object {
            return reader.skip().map(drop);
        }
        reader.object::<Fault>(|reader, key| match key.raw() {
            "reasoning_tokens" => set(&mut self.reasoning, reader),
            "audio_tokens" => set(&mut self.audio_output, reader),
            _ => reader.skip().map(drop),
        })
    }

    /// Takes over every meaningful figure of a later report: servers send usage in fragments, as zeros first, or
    /// cumulatively in every chunk.
    pub(crate) fn merge(&mut self, later: &Self) {
        let fields = [
            (&mut self.prompt, later.prompt),
            (&mut self.completion, later.completion),
            (&mut self.total, later.total),
            (&mut self.cached, later.cached),
            (&mut self.cache_write, later.cache_write),
            (&mut self.audio_input, later.audio_input),
            (&mut self.image_input, later.image_input),
            (&mut self.audio_output, later.audio_output),
            (&mut self.reasoning, later.reasoning),
        ];
        for (field, later) in fields {
            keep_meaningful(field, later);
        }
    }

    fn holds_a_negative(&self) -> bool {
        let Self {
            prompt,
            completion,
            total,
            cached,
            cache_write,
            audio_input,
            image_input,
            audio_output,
            reasoning,
        } = *self;
        let all = [
            prompt,
            completion,
            total,
            cached,
            cache_write,
            audio_input,
            image_input,
            audio_output,
            reasoning,
        ];
        all.contains(&Some(NEGATIVE))
    }

    /// Returns the usage in disjoint classes, or `None` if nothing was counted: every prompt has tokens.
    ///
    /// Cached, written and audio input are part of `prompt_tokens`; more of them than the prompt has is kept as reported
    /// and marked inconsistent, so that nothing is free. Image tokens may themselves be cached, so they take what is left.
    /// Reasoning and audio output are part of `completion_tokens`, except where only their sum explains `total_tokens`
    /// (xAI).
    pub(crate) fn classes(&self) -> Option<Usage> {
        if self.holds_a_negative() {
            return Some(Usage { implausible: true, ..Usage::default() });
        }
        let total = self.total.unwrap_or(0);
        let (prompt, completion) = match (self.prompt, self.completion) {
            (Some(prompt), Some(completion)) => (prompt, completion),
            (Some(prompt), None) => (prompt, total.saturating_sub(prompt)),
            (None, completion) => {
                let completion = completion.unwrap_or(0);
                (total.saturating_sub(completion), completion)
            }
        };
        if prompt == 0 && completion == 0 {
            return None;
        }
        let cached = self.cached.unwrap_or(0);
        let written = self.cache_write.unwrap_or(0);
        let audio_input = self.audio_input.unwrap_or(0);
        let taken = cached.saturating_add(written).saturating_add(audio_input);
        let rest = prompt.saturating_sub(taken);
        let image_input = self.image_input.unwrap_or(0).min(rest);

        let reasoning = self.reasoning.unwrap_or(0);
        let audio_output = self.audio_output.unwrap_or(0);
        let shown = prompt.saturating_add(completion);
        let apart = reasoning > 0 && self.total == Some(shown.saturating_add(reasoning));
        let inside = if apart { 0 } else { reasoning };
        let contradicts = taken > prompt
            || inside.saturating_add(audio_output) > completion
            || self.total.is_some_and(|total| total != shown && !apart);
        // What is billed is the completion's total, so its parts give way.
        let audio_output = audio_output.min(completion);
        let inside = inside.min(completion - audio_output);
        Some(Usage {
            input: TokenCount::new(rest - image_input),
            cached_input: TokenCount::new(cached),
            cache_write: TokenCount::new(written),
            output: TokenCount::new(completion - audio_output - inside),
            reasoning: TokenCount::new(if apart { reasoning } else { inside }),
            audio_input: TokenCount::new(audio_input),
            audio_output: TokenCount::new(audio_output),
            image_input: TokenCount::new(image_input),
            inconsistent: contradicts,
            ..Usage::default()
        })
    }
}

/// Stands for a count below zero: no whole number that a server can mean.
const NEGATIVE: u64 = u64::MAX;

/// Reads a count; what is no whole number is no report.
fn set(field: &mut Option<u64>, reader: &mut Reader<'_>) -> Result<(), Fault> {
    if reader.kind()? == Kind::Number {
        let number = reader.number()?;
        let negative = number.starts_with('-') && number.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
        keep_meaningful(field, if negative { Some(NEGATIVE) } else { whole(number) });
    } else {
        reader.skip()?;
    }
    Ok(())
}

fn keep_meaningful(field: &mut Option<u64>, later: Option<u64>) {
    if field.is_none() || later.is_some_and(|later| later > 0) {
        *field = later.or(*field);
    }
}
