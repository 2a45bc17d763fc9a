//! The model catalogue: facts about well-known models, as of a date.

mod differences;
mod listing;

use std::{collections::BTreeMap, sync::LazyLock};

use gw_types::{Capability, CapabilitySet, Price, PriceTier, TierScope, TokenCount};
use serde::Deserialize;

pub(crate) use self::differences::{Difference, Written, differences};
pub use self::listing::{CatalogueFilter, ListedModel};

/// The facts, as they are written.
const TEXT: &str = include_str!("catalogue/models.toml");

/// The one version of the file's form.
const VERSION: u32 = 1;

/// Facts about well-known models, by provider and by the name that the provider knows them by.
///
/// A deployment that names one may leave these facts out; where it says them, it wins. Prices are list prices of the
/// standard tier. Immutable and part of the program.
#[derive(Debug)]
pub struct Catalogue {
    as_of: String,
    providers: BTreeMap<String, BTreeMap<String, KnownModel>>,
}

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownModel {
    pub(crate) window: TokenCount,
    pub(crate) output: Option<TokenCount>,
    pub(crate) can: CapabilitySet,
    pub(crate) price: Option<Price>,
}

/// Capabilities that the catalogue says nothing about.
pub(crate) const NOT_COVERED: [Capability; 3] = [Capability::Seed, Capability::Logprobs, Capability::Audio];

impl Catalogue {
    /// Returns the catalogue of this version of the program. It is read once, in about a millisecond.
    pub fn built_in() -> &'static Self {
        static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
            // The text is part of the program, and a test reads it.
            Catalogue::read(TEXT).expect("the built-in catalogue reads")
        });
        &CATALOGUE
    }

    fn read(text: &str) -> Result<Self, String> {
        let file: CatalogueFile = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.version != VERSION {
            return Err(format!("version {} is not known", file.version));
        }
        let mut providers = BTreeMap::new();
        for (provider, models) in file.providers {
            let known = models.into_iter().map(|(name, entry)| Ok((name, entry.known()?)));
            providers.insert(provider, known.collect::<Result<_, String>>()?);
        }
        Ok(Self { as_of: file.as_of, providers })
    }

    /// Returns the date that the facts are as of, as `YYYY-MM-DD`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Returns the version, as records and reports name it: form and date.
    pub fn version(&self) -> String {
        format!("{VERSION}/{}", self.as_of)
    }

    /// Returns the names of every provider's models as `provider/model`, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let models = self
            .providers
            .iter()
            .flat_map(|(provider, models)| models.keys().map(move |model| format!("{provider}/{model}")));
        models.collect()
    }

    /// Returns what is known of a model of a provider.
    pub(crate) fn find(&self, provider: &str, model: &str) -> Option<&KnownModel> {
        self.providers.get(provider)?.get(model)
    }

    /// Returns what is known of `provider/model`.
    pub(crate) fn find_named(&self, name: &str) -> Option<&KnownModel> {
        let (provider, model) = name.split_once('/')?;
        self.find(provider, model)
    }

    /// Returns what is known of the model that a deployment names, by the kind of its provider: the names of a
    /// compatible server say nothing about who made the model, so none of them is known.
    pub(crate) fn find_of_kind(&self, kind: &str, model: &str) -> Option<(String, &KnownModel)> {
        let mut places = tables_of_kind(kind).iter();
        places.find_map(|place| Some((format!("{place}/{model}"), self.find(place, model)?)))
    }

    /// Returns the names of the models that the provider's kind has.
    pub(crate) fn names_of_kind(&self, kind: &str) -> Vec<&str> {
        let tables = tables_of_kind(kind).iter().filter_map(|place| self.providers.get(*place));
        tables.flat_map(|models| models.keys().map(String::as_str)).collect()
    }
}

/// The tables in which the models of a provider's kind, or of a vendor, stand; the nearest first.
fn tables_of_kind(kind: &str) -> &'static [&'static str] {
    match kind {
        "openai" => &["openai"],
        "azure-openai" => &["azure", "openai"],
        "anthropic" => &["anthropic"],
        "gemini" => &["gemini"],
        "vertex" => &["vertex"],
        "bedrock" => &["bedrock"],
        "mistral" => &["mistral"],
        "cohere" => &["cohere"],
        "deepseek" => &["deepseek"],
        "groq" => &["groq"],
        "cerebras" => &["cerebras"],
        "together" => &["together"],
        "fireworks" => &["fireworks"],
        "perplexity" => &["perplexity"],
        "xai" => &["xai"],
        "voyage" => &["voyage"],
        _ => &[],
    }
}

// === the form of the file ===

#[derive(Debug, Deserialize)]
struct CatalogueFile {
    version: u32,
    as_of: String,
    #[serde(flatten)]
    providers: BTreeMap<String, BTreeMap<String, ModelLine>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelLine {
    window: u64,
    output: Option<u64>,
    can: String,
    price: Option<Price>,
    long: Option<LongLine>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongLine {
    above: u64,
    input: u64,
    output: u64,
    cached_input: Option<u64>,
    cache_write: Option<u64>,
    cache_write_long: Option<u64>,
    reasoning: Option<u64>,
}

impl ModelLine {
    fn known(self) -> Result<KnownModel, String> {
        let can = self.can.split(' ').map(|word| word.parse::<Capability>().map_err(|_| word.to_owned()));
        let tier = self.long.map(LongLine::tier);
        Ok(KnownModel {
            window: TokenCount::new(self.window),
            output: self.output.map(TokenCount::new),
            can: can.collect::<Result<Vec<_>, _>>()?.into_iter().collect(),
            price: self.price.map(|price| Price { tier, ..price }),
        })
    }
}

impl LongLine {
    fn tier(self) -> PriceTier {
        PriceTier {
            threshold: TokenCount::new(self.above),
            inclusive: false,
            scope: TierScope::WholeRequest,
            input: self.input,
            output: self.output,
            cached_input: self.cached_input,
            cache_write: self.cache_write,
            cache_write_long: self.cache_write_long,
            reasoning: self.reasoning,
        }
    }
}

#[cfg(test)]
mod tests;
