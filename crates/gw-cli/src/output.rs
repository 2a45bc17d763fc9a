//! What the command line prints: results on standard output, and nothing half-way where nobody reads on.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Prints a line on standard output.
///
/// # Errors
/// The reader is gone; the command ends without a word.
pub(crate) fn line(text: impl Display) -> Result<(), String> {
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(String::new()),
        Err(error) => Err(format!("error: standard output cannot be written: {error}")),
    }
}

/// Prints a line beside the result, on standard error. Whoever closed it does not want to read it.
pub(crate) fn aside(text: impl Display) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// Returns how many there are of something; `what` is a plural that ends in `s`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let what = if count == 1 { what.strip_suffix('s').unwrap_or(what) } else { what };
    format!("{count} {what}")
}
