//! What may stand on the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use gw_config::Question;

mod cache;
mod generate;
mod keys;
mod ledger;

pub(crate) use self::cache::{AdminOptions, CacheCommand, EvaluateOptions, InvalidateOptions};
pub(crate) use self::generate::GenerateOptions;
pub(crate) use self::keys::{CreateOptions, KeyOptions, KeysCommand, ListOptions, RotateOptions};
pub(crate) use self::ledger::{
    ExportAs, ExportOptions, LedgerCommand, LedgerOptions, PeriodOptions, ReceiptOptions, ReplayOptions,
    ReportOptions, RetainOptions, VerifyOptions,
};

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
    /// Says what would become of one request and why; exits with 1 if nothing may serve it.
    Explain(ExplainOptions),
    /// Lists the models of the built-in catalogue: sizes, capabilities, prices.
    Models(ModelsOptions),
    /// Asks for every item of a file and writes a result for each; bounded, and goes on where it was killed.
    Generate(Box<GenerateOptions>),
    /// Exercises what gw promises of batches on a fault server in this process, and writes a report; needs no key and no network.
    Smoke(SmokeOptions),
    /// Prints the JSON Schema of something that gw reads or writes.
    Schema {
        /// Which one.
        #[arg(value_enum)]
        name: SchemaName,
    },
    /// Shows a plain answer, a stream, a failover and a refusal, against a fake provider in the same process.
    Demo,
    /// Says what the cache of a running gateway holds and decides, makes it forget, tries labelled questions.
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Checks, exports, adds up and prunes the records.
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },
    /// Decides over recorded requests again under another configuration, and prints what would change; calls no provider.
    Replay(ReplayOptions),
    /// Makes, lists, rotates and revokes keys.
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
    /// How the log is written: lines for people, or a JSON object a line for programs.
    #[arg(long, env = "GW_LOG_FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) log_format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The configuration; without it `gw.toml` of the current folder.
    #[arg(value_name = "FILE", default_value = "gw.toml")]
    pub(crate) file: PathBuf,
    /// How findings are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Makes every warning an error.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Prints which deployments serve each class of requests, and why the others do not.
    #[arg(long)]
    pub(crate) table: bool,
    /// Prints which classes of requests go elsewhere under a second configuration.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["file", "table"])]
    pub(crate) diff: Option<Vec<PathBuf>>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// The configuration; without it `gw.toml` of the current folder.
    #[arg(long, value_name = "FILE", default_value = "gw.toml")]
    pub(crate) config: PathBuf,
    /// The model asked for.
    #[arg(long, value_name = "MODEL", required_unless_present_any = ["request", "record"])]
    pub(crate) model: Option<String>,
    /// A request's body as JSON, `-` for standard input: model, needs, sizes and metadata are read from it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "record"])]
    pub(crate) request: Option<PathBuf>,
    /// What the body is a request of: `chat`, `completions`, `responses`, `messages`, `embeddings`.
    #[arg(long, value_name = "OPERATION", default_value = "chat", value_parser = Question::operation, requires = "request")]
    pub(crate) operation: gw_types::Operation,
    /// A record of the configuration's ledger, by its id: decides over its request again.
    #[arg(long, value_name = "ID", value_parser = request_id, conflicts_with_all = QUESTION)]
    pub(crate) record: Option<gw_types::RequestId>,
    /// The tenant; may be left out where there is one.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// The name of a key of the tenant; without it one that has no budget of its own.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The classification; without it the tenant's default.
    #[arg(long, value_name = "CLASSIFICATION")]
    pub(crate) classification: Option<String>,
    /// A group of regions demanded beside the tenant's own.
    #[arg(long, value_name = "GROUP")]
    pub(crate) residency: Vec<String>,
    /// The task class.
    #[arg(long, value_name = "CLASS")]
    pub(crate) task_class: Option<String>,
    /// Asks for a stream.
    #[arg(long)]
    pub(crate) stream: bool,
    /// What the deployment must be able to do, with commas between.
    #[arg(long, value_name = "CAPABILITIES", value_delimiter = ',')]
    pub(crate) needs: Vec<String>,
    /// The size of the input.
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub(crate) input_tokens: u64,
    /// The output bound that the request names.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) output_tokens: Option<u64>,
    /// A pair of the request's metadata.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<(String, String)>,
    /// The label of the end user, by which shares go.
    #[arg(long, value_name = "KEY")]
    pub(crate) share_key: Option<String>,
    /// How the decision is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What a record says itself.
const QUESTION: [&str; 12] = [
    "model",
    "tenant",
    "key",
    "classification",
    "residency",
    "task_class",
    "stream",
    "needs",
    "input_tokens",
    "output_tokens",
    "metadata",
    "share_key",
];

fn request_id(text: &str) -> Result<gw_types::RequestId, gw_types::InvalidName> {
    text.to_owned().try_into()
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("write `KEY=VALUE`")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct ModelsOptions {
    /// Only models whose name holds this text.
    #[arg(value_name = "NAME", default_value = "")]
    pub(crate) name: String,
    /// Only models of this provider.
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,
    /// How they are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SmokeOptions {
    /// The folder for `report.json`, `report.md` with its charts, and `events.jsonl`; made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// Draws no progress.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// `gw.toml`, read as JSON.
    Config,
    /// An item of a batch: one line of the input of `gw generate`.
    Request,
    /// A result of a batch: one line of the output of `gw generate`.
    Result,
    /// The record that a request leaves in the ledger.
    Record,
    /// The report of `gw smoke`.
    Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Arguments, Command};

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn reads(arguments: &str) -> Result<Command, clap::error::ErrorKind> {
        let arguments = Arguments::try_parse_from(arguments.split(' '));
        arguments.map(|arguments| arguments.command).map_err(|error| error.kind())
    }

    #[test]
    fn a_comparison_takes_two_files_and_no_third() {
        let Ok(Command::Check(options)) = reads("gw check --diff a.toml b.toml") else { panic!("refused") };
        assert_eq!(options.diff.unwrap().len(), 2);
        assert!(reads("gw check --diff a.toml").is_err());
        assert!(reads("gw check --diff a.toml b.toml --table").is_err());
        assert!(reads("gw check c.toml --diff a.toml b.toml").is_err());
    }

    #[test]
    fn a_request_to_explain_lists_needs_with_commas() {
        let Ok(Command::Explain(options)) =
            reads("gw explain --model m --needs tools,vision --residency a --residency b")
        else {
            panic!("refused")
        };
        assert_eq!((options.needs.len(), options.residency.len()), (2, 2));
        assert!(reads("gw explain").is_err());
        assert!(reads("gw explain --request body.json --tenant t --operation messages").is_ok());
        assert!(reads("gw explain --request body.json --tenant t --operation chats").is_err());
        assert!(reads("gw cache report --admin http://127.0.0.1:9000/").is_ok());
        assert!(reads("gw cache report --admin localhost").is_err());
        assert!(reads("gw explain --request body.json --model m").is_err());
        assert!(reads("gw explain --record 01 --tenant t").is_err());
        assert!(reads("gw explain --model m --metadata team").is_err());
    }
}
