//! `gw models`: the catalogue, for people and for programs.

use std::fmt;

use gw_types::{Capability, Price};
use serde_json::{Value, json};

use super::{Catalogue, KnownModel};

/// Which models are listed. By default all.
#[derive(Clone, Debug, Default)]
pub struct CatalogueFilter {
    /// Only models of this provider, by the name of its table; `None`: of all.
    pub provider: Option<String>,
    /// Only models whose name holds this text; empty: all.
    pub name: String,
}

/// One model of the catalogue. `Display` is a line of the table.
#[derive(Clone, Copy, Debug)]
pub struct ListedModel<'a> {
    /// The provider's table.
    pub provider: &'a str,
    /// The name that the provider knows the model by.
    pub name: &'a str,
    model: &'a KnownModel,
}

/// What the columns of the table are called.
pub(super) const HEADER: [&str; 6] = ["model", "window", "output", "input", "output", "capabilities"];

impl Catalogue {
    /// Returns the models that a filter lets through, sorted by provider and name.
    pub fn list<'a>(&'a self, filter: &CatalogueFilter) -> Vec<ListedModel<'a>> {
        let wanted = |provider: &str| filter.provider.as_ref().is_none_or(|only| only == provider);
        let providers = self.providers.iter().filter(|(provider, _)| wanted(provider));
        let models = providers.flat_map(|(provider, models)| {
            models.iter().map(move |(name, model)| ListedModel { provider, name, model })
        });
        models.filter(|listed| listed.name.contains(&filter.name)).collect()
    }

    /// Returns the names of the providers, sorted.
    pub fn providers(&self) -> Vec<&str> {
        self.providers.keys().map(String::as_str).collect()
    }

    /// Returns the table for people; prices in USD per million tokens.
    pub fn table(&self, models: &[ListedModel<'_>]) -> String {
        let widest = models.iter().map(|one| one.provider.len() + 1 + one.name.len()).max().unwrap_or(0);
        let width = widest.max(HEADER[0].len());
        let [model, window, output, price_in, price_out, can] = HEADER;
        let mut text =
            format!("{model:width$}  {window:>10} {output:>10} {price_in:>9} {price_out:>9}  {can}\n");
        for listed in models {
            let name = format!("{}/{}", listed.provider, listed.name);
            text.push_str(&format!("{name:width$}  {listed}\n"));
        }
        let count = models.len();
        text + &format!(
            "{count} models as of {}; prices in USD per million tokens, `+`: more for long prompts",
            self.as_of
        )
    }

    /// Returns the models for programs: `{"version", "as_of", "models": [{"provider", "model", "context_window",
    /// "max_output_tokens", "capabilities", "price"}]}`; prices as in `gw.toml`.
    pub fn to_json(&self, models: &[ListedModel<'_>]) -> String {
        let models: Vec<Value> = models.iter().map(ListedModel::as_json).collect();
        json!({"version": self.version(), "as_of": self.as_of, "models": models}).to_string()
    }
}

impl ListedModel<'_> {
    fn as_json(&self) -> Value {
        let KnownModel { window, output, can, price } = self.model;
        let can: Vec<&str> = can.iter().map(Capability::as_str).collect();
        json!({
            "provider": self.provider,
            "model": self.name,
            "context_window": window.get(),
            "max_output_tokens": output.map(gw_types::TokenCount::get),
            "capabilities": can,
            "price": price,
        })
    }
}

impl fmt::Display for ListedModel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KnownModel { window, output, can, price } = self.model;
        let output = output.map_or_else(|| "-".to_owned(), |output| output.to_string());
        let usd =
            |of: fn(&Price) -> u64| price.as_ref().map_or_else(|| "-".to_owned(), |price| usd(of(price)));
        let can: Vec<&str> = can.iter().map(Capability::as_str).collect();
        let longer = price.as_ref().and_then(|price| price.tier.as_ref()).map_or(" ", |_| "+");
        write!(
            f,
            "{window:>10} {output:>10} {:>9} {:>9}{longer} {}",
            usd(|price| price.input),
            usd(|price| price.output),
            can.join(" ")
        )
    }
}

/// Writes micro-USD as USD, with at least two decimals and no more than it needs.
fn usd(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let kept = text.trim_end_matches('0').len();
    let two_decimals = text.find('.').map_or(text.len(), |dot| dot + 3);
    text.get(..kept.max(two_decimals)).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::usd;

    #[test]
    fn dollars_are_exact() {
        for (micros, expected) in
            [(2_000_000, "2.00"), (125_000, "0.125"), (0, "0.00"), (1_718_750, "1.71875"), (100_000, "0.10")]
        {
            assert_eq!(usd(micros), expected);
        }
    }
}
