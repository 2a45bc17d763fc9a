//! Which keys each table was asked for, so that the published schema can be compared with the reader.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

/// By the path of the table.
pub(crate) type Asked = BTreeMap<String, BTreeSet<&'static str>>;

thread_local! {
    static ASKED: RefCell<Asked> = const { RefCell::new(BTreeMap::new()) };
}

pub(super) fn note(path: &str, known: &[&'static str]) {
    ASKED.with_borrow_mut(|asked| asked.entry(path.to_owned()).or_default().extend(known));
}

/// Returns what was asked on this thread since the last time.
pub(crate) fn take() -> Asked {
    ASKED.take()
}
