//! What a scope may use: rates, calls at once, and money per window. One shape for keys, tenants, organisations,
//! models, deployments and the whole.

use std::time::Duration;

use gw_limits::{BudgetEstimate, QuotaWindow, Window, Zone};
use gw_types::Money;
use serde::{Serialize, Serializer};

use crate::{
    nearest,
    reader::{Node, Section, quotable},
    source::Located,
};

/// What one scope may use, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ScopeEntry {
    pub(crate) requests_per_minute: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    /// Calls at once; a deployment's stands with the deployment itself.
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) budgets: Vec<Located<BudgetEntry>>,
}

impl ScopeEntry {
    /// Returns whether anything is limited.
    pub(crate) fn limits_anything(&self) -> bool {
        *self != Self::default()
    }
}

/// One of `budget`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BudgetEntry {
    #[serde(rename = "limit_pico")]
    pub(crate) limit: Money,
    #[serde(serialize_with = "window_as_written")]
    pub(crate) window: QuotaWindow,
    #[serde(serialize_with = "estimate_as_written")]
    pub(crate) estimate: BudgetEstimate,
}

/// The most requests or tokens a minute.
const PER_MINUTE_MAX: i64 = 1_000_000_000_000;

/// The largest budget, in micro-USD: a billion USD.
const LIMIT_MICROS_MAX: i64 = 1_000_000_000_000_000;

/// The longest rolling window: ten years.
const ROLLING_S_MAX: i64 = 315_576_000;

/// The most calls at once.
pub(super) const CONCURRENCY_MAX: u32 = 1_000_000;

/// Caps on money of one scope: an hour, a day, a week and a month, for instance.
const BUDGETS_MAX: usize = 4;

const WINDOWS: [(&str, Window); 4] =
    [("hour", Window::Hour), ("day", Window::Day), ("week", Window::Week), ("month", Window::Month)];

const ESTIMATES: [(&str, BudgetEstimate); 2] =
    [("bound", BudgetEstimate::Bound), ("calibrated", BudgetEstimate::Calibrated)];

/// Reads the limits of a scope that has `max_concurrency` too; `zone` is that of its calendar windows.
pub(super) fn read(section: &mut Section<'_>, zone: &Zone) -> ScopeEntry {
    ScopeEntry {
        max_concurrency: section.small_count("max_concurrency", 1..=CONCURRENCY_MAX),
        ..rates_and_budgets(section, zone)
    }
}

/// Reads the limits of a scope whose calls at once are counted elsewhere.
pub(super) fn rates_and_budgets(section: &mut Section<'_>, zone: &Zone) -> ScopeEntry {
    ScopeEntry {
        requests_per_minute: section.count("requests_per_minute", 1..=PER_MINUTE_MAX),
        tokens_per_minute: section.count("tokens_per_minute", 1..=PER_MINUTE_MAX),
        max_concurrency: None,
        budgets: section.optional("budget").map(|node| budgets(&node, zone)).unwrap_or_default(),
    }
}

/// Reads `time_zone`; absent: UTC.
pub(super) fn zone(section: &mut Section<'_>) -> Zone {
    let Some(node) = section.optional("time_zone") else { return Zone::UTC };
    let Some(text) = node.text() else { return Zone::UTC };
    Zone::new(text).unwrap_or_else(|_| {
        let names = Zone::names();
        let near = nearest::nearest(text, names.iter().map(String::as_str));
        let expected = near.map_or_else(
            || "write a name of the IANA database, such as `Europe/London` or `UTC`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        node.fault(format!("unknown time zone `{}` in `{}`", quotable(text), node.path()), expected);
        Zone::UTC
    })
}

fn budgets(node: &Node<'_>, zone: &Zone) -> Vec<Located<BudgetEntry>> {
    let read = |node: &Node<'_>| Some(Located::new(budget(node, zone)?, node.span()));
    if !node.is_list() {
        return read(node).into_iter().collect();
    }
    let items = node.filled_list().unwrap_or_default();
    if items.len() > BUDGETS_MAX {
        let message = format!("`{}` has {} budgets", node.path(), items.len());
        node.fault(message, format!("write at most {BUDGETS_MAX}"));
        return Vec::new();
    }
    items.iter().filter_map(read).collect()
}

fn budget(node: &Node<'_>, zone: &Zone) -> Option<BudgetEntry> {
    let mut section = node.section()?;
    let limit = section
        .required("limit_micros", "50_000_000")
        .and_then(|node| node.whole(1..=LIMIT_MICROS_MAX))
        .and_then(|micros| u64::try_from(micros).ok());
    let window = section.required("window", "\"day\"").and_then(|node| window(&node, zone));
    let estimate = section.optional("estimate").and_then(|node| node.choice("estimate", &ESTIMATES));
    section.finish();
    Some(BudgetEntry {
        limit: Money::from_micros(limit?),
        window: window?,
        estimate: estimate.unwrap_or_default(),
    })
}

/// Reads a window: the word of a calendar window, or `{ rolling_s = 86_400 }`.
fn window(node: &Node<'_>, zone: &Zone) -> Option<QuotaWindow> {
    if !node.is_table() {
        let window = node.choice("window", &WINDOWS)?;
        return Some(QuotaWindow::Calendar { window, zone: zone.clone() });
    }
    let mut section = node.section()?;
    let length = section
        .required("rolling_s", "86_400")
        .and_then(|node| node.whole(1..=ROLLING_S_MAX))
        .and_then(|seconds| u64::try_from(seconds).ok());
    section.finish();
    Some(QuotaWindow::Rolling { length: Duration::from_secs(length?) })
}

/// Writes a window as the file says it, with the time zone that it is in.
fn window_as_written<S: Serializer>(window: &QuotaWindow, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct InZone<'a> {
        calendar: &'a str,
        time_zone: &'a str,
    }
    #[derive(Serialize)]
    struct Rolling {
        rolling_s: u64,
    }
    match window {
        QuotaWindow::Calendar { window, zone } if *zone == Zone::UTC => window.as_str().serialize(to),
        QuotaWindow::Calendar { window, zone } => {
            InZone { calendar: window.as_str(), time_zone: zone.as_str() }.serialize(to)
        }
        QuotaWindow::Rolling { length } => Rolling { rolling_s: length.as_secs() }.serialize(to),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that `serialize_with` calls")]
fn estimate_as_written<S: Serializer>(estimate: &BudgetEstimate, to: S) -> Result<S::Ok, S::Error> {
    match estimate {
        BudgetEstimate::Bound => "bound",
        BudgetEstimate::Calibrated => "calibrated",
    }
    .serialize(to)
}
