//! Servers that speak OpenAI's formats with differences of their own: one small value each, and no code.
//!
//! A value says where a server is, how it takes a key, which of the two fields bounds the output, whether it can be asked for
//! usage, where it reports it, and which endpoints it has. Shapes of errors and figures that need no choice (usage in the finish
//! chunk, reasoning beside or inside the completion) are read from any server alike and stand in no preset.

mod presets;
mod rewrite;

use gw_types::OutputField;

pub use self::{presets::PRESETS, rewrite::rewrite_chat};

/// The differences of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name, as a configuration writes it.
    pub name: &'static str,
    /// The base of its paths, which end with `/chat/completions` and the like; no blank or slash at the end.
    pub base_url: &'static str,
    /// The environment variable in which its users are used to keep its key.
    pub key_variable: &'static str,
    /// Whether it answers nothing without a key. A key is sent as `authorization: Bearer` by all of them.
    pub needs_key: bool,
    /// Which field bounds the output.
    pub output: OutputName,
    /// Whether it takes `stream_options`; one that does not refuses it and reports usage all the same.
    pub takes_stream_options: bool,
    /// Where a stream reports its usage.
    pub usage: UsagePlace,
    /// What it has beside chat completions.
    pub endpoints: Endpoints,
    /// Fields of chat that it refuses or does not heed. They are sent all the same, so that its own refusal is seen, but for
    /// `stream_options` and the field of the output bound.
    pub gaps: &'static [&'static str],
}

/// Says which field bounds the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputName {
    /// Both are taken; this one is written where the caller names none.
    Either(OutputField),
    /// Only this one; a bound in the other one is moved.
    Only(OutputField),
}

impl OutputName {
    /// Returns the field to write where the caller names none.
    pub const fn field(self) -> OutputField {
        match self {
            Self::Either(field) | Self::Only(field) => field,
        }
    }
}

/// Says where a stream reports its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsagePlace {
    /// In a chunk of its own at the end, if it is asked for.
    LastChunk,
    /// In the chunk with the finish reason.
    FinishChunk,
    /// In both, and they must not be added.
    Both,
    /// In every chunk, cumulatively.
    EveryChunk,
}

/// What a server has beside chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// `/responses`.
    pub responses: bool,
    /// `/completions`.
    pub completions: bool,
    /// `/embeddings`.
    pub embeddings: Embeddings,
}

/// Says what of embeddings a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embeddings {
    /// None.
    None,
    /// Vectors as numbers alone; gw writes base64 where a caller asks for it.
    Floats,
    /// Vectors as numbers or as base64.
    All,
}

impl Preset {
    /// Returns the preset of a name.
    ///
    /// ```
    /// use gw_dialects::vendors::Preset;
    ///
    /// assert_eq!(Preset::named("mistral").unwrap().base_url, "https://api.mistral.ai/v1");
    /// assert_eq!(Preset::named("nobody"), None);
    /// ```
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{OutputName, PRESETS, Preset, UsagePlace};

    #[test]
    fn names_are_told_apart() {
        let names: BTreeSet<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len());
        for preset in &PRESETS {
            assert_eq!(Preset::named(preset.name), Some(preset));
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(preset.name.bytes().all(plain), "{}", preset.name);
            assert!(preset.key_variable.ends_with("_KEY") || preset.key_variable.ends_with("_TOKEN"));
        }
    }

    #[test]
    fn bases_are_addresses_without_an_end() {
        for preset in &PRESETS {
            let local = preset.base_url.starts_with("http://127.0.0.1:");
            assert!(local || preset.base_url.starts_with("https://"), "{}", preset.name);
            assert_eq!(local, !preset.needs_key, "{}", preset.name);
            assert!(!preset.base_url.ends_with('/') && !preset.base_url.contains('?'), "{}", preset.name);
        }
    }

    #[test]
    fn what_a_preset_moves_stands_among_its_gaps() {
        for preset in &PRESETS {
            let gap = |field: &str| preset.gaps.contains(&field);
            assert_eq!(gap("stream_options"), !preset.takes_stream_options, "{}", preset.name);
            let moved = matches!(preset.output, OutputName::Only(_));
            assert_eq!(gap("max_completion_tokens"), moved, "{}", preset.name);
            // What cannot be asked for must come by itself.
            assert!(preset.takes_stream_options || preset.usage != UsagePlace::LastChunk, "{}", preset.name);
        }
    }
}
