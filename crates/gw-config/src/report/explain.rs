//! One request's decision, step by step, by the code that decides in the running gateway.

use std::{collections::BTreeMap, fmt};

use gw_routing::{
    DeploymentStep, DeploymentVerdict, Explanation, Mismatch, RouteMatch, RouteOutcome, RouteStep, Router,
    Strategy,
};
use gw_types::{AccountingRecord, DeploymentName};
use serde_json::{Value, json};

use super::question::{Asked, Question};
use crate::Checked;

/// A decision. `Display` is for people.
#[derive(Clone, Debug)]
pub struct Explained {
    explanation: Explanation,
    /// The names of the deployments that may answer.
    chain: Vec<String>,
    route: Option<String>,
    /// How that route orders the chain, where that is decided at each request.
    strategy: Option<Strategy>,
    /// The request as the router saw it, for people and for programs.
    asked: (String, Value),
    /// What it is that stands against deployments.
    details: BTreeMap<DeploymentName, String>,
    /// What is to be said beside the decision.
    notes: Vec<String>,
}

impl Checked {
    /// Decides over a request as the running gateway does while every deployment is well.
    ///
    /// # Errors
    /// What is wrong with the question, as `what is wrong; what to write`.
    pub fn explain(&self, question: &Question) -> Result<Explained, String> {
        let asked = Asked::of(self, question)?;
        self.explained(&asked, Vec::new())
    }

    /// Decides again over a recorded request, and says what the record says of the decision then.
    ///
    /// # Errors
    /// The request was never read, or its tenant is not in the configuration.
    pub fn explain_record(&self, record: &AccountingRecord) -> Result<Explained, String> {
        let asked = Asked::of_record(self, record)?;
        let mut notes = vec![then(record)];
        if record.config != self.config.digest() {
            notes.push(format!(
                "the configuration was another one then: {}, and is {} now",
                record.config,
                self.config.digest()
            ));
        }
        let by_metadata = |one: &RouteMatch| !one.metadata.is_empty();
        let routing = &self.facts.routing;
        if routing.routes.iter().map(|route| &route.matches).chain(&routing.refused).any(by_metadata) {
            notes.push("no record holds metadata, so it is decided as if there were none".to_owned());
        }
        self.explained(&asked, notes)
    }

    fn explained(&self, asked: &Asked, notes: Vec<String>) -> Result<Explained, String> {
        let router = Router::new(self.facts.routing.clone(), &self.facts.deployments)
            .map_err(|errors| self.diagnose(&errors).to_string())?;
        let explanation = asked.ask(|query| router.explain(query, None));
        let mut explained = Explained::of(&router, explanation, asked);
        explained.details = self.details(&explained.explanation, asked);
        explained.notes = notes.into_iter().chain(explained.notes).collect();
        Ok(explained)
    }

    /// Says of each deployment that is out what it is that stands against it.
    fn details(&self, explanation: &Explanation, asked: &Asked) -> BTreeMap<DeploymentName, String> {
        let steps = explanation.steps.iter().flat_map(|step| step.outcome.deployments());
        let detail = |step: &DeploymentStep| {
            let DeploymentVerdict::Out(reason) = step.verdict else { return None };
            let facts = self.facts.deployments.iter().find(|one| one.name == step.deployment)?;
            Some((step.deployment.clone(), asked.against(reason, facts, &self.facts.routing)?))
        };
        steps.filter_map(detail).collect()
    }
}

/// Says what a record's own decision was.
fn then(record: &AccountingRecord) -> String {
    let candidates: Vec<&str> = record.decision.candidates.iter().map(|one| one.as_str()).collect();
    let tried: Vec<String> = record
        .attempts
        .iter()
        .map(|attempt| {
            let ended = attempt.error.map_or("ok", gw_types::ErrorKind::as_str);
            format!("`{}` {ended}", attempt.deployment)
        })
        .collect();
    let route =
        record.route.as_ref().map_or_else(|| "no route".to_owned(), |route| format!("route `{route}`"));
    let tried = if tried.is_empty() { "no call".to_owned() } else { tried.join(", ") };
    let ended = record.error.map_or(String::new(), |error| format!(", {}", error.as_str()));
    format!(
        "then: {route}, candidates [{}], tried: {tried}; outcome {}{ended}",
        candidates.join(", "),
        record.outcome.as_str()
    )
}

impl Explained {
    fn of(router: &Router, explanation: Explanation, asked: &Asked) -> Self {
        let selection = &explanation.selection;
        let name = |place: &usize| router.deployments().get(*place).map(ToString::to_string);
        let chain = selection.chain.iter().filter_map(name).collect();
        let route = selection.route.and_then(|place| router.route(place));
        let chooses = |strategy: &Strategy| *strategy != Strategy::Ordered && selection.chain.len() > 1;
        let strategy = route.map(|route| route.strategy).filter(chooses);
        let route = route.map(|route| route.name.to_string());
        let by_share =
            explanation.steps.iter().filter(|step| step.outcome == RouteOutcome::Mismatch(Mismatch::Share));
        let note = |step: &RouteStep| {
            format!(
                "the request names no end user, so in the running gateway chance decides whether it is in the share of \
                 route `{}`",
                step.route
            )
        };
        let notes = by_share.filter(|_| asked.is_without_share_key()).map(note).collect();
        let asked = (asked.to_string(), asked.to_json());
        Self { chain, route, strategy, asked, details: BTreeMap::new(), explanation, notes }
    }

    /// Returns whether some deployment may answer.
    pub fn is_served(&self) -> bool {
        self.route.is_some()
    }

    /// Returns the decision for programs: `{"request", "served", "route", "chain", "strategy", "model_known",
    /// "declared_refused", "steps": [{"route", "outcome", "deployments": [{"deployment", "verdict", "reason", "detail"}]}],
    /// "notes"}`. The strategy is said where it decides anew at each request who of the chain comes first.
    pub fn to_json(&self) -> String {
        let steps: Vec<Value> = self.explanation.steps.iter().map(|step| self.step_json(step)).collect();
        json!({
            "request": self.asked.1,
            "strategy": self.strategy.map(Strategy::as_str),
            "served": self.is_served(),
            "route": self.route,
            "chain": self.chain,
            "model_known": self.explanation.selection.model_known,
            "declared_refused": self.explanation.selection.refused,
            "steps": steps,
            "notes": self.notes,
        })
        .to_string()
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        writeln!(f, "request: {}", self.asked.0)?;
        if let Some(place) = self.explanation.selection.refused {
            writeln!(f, "declaration {} refuses such requests", place + 1)?;
        }
        for RouteStep { route, outcome } in &self.explanation.steps {
            writeln!(f, "route `{route}`: {outcome}")?;
            for DeploymentStep { deployment, verdict } in outcome.deployments() {
                write!(f, "  `{deployment}`: {verdict}")?;
                match self.details.get(deployment) {
                    Some(detail) => writeln!(f, ": {detail}")?,
                    None => writeln!(f)?,
                }
            }
        }
        match &self.route {
            Some(route) => {
                write!(f, "served by route `{route}`: {}", self.chain.join(", "))?;
                let Some(strategy) = self.strategy else { return Ok(()) };
                write!(f, "; which of them comes first `{}` decides at each request", strategy.as_str())
            }
            None if self.explanation.selection.refused.is_some() => {
                f.write_str("refused: such requests are declared refused")
            }
            None if self.explanation.selection.model_known => {
                f.write_str("refused: no deployment may answer")
            }
            None => f.write_str("refused: no route knows the model for this tenant"),
        }
    }
}

impl Explained {
    fn step_json(&self, RouteStep { route, outcome }: &RouteStep) -> Value {
        let word = match outcome {
            RouteOutcome::Mismatch(_) => "mismatch",
            RouteOutcome::Won(_) => "won",
            RouteOutcome::FellThrough(_) => "fell_through",
            RouteOutcome::Stopped(_) => "stopped",
            RouteOutcome::NotAsked => "not_asked",
        };
        let mismatch = match outcome {
            RouteOutcome::Mismatch(mismatch) => Some(mismatch.to_string()),
            RouteOutcome::Won(_)
            | RouteOutcome::FellThrough(_)
            | RouteOutcome::Stopped(_)
            | RouteOutcome::NotAsked => None,
        };
        let deployments: Vec<Value> =
            outcome.deployments().iter().map(|step| self.deployment_json(step)).collect();
        json!({"route": route.as_str(), "outcome": word, "mismatch": mismatch, "deployments": deployments})
    }

    fn deployment_json(&self, DeploymentStep { deployment, verdict }: &DeploymentStep) -> Value {
        let name = deployment.as_str();
        match verdict {
            DeploymentVerdict::InChain(place) => {
                json!({"deployment": name, "verdict": "candidate", "place": place + 1})
            }
            DeploymentVerdict::Out(reason) => json!({
                "deployment": name,
                "verdict": "out",
                "reason": reason.as_str(),
                "detail": self.details.get(deployment),
            }),
            DeploymentVerdict::HeldBack => json!({"deployment": name, "verdict": "held_back"}),
        }
    }
}
