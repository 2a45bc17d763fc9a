//! `routes[].cache.semantic`: when similar requests get the same answer.

use gw_cache::BuiltInEmbedder;
use gw_types::DeploymentName;
use serde::Serialize;

use super::Names;
use crate::{
    reader::{Node, Section},
    source::Located,
};

/// `semantic`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SemanticEntry {
    /// The least similarity of a hit, or of a would-be hit that a verifier decides about.
    pub(crate) threshold_milli: u32,
    pub(crate) decision: DecisionEntry,
    pub(crate) confidence_milli: u32,
    /// Who judges in the background.
    pub(crate) judge: Option<DeploymentName>,
    /// Who turns questions into vectors.
    pub(crate) embedder: EmbedderEntry,
}

/// What decides about similar requests; the shares in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionEntry {
    Threshold,
    WrongPerHitMilli(u32),
    WrongPerRequestMilli(u32),
}

/// Who turns questions into vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmbedderEntry {
    BuiltIn(BuiltInEmbedder),
    Deployment(Located<DeploymentName>),
}

/// The least similarity of a would-be hit, where a verifier decides and the route does not say.
const FLOOR_MILLI: u32 = 400;

/// The confidence of a bound on wrong answers, where the route does not say.
const CONFIDENCE_MILLI: u32 = 950;

/// What `embedder` may say, where it names none of the deployments.
const EMBEDDERS: [(&str, BuiltInEmbedder); 2] =
    [("hashing", BuiltInEmbedder::Hashing), ("words", BuiltInEmbedder::Words)];

/// Reads what decides about similar requests: a threshold, or a bound on wrong answers.
pub(super) fn read(node: &Node<'_>, names: &Names) -> Option<SemanticEntry> {
    let mut section = node.section()?;
    let embedder = section.optional("embedder").map(|node| embedder(&node, names));
    let embedder = embedder.unwrap_or(Some(EmbedderEntry::BuiltIn(BuiltInEmbedder::default())));
    let per_hit = section.optional("wrong_per_hit").map(|node| node.thousandths(1, "0.1"));
    let per_request = section.optional("wrong_per_request").map(|node| node.thousandths(1, "0.01"));
    let entry = match (per_hit, per_request) {
        (None, None) => threshold(&mut section),
        (Some(_), Some(_)) => {
            let message = format!("`{}` names two bounds on wrong answers", node.path());
            node.fault(message, "write `wrong_per_hit` or `wrong_per_request`");
            None
        }
        (Some(bound), None) => verified(&mut section, bound.map(DecisionEntry::WrongPerHitMilli), names),
        (None, Some(bound)) => verified(&mut section, bound.map(DecisionEntry::WrongPerRequestMilli), names),
    };
    section.finish();
    Some(SemanticEntry { embedder: embedder?, ..entry? })
}

/// Reads who turns questions into vectors: the name of a built-in embedder, or a deployment.
fn embedder(node: &Node<'_>, names: &Names) -> Option<EmbedderEntry> {
    if node.raw_text().is_some() {
        return node.choice("embedder", &EMBEDDERS).map(EmbedderEntry::BuiltIn);
    }
    if !node.is_table() {
        let remedy = "write `\"hashing\"`, `\"words\"` or `{ deployment = \"NAME\" }`";
        node.fault(format!("`{}` is no embedder", node.path()), remedy);
        return None;
    }
    let mut section = node.section()?;
    let deployment = section
        .required("deployment", "\"NAME\"")
        .and_then(|node| node.reference::<DeploymentName>("deployment", &names.deployments));
    section.finish();
    deployment.map(EmbedderEntry::Deployment)
}

fn threshold(section: &mut Section<'_>) -> Option<SemanticEntry> {
    let threshold = section.required("threshold", "0.92").and_then(|node| node.thousandths(1, "0.92"));
    Some(SemanticEntry {
        threshold_milli: threshold?,
        decision: DecisionEntry::Threshold,
        confidence_milli: CONFIDENCE_MILLI,
        judge: None,
        embedder: EmbedderEntry::BuiltIn(BuiltInEmbedder::default()),
    })
}

fn verified(
    section: &mut Section<'_>,
    decision: Option<DecisionEntry>,
    names: &Names,
) -> Option<SemanticEntry> {
    let confidence = section.optional("confidence").and_then(|node| node.thousandths(1, "0.95"));
    let floor = section.optional("floor").and_then(|node| node.thousandths(1, "0.4"));
    let judge = section
        .optional("judge")
        .and_then(|node| node.reference::<DeploymentName>("deployment", &names.deployments));
    Some(SemanticEntry {
        threshold_milli: floor.unwrap_or(FLOOR_MILLI),
        decision: decision?,
        confidence_milli: confidence.unwrap_or(CONFIDENCE_MILLI),
        judge: judge.map(|judge| judge.value),
        embedder: EmbedderEntry::BuiltIn(BuiltInEmbedder::default()),
    })
}
