//! `gw ledger verify`.

use std::{io::Read, path::Path};

use gw_config::{ChainFault, Expected, RecordReceipt, Verified};
use serde_json::json;

use crate::{
    arguments::{Format, VerifyOptions},
    ledger, output,
};

/// The largest receipt that is read, in bytes: a record, and a link for each of the 1,000 after it, with much to spare.
const RECEIPT_BYTES_MAX: u64 = 16 << 20;

/// Checks a ledger, or one receipt.
pub(crate) fn run(options: &VerifyOptions) -> Result<(), String> {
    match &options.receipt {
        Some(receipt) => check_receipt(receipt, options),
        None => check_ledger(options),
    }
}

fn check_ledger(options: &VerifyOptions) -> Result<(), String> {
    let source = ledger::source(&options.ledger)?;
    let expected = Expected { signer: options.signer.or(source.signer()), known: options.known };
    let file = ledger::open(&source)?;
    let nodes = match options.node {
        Some(node) => vec![node],
        None => file.nodes().map_err(|error| ledger::failed(&error))?,
    };
    if nodes.len() > 1 && options.known.is_some() {
        return Err("error: the ledger has several chains; write `--node NUMBER` beside `--known`".to_owned());
    }
    let mut wrong = Vec::new();
    for node in nodes {
        let found = file.verify_node(node, &expected).map_err(|error| ledger::failed(&error))?;
        wrong.extend(show(options.format, &source.name(), node, &found)?);
    }
    // What is wrong stands in the result where that is for a program.
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Prints what was found; returns what is wrong.
fn show(format: Format, ledger: &str, node: i64, found: &Verified) -> Result<Option<String>, String> {
    if format == Format::Json {
        output::line(as_json(node, found))?;
        return Ok((!found.is_whole()).then(String::new));
    }
    let name = if node == 0 { ledger.to_owned() } else { format!("{ledger}, node {node}") };
    let Verified { records, last: (seq, hash), checkpoints, fault } = found;
    let Some(fault) = fault else {
        output::line(format_args!(
            "{name}: whole; {records} records, {checkpoints} signed checkpoints, last entry {seq}:{hash}"
        ))?;
        return Ok(None);
    };
    Ok(Some(format!("error: {name}: {fault}; {records} records before that are as they were sealed")))
}

fn as_json(node: i64, found: &Verified) -> serde_json::Value {
    let Verified { records, last: (seq, hash), checkpoints, fault } = found;
    let fault = fault.as_ref().map(
        |fault: &ChainFault| json!({"kind": fault.kind(), "seq": fault.seq(), "message": fault.to_string()}),
    );
    let mut shown = json!({
        "whole": found.is_whole(),
        "records": records,
        "checkpoints": checkpoints,
        "last": {"seq": seq, "hash": hash.to_string()},
        "fault": fault,
    });
    if node > 0 {
        shown["node"] = node.into();
    }
    shown
}

fn check_receipt(path: &Path, options: &VerifyOptions) -> Result<(), String> {
    let text = read(path).map_err(|error| format!("error: `{}` cannot be read: {error}", path.display()))?;
    let receipt: RecordReceipt = serde_json::from_slice(&text)
        .map_err(|error| format!("error: `{}` is no receipt: {error}", path.display()))?;
    let signer = match options.signer {
        Some(signer) => signer,
        None => ledger::source(&options.ledger)?.signer().ok_or(
            "error: a receipt proves something only where it is known who signs; write `--signer HEX`, \
             or name a configuration with `ledger.checkpoint_key`",
        )?,
    };
    let checked = receipt.verify(&signer);
    let (seq, signed) = (receipt.seq(), receipt.checkpoint().seq);
    if options.format == Format::Json {
        let fault = checked.err().map(|broken| broken.to_string());
        output::line(json!({"holds": checked.is_ok(), "seq": seq, "checkpoint": signed, "fault": fault}))?;
        return checked.map_err(|_| String::new());
    }
    checked.map_err(|broken| format!("error: {}: {broken}", path.display()))?;
    output::line(format_args!(
        "{}: holds; record {seq} stands in the chain that {signer} has signed up to record {signed}",
        path.display()
    ))
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut text = Vec::new();
    from.take(RECEIPT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}
