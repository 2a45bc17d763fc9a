//! `gw ledger`: what an auditor and an operator do with the records.

mod export;
mod report;
mod retain;
mod verify;

use std::path::Path;

pub(crate) use self::export::period;
use gw_config::{Config, LedgerFile, LedgerSource, NewCheckpointKey, StoreError, SystemEnvironment};

use crate::{
    arguments::{LedgerCommand, LedgerOptions, ReceiptOptions},
    check::rendered,
    output,
};

/// The configuration that is taken where none is named.
const DEFAULT_FILE: &str = "gw.toml";

/// Runs a command.
pub(crate) fn run(command: &LedgerCommand) -> Result<(), String> {
    match command {
        LedgerCommand::Verify(options) => verify::run(options),
        LedgerCommand::Receipt(options) => receipt(options),
        LedgerCommand::Export(options) => export::run(options),
        LedgerCommand::Report(options) => report::run(options),
        LedgerCommand::Retain(options) => retain::run(options),
        LedgerCommand::Keygen => keygen(),
    }
}

/// Returns the ledger that the options name.
pub(crate) fn source(options: &LedgerOptions) -> Result<LedgerSource, String> {
    if let Some(store) = &options.store {
        return LedgerSource::of_store(store).map_err(|wrong| format!("error: {wrong}"));
    }
    let file = options.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let config =
        Config::load_without_callers(file, &SystemEnvironment).map_err(|faults| rendered(&faults))?;
    config.ledger_source().map_err(|faults| rendered(&faults))
}

/// Opens a ledger to read it.
pub(crate) fn open(source: &LedgerSource) -> Result<LedgerFile, String> {
    source.open().map_err(|error| failed(&error))
}

/// Says why a ledger cannot be used.
pub(crate) fn failed(error: &StoreError) -> String {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    format!("error: {error}{cause}")
}

fn receipt(options: &ReceiptOptions) -> Result<(), String> {
    let id = &options.id;
    let source = source(&options.ledger)?;
    let file = open(&source)?;
    if let Some(receipt) = file.receipt(id).map_err(|error| failed(&error))? {
        let json = serde_json::to_string(&receipt);
        return output::line(json.map_err(|_| "error: the receipt cannot be written as JSON".to_owned())?);
    }
    let record = file.record(id).map_err(|error| format!("error: {error}"))?;
    Err(match record {
        None => format!("error: the ledger has no record `{id}`"),
        Some(_) => format!(
            "error: no signed checkpoint stands after record `{id}`; a running gateway with \
             `ledger.checkpoint_key` signs one when it is asked for /admin/v1/records/{id}/receipt"
        ),
    })
}

/// Makes a key. The secret goes to standard output alone, so that a pipe takes it and nothing else.
fn keygen() -> Result<(), String> {
    let key = NewCheckpointKey::generate().map_err(|error| format!("error: {error}"))?;
    output::aside("The secret, for a variable or a file that `ledger.checkpoint_key` names; shown once:");
    output::line(key.secret.expose())?;
    output::aside(format_args!("For whoever verifies (`gw ledger verify --signer`):\n{}", key.signer));
    Ok(())
}
