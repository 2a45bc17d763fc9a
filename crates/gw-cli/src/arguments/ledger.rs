//! What may stand after `gw ledger`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gw_config::{CheckpointSigner, RecordGroup};
use gw_types::{RequestId, SealHash, TenantId, UtcTime};

use super::{Format, request_id};
use crate::times;

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Checks every record, link, signature and sum, and names the first that is wrong; exits with 1 if one is.
    Verify(VerifyOptions),
    /// Prints the proof that a record stands in the chain, up to the next signed checkpoint.
    Receipt(ReceiptOptions),
    /// Writes the records on standard output, oldest first.
    Export(ExportOptions),
    /// Adds up requests, tokens and spend.
    Report(ReportOptions),
    /// Says which records are older than an age; with `--apply` deletes them and seals a summary in their place.
    Retain(RetainOptions),
    /// Makes a key that signs checkpoints: prints the secret, and beside it what whoever verifies needs.
    Keygen,
}

/// Which ledger.
#[derive(Debug, Args)]
pub(crate) struct LedgerOptions {
    /// The configuration whose ledger it is; without it `gw.toml` of the current folder.
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub(crate) config: Option<PathBuf>,
    /// The ledger itself, as `[ledger]` names it: `sqlite:PATH` or `postgres://...`.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    #[command(flatten)]
    pub(crate) ledger: LedgerOptions,
    /// Checks this receipt and no ledger; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Who alone signs, 64 hexadecimal digits; without it whoever holds the configuration's `checkpoint_key`.
    #[arg(long, value_name = "HEX")]
    pub(crate) signer: Option<CheckpointSigner>,
    /// A record that was in the chain and its hash, as an export or an earlier check has shown them.
    #[arg(long, value_name = "SEQ:HASH", value_parser = known, conflicts_with = "receipt")]
    pub(crate) known: Option<(u64, SealHash)>,
    /// Only the chain of this node; without it all of them. A SQLite ledger is node 0.
    #[arg(long, value_name = "NUMBER", conflicts_with = "receipt")]
    pub(crate) node: Option<i64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiptOptions {
    #[command(flatten)]
    pub(crate) ledger: LedgerOptions,
    /// The record's id.
    #[arg(value_name = "ID", value_parser = request_id)]
    pub(crate) id: RequestId,
}

/// A stretch of time.
#[derive(Debug, Args)]
pub(crate) struct PeriodOptions {
    /// The first day or instant, such as `2026-01-31` or `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = times::instant)]
    pub(crate) from: Option<UtcTime>,
    /// The first day or instant that is out again.
    #[arg(long, value_name = "TIME", value_parser = times::instant)]
    pub(crate) until: Option<UtcTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportAs {
    /// One JSON object a line: `hash`, `record`, `seq`.
    Jsonl,
    /// Comma-separated values with a line of names.
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    pub(crate) ledger: LedgerOptions,
    #[command(flatten)]
    pub(crate) period: PeriodOptions,
    /// Only this tenant's records.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<TenantId>,
    /// How records are written.
    #[arg(long, value_enum, default_value_t = ExportAs::Jsonl)]
    pub(crate) format: ExportAs,
    /// Writes into this file instead; it must not be there yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    #[command(flatten)]
    pub(crate) ledger: LedgerOptions,
    #[command(flatten)]
    pub(crate) period: PeriodOptions,
    /// What the rows stand for, with commas between: `tenant`, `key`, `model`, `route`, `deployment`, `day`; by single
    /// records also `user` and `tag:NAME`.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = RecordGroup::parse)]
    pub(crate) by: Vec<RecordGroup>,
    /// Adds what answers from the cache have saved; reads every record.
    #[arg(long)]
    pub(crate) savings: bool,
    /// How the rows are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct RetainOptions {
    #[command(flatten)]
    pub(crate) ledger: LedgerOptions,
    /// How old a record must be, such as `90d` or `12h`.
    #[arg(long, value_name = "AGE", value_parser = times::age)]
    pub(crate) older_than: std::time::Duration,
    /// Deletes; without it nothing is changed.
    #[arg(long)]
    pub(crate) apply: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

fn known(text: &str) -> Result<(u64, SealHash), String> {
    let (seq, hash) = text.split_once(':').ok_or("write `SEQ:HASH`")?;
    let seq = seq.parse().map_err(|_| "the part before `:` is the number of a record")?;
    Ok((seq, hash.parse().map_err(|_| "the part after `:` is a hash of 64 hexadecimal digits")?))
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// The ledger whose records are taken: a file, or a store as `[ledger]` names it; without it the configuration's own.
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<String>,
    /// The configuration to decide with.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) period: PeriodOptions,
    /// Prints the sums alone.
    #[arg(long)]
    pub(crate) summary: bool,
    /// How differences are printed; `json`: one object a line.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
