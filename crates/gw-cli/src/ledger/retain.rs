//! `gw ledger retain`.

use gw_config::{Retained, RetainedNodes, Seams};
use serde::Serialize;

use crate::{
    arguments::{Format, RetainOptions},
    ledger, output, times,
};

/// What is printed for a program: of a file one object, of a database one with what happened to each of its nodes.
#[derive(Serialize)]
struct Shown {
    applied: bool,
    before: String,
    records: u64,
    last_seq: Option<u64>,
    spent_pico: u128,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<ShownNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_use: Vec<i64>,
}

#[derive(Serialize)]
struct ShownNode {
    node: i64,
    records: u64,
    last_seq: u64,
    spent_pico: u128,
}

impl Shown {
    fn new(applied: bool, before: String, retained: &RetainedNodes) -> Self {
        let of_node = |(node, old): &(i64, Retained)| ShownNode {
            node: *node,
            records: old.requests,
            last_seq: old.seq,
            spent_pico: old.spent.pico(),
        };
        let is_file = |node: &i64| *node == 0;
        Self {
            applied,
            before,
            records: retained.nodes.iter().map(|(_, old)| old.requests).sum(),
            last_seq: retained.nodes.iter().find(|(node, _)| is_file(node)).map(|(_, old)| old.seq),
            spent_pico: retained.nodes.iter().map(|(_, old)| old.spent.pico()).sum(),
            nodes: retained.nodes.iter().filter(|(node, _)| !is_file(node)).map(of_node).collect(),
            in_use: retained.in_use.clone(),
        }
    }
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
    let shown = Shown::new(options.apply, before.to_rfc3339(), &retained);
    match options.format {
        Format::Json => {
            let json = serde_json::to_string(&shown);
            output::line(json.map_err(|_| "error: the result cannot be written as JSON".to_owned())?)
        }
        Format::Text => print(&retained, &shown.before, options.apply),
    }
}

fn print(retained: &RetainedNodes, before: &str, applied: bool) -> Result<(), String> {
    if retained.nodes.is_empty() {
        output::line(format_args!("no record started before {before}"))?;
    }
    for (node, Retained { seq, requests, spent }) in &retained.nodes {
        let of = if *node == 0 { String::new() } else { format!("node {node}: ") };
        if applied {
            output::line(format_args!(
                "{of}deleted {requests} records up to number {seq} that started before {before}; \
                 a summary of them ({spent} spent) is sealed in the chain"
            ))?;
        } else {
            output::line(format_args!(
                "{of}would delete {requests} records up to number {seq} that started before {before} \
                 ({spent} spent); nothing was changed: write `--apply` to delete them"
            ))?;
        }
    }
    for node in &retained.in_use {
        output::aside(format_args!("node {node} was left alone: a gateway holds it"));
    }
    Ok(())
}
