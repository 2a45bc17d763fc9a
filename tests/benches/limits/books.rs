//! The books at the end of a load: what the limits say beside what the records say.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

/// Everything that must agree; money in pico-USD.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Name, limit and spent of every budget.
    budgets: Vec<(String, u128, u128)>,
    reserved_micros: u64,
    /// Calls in flight, of the tenant, of what is above it, and of each deployment.
    slots: u64,
    /// What all records cost, calls without a result included.
    recorded: u128,
    overrun: u128,
    /// Records that cost more than was reserved and do not say by how much.
    unexplained: u64,
    /// Provider calls in all records.
    attempts: u64,
    outcomes: BTreeMap<String, u64>,
}

impl Books {
    /// Reads what is spent and held, from `/admin/v1/tenants` and `/admin/v1/deployments`.
    pub(crate) fn held(tenant: &Value, deployments: &Value) -> Self {
        let mut books = Self::default();
        books.read("tenant", tenant);
        for above in list(&tenant["above"]) {
            books.read(above["scope"].as_str().unwrap_or_default(), above);
        }
        books.slots +=
            list(&deployments["deployments"]).map(|one| whole(&one["concurrency"]["in_use"])).sum::<u64>();
        books
    }

    fn read(&mut self, name: &str, scope: &Value) {
        self.slots += whole(&scope["concurrency"]["in_use"]);
        let own = Some(&scope["budget"]).filter(|budget| budget.is_object());
        for budget in own.into_iter().chain(list(&scope["budgets"])) {
            let limit = u128::from(whole(&budget["limit_micros"])) * 1_000_000;
            self.budgets.push((name.to_owned(), limit, whole(&budget["spent_pico"]).into()));
            self.reserved_micros += whole(&budget["reserved_micros"]);
        }
    }

    /// Returns whether nothing is in flight and nothing is held.
    pub(crate) fn is_settled(&self) -> bool {
        self.reserved_micros == 0 && self.slots == 0
    }

    /// Enters a record.
    pub(crate) fn enter(&mut self, record: &Value) {
        let side_costs: u64 = list(&record["side_costs"]).map(|side| whole(&side["cost"])).sum();
        let (cost, overrun) = (whole(&record["cost"]) + side_costs, whole(&record["overrun"]));
        self.recorded += u128::from(cost);
        self.overrun += u128::from(overrun);
        self.unexplained += u64::from(cost > whole(&record["reserved"]) + overrun);
        self.attempts += u64::try_from(list(&record["attempts"]).count()).unwrap_or_default();
        let outcome = record["outcome"].as_str().unwrap_or_default().to_owned();
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    /// Returns how many records have the outcome.
    pub(crate) fn count(&self, outcome: &str) -> u64 {
        self.outcomes.get(outcome).copied().unwrap_or_default()
    }

    /// Returns what providers billed beyond what was reserved.
    pub(crate) const fn overrun(&self) -> u128 {
        self.overrun
    }

    /// Returns everything that does not agree; the provider has seen so many calls.
    pub(crate) fn broken(&self, calls: u64) -> Vec<String> {
        let mut broken = Vec::new();
        // A call may break before the provider has read it, but none that it has read is without a record.
        if calls > self.attempts {
            broken.push(format!("{calls} calls at the provider, {} in the records", self.attempts));
        }
        if self.budgets.is_empty() {
            broken.push("no budget was read".to_owned());
        }
        for (name, limit, spent) in &self.budgets {
            if *spent > limit + self.overrun {
                broken.push(format!("{name}: {spent} spent of {limit} and {} of overrun", self.overrun));
            }
            if *spent != self.recorded {
                broken.push(format!("{name}: {spent} spent, but the records cost {}", self.recorded));
            }
        }
        for (what, count) in [
            ("micro-USD still reserved", self.reserved_micros),
            ("slots still in use", self.slots),
            ("records above what was reserved for them", self.unexplained),
        ] {
            if count != 0 {
                broken.push(format!("{count} {what}"));
            }
        }
        broken
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, limit, spent) in &self.budgets {
            writeln!(f, "{name:<22} {spent:>22} pico-USD spent, limit {limit}")?;
        }
        writeln!(f, "sum of the records     {:>22} pico-USD", self.recorded)?;
        writeln!(f, "overrun in the records {:>22} pico-USD", self.overrun)?;
        writeln!(f, "reserved at the end    {:>22} micro-USD", self.reserved_micros)?;
        writeln!(f, "slots in use at the end{:>22}", self.slots)?;
        writeln!(f, "calls in the records   {:>22}", self.attempts)?;
        let records: u64 = self.outcomes.values().sum();
        write!(f, "records                {records:>22}:")?;
        self.outcomes.iter().try_for_each(|(outcome, count)| write!(f, " {count} {outcome}"))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a number, 0 where the record leaves it out.
fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
