//! `gw check`.

use std::{io::IsTerminal, path::Path};

use gw_config::{Checked, Config, Diagnostics, SystemEnvironment};

use crate::{
    arguments::{CheckOptions, Format},
    output,
};

/// Checks a configuration without opening a socket or a store.
pub(crate) fn run(options: &CheckOptions) -> Result<(), String> {
    if let Some([old, new]) = options.diff.as_deref() {
        let (old, new) = (read(old, options)?, read(new, options)?);
        let changes = old.changes_to(&new).map_err(|faults| rendered(&faults))?;
        return match options.format {
            Format::Text => output::line(changes),
            Format::Json => output::line(changes.to_json()),
        };
    }
    let checked = read(&options.file, options)?;
    if options.format == Format::Text && !checked.warnings.is_empty() {
        output::aside(rendered(&checked.warnings).trim_end());
    }
    match (options.format, options.table) {
        (Format::Text, true) => output::line(checked.table().map_err(|faults| rendered(&faults))?),
        (Format::Json, true) => output::line(checked.table().map_err(|faults| rendered(&faults))?.to_json()),
        (Format::Text, false) => {
            let counts: Vec<String> =
                checked.counts.iter().map(|(what, count)| output::counted(*count, what)).collect();
            let (file, digest) = (options.file.display(), checked.config.digest());
            output::line(format_args!("{file}: valid; {}; digest {digest}", counts.join(", ")))
        }
        (Format::Json, false) => {
            let counts: serde_json::Map<_, _> =
                checked.counts.iter().map(|(what, count)| ((*what).to_owned(), (*count).into())).collect();
            let digest = checked.config.digest();
            let warnings = checked.warnings.to_values();
            output::line(serde_json::json!({
                "digest": digest.as_str(), "counts": counts, "errors": [], "warnings": warnings,
            }))
        }
    }
}

/// Reads and checks one file.
fn read(file: &Path, options: &CheckOptions) -> Result<Checked, String> {
    let checked = Config::load(file, &SystemEnvironment).and_then(Checked::of);
    let checked = if options.strict { checked.and_then(Checked::strict) } else { checked };
    match (checked, options.format) {
        (Ok(checked), Format::Text | Format::Json) => Ok(checked),
        (Err(faults), Format::Text) => Err(rendered(&faults)),
        (Err(faults), Format::Json) => {
            output::line(faults.to_json())?;
            Err(format!("{}: {}", file.display(), output::counted(faults.iter().len(), "errors")))
        }
    }
}

/// Renders findings for whoever reads standard error.
pub(crate) fn rendered(faults: &Diagnostics) -> String {
    faults.render(std::io::stderr().is_terminal())
}
