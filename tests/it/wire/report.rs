//! Counts what passed, failed and was skipped, by provider.

use std::{collections::BTreeMap, fmt::Write as _};

/// What became of one exchange.
pub(super) enum Verdict {
    /// Everything that was checked is right.
    Passed,
    /// Something is not.
    Failed(Vec<String>),
    /// There was nothing to check, for the reason given.
    Skipped(String),
}

/// What became of all of them.
#[derive(Default)]
pub(super) struct Report {
    providers: BTreeMap<String, [usize; 3]>,
    skipped: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Report {
    pub(super) fn add(&mut self, provider: &str, id: &str, verdict: Verdict) {
        let counts = self.providers.entry(provider.to_owned()).or_default();
        match verdict {
            Verdict::Passed => counts[0] += 1,
            Verdict::Failed(faults) => {
                counts[1] += 1;
                self.faults.extend(faults.iter().map(|fault| format!("{id}: {fault}")));
            }
            Verdict::Skipped(reason) => {
                counts[2] += 1;
                *self.skipped.entry(reason).or_default() += 1;
            }
        }
    }

    /// Returns how many were passed, failed, skipped.
    pub(super) fn totals(&self) -> [usize; 3] {
        self.providers.values().fold([0; 3], |sum, counts| std::array::from_fn(|at| sum[at] + counts[at]))
    }

    /// Prints the report and fails if anything has.
    pub(super) fn conclude(&self, title: &str) {
        let mut text = format!("\n{title:<24}{:>8}{:>8}{:>8}\n", "passed", "failed", "skipped");
        let totals = ("all".to_owned(), self.totals());
        for (provider, [passed, failed, skipped]) in self.providers.clone().into_iter().chain([totals]) {
            let _ = writeln!(text, "{provider:<24}{passed:>8}{failed:>8}{skipped:>8}");
        }
        for (reason, count) in &self.skipped {
            let _ = writeln!(text, "skipped {count}: {reason}");
        }
        say(&text);
        assert!(self.faults.is_empty(), "{} faults:\n{}", self.faults.len(), self.faults.join("\n"));
    }
}

/// Prints to the error output of the process itself, because the harness keeps what passing tests print to itself.
pub(super) fn say(text: &str) {
    use std::io::Write as _;

    // A report that nobody can read fails no test.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
