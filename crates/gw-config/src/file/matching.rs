//! `match` and `[[refused]]`: which requests are meant.

use std::collections::BTreeMap;

use gw_routing::{Router, TenantGroup};
use gw_types::{Capability, CapabilitySet, Classification, Residency, TaskClass, TenantId, TokenCount};
use serde::Serialize;

use super::{CLASSIFICATIONS, Names};
use crate::{
    reader::{Node, Section, quotable},
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
    /// By key: the values, one of which the request must have.
    pub(crate) metadata: BTreeMap<String, Vec<String>>,
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
    let metadata = section.optional("metadata").map(|node| metadata(&node)).unwrap_or_default();
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
        metadata,
        share_percent: None,
    }
}

/// Reads `metadata = { KEY = ["VALUE"] }`; one value may stand without a list.
fn metadata(node: &Node<'_>) -> BTreeMap<String, Vec<String>> {
    let Some(section) = node.section() else { return BTreeMap::new() };
    let mut conditions = BTreeMap::new();
    for (key, node) in section.entries() {
        let is_list = node.is_list();
        let items = if is_list { node.filled_list().unwrap_or_default() } else { vec![node.clone()] };
        let values: Vec<String> = items.iter().filter_map(metadata_text).collect();
        if key.value.is_empty() || key.value.len() > Router::METADATA_BYTES_MAX {
            let message = format!("`{}` is no key of metadata", quotable(key.value));
            let expected = format!("write 1 to {} bytes", Router::METADATA_BYTES_MAX);
            section.faults().add(key.span, node.path(), message, expected);
        } else if !values.is_empty() {
            conditions.insert(key.value.to_owned(), values);
        }
    }
    if conditions.is_empty() && section.entries().next().is_none() {
        node.fault(format!("`{}` is empty", node.path()), "write at least one key");
    }
    conditions
}

fn metadata_text(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if text.len() > Router::METADATA_BYTES_MAX {
        let message = format!("`{}` is too long for a value of metadata", node.path());
        node.fault(message, format!("write at most {} bytes", Router::METADATA_BYTES_MAX));
        return None;
    }
    Some(text.to_owned())
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
