//! The ledgers against a simple model, against a crash, and what an auditor gets from them.

#[cfg(test)]
pub(crate) use gw_stores::LedgerStore;

#[cfg(test)]
mod audit;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod faults;
#[cfg(test)]
#[path = "../../src/home.rs"]
mod home;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod props;
#[cfg(test)]
mod redis;
