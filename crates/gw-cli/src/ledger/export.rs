//! `gw ledger export`.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write},
};

use gw_config::{ExportError, ExportFormat, Period};

use crate::{
    arguments::{ExportAs, ExportOptions, PeriodOptions},
    ledger, output,
};

/// Writes the records.
pub(crate) fn run(options: &ExportOptions) -> Result<(), String> {
    let file = ledger::open(&ledger::source(&options.ledger)?)?;
    let mut to: Box<dyn Write> = match &options.output {
        None => Box::new(BufWriter::new(io::stdout().lock())),
        Some(path) => {
            let opened = OpenOptions::new().write(true).create_new(true).open(path);
            let failed = |error: io::Error| format!("error: `{}` cannot be made: {error}", path.display());
            Box::new(BufWriter::new(opened.map_err(failed)?))
        }
    };
    let format = match options.format {
        ExportAs::Jsonl => ExportFormat::JsonLines,
        ExportAs::Csv => ExportFormat::Csv,
    };
    match file.export(format, period(&options.period), options.tenant.as_ref(), &mut to) {
        Ok(written) => {
            if let Some(path) = &options.output {
                output::aside(format_args!("{written} records written to {}", path.display()));
            }
            Ok(())
        }
        // Whoever reads has seen enough.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Err(String::new()),
        Err(ExportError::Write(error)) => Err(format!("error: the export cannot be written: {error}")),
        Err(ExportError::Store(error)) => Err(ledger::failed(&error)),
    }
}

/// Returns the stretch of time that the options name.
pub(crate) fn period(options: &PeriodOptions) -> Period {
    Period { from: options.from, until: options.until }
}
