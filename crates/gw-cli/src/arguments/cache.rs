//! What may stand behind `gw cache`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Prints what the caches of a running gateway hold, and what each partition of the semantic tier has decided.
    Report(CacheReportOptions),
    /// Says what a running gateway would forget, and with `--apply` makes it forget.
    Invalidate(InvalidateOptions),
    /// Replays labelled questions through the semantic tier and prints hits, wrong hits and traps with their bounds.
    Evaluate(EvaluateOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AdminOptions {
    /// Where the gateway takes admin requests, such as `127.0.0.1:8081` or `http://127.0.0.1:8081`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = address)]
    pub(crate) admin: SocketAddr,
    /// The admin key, if it asks for one.
    #[arg(long, env = "GW_ADMIN_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) admin_key: Option<String>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix("http://").map_or(text, |rest| rest.strip_suffix('/').unwrap_or(rest));
    bare.parse().map_err(|_| "write an IP address and a port, as in `127.0.0.1:8081`".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct CacheReportOptions {
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

#[derive(Debug, Args)]
pub(crate) struct InvalidateOptions {
    /// Only this tenant's answers.
    #[arg(long, value_name = "TENANT", required_unless_present_any = ["route", "epoch", "all"])]
    pub(crate) tenant: Option<gw_types::TenantId>,
    /// Only this route's answers.
    #[arg(long, value_name = "ROUTE")]
    pub(crate) route: Option<gw_types::RouteName>,
    /// Only answers of an epoch before this one.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) epoch: Option<u64>,
    /// All answers.
    #[arg(long, conflicts_with_all = ["tenant", "route", "epoch"])]
    pub(crate) all: bool,
    /// Forgets them; without this they are only counted.
    #[arg(long)]
    pub(crate) apply: bool,
    #[command(flatten)]
    pub(crate) admin: AdminOptions,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateOptions {
    /// The labelled questions: JSON Lines, as the documentation of the semantic cache describes them.
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: PathBuf,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}
