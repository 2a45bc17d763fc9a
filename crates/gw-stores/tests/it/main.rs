//! The ledgers against a simple model.

#[cfg(test)]
mod props;
