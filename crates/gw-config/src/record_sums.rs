//! Sums over single records, by what the ledger's own sums do not tell apart: end users, tags, what the cache has saved.

use std::collections::BTreeMap;

use gw_stores::{GroupBy, LedgerFile, Period, StoreError, Sums};
use gw_types::{AccountingRecord, BoundedText, Money, Outcome};
use jiff::Timestamp;

/// What the rows of a report over records stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordGroup {
    /// What the ledger's own sums tell apart.
    Summed(GroupBy),
    /// The callers' end users, as requests name them.
    User,
    /// The value of a tag of this name.
    Tag(String),
}

/// One row of a report over records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSums {
    /// One name for each group that was asked for, in the same order; empty where a request had none.
    pub groups: Vec<String>,
    /// The sums.
    pub sums: Sums,
    /// What the calls would have cost that answers from the cache stood in for.
    pub saved: Money,
}

impl RecordGroup {
    /// Returns the name, as `--by` takes it.
    pub fn name(&self) -> String {
        match self {
            Self::Summed(group) => group.as_str().to_owned(),
            Self::User => "user".to_owned(),
            Self::Tag(name) => format!("tag:{name}"),
        }
    }

    /// Returns the group of a name.
    ///
    /// # Errors
    /// There is none; what there is.
    pub fn parse(name: &str) -> Result<Self, String> {
        let summed = GroupBy::ALL.into_iter().find(|group| group.as_str() == name);
        let tag = || name.strip_prefix("tag:").filter(|tag| !tag.is_empty());
        match (summed, name, tag()) {
            (Some(group), ..) => Ok(Self::Summed(group)),
            (None, "user", _) => Ok(Self::User),
            (None, _, Some(tag)) => Ok(Self::Tag(tag.to_owned())),
            (None, _, None) => {
                let known = GroupBy::ALL.map(GroupBy::as_str).join("`, `");
                Err(format!("known: `{known}`, `user`, `tag:NAME`"))
            }
        }
    }

    fn of(&self, record: &AccountingRecord, deployment: &str) -> String {
        let facts = record.facts.as_ref();
        let text = |text: Option<&BoundedText>| text.map_or_else(String::new, ToString::to_string);
        match self {
            Self::Summed(GroupBy::Tenant) => record.tenant.to_string(),
            Self::Summed(GroupBy::Key) => record.key.to_string(),
            Self::Summed(GroupBy::Model) => text(facts.map(|facts| &facts.model)),
            Self::Summed(GroupBy::Route) => {
                record.route.as_ref().map_or_else(String::new, ToString::to_string)
            }
            Self::Summed(GroupBy::Deployment) => deployment.to_owned(),
            Self::Summed(GroupBy::Day) => Timestamp::from_microsecond(record.started.micros())
                .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d").to_string()),
            Self::User => text(facts.and_then(|facts| facts.user.as_ref())),
            Self::Tag(name) => {
                let tags = facts.map_or(&[][..], |facts| &facts.tags);
                text(tags.iter().find(|tag| tag.name.as_str() == name).map(|tag| &tag.value))
            }
        }
    }
}

/// Adds up the records of a period by groups, sorted by their names; without a group in one row.
///
/// Reads every record, a few hundred thousand a second; records that were deleted by age no longer count, which
/// [`LedgerFile::report`] still counts.
///
/// # Errors
/// [`StoreError`]: the ledger cannot be read, or holds a row that is no record.
pub fn record_sums(
    file: &LedgerFile,
    period: Period,
    by: &[RecordGroup],
) -> Result<Vec<RecordSums>, StoreError> {
    let mut rows: BTreeMap<Vec<String>, (Sums, Money)> = BTreeMap::new();
    file.each_record(period, |stored| {
        let record = &stored.record;
        let mut add = |deployment: &str, sums: Sums, saved: Money| {
            let groups = by.iter().map(|group| group.of(record, deployment)).collect();
            let row = rows.entry(groups).or_default();
            row.0.add(&sums);
            row.1 = row.1.saturating_add(saved);
        };
        let serving = record.serving.as_ref().map_or("", |serving| serving.as_str());
        add(serving, own(record), record.saved);
        for side in record.side_costs.iter().filter(|side| !side.cost.is_zero()) {
            let sums = Sums { spent: side.cost, ..Sums::default() };
            add(side.deployment.as_str(), sums, Money::ZERO);
        }
        true
    })?;
    let row = |(groups, (sums, saved))| RecordSums { groups, sums, saved };
    Ok(rows.into_iter().map(row).collect())
}

/// What one request adds, as the ledger's own sums count it.
fn own(record: &AccountingRecord) -> Sums {
    let answered = matches!(record.outcome, Outcome::Ok | Outcome::Capped);
    let hit = record.cache.is_hit();
    let fallback = !hit && record.serving.is_some() && record.serving != record.primary;
    Sums {
        requests: 1,
        failed: u64::from(!answered),
        fallbacks: u64::from(fallback),
        cache_hits: u64::from(hit),
        input_tokens: record.usage.input_total().get(),
        output_tokens: record.usage.output_total().get(),
        spent: record.cost,
    }
}

#[cfg(test)]
mod tests {
    use super::RecordGroup;

    #[test]
    fn groups_have_names_that_are_read_back() {
        for name in ["tenant", "day", "user", "tag:team"] {
            assert_eq!(RecordGroup::parse(name).map(|group| group.name()).as_deref(), Ok(name));
        }
        for wrong in ["tag:", "users", ""] {
            assert!(RecordGroup::parse(wrong).unwrap_err().ends_with("`user`, `tag:NAME`"));
        }
    }
}
