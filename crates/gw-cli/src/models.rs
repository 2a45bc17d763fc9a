//! `gw models`.

use gw_config::{Catalogue, CatalogueFilter};

use crate::{
    arguments::{Format, ModelsOptions},
    output,
};

/// Lists the catalogue.
pub(crate) fn run(options: &ModelsOptions) -> Result<(), String> {
    let catalogue = Catalogue::built_in();
    let providers = catalogue.providers();
    if let Some(provider) = options.provider.as_deref().filter(|wanted| !providers.contains(wanted)) {
        return Err(format!("error: unknown provider `{provider}`; known: {}", providers.join(", ")));
    }
    let filter = CatalogueFilter { provider: options.provider.clone(), name: options.name.clone() };
    let models = catalogue.list(&filter);
    match options.format {
        Format::Text => output::line(catalogue.table(&models)),
        Format::Json => output::line(catalogue.to_json(&models)),
    }
}
