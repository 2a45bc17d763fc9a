//! `[organisations.X]`, `[models.X]` and `[limits]`: limits beside and above those of tenants.

use std::collections::BTreeMap;

use gw_types::{ModelName, TenantId};
use serde::Serialize;

use super::{
    Names,
    limits::{self, CONCURRENCY_MAX, ScopeEntry},
    named,
};
use crate::{
    reader::{Node, Section},
    source::Located,
};

/// `[organisations.X]`: what its tenants may use together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OrganisationEntry {
    pub(crate) parent: Option<Located<TenantId>>,
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
}

/// `[limits]`: what everything together may use.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct WholeEntry {
    /// Calls at once that tenants share and reserve from; absent: `server.max_concurrency`.
    pub(crate) pool_capacity: Option<Located<u32>>,
    #[serde(flatten)]
    pub(crate) limits: ScopeEntry,
}

/// Reads every organisation.
pub(super) fn organisations(
    root: &mut Section<'_>,
    names: &Names,
) -> BTreeMap<TenantId, Located<OrganisationEntry>> {
    named(root.optional("organisations"), |node, _| organisation(&node, names))
}

fn organisation(node: &Node<'_>, names: &Names) -> Option<OrganisationEntry> {
    let mut section = node.section()?;
    let parent = section
        .optional("parent")
        .and_then(|node| node.reference::<TenantId>("organisation", &names.organisations));
    let zone = limits::zone(&mut section);
    let limits = limits::read(&mut section, &zone);
    section.finish();
    Some(OrganisationEntry { parent, limits })
}

/// Reads every model.
pub(super) fn models(root: &mut Section<'_>) -> BTreeMap<ModelName, Located<ScopeEntry>> {
    named(root.optional("models"), |node, _| {
        let mut section = node.section()?;
        let zone = limits::zone(&mut section);
        let entry = limits::read(&mut section, &zone);
        section.finish();
        Some(entry)
    })
}

/// Reads the limits of the whole.
pub(super) fn whole(root: &mut Section<'_>) -> WholeEntry {
    let Some(mut section) = root.optional("limits").and_then(|node| node.section()) else {
        return WholeEntry::default();
    };
    let pool_capacity = section.optional("pool_capacity").and_then(|node| {
        let slots = u32::try_from(node.whole(1..=i64::from(CONCURRENCY_MAX))?).ok()?;
        Some(Located::new(slots, node.span()))
    });
    let zone = limits::zone(&mut section);
    let limits = limits::read(&mut section, &zone);
    section.finish();
    WholeEntry { pool_capacity, limits }
}
