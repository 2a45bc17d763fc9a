//! The numeric invariants, each over 10,000 random histories against a model.

mod admission;
mod bucket;
mod governor;
mod money;
mod scopes;
mod shares;

use proptest::test_runner::Config;

/// Histories per invariant.
const CASES: u32 = 10_000;
/// Steps in one history, at most.
const STEPS_MAX: usize = 20;

fn config() -> Config {
    Config { cases: CASES, ..Config::default() }
}
