//! What may stand on the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A model gateway: policy checked before traffic, hard budgets, one deadline, evidence without content.
#[derive(Debug, Parser)]
#[command(name = "gw", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves requests until SIGTERM or SIGINT, then drains.
    Serve(ServeOptions),
    /// Checks a configuration and says everything that is wrong with it.
    Check(CheckOptions),
    /// Shows a plain answer, a stream, a failover and a refusal, against a fake provider in the same process.
    Demo,
    /// Makes keys.
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The configuration; without it `gw.toml` of the current folder if there is one, else the built-in demo models
    /// and the providers whose keys stand in the environment.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where requests are taken, instead of what the configuration says.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where metrics and admin requests are taken, instead of what the configuration says.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// What is logged: `error`, `warn`, `info`, `debug`, or a filter such as `gw_server=debug`.
    #[arg(long, env = "GW_LOG", value_name = "FILTER", default_value = "info")]
    pub(crate) log: String,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The configuration; without it `gw.toml` of the current folder.
    #[arg(value_name = "FILE", default_value = "gw.toml")]
    pub(crate) file: PathBuf,
    /// How findings are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Makes a key: prints it once, and the line that goes into the configuration.
    Create(CreateOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CreateOptions {
    /// The tenant that the key will belong to.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: gw_types::TenantId,
    /// What the key is called in records.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: gw_types::KeyName,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}
