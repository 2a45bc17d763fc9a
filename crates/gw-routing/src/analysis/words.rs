//! Findings in words: what is wrong, and what to do about it.

use std::fmt;

use gw_types::{DeploymentName, RouteName, TenantId};

use super::{CLASSES_MAX, DemandKind, Finding, FindingKind};
use crate::ExclusionReason;

impl Finding {
    /// Returns what to do about it.
    pub fn fix(&self) -> String {
        let route = Name(self.route.as_ref().map(RouteName::as_str));
        let deployment = Name(self.deployment.as_ref().map(DeploymentName::as_str));
        match &self.kind {
            FindingKind::DeadDeployment(reasons) if reasons.contains(&ExclusionReason::OtherModel) => {
                format!(
                    "write `allow_other_models = true` in route {route}, name the family of {deployment}, or take it out"
                )
            }
            FindingKind::DeadDeployment(reasons) if reasons.is_empty() => {
                format!("write `allow_fallback = true` in route {route}, or take {deployment} out of it")
            }
            FindingKind::DeadDeployment(reasons) => {
                let settings: Vec<&str> = reasons.iter().copied().map(setting).collect();
                format!("take {deployment} out of route {route}, or change its {}", List(&settings))
            }
            FindingKind::Unserved(_) | FindingKind::UnservedDemand { .. } => {
                format!("give route {route} a deployment that may answer, or declare the class refused")
            }
            FindingKind::TooManyClasses(_) => {
                "name fewer metadata values, shares, sizes or tenants of their own \
                 default, or give routes models and tenants that overlap less"
                    .to_owned()
            }
            FindingKind::PartlyUsable(_) => {
                format!("narrow what route {route} takes, or offer {deployment} in a route of its own")
            }
            FindingKind::NoRoute(_) => {
                format!("widen route {route}, add one that takes the rest, or declare the class refused")
            }
            FindingKind::UnreachableDeployment(true) => {
                format!("take {deployment} out, or let a request reach its route")
            }
            FindingKind::UnreachableDeployment(false) => {
                format!("name {deployment} in a route, or take it out")
            }
            FindingKind::Shadowed(_) => format!("give route {route} a lower priority figure, or take it out"),
            FindingKind::Unsatisfiable => format!("change what route {route} matches, or take it out"),
            FindingKind::TenantReachesNothing => {
                "name the tenant in a route whose deployments its requests may use".to_owned()
            }
            FindingKind::Overlap(_) => format!("give route {route} another priority"),
            FindingKind::PriceMissing => format!("write a price for {deployment}, or `price = \"free\"`"),
            FindingKind::LatencyMissing => format!("write `expected_latency_ms` for {deployment}"),
            FindingKind::MinAttemptAboveTimeout => {
                format!("write a `min_attempt_ms` for {deployment} of at most its `attempt_timeout_ms`")
            }
            FindingKind::DeadlineTooShort { needed, .. } => {
                format!("write a deadline of at least {} ms, or a shorter chain", needed.as_millis())
            }
            FindingKind::RefusesNothing(_) => "change its conditions, or take it out".to_owned(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let route = Name(self.route.as_ref().map(RouteName::as_str));
        let deployment = Name(self.deployment.as_ref().map(DeploymentName::as_str));
        let tenant = Name(self.tenant.as_ref().map(TenantId::as_str));
        match &self.kind {
            FindingKind::DeadDeployment(reasons) if reasons.is_empty() => {
                write!(f, "no request reaches {deployment} in route {route}, which allows no fallback")
            }
            FindingKind::DeadDeployment(reasons) => {
                write!(f, "no request that route {route} takes may use {deployment}: {}", List(reasons))
            }
            FindingKind::Unserved(reasons) => {
                write!(f, "route {route} takes requests of tenant {tenant} that no deployment may answer")?;
                write_reasons(f, reasons)
            }
            FindingKind::TooManyClasses(_) => {
                write!(f, "the policy tells more than {CLASSES_MAX} classes of requests apart; ")?;
                write!(f, "those of route {route} and the routes that share its requests pass that number")
            }
            FindingKind::PartlyUsable(reasons) => write!(
                f,
                "{deployment} may answer only some of the requests that route {route} serves: {}",
                List(reasons)
            ),
            FindingKind::UnservedDemand { demands, classes } => {
                write!(f, "no deployment may answer some requests of route {route} for their ")?;
                write_demands(f, demands, *classes)
            }
            FindingKind::NoRoute(classes) => {
                write!(f, "no route takes some requests for models of route {route}{}", Classes(*classes))
            }
            FindingKind::UnreachableDeployment(true) => write!(f, "no request reaches {deployment}"),
            FindingKind::UnreachableDeployment(false) => write!(f, "no route names {deployment}"),
            FindingKind::Shadowed(by) => write!(f, "route {route} never wins; before it stand {}", List(by)),
            FindingKind::Unsatisfiable if self.witness.is_none() => {
                write!(f, "no request meets the conditions of route {route}")
            }
            FindingKind::Unsatisfiable => {
                write!(f, "no deployment of route {route} may answer any request that it takes")
            }
            FindingKind::TenantReachesNothing => {
                write!(f, "no key of tenant {tenant} can reach any deployment")
            }
            FindingKind::Overlap(with) => {
                write!(f, "routes `{with}` and {route} of equal priority take one request; the name decides")
            }
            FindingKind::PriceMissing => {
                write!(
                    f,
                    "route {route} offers {deployment} without a price to requests of tenant {tenant} under a budget"
                )
            }
            FindingKind::LatencyMissing => {
                write!(f, "the expected latency of {deployment}, a fallback in route {route}, is not stated")
            }
            FindingKind::MinAttemptAboveTimeout => {
                write!(f, "the shortest attempt at {deployment} is longer than the longest")
            }
            FindingKind::DeadlineTooShort { needed, deadline } => {
                let (needed, deadline) = (needed.as_millis(), deadline.as_millis());
                write!(f, "the attempts of route {route} need {needed} ms, and the deadline is {deadline} ms")
            }
            FindingKind::RefusesNothing(place) => {
                write!(f, "declaration {} refuses no request that a route knows", place + 1)
            }
        }
    }
}

/// Names the setting of a deployment that a fact is read from.
const fn setting(reason: ExclusionReason) -> &'static str {
    match reason {
        ExclusionReason::Residency => "region",
        ExclusionReason::ClassificationCeiling => "classification_ceiling",
        ExclusionReason::Capability => "capabilities",
        ExclusionReason::ContextWindow => "context_window",
        ExclusionReason::MaxOutput => "max_output_tokens",
        ExclusionReason::Unpriced | ExclusionReason::MissingPrice => "price",
        ExclusionReason::OtherModel => "family",
        ExclusionReason::Unavailable => "health",
    }
}

fn write_reasons(f: &mut fmt::Formatter<'_>, reasons: &[(DeploymentName, ExclusionReason)]) -> fmt::Result {
    let mut comma = ":";
    reasons.iter().try_for_each(|(deployment, reason)| {
        write!(f, "{} `{deployment}` {reason}", std::mem::replace(&mut comma, ","))
    })
}

fn write_demands(f: &mut fmt::Formatter<'_>, demands: &[DemandKind], classes: u64) -> fmt::Result {
    let demands: Vec<&str> = demands.iter().map(|one| one.as_str()).collect();
    write!(f, "{}{}", demands.join(" and "), Classes(classes))
}

/// Prints how many classes there are.
struct Classes(u64);

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " ({} {})", self.0, if self.0 == 1 { "class" } else { "classes" })
    }
}

/// Prints a name in backticks.
struct Name<'a>(Option<&'a str>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.unwrap_or("?"))
    }
}

/// Prints names in backticks, with commas.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        self.0.iter().try_for_each(|one| write!(f, "{}`{one}`", std::mem::replace(&mut comma, ", ")))
    }
}
