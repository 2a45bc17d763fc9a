//! `gw generate`: a file of requests in, a file of results out.

mod input;
mod output;
mod progress;
mod setup;

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use gw_config::ResultLines;
use gw_exec::{Batch, GenerationResult, GenerationStatus, Stop};
use gw_types::ErrorKind;

use self::{
    input::{Intake, Requests},
    output::Output,
    progress::Progress,
};
use crate::{
    arguments::{Format, GenerateOptions},
    signals,
};

/// How often the progress line is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// Runs the batch; the exit code says whether every item was answered.
pub(crate) fn run(options: &GenerateOptions) -> Result<(), String> {
    let source = input::open(options)?;
    // A batch is one task. On one thread, what arrives wakes it where it is read; between threads each wake costs a system
    // call on both sides.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("error: the runtime does not start: {error}"))?;
    let ended = runtime.block_on(async {
        let stop = signals::stop_asked()?;
        let ready = setup::prepare(options).await?;
        // Last of all, so that a start that fails leaves no empty file behind.
        let (output, finished) = Output::open(options)?;
        let (requests, intake) = Requests::start(source, options, finished);
        let batch = ready.composition.gateway.generate_many(requests, ready.batch);
        let clock = Arc::clone(ready.composition.gateway.clock());
        let progress = Progress::new(clock, Arc::clone(&intake), options.quiet);
        let ended = work(batch, output, progress, &intake, stop, options.format).await;
        ready.composition.ledger.flush().await;
        ended
    });
    // A reader that waits for its pipe cannot be woken; nobody needs what it would read.
    runtime.shutdown_background();
    ended
}

/// Why the work ended before the input did.
enum Early {
    Interrupted,
    Unwritable(String),
}

async fn work(
    mut batch: Batch<Requests>,
    mut output: Output,
    mut progress: Progress,
    intake: &Arc<Intake>,
    stop: impl Future<Output = ()>,
    format: Format,
) -> Result<(), String> {
    let (mut early, mut lines) = (None, ResultLines::default());
    let mut stop = pin!(stop);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            next = batch.next() => {
                let Some(result) = next else { break };
                progress.count(&result);
                let Err(error) = keep(&mut output, intake, &result, &mut lines) else { continue };
                if early.is_none() {
                    early = Some(Early::Unwritable(error));
                    batch.cancel();
                }
            }
            _ = ticks.tick() => {
                progress.draw(batch.in_work());
                output.sync_soon();
            }
            () = &mut stop, if early.is_none() => {
                early = Some(Early::Interrupted);
                batch.cancel();
            }
        }
    }
    let closed = output.close();
    progress.finish();
    progress.summary(format, output.is_stdout())?;
    conclude(&progress, intake, batch.stopped(), early, closed)
}

/// Writes what ended by itself; what was cancelled is asked again by the next run.
fn keep(
    output: &mut Output,
    intake: &Intake,
    result: &GenerationResult,
    lines: &mut ResultLines,
) -> Result<(), String> {
    match result.status {
        GenerationStatus::Ok | GenerationStatus::Failed => {
            output.append(lines.write(result, intake.form()).map_err(|error| error.to_string())?)
        }
        GenerationStatus::Cancelled => Ok(()),
    }
}

fn conclude(
    progress: &Progress,
    intake: &Intake,
    stopped: Option<Stop>,
    early: Option<Early>,
    closed: Result<(), String>,
) -> Result<(), String> {
    let again = "; what is written stays, and `--resume` goes on from there";
    match early {
        Some(Early::Interrupted) => return Err(format!("error: interrupted{again}")),
        Some(Early::Unwritable(error)) => return Err(format!("error: {error}{again}")),
        None => closed.map_err(|error| format!("error: {error}"))?,
    }
    if let Some(error) = intake.failure() {
        return Err(format!("error: {error}"));
    }
    match stopped {
        None => {}
        Some(Stop::MaxCost) => {
            return Err(format!("error: stopped, because the next item might pass `--max-cost`{again}"));
        }
        Some(Stop::Failure) => return Err(format!("error: stopped at the first failure{again}")),
        Some(Stop::Fatal(kind)) => {
            let said = progress.last_message(kind);
            return Err(format!(
                "error: stopped, because every further item would fail alike: {kind}: {said}\n{}{again}",
                advice(kind)
            ));
        }
    }
    if progress.items() == 0 && intake.skipped() == 0 {
        return Err(format!("error: `{}` holds no item that can be asked", intake.name()));
    }
    match progress.failed() {
        0 => Ok(()),
        1 => Err("error: 1 item failed; `--resume` asks it again".to_owned()),
        failed => Err(format!("error: {failed} items failed; `--resume` asks them again")),
    }
}

/// What to look at first.
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ProviderAuth => "look at the key: `--api-key-env NAME` says which variable holds it",
        ErrorKind::MalformedResponse => {
            "the endpoint does not answer as an OpenAI-compatible API: look at the base URL, which mostly ends in `/v1`"
        }
        ErrorKind::DeploymentMissing | ErrorKind::UnknownModel => {
            "look at the model's name and at the base URL"
        }
        ErrorKind::Transport => "nobody answers at the base URL",
        ErrorKind::QuotaExceeded => "a budget of the configuration is spent",
        _ => "`gw explain` says what becomes of such a request",
    }
}
