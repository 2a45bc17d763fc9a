//! The ledgers against a simple model, against a crash, and what an auditor gets from their file.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod props;
#[cfg(test)]
mod redis;
