//! Tests of the crate's public face: properties, and recorded exchanges.

mod fixtures;
mod props;
mod recorded;
