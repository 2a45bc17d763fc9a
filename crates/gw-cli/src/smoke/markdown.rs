//! The report as a page for people. What another run repeats stands first.

use super::{
    chart,
    comparison::PEAK_CALLS,
    finding::Measured,
    report::{Checked, Report},
};

/// Returns the page.
pub(super) fn page(report: &Report) -> String {
    let verdict = if report.passed { "Every check passed." } else { "Some checks failed." };
    let checks: String = report.checks.iter().map(row).collect();
    let ways: String = report
        .comparison
        .iter()
        .map(|way| format!("| {} | {} | {} |\n", way.way, way.items, way.answered))
        .collect();
    format!(
        "# gw smoke\n\n{verdict} {}\n\n| check | passed | claim | observed |\n|---|---|---|---|\n{checks}\n\
         ## Three ways to submit the same items\n\n| way | items | answered |\n|---|---|---|\n{ways}\n{}",
        report.statement,
        measured(report),
    )
}

fn row(check: &Checked) -> String {
    let passed = if check.passed { "yes" } else { "**no**" };
    format!(
        "| `{}` | {passed} | {} | `{}` |\n",
        check.name,
        check.claim,
        check.observed().replace('|', "\\|")
    )
}

/// Returns the part that belongs to this machine and this run.
fn measured(report: &Report) -> String {
    let at = &report.environment;
    let ways: String = report
        .comparison
        .iter()
        .map(|way| {
            let of = |name: &str| way.measured.get(name).copied().unwrap_or_default();
            let millis = |name: &str| chart::decimal(of(name), 1_000);
            format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
                way.way,
                chart::decimal(of("items_per_second_milli"), 1_000),
                millis("admitted_p50_us"),
                millis("admitted_p95_us"),
                millis("queued_p50_us"),
                millis("queued_p95_us"),
                of("resident_peak_kib") / 1_024,
                of(PEAK_CALLS),
            )
        })
        .collect();
    let checks: String = report
        .checks
        .iter()
        .filter(|check| !check.measured.is_empty())
        .map(|check| format!("| `{}` | {} |\n", check.name, numbers(&check.measured)))
        .collect();
    format!(
        "## Measured on this machine\n\ngw {} ({} build), {} on {}, {} cores of which one was used, {}, {} ms.\n\n\
         ![items a second]({})\n\n![times]({})\n\n\
         | way | items a second | admitted P50 ms | admitted P95 ms | queued P50 ms | queued P95 ms | resident MiB | calls at once |\n|---|---|---|---|---|---|---|---|\n{ways}\n\
         Admitted is an item's time from its begin to its end; queued is its time from the begin of the batch to its own. Memory is that\n\
         of the whole process, which only grows, so a later way never shows less than an earlier one. Calls at once are those that\n\
         the server saw.\n\n\
         | check | measured |\n|---|---|\n{checks}",
        at.gw,
        at.build,
        at.system,
        at.architecture,
        at.cores,
        at.ended,
        at.elapsed_ms,
        chart::THROUGHPUT,
        chart::LATENCY,
    )
}

fn numbers(measured: &Measured) -> String {
    let pairs: Vec<_> = measured.iter().map(|(name, value)| format!("{name} {value}")).collect();
    pairs.join(", ")
}
