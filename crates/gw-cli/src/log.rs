//! The log: one line an event on standard error.

use std::io::IsTerminal;

use tracing_subscriber::{
    EnvFilter,
    field::MakeExt as _,
    fmt::format::{Writer, debug_fn},
};

use crate::arguments::Format;

/// Starts the log, and has faults of gw's own told in it.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(filter: &str, format: Format) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("error: the log filter cannot be read: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        Format::Text if std::io::stderr().is_terminal() => {
            tracing::subscriber::set_global_default(builder.finish())
        }
        // The same text without the thought of colour, which costs a request as much as the line itself.
        Format::Text => {
            let plain = debug_fn(|to: &mut Writer<'_>, field, value| match field.name() {
                "message" => write!(to, "{value:?}"),
                name => write!(to, "{name}={value:?}"),
            });
            let subscriber = builder.with_ansi(false).fmt_fields(plain.delimited(" ")).finish();
            tracing::subscriber::set_global_default(subscriber)
        }
        Format::Json => {
            let subscriber = builder.json().flatten_event(true).with_current_span(false).finish();
            tracing::subscriber::set_global_default(subscriber)
        }
    };
    started.map_err(|error| format!("error: {error}"))?;
    tell_faults();
    Ok(())
}

/// A panic's own message may quote what it stumbled over, a prompt for instance, so only its place is told.
fn tell_faults() {
    std::panic::set_hook(Box::new(|fault| {
        let place = fault.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "gw met a fault of its own");
    }));
}
