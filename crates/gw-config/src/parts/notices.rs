//! What is worth knowing of a configuration that is sound: where it says something else than the catalogue, what it
//! limits for nobody, and where two names were probably meant to be one.

use gw_types::{DeploymentName, Region};

use crate::{
    catalogue::Catalogue,
    config::Config,
    diagnostics::{Diagnostic, Severity},
    file::{DeploymentEntry, RouteEntry},
    nearest,
    source::{Located, Span},
};

/// Returns every notice as a warning.
pub(super) fn notices(config: &Config) -> Vec<Diagnostic> {
    let mut found = differences(config);
    found.extend(organisations(config));
    found.extend(regions(config));
    found.extend(families(config));
    found
}

/// Two names of models say nothing about whether one may stand in for the other; so where nobody says it, a chain is not
/// held to one family, and whoever believes that it is should know.
fn families(config: &Config) -> Vec<Diagnostic> {
    let open = |route: &&Located<RouteEntry>| route.value.allow_fallback && !route.value.allow_other_models;
    config.file.routes.iter().filter(open).filter_map(|route| family_unknown(config, &route.value)).collect()
}

fn family_unknown(config: &Config, route: &RouteEntry) -> Option<Diagnostic> {
    let entry = |name: &DeploymentName| config.file.deployments.get(name).map(|entry| &entry.value);
    let family = |entry: &DeploymentEntry| entry.family.clone().unwrap_or_else(|| entry.model.clone());
    let mut chain = route.deployments.iter().enumerate();
    let (_, first) = chain.next()?;
    let known = entry(&first.value)?;
    let (at, other, unlike) = chain.find_map(|(at, name)| {
        let other = entry(&name.value)?;
        let is_unsaid = known.family.is_none() || other.family.is_none();
        (is_unsaid && family(known) != family(other)).then_some((at, name, other))
    })?;
    let (name, first) = (&route.name, &first.value);
    let message = format!(
        "nobody says whether `{}` (`{}`) is of the family of `{first}` (`{}`), so route `{name}` may answer with another \
         model",
        other.value, unlike.model, known.model
    );
    let expected = format!("write a `family` for both, or `allow_other_models = true` in route `{name}`");
    let path = format!("routes[{}].deployments[{at}]", route.index);
    Some(warning(config, other.span, &path, message, expected, "family_unknown"))
}

/// A region is any name, so a misspelt one is no error; but where it stands on one side only, of deployments or of
/// groups, and is one letter from one of the other side, a deployment is outside a group that it was meant for.
fn regions(config: &Config) -> Vec<Diagnostic> {
    let file = &config.file;
    let is_used =
        |region: &Region| file.deployments.values().any(|entry| entry.value.region.value == *region);
    let is_grouped = |region: &Region| file.residency.values().any(|group| group.value.contains(region));
    let mut found = Vec::new();
    for (name, deployment) in &file.deployments {
        let Located { value: region, span } = &deployment.value.region;
        for (group, regions) in file.residency.iter().filter(|(_, regions)| !regions.value.contains(region)) {
            let near =
                regions.value.iter().filter(|other| nearest::is_misspelt(region.as_str(), other.as_str()));
            for other in near.filter(|other| !is_grouped(region) || !is_used(other)) {
                let path = format!("deployments.{name}.region");
                let message = format!(
                    "region `{region}` of `{name}` is one letter from `{other}`, a region of `{group}`, and not in that \
                     group"
                );
                let expected =
                    format!("write the same name in both, or list `{region}` in `[residency]` beside it");
                found.push(warning(config, *span, &path, message, expected, "region_misspelt"));
            }
        }
    }
    found
}

/// A deployment's facts win over the catalogue's; that they differ may be a mistake all the same.
fn differences(config: &Config) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (name, entry) in &config.file.deployments {
        let model = entry.value.catalogue.as_deref().unwrap_or_default();
        for difference in &entry.value.differences {
            let setting = difference.setting;
            let as_of = Catalogue::built_in().as_of();
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
