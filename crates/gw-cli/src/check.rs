//! `gw check`.

use std::io::IsTerminal;

use gw_config::{Checked, Config, Diagnostics, SystemEnvironment};

use crate::{
    arguments::{CheckOptions, Format},
    output,
};

/// Checks a configuration without opening a socket or a store.
pub(crate) fn run(options: &CheckOptions) -> Result<(), String> {
    let checked = Config::load(&options.file, &SystemEnvironment).and_then(Checked::of);
    match (checked, options.format) {
        (Ok(checked), Format::Text) => {
            let counts: Vec<String> =
                checked.counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
            let (file, digest) = (options.file.display(), checked.config.digest());
            output::line(format_args!("{file}: valid; {}; digest {digest}", counts.join(", ")))
        }
        (Ok(checked), Format::Json) => {
            let counts: serde_json::Map<_, _> =
                checked.counts.iter().map(|(what, count)| ((*what).to_owned(), (*count).into())).collect();
            let digest = checked.config.digest();
            output::line(serde_json::json!({"digest": digest.as_str(), "counts": counts, "errors": []}))
        }
        (Err(faults), Format::Text) => Err(rendered(&faults)),
        (Err(faults), Format::Json) => {
            output::line(faults.to_json())?;
            Err(format!("{}: {} errors", options.file.display(), faults.iter().len()))
        }
    }
}

/// Renders findings for whoever reads standard error.
pub(crate) fn rendered(faults: &Diagnostics) -> String {
    faults.render(std::io::stderr().is_terminal())
}
