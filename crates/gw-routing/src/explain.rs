//! A decision, step by step.

use std::fmt;

use gw_types::{DeploymentName, RouteName};

use crate::{ExclusionReason, Live, Mismatch, RouteQuery, Router, Selection, decide::Watch};

/// Tells how a decision came about: each route in its order, and each deployment of the routes that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// One step for each route, in the order of [`Router::routes`].
    pub steps: Vec<RouteStep>,
    /// What was decided.
    pub selection: Selection,
}

/// What became of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteStep {
    /// The route.
    pub route: RouteName,
    /// What became of it.
    pub outcome: RouteOutcome,
}

/// Says what became of a route in a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteOutcome {
    /// The route does not take the request: the first condition that does not hold.
    Mismatch(Mismatch),
    /// The route takes the request and wins.
    Won(Vec<DeploymentStep>),
    /// The route takes the request and has nothing to offer; the next one is asked.
    FellThrough(Vec<DeploymentStep>),
    /// The route takes the request, has nothing to offer, and lets no other be asked.
    Stopped(Vec<DeploymentStep>),
    /// A route before it ended the decision.
    NotAsked,
}

/// What became of one deployment of a route that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentStep {
    /// The deployment.
    pub deployment: DeploymentName,
    /// What became of it.
    pub verdict: DeploymentVerdict,
}

/// Says what became of a deployment in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentVerdict {
    /// It is in the chain, at this place from 0.
    InChain(usize),
    /// Something stands against it.
    Out(ExclusionReason),
    /// Nothing stands against it, but the route allows no fallback.
    HeldBack,
}

impl RouteOutcome {
    /// Returns the deployments of a route that matched, as written.
    pub fn deployments(&self) -> &[DeploymentStep] {
        match self {
            Self::Won(steps) | Self::FellThrough(steps) | Self::Stopped(steps) => steps,
            Self::Mismatch(_) | Self::NotAsked => &[],
        }
    }
}

impl Explanation {
    pub(crate) fn of(router: &Router, query: &RouteQuery<'_>, live: Option<&Live<'_>>) -> Self {
        let mut seen = Seen { routes: vec![None; router.routes.len()], last: 0 };
        let selection = router.decide(query, live, &mut seen);
        let end = selection.stopped_at.or(selection.route.filter(|_| !selection.last_resort));
        let steps = router.routes().zip(seen.routes).enumerate().map(|(place, (route, seen))| RouteStep {
            route: route.name.clone(),
            outcome: match seen {
                Some(Ok(judged)) => outcome(router, place, &selection, judged),
                Some(Err(mismatch)) => RouteOutcome::Mismatch(mismatch),
                // The index offers no route of other models, so nobody saw it refused.
                None if selection.refused.is_some() || end.is_some_and(|end| end < place) => {
                    RouteOutcome::NotAsked
                }
                None => RouteOutcome::Mismatch(Mismatch::Model),
            },
        });
        Self { steps: steps.collect(), selection }
    }
}

impl fmt::Display for Explanation {
    /// Prints one line a step, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line_break = "";
        if let Some(place) = self.selection.refused {
            write!(f, "declaration {} refuses such requests", place + 1)?;
            line_break = "\n";
        }
        for step in &self.steps {
            write!(
                f,
                "{}route `{}`: {}",
                std::mem::replace(&mut line_break, "\n"),
                step.route,
                step.outcome
            )?;
            for step in step.outcome.deployments() {
                write!(f, "\n  `{}`: {}", step.deployment, step.verdict)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RouteOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(mismatch) => write!(f, "does not match: {mismatch}"),
            Self::Won(_) => f.write_str("answers"),
            Self::FellThrough(_) => f.write_str("matches, and nobody may answer; the next is asked"),
            Self::Stopped(_) => f.write_str("matches, and nobody may answer; no other is asked"),
            Self::NotAsked => f.write_str("not asked"),
        }
    }
}

impl fmt::Display for DeploymentVerdict {
    /// Candidates are counted from 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InChain(place) => write!(f, "candidate {}", place + 1),
            Self::Out(reason) => write!(f, "out: {reason}"),
            Self::HeldBack => f.write_str("held back: the route allows no fallback"),
        }
    }
}

fn outcome(router: &Router, place: usize, selection: &Selection, judged: Judged) -> RouteOutcome {
    let won = selection.route == Some(place);
    let step = |(deployment, reason): (usize, Option<ExclusionReason>)| {
        let in_chain = selection.chain.iter().position(|one| *one == deployment).filter(|_| won);
        DeploymentStep {
            deployment: router.deployments()[deployment].clone(),
            verdict: match (in_chain, reason) {
                (Some(at), _) => DeploymentVerdict::InChain(at),
                (None, Some(reason)) => DeploymentVerdict::Out(reason),
                (None, None) => DeploymentVerdict::HeldBack,
            },
        }
    };
    let steps = judged.into_iter().map(step).collect();
    if won {
        RouteOutcome::Won(steps)
    } else if selection.stopped_at == Some(place) {
        RouteOutcome::Stopped(steps)
    } else {
        RouteOutcome::FellThrough(steps)
    }
}

/// Deployments by place, with what stands against them.
type Judged = Vec<(usize, Option<ExclusionReason>)>;

/// Remembers what it saw of each route.
struct Seen {
    routes: Vec<Option<Result<Judged, Mismatch>>>,
    last: usize,
}

impl Watch for Seen {
    fn mismatched(&mut self, route: usize, mismatch: Mismatch) {
        self.routes[route] = Some(Err(mismatch));
    }

    fn matched(&mut self, route: usize) {
        self.routes[route] = Some(Ok(Vec::new()));
        self.last = route;
    }

    /// A deployment may be judged twice: by the facts, and then by the moment.
    fn judged(&mut self, deployment: usize, reason: Option<ExclusionReason>) {
        if let Some(Some(Ok(judged))) = self.routes.get_mut(self.last) {
            match judged.iter_mut().find(|(one, _)| *one == deployment) {
                Some((_, known)) => *known = reason,
                None => judged.push((deployment, reason)),
            }
        }
    }
}
