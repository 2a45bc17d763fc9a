//! `gw smoke`: what gw promises of batches, exercised on a fault server inside this process.
//!
//! One thread plays gateway, fault server and watchdog, so that a run repeats: chance is seeded, ids count up, and what
//! depends on the machine stands apart from what does not.

mod bounds;
mod chart;
mod checks;
mod cleanup;
mod comparison;
mod events;
mod faults;
mod finding;
mod markdown;
mod report;
mod scene;
mod watchdog;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use gw_config::Seams;
use gw_types::{Clock, MonoTime};

use self::{
    checks::{Check, checks},
    comparison::Way,
    finding::Finding,
    report::{Checked, Environment, Report},
};
use crate::{arguments::SmokeOptions, output};

/// The time of one check.
const CHECK_TIME: Duration = Duration::from_secs(15);

/// The time of the whole run.
const RUN_TIME: Duration = Duration::from_secs(60);

/// Runs every check and writes the report; an error names the checks that failed.
pub(crate) fn run(options: &SmokeOptions) -> Result<(), String> {
    let folder = &options.output;
    fs::create_dir_all(folder)
        .map_err(|error| format!("error: `{}` cannot be made a folder: {error}", folder.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("error: the runtime does not start: {error}"))?;
    let Seams { clock, .. } = Seams::system().map_err(|error| format!("error: {error}"))?;
    let played = runtime.block_on(play(&clock, !options.quiet));
    let report = Report::new(played.checked, played.ways, Environment::of(&*clock, played.elapsed));
    write(folder, &report, &played.events)?;
    conclude(&report, folder)
}

/// What a run came to.
struct Played {
    checked: Vec<Checked>,
    ways: Vec<Way>,
    events: Vec<finding::Event>,
    elapsed: Duration,
}

async fn play(clock: &Arc<dyn Clock>, told: bool) -> Played {
    let began = clock.now();
    let checks = checks();
    let count = checks.len() + 1;
    let mut progress = Progress { count, draws: told && io::stderr().is_terminal() };
    let mut played =
        Played { checked: Vec::new(), ways: Vec::new(), events: Vec::new(), elapsed: Duration::ZERO };
    for (number, check) in checks.iter().enumerate() {
        progress.draw(number, check.name);
        let finding = try_one(check, clock, began).await;
        played.take(check.name, check.claim, finding);
    }
    progress.draw(count - 1, comparison::NAME);
    let compared = in_time(clock, began, comparison::play()).await;
    let finding = match compared {
        Ok((ways, finding)) => {
            played.ways = ways;
            finding
        }
        Err(error) => Finding::default().observe("error", error),
    };
    played.take(comparison::NAME, comparison::CLAIM, finding);
    progress.wipe();
    played.elapsed = clock.now().saturating_since(began);
    played
}

impl Played {
    fn take(&mut self, name: &'static str, claim: &'static str, mut finding: Finding) {
        self.events.append(&mut finding.events);
        self.checked.push(Checked::new(name, claim, finding));
    }
}

/// Plays a check until it passes, as often as it may: what depends on time may be disturbed by the machine.
async fn try_one(check: &Check, clock: &Arc<dyn Clock>, began: MonoTime) -> Finding {
    let mut tries = 0;
    loop {
        tries += 1;
        let finding = in_time(clock, began, (check.play)()).await;
        let finding = finding.unwrap_or_else(|error| Finding::default().observe("error", error));
        if finding.passed || tries >= check.tries {
            return if check.tries > 1 { finding.measure("tries", tries) } else { finding };
        }
    }
}

/// Gives up what takes too long, or what the whole run has no time left for.
async fn in_time<T>(
    clock: &Arc<dyn Clock>,
    began: MonoTime,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let now = clock.now();
    let end = began.saturating_add(RUN_TIME).min(now.saturating_add(CHECK_TIME));
    tokio::select! {
        done = work => done,
        () = clock.sleep_until(end) => Err("the check has not ended in its time".to_owned()),
    }
}

fn write(folder: &Path, report: &Report, events: &[finding::Event]) -> Result<(), String> {
    let files = [
        ("report.json", report.json()),
        ("report.md", markdown::page(report)),
        ("events.jsonl", events::lines(events)),
        (chart::THROUGHPUT, chart::throughput(&report.comparison)),
        (chart::LATENCY, chart::latency(&report.comparison)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text)
            .map_err(|error| format!("error: `{}` cannot be written: {error}", path.display()))?;
    }
    Ok(())
}

fn conclude(report: &Report, folder: &Path) -> Result<(), String> {
    let count = report.checks.len();
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.passed).collect();
    let page = folder.join("report.md");
    if failed.is_empty() {
        return output::line(format_args!("{count} checks passed; see `{}`", page.display()));
    }
    let lines: Vec<_> = failed
        .iter()
        .map(|check| {
            format!("error: check `{}` failed: {}; observed {}", check.name, check.claim, check.observed())
        })
        .collect();
    let (few, page) = (failed.len(), page.display());
    Err(format!("{}\n{few} of {count} checks failed; see `{page}`", lines.join("\n")))
}

/// One line on a terminal.
struct Progress {
    count: usize,
    draws: bool,
}

impl Progress {
    fn draw(&mut self, done: usize, name: &str) {
        if self.draws {
            // Whoever closed it does not want to see it.
            drop(write!(io::stderr(), "\r\x1b[K{done}/{} checks, now {name}", self.count));
        }
    }

    fn wipe(&mut self) {
        if self.draws {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }
}
