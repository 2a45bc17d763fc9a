//! One request's decision, step by step, by the code that decides in the running gateway.

use std::fmt;

use gw_routing::{
    DeploymentStep, DeploymentVerdict, Explanation, RouteOutcome, RouteQuery, RouteStep, Router,
};
use gw_types::{Capability, CapabilitySet, Classification, InvalidName, Residency, TaskClass, TokenCount};
use serde_json::{Value, json};

use crate::{Checked, nearest, reader::quotable};

/// A request to explain, as it is typed. Names are checked by [`Checked::explain`].
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The model asked for.
    pub model: String,
    /// The tenant; `None`: the only one.
    pub tenant: Option<String>,
    /// The classification; `None`: the tenant's default.
    pub classification: Option<String>,
    /// The groups of regions demanded beside the tenant's own.
    pub residency: Vec<String>,
    /// The task class.
    pub task_class: Option<String>,
    /// What the deployment must be able to do, beside chat and, for a stream, streaming.
    pub needs: Vec<String>,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The size of the input, in tokens.
    pub input_tokens: u64,
    /// The key that shares go by.
    pub share_key: Option<String>,
}

/// A decision. `Display` is for people.
#[derive(Clone, Debug)]
pub struct Explained {
    explanation: Explanation,
    /// The names of the deployments that may answer.
    chain: Vec<String>,
    route: Option<String>,
}

impl Checked {
    /// Decides over a request as the running gateway does while every deployment is well.
    ///
    /// # Errors
    /// What is wrong with the question, as `what is wrong; what to write`.
    pub fn explain(&self, question: &Question) -> Result<Explained, String> {
        let facts = &self.facts;
        let tenant = self.tenant_of(question)?;
        let classification = classification(question, tenant.default_classification)?;
        let task_class = question.task_class.as_deref().map(name::<TaskClass>).transpose()?;
        let mut residency: Vec<Residency> = tenant.residency.iter().cloned().collect();
        for group in &question.residency {
            let known = facts.routing.residency.keys();
            let group = known
                .clone()
                .find(|one| one.as_str() == group)
                .ok_or_else(|| unknown("residency", group, known.map(|one| one.as_str())))?;
            residency.extend((!residency.contains(group)).then(|| group.clone()));
        }
        let needs = needs(question)?;
        let tokens = TokenCount::new(question.input_tokens);
        let query = RouteQuery {
            task_class: task_class.as_ref(),
            residency: &residency,
            needs,
            input_tokens_at_least: tokens,
            input_tokens_estimate: tokens,
            budgeted: tenant.budgeted,
            audio: needs.contains(Capability::Audio),
            images: needs.contains(Capability::Vision),
            stream: needs.contains(Capability::Streaming),
            share_key: question.share_key.as_deref(),
            ..RouteQuery::new(&question.model, &tenant.id, classification)
        };
        let router = Router::new(facts.routing.clone(), &facts.deployments)
            .map_err(|errors| self.diagnose(&errors).to_string())?;
        Ok(Explained::of(&router, router.explain(&query, None)))
    }

    fn tenant_of(&self, question: &Question) -> Result<&gw_routing::analysis::TenantFacts, String> {
        let tenants = &self.facts.tenants;
        let names = tenants.iter().map(|tenant| tenant.id.as_str());
        match (&question.tenant, tenants.as_slice()) {
            (Some(name), _) => {
                let found = tenants.iter().find(|tenant| tenant.id.as_str() == name);
                found.ok_or_else(|| unknown("tenant", name, names))
            }
            (None, [only]) => Ok(only),
            (None, _) => Err(format!("which tenant asks is not said; {}", nearest::remedy("", names))),
        }
    }
}

/// A request may raise its tenant's default and not lower it, as in the running gateway.
fn classification(question: &Question, default: Classification) -> Result<Classification, String> {
    let Some(text) = &question.classification else { return Ok(default) };
    let known = Classification::ALL.iter().map(|one| one.as_str());
    let named = text.parse().map_err(|_| unknown("classification", text, known))?;
    if named < default {
        return Err(format!("`{named}` is below the tenant's default; write `{default}` or above"));
    }
    Ok(named)
}

fn needs(question: &Question) -> Result<CapabilitySet, String> {
    let mut needs = CapabilitySet::EMPTY.with(Capability::Chat);
    if question.stream {
        needs = needs.with(Capability::Streaming);
    }
    for text in &question.needs {
        let known = Capability::ALL.iter().map(|one| one.as_str());
        needs = needs.with(text.parse().map_err(|_| unknown("capability", text, known))?);
    }
    Ok(needs)
}

fn name<T: std::str::FromStr<Err = InvalidName>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|invalid| format!("`{}` is no name; {invalid}", quotable(text)))
}

fn unknown<'a>(what: &str, text: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    format!("unknown {what} `{}`; {}", quotable(text), nearest::remedy(text, known))
}

impl Explained {
    fn of(router: &Router, explanation: Explanation) -> Self {
        let selection = &explanation.selection;
        let name = |place: &usize| router.deployments().get(*place).map(ToString::to_string);
        let chain = selection.chain.iter().filter_map(name).collect();
        let route = selection.route.and_then(|place| router.route(place)).map(|route| route.name.to_string());
        Self { chain, route, explanation }
    }

    /// Returns whether some deployment may answer.
    pub fn is_served(&self) -> bool {
        self.route.is_some()
    }

    /// Returns the decision for programs: `{"served", "route", "chain", "model_known", "steps": [{"route", "outcome",
    /// "deployments": [{"deployment", "verdict"}]}]}`.
    pub fn to_json(&self) -> String {
        let steps: Vec<Value> = self.explanation.steps.iter().map(step_json).collect();
        json!({
            "served": self.is_served(),
            "route": self.route,
            "chain": self.chain,
            "model_known": self.explanation.selection.model_known,
            "steps": steps,
        })
        .to_string()
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.explanation)?;
        match &self.route {
            Some(route) => write!(f, "served by route `{route}`: {}", self.chain.join(", ")),
            None if self.explanation.selection.model_known => {
                f.write_str("refused: no deployment may answer")
            }
            None => f.write_str("refused: no route knows the model for this tenant"),
        }
    }
}

fn step_json(RouteStep { route, outcome }: &RouteStep) -> Value {
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
    let deployments: Vec<Value> = outcome.deployments().iter().map(deployment_json).collect();
    json!({"route": route.as_str(), "outcome": word, "mismatch": mismatch, "deployments": deployments})
}

fn deployment_json(DeploymentStep { deployment, verdict }: &DeploymentStep) -> Value {
    match verdict {
        DeploymentVerdict::InChain(place) => {
            json!({"deployment": deployment.as_str(), "verdict": "candidate", "place": place + 1})
        }
        DeploymentVerdict::Out(reason) => {
            json!({"deployment": deployment.as_str(), "verdict": "out", "reason": reason.as_str()})
        }
        DeploymentVerdict::HeldBack => {
            json!({"deployment": deployment.as_str(), "verdict": "held_back"})
        }
    }
}
