//! What was spent and used, summed by everything that a report or a budget asks for.

mod scan;

use std::{borrow::Cow, collections::BTreeMap};

use gw_types::{
    AccountingRecord, BoundedText, CacheState, DeploymentName, KeyName, Money, Outcome, RouteName, SideCost,
    SpendDetail, SpendRow, TenantId, Usage, UtcTime,
};

/// The length of a bucket of sums, in microseconds: a quarter of an hour, on which the days and months of every time zone
/// begin and end.
pub(crate) const BUCKET_MICROS: i64 = 15 * 60 * 1_000_000;

/// Parts the names in one text; no name and no bounded text has a control character.
const END: char = '\n';

/// What one sum is of, beside its bucket of time; what is absent is empty.
///
/// Also written as one text, so that a record's names are kept without an allocation for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SumNames<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) key: &'a str,
    pub(crate) model: &'a str,
    pub(crate) deployment: &'a str,
    pub(crate) route: &'a str,
}

impl<'a> SumNames<'a> {
    pub(crate) fn parse(names: &'a str) -> Self {
        let mut parts = names.split(END);
        let mut next = || parts.next().unwrap_or_default();
        Self { tenant: next(), key: next(), model: next(), deployment: next(), route: next() }
    }

    pub(crate) fn write(self, into: &mut String) {
        let Self { tenant, key, model, deployment, route } = self;
        for (at, name) in [tenant, key, model, deployment, route].into_iter().enumerate() {
            if at > 0 {
                into.push(END);
            }
            into.push_str(name);
        }
    }
}

/// Sums over records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests that left a record.
    pub requests: u64,
    /// Requests that were refused, failed, were cancelled or ended without a known result.
    pub failed: u64,
    /// Requests that were answered by another deployment than the first candidate.
    pub fallbacks: u64,
    /// Requests that the cache answered.
    pub cache_hits: u64,
    /// Tokens in, all classes.
    pub input_tokens: u64,
    /// Tokens out, all classes.
    pub output_tokens: u64,
    /// Cost and side costs.
    pub spent: Money,
}

impl Sums {
    /// Adds another sum; saturates.
    pub fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.failed = self.failed.saturating_add(other.failed);
        self.fallbacks = self.fallbacks.saturating_add(other.fallbacks);
        self.cache_hits = self.cache_hits.saturating_add(other.cache_hits);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.spent = self.spent.saturating_add(other.spent);
    }
}

/// Returns the start of the bucket that holds an instant.
pub(crate) const fn bucket_of(at: UtcTime) -> i64 {
    at.micros().div_euclid(BUCKET_MICROS).saturating_mul(BUCKET_MICROS)
}

/// What of a record is summed; also read from canonical bytes without making a record of them.
#[derive(Debug)]
pub(crate) struct Summed<'a> {
    tenant: &'a str,
    key: &'a str,
    model: Cow<'a, str>,
    route: Option<&'a str>,
    primary: Option<&'a str>,
    serving: Option<&'a str>,
    cache: CacheState,
    outcome: &'a str,
    usage: Usage,
    cost: Money,
    side_costs: Vec<SummedSide<'a>>,
    /// When the request arrived.
    pub(crate) started: UtcTime,
    /// The request's id.
    pub(crate) id: &'a str,
}

#[derive(Debug)]
struct SummedSide<'a> {
    deployment: &'a str,
    cost: Money,
}

impl<'a> From<&'a AccountingRecord> for Summed<'a> {
    fn from(record: &'a AccountingRecord) -> Self {
        let side = |side: &'a SideCost| SummedSide { deployment: side.deployment.as_str(), cost: side.cost };
        Self {
            tenant: record.tenant.as_str(),
            key: record.key.as_str(),
            model: Cow::Borrowed(record.facts.as_ref().map_or("", |facts| facts.model.as_str())),
            route: record.route.as_ref().map(RouteName::as_str),
            primary: record.primary.as_ref().map(DeploymentName::as_str),
            serving: record.serving.as_ref().map(DeploymentName::as_str),
            cache: record.cache,
            outcome: record.outcome.as_str(),
            usage: record.usage,
            cost: record.cost,
            side_costs: record.side_costs.iter().map(side).collect(),
            started: record.started,
            id: record.id.as_str(),
        }
    }
}

impl Summed<'_> {
    /// Shows every line: what the request's own call used and cost, then each side cost at its own deployment.
    pub(crate) fn each_line(&self, mut show: impl FnMut(SumNames<'_>, Sums)) {
        let names = SumNames {
            tenant: self.tenant,
            key: self.key,
            model: &self.model,
            deployment: self.serving.unwrap_or(""),
            route: self.route.unwrap_or(""),
        };
        show(names, self.own());
        for side in self.side_costs.iter().filter(|side| !side.cost.is_zero()) {
            show(
                SumNames { deployment: side.deployment, ..names },
                Sums { spent: side.cost, ..Sums::default() },
            );
        }
    }

    fn own(&self) -> Sums {
        let answered = [Outcome::Ok, Outcome::Capped].map(Outcome::as_str).contains(&self.outcome);
        let hit = self.cache.is_hit();
        let fallback = !hit && self.serving.is_some() && self.serving != self.primary;
        Sums {
            requests: 1,
            failed: u64::from(!answered),
            fallbacks: u64::from(fallback),
            cache_hits: u64::from(hit),
            input_tokens: self.usage.input_total().get(),
            output_tokens: self.usage.output_total().get(),
            spent: self.cost,
        }
    }
}

/// Shows every line of a record.
pub(crate) fn each_line(record: &AccountingRecord, show: impl FnMut(SumNames<'_>, Sums)) {
    Summed::from(record).each_line(show);
}

/// Adds up what was spent, by tenant, key, model and deployment.
#[derive(Debug, Default)]
pub(crate) struct SpendSums {
    sums: BTreeMap<Box<str>, Money>,
    /// The names that are looked up, in a buffer that is used again.
    names: String,
}

impl SpendSums {
    /// Adds an amount; nothing is kept for nothing.
    pub(crate) fn add(&mut self, names: SumNames<'_>, spent: Money) {
        if spent.is_zero() {
            return;
        }
        self.names.clear();
        SumNames { route: "", ..names }.write(&mut self.names);
        match self.sums.get_mut(self.names.as_str()) {
            Some(sum) => *sum = sum.saturating_add(spent),
            None => drop(self.sums.insert(self.names.as_str().into(), spent)),
        }
    }

    /// Adds the lines of a record.
    pub(crate) fn add_record(&mut self, record: &AccountingRecord) {
        each_line(record, |names, sums| self.add(names, sums.spent));
    }

    /// Returns the rows, sorted by tenant, key, model and deployment; `None` if a name is none.
    pub(crate) fn details(self) -> Option<Vec<SpendDetail>> {
        let mut rows =
            self.sums.iter().map(|(names, spent)| detail(names, *spent)).collect::<Option<Vec<_>>>()?;
        rows.sort_unstable_by(|a, b| {
            (&a.tenant, &a.key, &a.model, &a.deployment).cmp(&(&b.tenant, &b.key, &b.model, &b.deployment))
        });
        Some(rows)
    }

    /// Returns the rows by tenant and key alone; `None` if a name is none.
    pub(crate) fn rows(self) -> Option<Vec<SpendRow>> {
        let mut rows: Vec<SpendRow> = Vec::new();
        for SpendDetail { tenant, key, spent, .. } in self.details()? {
            match rows.last_mut() {
                Some(row) if row.tenant == tenant && row.key == key => {
                    row.spent = row.spent.saturating_add(spent);
                }
                Some(_) | None => rows.push(SpendRow { tenant, key, spent }),
            }
        }
        Some(rows)
    }
}

fn detail(names: &str, spent: Money) -> Option<SpendDetail> {
    let names = SumNames::parse(names);
    let deployment = match names.deployment {
        "" => None,
        name => Some(DeploymentName::new(name).ok()?),
    };
    Some(SpendDetail {
        tenant: TenantId::new(names.tenant).ok()?,
        key: KeyName::new(names.key).ok()?,
        model: (!names.model.is_empty()).then(|| BoundedText::new(names.model)),
        deployment,
        spent,
    })
}
