//! `match` and `[[refused]]`: which requests are meant.

use gw_routing::TenantGroup;
use gw_types::{Capability, CapabilitySet, Classification, Residency, TaskClass, TenantId, TokenCount};
use serde::Serialize;

use super::{CLASSIFICATIONS, Names};
use crate::{
    reader::{Node, Section},
    source::Located,
};

/// `match`; a condition that is left out, or an empty list, holds for anything.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct MatchEntry {
    pub(crate) models: Vec<Located<String>>,
    pub(crate) task_classes: Vec<TaskClass>,
    pub(crate) classifications: Vec<Classification>,
    pub(crate) classification_at_most: Option<Classification>,
    pub(crate) tenants: Vec<Located<TenantId>>,
    pub(crate) tenant_groups: Vec<Located<TenantGroup>>,
    pub(crate) residency: Vec<Located<Residency>>,
    pub(crate) needs: CapabilitySet,
    pub(crate) input_tokens_at_least: Option<TokenCount>,
    pub(crate) input_tokens_at_most: Option<TokenCount>,
    pub(crate) streaming: Option<bool>,
    /// How many of a hundred keys; the key is the end user's label, else the request's id.
    pub(crate) share_percent: Option<u8>,
}

/// The largest number of tokens that a condition names.
const TOKENS_MAX: i64 = 1_000_000_000;

/// Reads the `match` of a route.
pub(super) fn read(node: &Node<'_>, names: &Names) -> Option<MatchEntry> {
    let mut section = node.section()?;
    let share = section
        .optional("share_percent")
        .and_then(|node| node.whole(0..=100))
        .and_then(|percent| u8::try_from(percent).ok());
    let entry = MatchEntry { share_percent: share, ..conditions(&mut section, names) };
    section.finish();
    Some(entry)
}

/// Reads every `[[refused]]`.
pub(super) fn read_refused(root: &mut Section<'_>, names: &Names) -> Vec<Located<MatchEntry>> {
    let nodes = root.optional("refused").and_then(|node| node.filled_list()).unwrap_or_default();
    nodes.iter().filter_map(|node| Some(Located::new(refused(node, names)?, node.span()))).collect()
}

fn refused(node: &Node<'_>, names: &Names) -> Option<MatchEntry> {
    let mut section = node.section()?;
    if section.entries().next().is_none() {
        node.fault(
            format!("`{}` declares every request refused", node.path()),
            "write at least one condition",
        );
    }
    section.refuse("share_percent", "divides what is refused");
    let entry = conditions(&mut section, names);
    section.finish();
    Some(entry)
}

fn conditions(section: &mut Section<'_>, names: &Names) -> MatchEntry {
    let model = |node: &Node<'_>| Some(Located::new(node.text()?.to_owned(), node.span()));
    let words = Capability::ALL.map(|capability| (capability.as_str(), capability));
    let mut list =
        |key: &'static str| section.optional(key).and_then(|node| node.filled_list()).unwrap_or_default();
    let (models, tenants) = (list("models"), list("tenants"));
    let (groups, residency) = (list("tenant_groups"), list("residency"));
    let (least, most) = sizes(section);
    section.unavailable("metadata");
    MatchEntry {
        models: models.iter().filter_map(model).collect(),
        task_classes: section.names("task_classes"),
        classifications: section
            .choices("classifications", "classification", &CLASSIFICATIONS)
            .unwrap_or_default(),
        classification_at_most: section
            .optional("classification_at_most")
            .and_then(|node| node.choice("classification", &CLASSIFICATIONS)),
        tenants: tenants.iter().filter_map(|node| node.reference("tenant", &names.tenants)).collect(),
        tenant_groups: groups
            .iter()
            .filter_map(|node| node.reference("tenant group", &names.tenant_groups))
            .collect(),
        residency: residency
            .iter()
            .filter_map(|node| node.reference("residency", &names.residency))
            .collect(),
        needs: section
            .choices("needs", "capability", &words)
            .map_or(CapabilitySet::EMPTY, |needs| needs.into_iter().collect()),
        input_tokens_at_least: least,
        input_tokens_at_most: most,
        streaming: section.optional("streaming").and_then(|node| node.flag()),
        share_percent: None,
    }
}

fn sizes(section: &mut Section<'_>) -> (Option<TokenCount>, Option<TokenCount>) {
    let least = section.count("input_tokens_at_least", 0..=TOKENS_MAX);
    let node = section.optional("input_tokens_at_most");
    let most = node.as_ref().and_then(|node| u64::try_from(node.whole(0..=TOKENS_MAX)?).ok());
    if let (Some(least), Some(most), Some(node)) = (least, most, node)
        && least > most
    {
        node.fault(
            format!("`{}` is below `input_tokens_at_least`: `{most}`", node.path()),
            format!("write at least {least}"),
        );
    }
    (least.map(TokenCount::new), most.map(TokenCount::new))
}
