//! Sums by whatever a reader asks for.

use std::collections::BTreeMap;

use gw_types::UtcTime;
use jiff::Timestamp;

use super::LedgerFile;
use crate::{
    StoreError,
    ledger::each_sum,
    sums::{SumNames, Sums},
};

/// A stretch of time; the default is all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// The first instant.
    pub from: Option<UtcTime>,
    /// The first instant that is out again.
    pub until: Option<UtcTime>,
}

impl Period {
    pub(super) fn holds(&self, at: UtcTime) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }
}

/// What the rows of a report stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Tenants.
    Tenant,
    /// Keys; their names are unique within a tenant only, so ask for the tenant too.
    Key,
    /// Models, as callers name them.
    Model,
    /// Routes.
    Route,
    /// Deployments that answered or were paid for something on the side.
    Deployment,
    /// Days (UTC).
    Day,
}

impl GroupBy {
    /// Every group, in declaration order.
    pub const ALL: [Self; 6] =
        [Self::Tenant, Self::Key, Self::Model, Self::Route, Self::Deployment, Self::Day];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Key => "key",
            Self::Model => "model",
            Self::Route => "route",
            Self::Deployment => "deployment",
            Self::Day => "day",
        }
    }

    fn of(self, bucket: i64, names: SumNames<'_>) -> String {
        match self {
            Self::Tenant => names.tenant.to_owned(),
            Self::Key => names.key.to_owned(),
            Self::Model => names.model.to_owned(),
            Self::Route => names.route.to_owned(),
            Self::Deployment => names.deployment.to_owned(),
            Self::Day => day(bucket),
        }
    }
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRow {
    /// One name for each group that was asked for, in the same order; empty where a request had none.
    pub groups: Vec<String>,
    /// The sums.
    pub sums: Sums,
}

impl LedgerFile {
    /// Adds up the records of a period by groups, sorted by their names; without a group in one row.
    ///
    /// The end of the period counts whole quarters of an hour. Records that were deleted by age still count. Linear in the
    /// rows of the sums, some 10^6 a second.
    ///
    /// # Errors
    /// [`StoreError`]: the file cannot be read, or a row is not what gw wrote.
    pub fn report(&self, period: Period, by: &[GroupBy]) -> Result<Vec<ReportRow>, StoreError> {
        let mut rows: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
        let from = period.from.unwrap_or(UtcTime::from_micros(i64::MIN));
        for node in self.nodes()? {
            let summed = self.db.at_node(node, |db| {
                each_sum(db, from, |bucket, names, sums| {
                    if period.until.is_none_or(|until| bucket < until.micros()) {
                        let groups = by.iter().map(|group| group.of(bucket, names)).collect();
                        rows.entry(groups).or_default().add(sums);
                    }
                })
            });
            summed.map_err(|error| self.unreadable(error))?;
        }
        Ok(rows.into_iter().map(|(groups, sums)| ReportRow { groups, sums }).collect())
    }
}

/// Returns the day of an instant, as `2030-01-31`; empty outside of the years that have a calendar.
fn day(micros: i64) -> String {
    Timestamp::from_microsecond(micros).map_or(String::new(), |at| at.strftime("%Y-%m-%d").to_string())
}
