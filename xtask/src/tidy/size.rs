//! How long a file may be.

use super::source::Source;
use crate::finding::Finding;

/// Lines outside tests. Past about 400 a file usually holds two ideas; past this it does.
const PRODUCT_LINES_MAX: usize = 600;
/// All lines, tests included: past this the tests want a file of their own.
const LINES_MAX: usize = 900;

pub(super) fn check(source: &Source<'_>) -> Option<Finding> {
    let product = source.product_lines().count();
    let all = source.code.len();
    let (lines, limit, kind) = if product > PRODUCT_LINES_MAX {
        (product, PRODUCT_LINES_MAX, "lines outside tests")
    } else if all > LINES_MAX {
        (all, LINES_MAX, "lines")
    } else {
        return None;
    };
    Some(source.finding(
        limit,
        &format!("{lines} {kind}"),
        "a file is one idea that can be read at once",
        &format!("at most {PRODUCT_LINES_MAX} lines outside tests and {LINES_MAX} in all"),
    ))
}
