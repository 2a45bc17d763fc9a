//! Faults of a policy, found before any traffic.

use std::sync::Arc;

use gw_types::{DeploymentName, Region, Residency, RouteName};

use crate::TenantGroup;

/// Names one fault of a [`crate::RoutingConfig`]: the place, the offender, and what would have been right.
///
/// Lists of known names are whole and sorted, for whoever offers the nearest one; the message shows the first few.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// A route names a deployment that does not exist.
    #[error("unknown deployment `{deployment}` in route `{route}`; known: {}", Known(known))]
    UnknownDeployment {
        /// The route.
        route: RouteName,
        /// The name that no deployment has.
        deployment: DeploymentName,
        /// The deployments there are, sorted.
        known: Arc<[DeploymentName]>,
    },
    /// A route names a deployment twice.
    #[error("deployment `{deployment}` stands more than once in route `{route}`; name it once")]
    RepeatedDeployment {
        /// The route.
        route: RouteName,
        /// The deployment.
        deployment: DeploymentName,
    },
    /// A route names no deployment.
    #[error("route `{route}` has no deployments; name at least one")]
    NoDeployments {
        /// The route.
        route: RouteName,
    },
    /// Two routes have one name.
    #[error("more than one route is named `{route}`; names must differ")]
    DuplicateRoute {
        /// The name.
        route: RouteName,
    },
    /// Two deployments have one name.
    #[error("more than one deployment is named `{deployment}`; names must differ")]
    DuplicateDeployment {
        /// The name.
        deployment: DeploymentName,
    },
    /// A group of regions has no region.
    #[error("residency group `{group}` has no regions; name at least one")]
    EmptyResidency {
        /// The group.
        group: Residency,
    },
    /// None of a group's regions has a deployment, so nothing could ever serve a request that demands the group. The
    /// usual cause is a misspelt region.
    #[error(
        "no deployment runs in residency group `{group}` ({}); regions of deployments: {}",
        Known(regions),
        Known(known)
    )]
    UnservedResidency {
        /// The group.
        group: Residency,
        /// The group's regions, sorted.
        regions: Vec<Region>,
        /// The regions that deployments run in, sorted.
        known: Arc<[Region]>,
    },
    /// Something demands a group of regions that does not exist.
    #[error("unknown residency group `{group}`; known: {}", Known(known))]
    UnknownResidency {
        /// The name that no group has.
        group: Residency,
        /// The groups there are, sorted.
        known: Arc<[Residency]>,
    },
    /// A route matches by a group of regions that does not exist.
    #[error("unknown residency group `{group}` in route `{route}`; known: {}", Known(known))]
    UnknownRouteResidency {
        /// The route.
        route: RouteName,
        /// The name that no group has.
        group: Residency,
        /// The groups there are, sorted.
        known: Arc<[Residency]>,
    },
    /// A route matches by a group of tenants that does not exist.
    #[error("unknown tenant group `{group}` in route `{route}`; known: {}", Known(known))]
    UnknownTenantGroup {
        /// The route.
        route: RouteName,
        /// The name that no group has.
        group: TenantGroup,
        /// The groups there are, sorted.
        known: Arc<[TenantGroup]>,
    },
    /// A route gives a weight to a deployment that it does not offer.
    #[error("route `{route}` weighs `{deployment}`, which is not among its deployments: {}", Known(known))]
    UnknownWeight {
        /// The route.
        route: RouteName,
        /// The name that the route does not offer.
        deployment: DeploymentName,
        /// The deployments of the route, as written.
        known: Arc<[DeploymentName]>,
    },
    /// A setting of a route has no effect or no sense.
    #[error("`{setting}` of route `{route}` {fault}")]
    Setting {
        /// The route.
        route: RouteName,
        /// The setting, as the configuration names it.
        setting: &'static str,
        /// What is wrong with it, and what would be right.
        fault: &'static str,
    },
    /// There is more of something than the router holds.
    #[error("too many {what}{}: {count}; at most {max}", InRoute(route.as_ref()))]
    TooMany {
        /// What there is too much of, in the plural.
        what: &'static str,
        /// The route, if the bound is one of each route.
        route: Option<RouteName>,
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
}

/// Prints the first names of a list in backticks.
struct Known<'a, T>(&'a [T]);

impl<T> Known<'_, T> {
    /// How many names a message shows.
    const SHOWN_MAX: usize = 8;
}

impl<T: std::fmt::Display> std::fmt::Display for Known<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (place, name) in self.0.iter().take(Self::SHOWN_MAX).enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        match self.0.len().checked_sub(Self::SHOWN_MAX) {
            Some(more) if more > 0 => write!(f, " and {more} more"),
            Some(_) | None => Ok(()),
        }
    }
}

/// Prints the route that a bound is one of.
struct InRoute<'a>(Option<&'a RouteName>);

impl std::fmt::Display for InRoute<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |route| write!(f, " in route `{route}`"))
    }
}

#[cfg(test)]
mod tests {
    use gw_types::DeploymentName;

    use super::RoutingError;

    fn unknown(known: usize) -> String {
        let known: Vec<DeploymentName> = (0..known).map(|n| format!("d{n}").parse().unwrap()).collect();
        let route = "restricted".parse().unwrap();
        RoutingError::UnknownDeployment { route, deployment: "ptu-2".parse().unwrap(), known: known.into() }
            .to_string()
    }

    #[test]
    fn a_message_names_the_place_the_offender_and_what_is_known() {
        let start = "unknown deployment `ptu-2` in route `restricted`; known: ";
        assert_eq!(unknown(0), format!("{start}none"));
        assert_eq!(unknown(2), format!("{start}`d0`, `d1`"));
        assert!(unknown(8).ends_with("`d6`, `d7`"));
        assert!(unknown(100).ends_with("`d7` and 92 more"));
    }

    #[test]
    fn a_bound_of_a_route_names_it() {
        let too_many =
            |route| RoutingError::TooMany { what: "deployments", route, count: 5, max: 4 }.to_string();
        assert_eq!(too_many(None), "too many deployments: 5; at most 4");
        assert_eq!(too_many(Some("r".parse().unwrap())), "too many deployments in route `r`: 5; at most 4");
    }
}
