//! `gw ledger retain`.

use gw_config::{Retained, Seams};
use serde::Serialize;

use crate::{
    arguments::{Format, RetainOptions},
    ledger, output, times,
};

#[derive(Serialize)]
struct Shown {
    applied: bool,
    before: String,
    records: u64,
    last_seq: Option<u64>,
    spent_pico: u128,
}

/// Says what is old, and deletes it if that was asked for.
pub(crate) fn run(options: &RetainOptions) -> Result<(), String> {
    let source = ledger::source(&options.ledger)?;
    let now = Seams::system().map_err(|error| format!("error: {error}"))?.clock.utc();
    let before = times::before(now, options.older_than);
    let retained = if options.apply {
        source.retain(before).map_err(|error| ledger::failed(&error))?
    } else {
        ledger::open(&source)?.retainable(before).map_err(|error| ledger::failed(&error))?
    };
    let shown = Shown {
        applied: options.apply,
        before: before.to_rfc3339(),
        records: retained.map_or(0, |retained| retained.requests),
        last_seq: retained.map(|retained| retained.seq),
        spent_pico: retained.map_or(0, |retained| retained.spent.pico()),
    };
    match options.format {
        Format::Json => {
            let json = serde_json::to_string(&shown);
            output::line(json.map_err(|_| "error: the result cannot be written as JSON".to_owned())?)
        }
        Format::Text => {
            let before = &shown.before;
            match (retained, options.apply) {
                (None, _) => output::line(format_args!("no record started before {before}")),
                (Some(Retained { seq, requests, spent }), true) => output::line(format_args!(
                    "deleted {requests} records up to number {seq} that started before {before}; \
                     a summary of them ({spent} spent) is sealed in the chain"
                )),
                (Some(Retained { seq, requests, spent }), false) => output::line(format_args!(
                    "would delete {requests} records up to number {seq} that started before {before} \
                     ({spent} spent); nothing was changed: write `--apply` to delete them"
                )),
            }
        }
    }
}
