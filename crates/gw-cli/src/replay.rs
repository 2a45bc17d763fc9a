//! `gw replay`: recorded requests under another configuration.

use gw_config::{Checked, Config, LedgerSource, SystemEnvironment};

use crate::{
    arguments::{Format, ReplayOptions},
    check::rendered,
    ledger, output,
};

/// Decides over every record again, and says what would change. Calls no provider.
pub(crate) fn run(options: &ReplayOptions) -> Result<(), String> {
    let source = source(options)?;
    let config = Config::load_without_callers(&options.config, &SystemEnvironment)
        .map_err(|faults| rendered(&faults))?;
    // A configuration that was never served has no ledger yet, and then no keys there.
    let with_stored = config.clone().with_stored_keys();
    if with_stored.is_err() {
        output::aside("note: the keys in the configuration's ledger cannot be read; decided without them");
    }
    let config = with_stored.unwrap_or(config);
    let checked = Checked::of(config).map_err(|faults| rendered(&faults))?;
    let mut replay = checked.replay().map_err(|wrong| format!("error: {wrong}"))?;
    for note in replay.notes() {
        output::aside(note);
    }
    let file = ledger::open(&source)?;
    let mut printed = Ok(());
    let read = file.each_record(ledger::period(&options.period), |stored| {
        let Some(changed) = replay.record(stored.seq, &stored.record) else { return true };
        printed = match options.format {
            _ if options.summary => Ok(()),
            Format::Text => output::line(&changed),
            Format::Json => output::line(changed.to_json()),
        };
        printed.is_ok()
    });
    read.map_err(|error| ledger::failed(&error))?;
    printed?;
    match options.format {
        Format::Text => output::line(replay.summary()),
        Format::Json => output::line(serde_json::json!({"summary": replay.summary().to_json()})),
    }
}

/// Returns the ledger: a file, a store as `[ledger]` names it, or the new configuration's own.
fn source(options: &ReplayOptions) -> Result<LedgerSource, String> {
    let Some(ledger) = &options.ledger else {
        let config = Config::load_without_callers(&options.config, &SystemEnvironment)
            .map_err(|faults| rendered(&faults))?;
        return config.ledger_source().map_err(|faults| rendered(&faults));
    };
    let of_store = LedgerSource::of_store(ledger);
    of_store
        .or_else(|_| LedgerSource::of_store(&format!("sqlite:{ledger}")))
        .map_err(|wrong| format!("error: {wrong}"))
}
