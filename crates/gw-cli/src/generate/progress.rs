//! What a person sees: one line that is drawn anew on a terminal, and a table at the end.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use gw_exec::{GenerationResult, GenerationStatus};
use gw_types::{Clock, ErrorKind, Money, MonoTime};

use super::input::Intake;
use crate::{arguments::Format, output};

/// Places of the bar.
const BAR: u64 = 20;

/// Counts, and draws what it counts.
pub(super) struct Progress {
    clock: Arc<dyn Clock>,
    began: MonoTime,
    intake: Arc<Intake>,
    draws: bool,
    drawn: bool,
    answered: u64,
    cancelled: u64,
    failed: BTreeMap<&'static str, (u64, String)>,
    attempts: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost: Money,
}

impl Progress {
    pub(super) fn new(clock: Arc<dyn Clock>, intake: Arc<Intake>, quiet: bool) -> Self {
        Self {
            began: clock.now(),
            clock,
            intake,
            draws: !quiet && io::stderr().is_terminal(),
            drawn: false,
            answered: 0,
            cancelled: 0,
            failed: BTreeMap::new(),
            attempts: 0,
            input_tokens: 0,
            output_tokens: 0,
            cost: Money::ZERO,
        }
    }

    pub(super) fn count(&mut self, result: &GenerationResult) {
        match result.status {
            GenerationStatus::Ok => self.answered += 1,
            GenerationStatus::Cancelled => self.cancelled += 1,
            GenerationStatus::Failed => {
                let class = result.error_class.unwrap_or(ErrorKind::Internal).as_str();
                let (count, message) = self.failed.entry(class).or_default();
                *count += 1;
                message.clone_from(result.message.as_ref().unwrap_or(&String::new()));
            }
        }
        self.attempts += u64::from(result.attempts);
        self.cost = self.cost.saturating_add(result.cost);
        if let Some(usage) = result.usage {
            self.input_tokens += usage.input_total().get();
            self.output_tokens += usage.output_total().get();
        }
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed.values().map(|(count, _)| count).sum()
    }

    /// Returns how many items came to something.
    pub(super) fn items(&self) -> u64 {
        self.answered + self.failed() + self.cancelled
    }

    /// Returns what the latest failure of a class said.
    pub(super) fn last_message(&self, kind: ErrorKind) -> &str {
        self.failed.get(kind.as_str()).map_or("", |(_, message)| message)
    }

    /// Says what is to be said about lines, and draws the line anew where a terminal shows it.
    pub(super) fn draw(&mut self, in_work: usize) {
        let notes = self.intake.notes();
        if !notes.is_empty() {
            self.wipe();
            for note in notes {
                output::aside(note);
            }
        }
        if !self.draws {
            return;
        }
        let elapsed = self.clock.now().saturating_since(self.began);
        let done = self.answered + self.failed();
        let expected = self.intake.expected_items();
        let bar = expected.map_or_else(String::new, |all| {
            let filled = (done.min(all) * BAR).checked_div(all).unwrap_or(BAR);
            let places = |count: u64, mark: &str| mark.repeat(usize::try_from(count).unwrap_or_default());
            format!("[{}{}] ", places(filled, "#"), places(BAR - filled, "."))
        });
        let of = expected.map_or_else(String::new, |all| format!("/{all}"));
        let left = expected.and_then(|all| left(done, all, elapsed));
        let left = left.map_or_else(String::new, |left| format!(", {} left", short(left)));
        let failures: String =
            self.failed.iter().map(|(class, (count, _))| format!(", {count} {class}")).collect();
        let line = format!(
            "{bar}{done}{of} items, {}/s, {in_work} in work, {} tokens, {}{left}{failures}",
            per_second(done, elapsed),
            self.input_tokens + self.output_tokens,
            dollars(self.cost),
        );
        let line: String = line.chars().take(160).collect();
        // Whoever closed it does not want to see it.
        drop(write!(io::stderr(), "\r\x1b[K{line}"));
        self.drawn = true;
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }

    pub(super) fn finish(&mut self) {
        self.draws = false;
        self.draw(0);
        self.wipe();
    }

    /// Prints what came of the batch: beside the results where those go to standard output.
    pub(super) fn summary(&self, format: Format, aside: bool) -> Result<(), String> {
        let elapsed = self.clock.now().saturating_since(self.began);
        let text = match format {
            Format::Text => self.table(elapsed),
            Format::Json => self.json(elapsed),
        };
        if aside {
            output::aside(text);
            return Ok(());
        }
        output::line(text)
    }

    fn json(&self, elapsed: Duration) -> String {
        let failures: BTreeMap<_, _> = self.failed.iter().map(|(class, (count, _))| (class, count)).collect();
        serde_json::json!({
            "answered": self.answered,
            "failed": self.failed(),
            "failures": failures,
            "cancelled": self.cancelled,
            "finished_before": self.intake.skipped(),
            "bad_lines": self.intake.bad(),
            "provider_calls": self.attempts,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_micros": self.cost.micros_rounded_up(),
            "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        })
        .to_string()
    }

    fn table(&self, elapsed: Duration) -> String {
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows =
            vec![row("answered", self.answered.to_string()), row("failed", self.failed().to_string())];
        let failures = self.failed.iter();
        rows.extend(
            failures.map(|(class, (count, said))| row(&format!("  {class}"), format!("{count}  {said}"))),
        );
        let more = [
            ("cancelled", self.cancelled),
            ("finished before", self.intake.skipped()),
            ("bad lines", self.intake.bad()),
        ];
        rows.extend(
            more.into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| row(name, count.to_string())),
        );
        rows.extend([
            row("provider calls", self.attempts.to_string()),
            row("input tokens", self.input_tokens.to_string()),
            row("output tokens", self.output_tokens.to_string()),
            row("cost", dollars(self.cost)),
            row("time", short(elapsed)),
            row("items a second", per_second(self.answered + self.failed(), elapsed)),
        ]);
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let lines: Vec<_> = rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
        lines.join("\n")
    }
}

/// Returns the time that is left at the pace so far.
fn left(done: u64, all: u64, elapsed: Duration) -> Option<Duration> {
    let left = u128::from(all.saturating_sub(done));
    let micros = (elapsed.as_micros() * left).checked_div(u128::from(done))?;
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
}

/// Returns a rate with one decimal.
fn per_second(count: u64, elapsed: Duration) -> String {
    let tenths = (u128::from(count) * 10_000_000).checked_div(elapsed.as_micros()).unwrap_or_default();
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Returns an amount in USD, to the micro-USD.
fn dollars(cost: Money) -> String {
    let micros = cost.micros_rounded_up();
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Returns a time as people write it.
fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{}.{}s", seconds, time.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gw_types::Money;

    use super::{dollars, left, per_second, short};

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(dollars(Money::from_micros(1_234_567)), "$1.234567");
        assert_eq!(per_second(25, Duration::from_secs(10)), "2.5");
        assert_eq!(per_second(25, Duration::ZERO), "0.0");
        assert_eq!(left(10, 30, Duration::from_secs(5)), Some(Duration::from_secs(10)));
        assert_eq!(left(0, 30, Duration::from_secs(5)), None);
        for (seconds, text) in [(3, "3.0s"), (42, "42s"), (61, "1m 01s"), (7_260, "2h 01m")] {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
    }
}
