//! What a checked policy does, for people and for programs: who serves what, what changes, and why.

mod changes;
mod explain;
mod question;
mod replay;
mod served;

use gw_routing::{
    RoutingError,
    analysis::{Outcome, Witness},
};
use serde_json::{Value, json};

pub use self::{
    changes::PolicyChanges,
    explain::Explained,
    question::{BodyFacts, Question},
    replay::{Replay, ReplaySummary, ReplayedRecord},
    served::ServedTable,
};
use crate::{
    Checked, Diagnostics, nearest, parts,
    reader::{Faults, quotable},
};

impl Checked {
    /// Brings faults of names back to their places. A checked configuration has none.
    fn diagnose(&self, errors: &[RoutingError]) -> Diagnostics {
        let faults = Faults::default();
        errors.iter().for_each(|error| parts::report(error, &self.config, &faults));
        self.config.diagnose(faults.into_list())
    }
}

/// Says that a name is not known, and which are.
fn unknown<'a>(what: &str, text: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    format!("unknown {what} `{}`; {}", quotable(text), nearest::remedy(text, known))
}

/// Names each of some things as text.
fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn outcome_json(outcome: &Outcome) -> Value {
    let refused = |why: &str| json!({"served": false, "refused": why});
    match outcome {
        Outcome::Served { route, chain } => {
            json!({"served": true, "route": route.as_str(), "chain": texts(chain)})
        }
        Outcome::Unserved => refused("no_deployment"),
        Outcome::NoRoute => refused("no_route"),
        Outcome::UnknownModel => refused("unknown_model"),
        Outcome::NoTenant => refused("unknown_tenant"),
        Outcome::Refused(place) => json!({"served": false, "refused": "declared", "declaration": place}),
        Outcome::BelowDefault => refused("below_default_classification"),
    }
}

pub(crate) fn witness_json(witness: &Witness) -> Value {
    let needs: Vec<&str> = witness.needs.iter().map(|need| need.as_str()).collect();
    json!({
        "model": witness.model.as_str(),
        "tenant": witness.tenant.as_str(),
        "key": witness.key.as_ref().map(ToString::to_string),
        "task_class": witness.task_class.as_ref().map(ToString::to_string),
        "classification": witness.classification.as_str(),
        "residency": texts(&witness.residency),
        "needs": needs,
        "input_tokens": witness.input_tokens_estimate.max(witness.input_tokens_at_least).get(),
        "output_tokens": witness.output_tokens.map(gw_types::TokenCount::get),
        "metadata": witness.metadata.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "share_key": witness.share_key,
    })
}

/// Says that there are more classes than are looked at.
fn too_many(f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    write!(f, "more than {} classes of requests, too many to show", gw_routing::analysis::CLASSES_MAX)
}

#[cfg(test)]
mod tests;
