//! The router against a brute-force oracle.

mod oracle;
mod props;
mod world;
