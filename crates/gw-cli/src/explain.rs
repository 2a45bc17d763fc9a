//! `gw explain`.

use gw_config::{Checked, Config, Question, SystemEnvironment};

use crate::{
    arguments::{ExplainOptions, Format},
    check::rendered,
    output,
};

/// Decides over one request with the code of the running gateway, and prints the decision step by step.
pub(crate) fn run(options: &ExplainOptions) -> Result<(), String> {
    let checked = Config::load(&options.config, &SystemEnvironment)
        .and_then(Checked::of)
        .map_err(|faults| rendered(&faults))?;
    let explained = checked.explain(&question(options)).map_err(|wrong| format!("error: {wrong}"))?;
    match options.format {
        Format::Text => output::line(&explained)?,
        Format::Json => output::line(explained.to_json())?,
    }
    // What is to be said of a refusal stands in the decision.
    if explained.is_served() { Ok(()) } else { Err(String::new()) }
}

fn question(options: &ExplainOptions) -> Question {
    Question {
        model: options.model.clone(),
        tenant: options.tenant.clone(),
        classification: options.classification.clone(),
        residency: options.residency.clone(),
        task_class: options.task_class.clone(),
        needs: options.needs.clone(),
        stream: options.stream,
        input_tokens: options.input_tokens,
        share_key: options.share_key.clone(),
    }
}
