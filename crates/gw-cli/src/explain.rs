//! `gw explain`.

use std::{io::Read, path::Path};

use gw_config::{Checked, Config, Explained, Question, SystemEnvironment};
use gw_types::RequestId;

use crate::{
    arguments::{ExplainOptions, Format},
    check::rendered,
    output,
};

/// The largest body that is read, in bytes.
const BODY_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// Decides over one request with the code of the running gateway, and prints the decision step by step.
pub(crate) fn run(options: &ExplainOptions) -> Result<(), String> {
    let checked = Config::load_without_callers(&options.config, &SystemEnvironment)
        .and_then(Checked::of)
        .map_err(|faults| rendered(&faults))?;
    let explained = match &options.record {
        Some(id) => of_record(&checked, id)?,
        None => checked.explain(&question(options)?).map_err(|wrong| format!("error: {wrong}"))?,
    };
    match options.format {
        Format::Text => output::line(&explained)?,
        Format::Json => output::line(explained.to_json())?,
    }
    // What is to be said of a refusal stands in the decision.
    if explained.is_served() { Ok(()) } else { Err(String::new()) }
}

fn of_record(checked: &Checked, id: &RequestId) -> Result<Explained, String> {
    let record = checked.config.record(id).map_err(|faults| rendered(&faults))?;
    let Some(record) = record else { return Err(format!("error: the ledger has no record `{id}`")) };
    checked.explain_record(&record).map_err(|wrong| format!("error: {wrong}"))
}

fn question(options: &ExplainOptions) -> Result<Question, String> {
    let question = Question {
        model: options.model.clone().unwrap_or_default(),
        tenant: options.tenant.clone(),
        key: options.key.clone(),
        classification: options.classification.clone(),
        residency: options.residency.clone(),
        task_class: options.task_class.clone(),
        needs: options.needs.clone(),
        stream: options.stream,
        input_tokens: options.input_tokens,
        output_tokens: options.output_tokens,
        metadata: options.metadata.clone(),
        share_key: options.share_key.clone(),
        ..Question::default()
    };
    let Some(path) = &options.request else { return Ok(question) };
    let body = body(path).map_err(|error| format!("error: `{}` cannot be read: {error}", path.display()))?;
    question
        .with_body(options.operation, &body)
        .map_err(|wrong| format!("error: {}: {wrong}", path.display()))
}

fn body(path: &Path) -> std::io::Result<Vec<u8>> {
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut body = Vec::new();
    from.take(BODY_BYTES_MAX).read_to_end(&mut body)?;
    Ok(body)
}
