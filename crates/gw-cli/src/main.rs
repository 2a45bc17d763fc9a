//! `gw`: the command line of the model gateway.
//!
//! Exit codes: 0 done; 1 the work failed, a check that found errors included; 2 wrong usage.

#![forbid(unsafe_code)]

mod arguments;
mod cache;
mod check;
mod demo;
mod explain;
mod generate;
mod keys;
mod ledger;
mod log;
mod models;
mod output;
mod replay;
mod schema;
mod serve;
mod signals;
mod smoke;
mod times;
mod wire;

use std::process::ExitCode;

use clap::Parser;

use self::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Serve(options) => serve::run(options),
        Command::Check(options) => check::run(options),
        Command::Explain(options) => explain::run(options),
        Command::Models(options) => models::run(options),
        Command::Generate(options) => generate::run(options),
        Command::Smoke(options) => smoke::run(options),
        Command::Schema { name } => schema::run(*name),
        Command::Demo => demo::run(),
        Command::Cache { command } => cache::run(command),
        Command::Ledger { command } => ledger::run(command),
        Command::Replay(options) => replay::run(options),
        Command::Keys { command } => keys::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_empty() {
                output::aside(failure.trim_end());
            }
            ExitCode::FAILURE
        }
    }
}
