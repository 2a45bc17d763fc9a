//! What is worth knowing of a configuration that is sound: where it says something else than the catalogue, and what
//! it limits for nobody.

use crate::{
    catalogue::Catalogue,
    config::Config,
    diagnostics::{Diagnostic, Severity},
    source::Span,
};

/// Returns every notice as a warning.
pub(super) fn notices(config: &Config) -> Vec<Diagnostic> {
    let mut found = differences(config);
    found.extend(organisations(config));
    found
}

/// A deployment's facts win over the catalogue's; that they differ may be a mistake all the same.
fn differences(config: &Config) -> Vec<Diagnostic> {
    let as_of = Catalogue::built_in().as_of();
    let mut found = Vec::new();
    for (name, entry) in &config.file.deployments {
        let model = entry.value.catalogue.as_deref().unwrap_or_default();
        for difference in &entry.value.differences {
            let setting = difference.setting;
            let path = format!("deployments.{name}.{setting}");
            let message = format!("`{path}` {}", difference.said);
            let expected = format!(
                "remove `{setting}` to take what `{model}` has as of {as_of}, or `catalogue = \"none\"` if it is \
                 another model"
            );
            found.push(warning(config, difference.span, &path, message, expected, "differs_from_catalogue"));
        }
    }
    found
}

/// An organisation above nobody limits nothing.
fn organisations(config: &Config) -> Vec<Diagnostic> {
    let file = &config.file;
    let is_named = |id: &gw_types::TenantId| {
        let of_tenants = file.tenants.values().filter_map(|tenant| tenant.value.organisation.as_ref());
        let of_others = file.organisations.values().filter_map(|other| other.value.parent.as_ref());
        of_tenants.chain(of_others).any(|named| named.value == *id)
    };
    let unnamed = file.organisations.iter().filter(|(id, _)| !is_named(id));
    unnamed
        .map(|(id, entry)| {
            let message = format!("no tenant and no organisation belongs to organisation `{id}`");
            let expected = format!("write `organisation = \"{id}\"` in a tenant, or remove it");
            let path = format!("organisations.{id}");
            warning(config, entry.span, &path, message, expected, "organisation_without_tenants")
        })
        .collect()
}

/// Returns what was found of a key in the ledger as a warning.
pub(super) fn of_key(note: &Diagnostic) -> Diagnostic {
    note.clone().found_by(Severity::Warning, "stored_key")
}

fn warning(
    config: &Config,
    span: Span,
    path: &str,
    message: String,
    expected: String,
    code: &'static str,
) -> Diagnostic {
    Diagnostic::at(&config.source, span, path, message, expected).found_by(Severity::Warning, code)
}
