//! What was spent before: read from the ledger into the windows of budgets.

use std::collections::{BTreeMap, BTreeSet};

use gw_limits::{BudgetPeriod, Limits, Scope};
use gw_types::{Ledger, Money, SpendDetail, TenantId, UtcTime};

use crate::{config::Config, diagnostics::Diagnostics, parts};

/// Budgets, and what was spent in their current windows.
#[derive(Debug)]
pub(crate) struct Spent {
    utc: UtcTime,
    sums: Vec<(BudgetPeriod, Money)>,
}

/// Brings back what was spent in the current window of every budget but those of `known`.
pub(crate) async fn restore(
    config: &Config,
    limits: &Limits,
    ledger: &dyn Ledger,
    utc: UtcTime,
    known: &[BudgetPeriod],
) -> Result<(), Diagnostics> {
    let spent = read(config, unknown(limits, utc, known), ledger, utc).await?;
    spent.put(limits);
    Ok(())
}

/// Returns the budgets that are not among `known`, by scope, place and kind of window.
pub(crate) fn unknown(limits: &Limits, utc: UtcTime, known: &[BudgetPeriod]) -> Vec<BudgetPeriod> {
    let is_known = |period: &BudgetPeriod| {
        let same = |one: &BudgetPeriod| {
            (&one.scope, one.place, &one.window) == (&period.scope, period.place, &period.window)
        };
        known.iter().any(same)
    };
    limits.budgets(utc).into_iter().filter(|period| !is_known(period)).collect()
}

/// Reads what was spent. Asks the ledger once for each instant at which some window began, and costs the rows of each.
pub(crate) async fn read(
    config: &Config,
    periods: Vec<BudgetPeriod>,
    ledger: &dyn Ledger,
    utc: UtcTime,
) -> Result<Spent, Diagnostics> {
    let mut starts: BTreeMap<UtcTime, Vec<BudgetPeriod>> = BTreeMap::new();
    for period in periods {
        starts.entry(period.start).or_default().push(period);
    }
    let members = members(config);
    let mut sums = Vec::new();
    for (start, periods) in starts {
        let rows = ledger.spend_details_since(start).await.map_err(|error| {
            let message = format!("what was spent cannot be read from the ledger: {error}");
            let span = config.file.ledger.store.span;
            let expected = "try again once it can be read";
            config.diagnose(vec![parts::fault(span, "ledger.store", message, expected)])
        })?;
        sums.extend(periods.into_iter().map(|period| {
            let counts = |row: &&SpendDetail| concerns(&period.scope, row, &members);
            let spent: Money = rows.iter().filter(counts).map(|row| row.spent).sum();
            (period, spent)
        }));
    }
    Ok(Spent { utc, sums })
}

impl Spent {
    /// Raises the windows to what was spent in them; a repetition changes nothing.
    pub(crate) fn put(&self, limits: &Limits) {
        for (period, spent) in &self.sums {
            limits.restore_spend(&period.scope, period.place, *spent, self.utc);
        }
    }
}

/// The tenants below each organisation.
type Members = BTreeMap<TenantId, BTreeSet<TenantId>>;

fn members(config: &Config) -> Members {
    let file = &config.file;
    let mut members = Members::new();
    for (tenant, entry) in &file.tenants {
        let mut next = entry.value.organisation.as_ref().map(|organisation| &organisation.value);
        while let Some(organisation) = next {
            // Whoever is in it already was followed up to its end.
            if !members.entry(organisation.clone()).or_default().insert(tenant.clone()) {
                break;
            }
            let above = file.organisations.get(organisation);
            next = above.and_then(|above| above.value.parent.as_ref()).map(|parent| &parent.value);
        }
    }
    members
}

/// Returns whether what was spent counts for a scope.
fn concerns(scope: &Scope, row: &SpendDetail, members: &Members) -> bool {
    match scope {
        Scope::Key(tenant, key) => row.tenant == *tenant && row.key == *key,
        Scope::Tenant(tenant) => row.tenant == *tenant,
        Scope::Organisation(id) => members.get(id).is_some_and(|tenants| tenants.contains(&row.tenant)),
        Scope::Model(name) => row.model.as_ref().is_some_and(|model| model.as_str() == name.as_str()),
        Scope::Deployment(name) => row.deployment.as_ref() == Some(name),
        Scope::Global => true,
    }
}

#[cfg(test)]
mod tests {
    use gw_limits::Scope;
    use gw_types::{BoundedText, Money, SpendDetail};

    use super::{concerns, members};
    use crate::{Config, config::tests::SOUND, config::tests::environment};

    #[test]
    fn what_was_spent_counts_for_everyone_above() {
        let text = format!(
            "{}[organisations.o]\nparent = \"p\"\n[organisations.p]\n[organisations.q]\n",
            SOUND.replace("residency = \"onshore\"", "residency = \"onshore\"\norganisation = \"o\"")
        );
        let members = members(&Config::parse(&text, "gw.toml", &environment()).unwrap());
        let row = SpendDetail {
            tenant: "t".parse().unwrap(),
            key: "k".parse().unwrap(),
            model: Some(BoundedText::new("m")),
            deployment: None,
            spent: Money::from_micros(1),
        };
        let organisation = |name: &str| Scope::Organisation(name.parse().unwrap());
        for (scope, counts) in [
            (Scope::Global, true),
            (Scope::Tenant("t".parse().unwrap()), true),
            (Scope::Tenant("o".parse().unwrap()), false),
            (organisation("o"), true),
            (organisation("p"), true),
            (organisation("q"), false),
            (Scope::Key("t".parse().unwrap(), "k".parse().unwrap()), true),
            (Scope::Key("t".parse().unwrap(), "l".parse().unwrap()), false),
            (Scope::Model("m".parse().unwrap()), true),
            (Scope::Model("n".parse().unwrap()), false),
            (Scope::Deployment("a".parse().unwrap()), false),
        ] {
            assert_eq!(concerns(&scope, &row, &members), counts, "{scope}");
        }
    }
}
