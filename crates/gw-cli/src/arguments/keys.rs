//! What may stand after `gw keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gw_types::{KeyName, TenantId, UtcTime};

use super::Format;
use crate::times;

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key: prints it once, and the line that goes into the configuration; with `--stored` keeps it in the ledger.
    Create(Box<CreateOptions>),
    /// Lists the keys of the configuration and of its ledger; shows no key.
    List(ListOptions),
    /// Shows one key of them, for programs.
    Show(KeyOptions),
    /// Makes a new key in the place of one in the ledger, which goes on for a while.
    Rotate(RotateOptions),
    /// Revokes a key in the ledger.
    Revoke(KeyOptions),
}

#[derive(Debug, Args)]
pub(crate) struct KeyOptions {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "gw.toml")]
    pub(crate) config: PathBuf,
    /// The tenant that the key belongs to.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: TenantId,
    /// What the key is called in records.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: KeyName,
}

#[derive(Debug, Args)]
pub(crate) struct CreateOptions {
    #[command(flatten)]
    pub(crate) key: KeyOptions,
    /// Keeps the key in the configuration's ledger (`ledger.keys = true`): a running gateway takes it up by itself.
    #[arg(long)]
    pub(crate) stored: bool,
    /// The only models that it may ask for, with commas between; `gpt-*` stands for all that begin so.
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub(crate) models: Vec<String>,
    /// The only routes that its requests may take, with commas between.
    #[arg(long, value_name = "ROUTES", value_delimiter = ',')]
    pub(crate) routes: Vec<String>,
    /// The most sensitive data that it may send.
    #[arg(long, value_name = "CLASSIFICATION")]
    pub(crate) classification_ceiling: Option<String>,
    /// The only networks from which it may be used, with commas between: `10.0.0.0/8`.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    pub(crate) networks: Vec<String>,
    /// When it ends: a day, an instant, or an age such as `90d` from now.
    #[arg(long, value_name = "TIME", value_parser = end)]
    pub(crate) expires: Option<End>,
    /// Requests a minute.
    #[arg(long, value_name = "COUNT")]
    pub(crate) requests_per_minute: Option<u64>,
    /// Tokens a minute.
    #[arg(long, value_name = "COUNT")]
    pub(crate) tokens_per_minute: Option<u64>,
    /// Requests at once.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_concurrency: Option<u64>,
    /// What it may spend in each window, in micro-USD.
    #[arg(long, value_name = "MICROS")]
    pub(crate) budget_micros: Option<u64>,
    /// The window of its budget.
    #[arg(long, value_name = "WINDOW", default_value = "month", requires = "budget_micros")]
    pub(crate) budget_window: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// The configuration.
    #[arg(long, value_name = "FILE", default_value = "gw.toml")]
    pub(crate) config: PathBuf,
    /// Only this tenant's keys.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<TenantId>,
    /// How they are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct RotateOptions {
    #[command(flatten)]
    pub(crate) key: KeyOptions,
    /// How long the old key goes on, such as `24h`; `0s`: not at all.
    #[arg(long, value_name = "AGE", value_parser = times::age, default_value = "24h")]
    pub(crate) overlap: std::time::Duration,
}

/// When a key ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    At(UtcTime),
    After(std::time::Duration),
}

fn end(text: &str) -> Result<End, String> {
    times::age(text).map(End::After).or_else(|_| times::instant(text).map(End::At))
}

impl End {
    /// Returns the instant.
    pub(crate) fn from(self, now: UtcTime) -> UtcTime {
        match self {
            Self::At(at) => at,
            Self::After(age) => now.saturating_add(age),
        }
    }
}
