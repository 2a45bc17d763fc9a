//! The crate from outside: invariants against models, reported faults, changes of the limits at run time.

// The attribute tells the lints that helpers in these files are test code too.
#[cfg(test)]
mod cases;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod model;
#[cfg(test)]
mod pacing;
#[cfg(test)]
mod props;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod scopes;
