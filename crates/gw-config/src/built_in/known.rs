//! The providers whose keys stand in the environment under names of their own, and the models that each of them serves.

use gw_dialects::vendors::Preset;

use crate::variables::{ANTHROPIC_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, OPENAI_API_KEY};

/// A provider that a key in the environment opens.
pub(super) struct Known {
    /// Its name, and that of its deployment and route.
    name: &'static str,
    kind: Kind,
    /// Its models, by the beginnings of their names.
    models: &'static [&'static str],
    capabilities: &'static [&'static str],
}

enum Kind {
    /// A kind of its own; the first of the variables that is set holds the key.
    Own(&'static str, &'static [&'static str]),
    /// A known server that speaks OpenAI's format, under the vendor's name.
    Vendor,
}

/// What nearly every model of today can do.
const USUAL: &[&str] =
    &["chat", "streaming", "tools", "parallel_tools", "json_schema", "vision", "reasoning"];

/// Vendors whose models carry names that no other's do; the others need a file that says which models they are to serve.
pub(super) const KNOWN: [Known; 8] = [
    Known {
        name: "openai",
        kind: Kind::Own("openai", &[OPENAI_API_KEY]),
        models: &["gpt-*", "chatgpt-*", "o1*", "o3*", "o4*", "text-embedding-*"],
        capabilities: &[
            "chat",
            "streaming",
            "tools",
            "parallel_tools",
            "json_schema",
            "vision",
            "audio",
            "documents",
            "reasoning",
            "logprobs",
            "seed",
            "embeddings",
        ],
    },
    Known {
        name: "anthropic",
        kind: Kind::Own("anthropic", &[ANTHROPIC_API_KEY]),
        models: &["claude-*"],
        capabilities: &[
            "chat",
            "streaming",
            "tools",
            "parallel_tools",
            "json_schema",
            "vision",
            "documents",
            "reasoning",
        ],
    },
    Known {
        name: "gemini",
        kind: Kind::Own("gemini", &[GEMINI_API_KEY, GOOGLE_API_KEY]),
        models: &["gemini-*"],
        capabilities: &[
            "chat",
            "streaming",
            "tools",
            "parallel_tools",
            "json_schema",
            "vision",
            "audio",
            "documents",
            "reasoning",
            "logprobs",
            "seed",
            "embeddings",
        ],
    },
    Known {
        name: "mistral",
        kind: Kind::Vendor,
        models: &["mistral-*", "ministral-*", "magistral-*", "codestral-*", "devstral-*", "pixtral-*"],
        capabilities: &[
            "chat",
            "streaming",
            "tools",
            "parallel_tools",
            "json_schema",
            "vision",
            "reasoning",
            "embeddings",
        ],
    },
    Known { name: "deepseek", kind: Kind::Vendor, models: &["deepseek-*"], capabilities: USUAL },
    Known { name: "xai", kind: Kind::Vendor, models: &["grok-*"], capabilities: USUAL },
    Known {
        name: "cohere",
        kind: Kind::Vendor,
        models: &["command-*", "embed-*"],
        capabilities: &["chat", "streaming", "tools", "parallel_tools", "json_schema", "seed", "embeddings"],
    },
    Known {
        name: "perplexity",
        kind: Kind::Vendor,
        models: &["sonar*"],
        capabilities: &["chat", "streaming", "json_schema", "vision", "reasoning"],
    },
];

impl Known {
    /// Returns provider, deployment and route as they would stand in a file; `None` if no key is set.
    ///
    /// The provider gets the name that was asked for. No price is known for a model that is not named, so the deployment
    /// says so; and no data above `internal` leaves without a file that says that it may.
    pub(super) fn text(&self, is_set: impl Fn(&str) -> bool) -> Option<String> {
        let name = self.name;
        let (kind, variable) = match &self.kind {
            Kind::Own(kind, variables) => {
                (format!("kind = \"{kind}\""), *variables.iter().find(|variable| is_set(variable))?)
            }
            Kind::Vendor => {
                let preset = Preset::named(name).filter(|preset| is_set(preset.key_variable))?;
                (format!("kind = \"openai-compatible\"\nvendor = \"{name}\""), preset.key_variable)
            }
        };
        let list = |items: &[&str]| format!("[\"{}\"]", items.join("\", \""));
        let (models, capabilities) = (list(self.models), list(self.capabilities));
        Some(format!(
            r#"
[providers.{name}]
{kind}
api_key = {{ env = "{variable}" }}

[deployments.{name}]
provider = "{name}"
model = "*"
capabilities = {capabilities}
price = "unpriced"
attempt_timeout_ms = 300_000

[[routes]]
name = "{name}"
match = {{ models = {models} }}
deployments = ["{name}"]

[[refused]]
models = {models}
classifications = ["confidential", "restricted"]
"#
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, Kind, Preset};

    #[test]
    fn vendors_are_presets() {
        for known in KNOWN {
            let named = Preset::named(known.name).is_some();
            assert_eq!(matches!(known.kind, Kind::Vendor), named, "{}", known.name);
        }
    }
}
