//! What a configuration would have made of recorded requests, decided by the code that decides in the running gateway.
//!
//! A record holds the facts that a decision rests on, and what the moment added: which deployments were ill. It does not
//! hold the body, so two things are compared as sets and not in order: the chains of strategies that go by chance, load,
//! latency or the beginning of a prompt. Limits are not replayed: what they refuse depends on everything that came
//! before.

use std::{collections::BTreeMap, fmt};

use gw_routing::{Availability, BoundStrategies, Live, Router, Selection, Standing, Strategy, StrategyState};
use gw_types::{
    AccountingRecord, DeploymentName, ErrorKind, Money, MonoTime, Operation, Outcome, SeededRandom,
};
use serde_json::{Value, json};

use super::question::Asked;
use crate::Checked;

/// Replays records against one configuration.
#[derive(Debug)]
pub struct Replay<'a> {
    checked: &'a Checked,
    router: Router,
    strategies: BoundStrategies,
    summary: ReplaySummary,
}

/// What a replay has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Records that were looked at.
    pub records: u64,
    /// Records without a decision to compare: refused before a route was asked, by their limits or their form.
    pub undecided: u64,
    /// Records for which something would change.
    pub changed: u64,
    /// How often each thing would change, by its name.
    pub changes: BTreeMap<&'static str, u64>,
    /// What the compared requests have cost.
    pub cost_then: Money,
    /// What they would cost, for the same usage.
    pub cost_now: Money,
}

/// What would change for one recorded request.
#[derive(Clone, Debug)]
pub struct ReplayedRecord {
    /// The record's number and id.
    pub seq: u64,
    id: String,
    changes: Vec<Change>,
}

/// One thing that would be another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    what: &'static str,
    then: Option<String>,
    now: Option<String>,
}

/// A decision, then or now.
#[derive(Debug, Default)]
struct Decision {
    refused: Option<&'static str>,
    route: Option<String>,
    chain: Vec<DeploymentName>,
    primary: Option<DeploymentName>,
    last_resort: bool,
}

impl Checked {
    /// Returns what replays records against this configuration.
    ///
    /// # Errors
    /// What is wrong with the routes, which a checked configuration has nothing of.
    pub fn replay(&self) -> Result<Replay<'_>, String> {
        let router = Router::new(self.facts.routing.clone(), &self.facts.deployments)
            .map_err(|errors| self.diagnose(&errors).to_string())?;
        let strategies = StrategyState::default().bind(&router);
        Ok(Replay { checked: self, router, strategies, summary: ReplaySummary::default() })
    }
}

impl Replay<'_> {
    /// Decides again over one record; returns what would change, if anything would.
    pub fn record(&mut self, seq: u64, record: &AccountingRecord) -> Option<ReplayedRecord> {
        self.summary.records += 1;
        let Some((then, now)) = self.decisions(record) else {
            self.summary.undecided += 1;
            return None;
        };
        let mut changes = Vec::new();
        let mut compare = |what, then: Option<String>, now: Option<String>| {
            if then != now {
                changes.push(Change { what, then, now });
            }
        };
        compare("refusal", then.refused.map(str::to_owned), now.refused.map(str::to_owned));
        compare("route", then.route.clone(), now.route.clone());
        if !(then.last_resort && now.last_resort) {
            let ordered = self.is_ordered(&now);
            compare("candidates", names(&then.chain, ordered), names(&now.chain, ordered));
        }
        self.compare_cost(record, &now, &mut changes);
        self.compare_cache(record, &now, &mut changes);
        for change in &changes {
            *self.summary.changes.entry(change.what).or_default() += 1;
        }
        self.summary.changed += u64::from(!changes.is_empty());
        (!changes.is_empty()).then(|| ReplayedRecord { seq, id: record.id.to_string(), changes })
    }

    /// Returns what was found so far.
    pub fn summary(&self) -> &ReplaySummary {
        &self.summary
    }

    /// Returns what is to be said of the comparison as a whole.
    pub fn notes(&self) -> Vec<&'static str> {
        let routing = &self.checked.facts.routing;
        let by_metadata = |one: &gw_routing::RouteMatch| !one.metadata.is_empty();
        let reads =
            routing.routes.iter().map(|route| &route.matches).chain(&routing.refused).any(by_metadata);
        reads
            .then_some("no record holds metadata, so it is decided as if there were none")
            .into_iter()
            .collect()
    }

    /// Returns both decisions; `None` where there was none to compare with.
    fn decisions(&self, record: &AccountingRecord) -> Option<(Decision, Decision)> {
        let facts = record.facts.as_ref()?;
        let refused = record.error.filter(|_| record.route.is_none() && record.outcome == Outcome::Refused);
        let decided = match refused {
            Some(
                ErrorKind::UnknownModel
                | ErrorKind::ContextLengthExceeded
                | ErrorKind::NoRouteAvailable
                | ErrorKind::PolicyViolation,
            ) => true,
            Some(_) => false,
            None => record.route.is_some(),
        };
        if !decided {
            return None;
        }
        let then = Decision {
            refused: refused.map(ErrorKind::as_str),
            route: record.route.as_ref().map(ToString::to_string),
            chain: record.decision.candidates.clone(),
            primary: record.primary.clone(),
            last_resort: record.decision.last_resort,
        };
        let Ok(mut asked) = Asked::of_record(self.checked, record) else {
            let now = Decision { refused: Some("unknown_tenant"), ..Decision::default() };
            return Some((then, now));
        };
        // Only who named a classification can have been below the default: it would be refused again.
        let below = asked.is_below_default();
        if below && record.error == Some(ErrorKind::PolicyViolation) && record.route.is_none() {
            let refused = Some(ErrorKind::PolicyViolation.as_str());
            return Some((then, Decision { refused, ..Decision::default() }));
        }
        asked.raise_to_floors();
        if let Some(refused) = asked.refused_by_key(&self.router) {
            return Some((then, Decision { refused: Some(refused.as_str()), ..Decision::default() }));
        }
        let mut now = self.decide(&asked, record);
        // A request that is bound to a deployment's state has that one candidate.
        if facts.operation == Operation::Responses && then.chain.len() == 1 {
            now.chain.truncate(1);
        }
        Some((then, now))
    }

    fn decide(&self, asked: &Asked, record: &AccountingRecord) -> Decision {
        let ill = Ill::of(&self.router, record);
        let nothing = |_| 0;
        let free = |_| Money::ZERO;
        let random = SeededRandom::new(0);
        let live = Live {
            now: MonoTime::from_nanos(0),
            availability: &ill,
            in_flight: &nothing,
            worst_case: &free,
            random: &random,
            strategies: &self.strategies,
        };
        let selection = asked.ask(|query| self.router.select(query, &live));
        let refused = refusal(&selection);
        let name = |place: &usize| self.router.deployments().get(*place).cloned();
        let chain: Vec<DeploymentName> = selection.chain.iter().filter_map(name).collect();
        Decision {
            refused: refused.map(ErrorKind::as_str),
            route: selection.route.and_then(|at| self.router.route(at)).map(|route| route.name.to_string()),
            primary: chain.first().cloned(),
            chain,
            last_resort: selection.last_resort,
        }
    }

    /// Returns whether the chain of the route is in an order that a record is enough to know.
    fn is_ordered(&self, now: &Decision) -> bool {
        let routes = &self.checked.facts.routing.routes;
        let route = routes.iter().find(|route| Some(route.name.as_str()) == now.route.as_deref());
        route.is_none_or(|route| route.strategy == Strategy::Ordered)
    }

    /// The same usage at the same deployment if that may still answer, else at the first that may.
    fn compare_cost(&mut self, record: &AccountingRecord, now: &Decision, changes: &mut Vec<Change>) {
        let Some(serving) = record.serving.as_ref().filter(|_| !record.cache.is_hit()) else { return };
        let still = now.chain.contains(serving);
        let payee = if still { Some(serving) } else { now.chain.first() };
        let deployment =
            self.checked.facts.deployments.iter().find(|deployment| Some(&deployment.name) == payee);
        let cost = match deployment {
            None => Money::ZERO,
            Some(deployment) => deployment.pricing.cost(&record.usage).map_or(Money::ZERO, |cost| cost.money),
        };
        self.summary.cost_then = self.summary.cost_then.saturating_add(record.cost);
        self.summary.cost_now = self.summary.cost_now.saturating_add(cost);
        if cost != record.cost {
            let text = |money: Money| Some(money.to_string());
            changes.push(Change { what: "cost", then: text(record.cost), now: text(cost) });
        }
    }

    /// A key is made of the tenant, the route and its digest, the primary with its model's version, the operation and the
    /// body. The digest of then stands in no record, so a route that only has other settings is not told from the same.
    fn compare_cache(&self, record: &AccountingRecord, now: &Decision, changes: &mut Vec<Change>) {
        let cached = |name: &str| {
            let routes = &self.checked.config.file.routes;
            routes.iter().any(|route| route.value.name.as_str() == name && route.value.cache.is_some())
        };
        let now_cached = now.route.as_deref().is_some_and(cached);
        let Some(key) = &record.decision.cache_key else { return };
        let same = record.route.as_ref().map(ToString::to_string) == now.route
            && (record.primary == now.primary
                || !self.is_ordered(now)
                || !record.decision.exclusions.is_empty());
        if !now_cached || !same {
            let now = now_cached.then(|| "another key".to_owned());
            changes.push(Change { what: "cache_key", then: Some(key.to_string()), now });
        }
    }
}

/// Returns the error that an empty selection ends in, as in the running gateway.
fn refusal(selection: &Selection) -> Option<ErrorKind> {
    if selection.route.is_some() && !selection.chain.is_empty() {
        return None;
    }
    Some(if selection.refused.is_some() {
        ErrorKind::PolicyViolation
    } else if selection.fits_no_window() {
        ErrorKind::ContextLengthExceeded
    } else if selection.model_known {
        ErrorKind::NoRouteAvailable
    } else {
        ErrorKind::UnknownModel
    })
}

fn names(chain: &[DeploymentName], ordered: bool) -> Option<String> {
    let mut names: Vec<&str> = chain.iter().map(|name| name.as_str()).collect();
    if !ordered {
        names.sort_unstable();
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// The deployments that were ill then, as far as this configuration has them.
struct Ill(Vec<bool>);

impl Ill {
    fn of(router: &Router, record: &AccountingRecord) -> Self {
        let was_ill = |name: &DeploymentName| {
            record.decision.exclusions.iter().any(|exclusion| {
                let reason = exclusion.reason.as_str();
                let by_facts = gw_routing::ExclusionReason::ALL
                    .iter()
                    .any(|one| one.as_str() == reason && *one != gw_routing::ExclusionReason::Unavailable);
                exclusion.deployment == *name && !by_facts
            })
        };
        Self(router.deployments().iter().map(was_ill).collect())
    }
}

impl Availability for Ill {
    fn state(&self, deployment: usize) -> Standing {
        match self.0.get(deployment) {
            Some(true) => Standing::Until(MonoTime::from_nanos(1)),
            Some(false) | None => Standing::Available,
        }
    }
}

// === Output ===

impl ReplayedRecord {
    /// Returns the record for programs: `{"seq", "id", "changes": [{"what", "then", "now"}]}`; `null`: nothing.
    pub fn to_json(&self) -> Value {
        let changes: Vec<Value> = self
            .changes
            .iter()
            .map(|Change { what, then, now }| json!({"what": what, "then": then, "now": now}))
            .collect();
        json!({"seq": self.seq, "id": self.id, "changes": changes})
    }
}

impl fmt::Display for ReplayedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:", self.seq, self.id)?;
        for (at, Change { what, then, now }) in self.changes.iter().enumerate() {
            let (then, now) = (then.as_deref().unwrap_or("none"), now.as_deref().unwrap_or("none"));
            write!(f, "{} {what}: {then} -> {now}", if at == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

impl ReplaySummary {
    /// Returns the summary for programs: `{"records", "undecided", "changed", "changes": {WHAT: COUNT}, "cost_then_pico",
    /// "cost_now_pico"}`; the costs are text, since they may be longer than a program's integers.
    pub fn to_json(&self) -> Value {
        let changes: serde_json::Map<String, Value> =
            self.changes.iter().map(|(what, count)| ((*what).to_owned(), (*count).into())).collect();
        json!({
            "records": self.records,
            "undecided": self.undecided,
            "changed": self.changed,
            "changes": changes,
            "cost_then_pico": self.cost_then.pico().to_string(),
            "cost_now_pico": self.cost_now.pico().to_string(),
        })
    }
}

impl fmt::Display for ReplaySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, undecided, changed, changes, cost_then, cost_now } = self;
        write!(f, "{records} records, {changed} would change")?;
        let counts: Vec<String> = changes.iter().map(|(what, count)| format!("{what} {count}")).collect();
        if !counts.is_empty() {
            write!(f, " ({})", counts.join(", "))?;
        }
        write!(f, "; cost {cost_then} then, {cost_now} now; {undecided} had no decision to compare")
    }
}
