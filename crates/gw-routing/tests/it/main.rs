//! The router against a brute-force oracle.

mod live;
mod oracle;
mod props;
mod proved;
mod world;
