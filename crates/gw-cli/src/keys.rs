//! `gw keys create`.

use gw_config::NewKey;

use crate::{arguments::CreateOptions, output};

/// Makes a key. The key goes to standard output alone, so that a pipe takes it and nothing else.
pub(crate) fn create(options: &CreateOptions) -> Result<(), String> {
    let key = NewKey::generate().map_err(|error| format!("error: {error}"))?;
    output::aside(format_args!("The key of tenant `{}`, shown once:", options.tenant));
    output::line(key.shown().expose())?;
    output::aside(format_args!("For the configuration, under [tenants.{}]:", options.tenant));
    output::aside(format_args!("keys = [{{ name = \"{}\", hash = \"{}\" }}]", options.name, key.line()));
    Ok(())
}
