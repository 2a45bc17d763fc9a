//! The checks, in the order in which they are played.

use std::pin::Pin;

use super::{bounds, cleanup, faults, finding::Finding, watchdog};

type Playing = Pin<Box<dyn Future<Output = Result<Finding, String>>>>;

/// One check.
pub(super) struct Check {
    pub(super) name: &'static str,
    /// What is true if it passes.
    pub(super) claim: &'static str,
    /// How often it may be played until it passes.
    pub(super) tries: u64,
    pub(super) play: Box<dyn Fn() -> Playing>,
}

/// Plays of a check that depends on how soon the machine comes to it.
const TRIES: u64 = 3;

fn check<F: Future<Output = Result<Finding, String>> + 'static>(
    name: &'static str,
    claim: &'static str,
    play: fn() -> F,
) -> Check {
    Check { name, claim, tries: 1, play: Box::new(move || Box::pin(play())) }
}

impl Check {
    fn timed(self) -> Self {
        Self { tries: TRIES, ..self }
    }
}

/// Returns every check but the comparison, which is the last.
pub(super) fn checks() -> Vec<Check> {
    let rows = faults::rows().into_iter().enumerate().map(|(at, row)| Check {
        name: row.name,
        claim: row.claim,
        tries: 1,
        play: Box::new(move || Box::pin(faults::play(faults::rows().swap_remove(at)))),
    });
    rows.chain(others()).collect()
}

fn others() -> Vec<Check> {
    vec![
        check(
            "bounded_concurrency",
            "the server never sees more calls at once than there are workers",
            bounds::concurrency,
        ),
        check(
            "bounded_tokens",
            "the server never sees more tokens at once than are allowed, whatever the workers",
            bounds::tokens,
        ),
        check(
            "oversize_item",
            "an item larger than the tokens that may be in flight is refused before any call",
            bounds::oversize,
        ),
        check("pace", "calls come no faster than the pace, retries included", bounds::pace).timed(),
        check(
            "retry_amplification",
            "one item in five fails once: 1.2 calls an item and every item answered",
            bounds::amplification,
        ),
        check(
            "retry_amplification_in_an_outage",
            "every call fails: at most 1.2 calls an item, because retries have a budget",
            bounds::outage,
        ),
        check(
            "cancellation",
            "a dropped batch ends its calls and holds nothing when the drop returns",
            cleanup::cancellation,
        ),
        check("deadline", "an item whose time is up leaves no call and holds nothing", cleanup::deadline),
        check(
            "watchdog_undisturbed",
            "while a 120 ms answer is pending, a fast request and a 10 ms heartbeat go on with a lag below 100 ms",
            watchdog::undisturbed,
        )
        .timed(),
        check(
            "watchdog_detects_a_block",
            "a deliberate block of 120 ms is seen by the same watchdog",
            watchdog::blocked,
        )
        .timed(),
    ]
}
