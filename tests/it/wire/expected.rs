//! The table of what the recorded answers say.

use std::{collections::BTreeMap, path::Path};

use super::{
    exchange::{Corpus, Exchange, variable},
    told::{Depth, Told},
};

/// Set to anything, writes the table anew instead of comparing with it; the difference is for a reader.
const UPDATE_VARIABLE: &str = "GW_UPDATE";

/// What stands above the rows.
const HEAD: &str = "\
# What every recorded answer says, as facts: one row an exchange. Rewritten with GW_UPDATE=1; the difference is read.
#
# id: finish block=bytes#digest ... | usage class=tokens ... | model
#
# Digests are FNV-1a, 32 bits: of text as it is, of a call's arguments as JSON with sorted keys and no blanks. Choices
# are parted by `/`. Rows without figures are of answers that no recorder took off the wire: their shape counts.
";

/// Rows by the id of the exchange.
pub(super) struct Table(BTreeMap<&'static str, &'static str>);

impl Table {
    /// Reads the table.
    pub(super) fn read() -> Self {
        let rows = include_str!("expected.txt").lines().filter(|line| !line.starts_with('#'));
        let table = rows.map(|row| row.split_once(": ").unwrap_or_else(|| panic!("not a row: {row}")));
        Self(table.collect())
    }

    /// Returns what is wrong with an answer by its row.
    pub(super) fn compare(&self, exchange: &Exchange, told: &Told) -> Option<String> {
        let found = row(exchange, told);
        match self.0.get(&*exchange.id) {
            None => Some(format!("has no row in the table; its answer says\n    {found}")),
            Some(expected) if *expected == found => None,
            Some(expected) => Some(format!("says\n    {found}\n  where the table has\n    {expected}")),
        }
    }

    /// Returns the rows that no exchange has.
    pub(super) fn orphans(&self, corpus: &Corpus) -> Vec<&'static str> {
        let is_orphan = |id: &&&'static str| !corpus.exchanges.iter().any(|exchange| exchange.id == **id);
        self.0.keys().filter(is_orphan).copied().collect()
    }
}

fn row(exchange: &Exchange, told: &Told) -> String {
    told.row(if exchange.is_recorded { Depth::Full } else { Depth::Shape })
}

/// Writes the table anew if the environment asks for it.
pub(super) fn update(told: &[(&Exchange, Told)]) {
    if variable(UPDATE_VARIABLE).is_none() {
        return;
    }
    let rows = told.iter().map(|(exchange, told)| format!("{}: {}\n", exchange.id, row(exchange, told)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/wire/expected.txt");
    std::fs::write(path, HEAD.to_owned() + &rows.collect::<String>()).expect("the table is written");
}
